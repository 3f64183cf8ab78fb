//! The results of an experiment: a self-describing folder.
//!
//! | file | contents |
//! |---|---|
//! | `experiment.toml` | the experiment, as it was run |
//! | `manifest.json` | the form, the machine, and every run to be done |
//! | `runs/0001-1.json` | run 1, first attempt: program, setup with all defaults, seed, settings of both hosts, measurements, reports of sessions and relay, the verdict |
//! | `runs/0001-1.jsonl` | its samples, one a line |
//! | `runs/0001-1.pcapng` | its capture, if the experiment asks for one |
//! | `report.html`, `figure-1.png` | the report, if requested: made from the other files |
//!
//! A file is written whole or not at all, and a run exists if its `.json` does. An interrupted series therefore resumes
//! where it stopped.
//!
//! The manifest is written first, and marks the folder: `lab` writes and removes nothing in a folder without it, and in
//! one with it only files of these names.

mod file;
mod folder;
mod machine;
mod manifest;
mod own_files;
mod program;
mod record;

pub use folder::{Folder, FolderError};
pub use machine::Machine;
pub use manifest::{Manifest, ManifestRun, SCHEMA};
pub use own_files::{REPORT, Removal};
pub use program::Program;
pub use record::RunRecord;
