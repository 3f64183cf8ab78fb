//! Labs, and the experiments that run in them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod experiment;
mod experiment_runs;
mod faults;
mod kernel;
mod path;
mod pooled_streams;
mod program;
mod records;
mod scsi;
mod world;
