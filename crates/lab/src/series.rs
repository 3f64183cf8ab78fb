//! All runs of an experiment, one after the other; finished runs are not repeated.

use crate::experiment::{Plan, Setup};
use crate::lab::LabError;
use crate::results::{Folder, FolderError, RunRecord};
use crate::run::RunOutcome;
use std::time::Duration;

/// The reason why a series of runs ended early.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// No lab can be built.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Results cannot be stored.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// The progress of a series of runs.
#[derive(Clone, Copy, Debug)]
pub enum SeriesEvent<'a> {
    /// An attempt at a run begins.
    Begins {
        /// The run, from 1.
        run: usize,
        /// The number of the attempt at this run, from 1.
        attempt: u32,
        /// Its estimated time.
        estimate: Duration,
    },
    /// It has ended, and is stored.
    Ended(&'a RunRecord),
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It has a VALID attempt.
    Valid,
    /// All its attempts are INVALID, or its workload failed, which another attempt might only hide.
    Invalid,
    /// It needs an attempt, the first or another one.
    ToDo,
}

/// The state of the run with this index.
#[must_use]
pub fn run_state(plan: &Plan, folder: &Folder, index: usize) -> RunState {
    let attempts: Vec<&RunRecord> = folder.attempts(index + 1).collect();
    let is_failure = attempts.iter().any(|attempt| attempt.workload_failed);
    if attempts.iter().any(|attempt| attempt.valid) {
        RunState::Valid
    } else if is_failure || attempts.len() >= plan.attempts as usize {
        RunState::Invalid
    } else {
        RunState::ToDo
    }
}

/// The remaining time, if every run is valid at once.
#[must_use]
pub fn remaining(plan: &Plan, folder: &Folder) -> Duration {
    let runs = plan.runs.iter().enumerate();
    let to_do = runs.filter(|(index, _)| run_state(plan, folder, *index) == RunState::ToDo);
    to_do.map(|(_, run)| plan.cells[run.cell].setup.estimate()).sum()
}

/// Calls `execute` ([`execute`](crate::execute)) for all remaining runs. An interruption is possible at any time:
/// stored runs are not repeated.
///
/// # Errors
/// If no lab can be built, or results cannot be stored.
pub fn run_series(
    plan: &Plan,
    folder: &mut Folder,
    mut execute: impl FnMut(&Setup, u64) -> Result<RunOutcome, LabError>,
    mut tell: impl FnMut(SeriesEvent<'_>),
) -> Result<(), SeriesError> {
    for (index, run) in plan.runs.iter().enumerate() {
        while run_state(plan, folder, index) == RunState::ToDo {
            let setup = &plan.cells[run.cell].setup;
            let made = u32::try_from(folder.attempts(index + 1).count()).unwrap_or(u32::MAX);
            let attempt = made.saturating_add(1);
            tell(SeriesEvent::Begins { run: index + 1, attempt, estimate: setup.estimate() });
            let outcome = execute(setup, run.seed)?;
            let record = RunRecord::new(plan, index, attempt, &outcome);
            let capture = outcome.capture.as_ref().map(|captured| captured.file.as_slice());
            folder.add(record, &outcome.samples, capture)?;
            if let Some(record) = folder.records.last() {
                tell(SeriesEvent::Ended(record));
            }
        }
    }
    Ok(())
}
