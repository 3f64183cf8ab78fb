//! The results of an experiment: a folder that says of itself what is in it, and how it came about.
//!
//! | file | what |
//! |---|---|
//! | `experiment.toml` | the experiment, as it was run |
//! | `manifest.json` | which form; the machine; every run that is to be done |
//! | `runs/0001-1.json` | run 1, first attempt: program, setup with all defaults, seed, settings of both hosts, measured values, what sessions and relay did, the verdict |
//! | `runs/0001-1.jsonl` | its samples, one a line |
//! | `runs/0001-1.pcapng` | its capture, if the experiment asks for one |
//! | `report.html`, `figure-1.png` | what it says, if that was asked for: made of the others |
//!
//! A file is there whole or not at all, and a run is there if its `.json` is. So a series of runs that was interrupted
//! goes on where it was.
//!
//! The manifest is written first, and marks the folder: in a folder without it nothing is written or removed, and beside
//! it only files of these names are.

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
