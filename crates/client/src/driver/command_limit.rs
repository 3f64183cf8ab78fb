//! The time limit for a command that is never answered, though the target answers pings.
//!
//! Only the oldest command of a session is timed, so a slow path costs the later ones nothing. It makes no progress if
//! no byte of its data moves while the session moves no data that may precede it: the data of many commands takes
//! turns, and a turn may take minutes on a slow path. After the limit the command is aborted. Unless the target
//! confirms the abort, and nothing can have been written, the session is closed too, so that the login that reinstates
//! it proves the command dead (RFC 7143 §6.3.5). Then the command is sent once more.
//!
//! A reset that another initiator asked for ends commands without an answer, many at once, unless the target sets TAS
//! (SAM-5 §5.6). If the target does not know the oldest command any more, the next is aborted without a further limit, if
//! it has waited as long and none of its data has moved.

use super::flush::SYNCHRONIZE_CACHE;
use super::request::Request;
use super::slots::RequestId;
use super::{Driver, Path};
use crate::config::FLUSH_LIMITS;
use crate::path_id::PathId;
use crate::{Error, TargetError};
use pdu::{Duration, Instant, TaskManagementOutcome};
use session::initiator::{FunctionId, TaskFunction, TaskId};

/// The number of checks within one limit.
const CHECKS: u32 = 8;

/// How often a command may exceed the limit. The first time, the session may be at fault.
const OVERDUE_MAX: u32 = 2;

/// The progress of a session's oldest command.
#[derive(Debug, Default)]
pub(super) struct Watch {
    oldest: Option<Oldest>,
    abort: Option<Abort>,
    /// The silence of the last command that the target did not know any more.
    forgotten: Option<Silence>,
    /// The session is being closed.
    is_given_up: bool,
}

#[derive(Clone, Copy, Debug)]
struct Oldest {
    task: TaskId,
    unmoved_bytes: u32,
    silence: Silence,
    /// [`Load::moved_bytes`] at the last check.
    moved_bytes: u64,
    /// [`Load::moved_bytes`] at which no data can precede this task's any more.
    turn_bytes: u64,
}

/// A time in which a command made no progress.
#[derive(Clone, Copy, Debug)]
struct Silence {
    since: Instant,
    /// The number of the last command that had been placed by then, by any session: those up to it have waited as long.
    placed: u64,
}

/// The data of all commands of a session, in both directions.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Since its login.
    moved_bytes: u64,
    /// Still to be moved.
    outstanding_bytes: u64,
}

impl Oldest {
    fn new(task: TaskId, unmoved_bytes: u32, load: Load, silence: Silence) -> Self {
        // One turn of every outstanding command, and as much again for the commands that arrive meanwhile.
        let turn_bytes = load.moved_bytes + 2 * load.outstanding_bytes;
        Self { task, unmoved_bytes, silence, moved_bytes: load.moved_bytes, turn_bytes }
    }

    /// The same command at a later time, if none of its data has moved. Its silence begins `anew` while data moves that
    /// may precede its own.
    fn at(self, load: Load, anew: Silence) -> Self {
        let is_behind = self.moved_bytes < load.moved_bytes && load.moved_bytes < self.turn_bytes;
        let silence = if is_behind { anew } else { self.silence };
        Self { silence, moved_bytes: load.moved_bytes, ..self }
    }
}

/// An outstanding ABORT TASK.
#[derive(Clone, Copy, Debug)]
struct Abort {
    function: FunctionId,
    task: TaskId,
    until: Instant,
    silence: Silence,
    /// The command was not answered before this request.
    is_lost: bool,
}

impl Driver {
    fn check_interval(&self) -> Duration {
        self.command_limit / CHECKS
    }

    pub(super) fn check_deadline(&self) -> Option<Instant> {
        self.paths.iter().any(|path| !path.tasks.is_empty()).then_some(self.next_check)
    }

    /// Checks the oldest command of each session, if a check is due.
    pub(super) fn check_commands(&mut self, now: Instant) {
        if self.check_deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        self.next_check = now + self.check_interval();
        for at in self.paths.ids() {
            self.check_path(at, now);
        }
    }

    fn check_path(&mut self, at: PathId, now: Instant) {
        let path = &mut self.paths[at];
        if path.watch.is_given_up {
            return;
        }
        if let Some(abort) = path.watch.abort {
            if abort.until <= now {
                self.give_session_up(at, "ABORT TASK was not answered", now);
            }
            return;
        }
        let placed = |(_, key): &(&TaskId, &RequestId)| self.requests[**key].placed;
        let oldest = path.tasks.iter().min_by_key(placed).map(|(task, key)| (*task, *key));
        let Some((task, key)) = oldest else { return };
        let silence = path.silence_of(task, &self.requests[key], Silence { since: now, placed: self.placed });
        if now.saturating_duration_since(silence.since) >= self.limit_of(key) {
            self.abort(at, (task, key), silence, now);
        }
    }

    fn limit_of(&self, key: RequestId) -> Duration {
        let is_flush = self.command_name(key) == SYNCHRONIZE_CACHE;
        self.command_limit.saturating_mul(if is_flush { FLUSH_LIMITS } else { 1 })
    }

    fn abort(&mut self, at: PathId, (task, key): (TaskId, RequestId), silence: Silence, now: Instant) {
        let command = self.command_name(key);
        let request = &mut self.requests[key];
        request.overdue += 1;
        let until = now + self.check_interval();
        let path = &mut self.paths[at];
        tracing::warn!(path = %path.id, lun = %self.requests[key].lun, command, "a command is not answered: aborting it");
        let Some(core) = &mut path.core else { return };
        let function = core.task_management(now, TaskFunction::AbortTask(task));
        let abort = Abort { function, task, until, silence, is_lost: false };
        path.watch = Watch { abort: Some(abort), ..Watch::default() };
    }

    /// Handles the answer to ABORT TASK. The session has already reported the aborted command as lost.
    pub(super) fn aborted(
        &mut self,
        at: PathId,
        function: FunctionId,
        outcome: TaskManagementOutcome,
        now: Instant,
    ) {
        let watch = &mut self.paths[at].watch;
        let Some(abort) = watch.abort.take_if(|abort| abort.function == function) else { return };
        match outcome {
            TaskManagementOutcome::TaskDoesNotExist if abort.is_lost => {
                watch.forgotten = Some(abort.silence);
                self.check_path(at, now);
            }
            // Perhaps it was answered just before.
            TaskManagementOutcome::FunctionComplete | TaskManagementOutcome::TaskDoesNotExist => {}
            _ => self.give_session_up(at, "ABORT TASK failed", now),
        }
    }

    /// A command is lost.
    pub(super) fn note_loss(&mut self, at: PathId, task: TaskId) {
        let abort = self.paths[at].watch.abort.as_mut();
        abort.into_iter().filter(|abort| abort.task == task).for_each(|abort| abort.is_lost = true);
    }

    /// Closes a living session that has lost writes, because only its end proves them dead. Returns whether it did.
    pub(super) fn close_where_stranded(&mut self, at: PathId, now: Instant) -> bool {
        let path = &self.paths[at];
        if path.core.is_some() && !path.stranded.is_empty() && !path.watch.is_given_up {
            self.give_session_up(at, "it lost a write", now);
            return true;
        }
        false
    }

    fn give_session_up(&mut self, at: PathId, why: &str, now: Instant) {
        let path = &mut self.paths[at];
        path.watch = Watch { is_given_up: true, ..Watch::default() };
        tracing::warn!(path = %path.id, why, "the session is to be reinstated");
        path.give_up(now);
    }

    /// Sends a command again whose old nexus is proven dead, unless it has exceeded the limit twice.
    pub(super) fn repeat(&mut self, key: RequestId) {
        match self.unanswered(key).filter(|_| self.requests[key].overdue >= OVERDUE_MAX) {
            Some(error) => self.end_request(key, Err(error)),
            None => {
                self.retries += 1;
                self.enqueue(key);
            }
        }
    }

    /// The error for a command that exceeded the limit.
    pub(super) fn unanswered(&self, key: RequestId) -> Option<Error> {
        let request = &self.requests[key];
        let (command, lun) = (self.command_name(key), request.lun);
        let seconds = self.limit_of(key).as_secs();
        (request.overdue > 0).then(|| TargetError::Unanswered { command, lun, seconds }.into())
    }
}

impl Path {
    /// The known time in which `task`, the oldest, has made no progress. The time without any connection does not
    /// count: that is the network's.
    fn silence_of(&mut self, task: TaskId, request: &Request, anew: Silence) -> Silence {
        let unmoved_bytes = self.core.as_ref().and_then(|core| core.unmoved_bytes(task)).unwrap_or(0);
        let load = self.load();
        if self.connections() == 0 {
            self.watch = Watch { oldest: None, forgotten: None, ..self.watch };
        }
        let is_same = |known: &Oldest| (known.task, known.unmoved_bytes) == (task, unmoved_bytes);
        let data_bytes = request.data.out_bytes() + request.data.in_bytes();
        let has_waited = |silence: &Silence| request.placed <= silence.placed && unmoved_bytes == data_bytes;
        let oldest = match self.watch.oldest.filter(is_same) {
            Some(known) => known.at(load, anew),
            None => {
                let silence = self.watch.forgotten.filter(has_waited).unwrap_or(anew);
                Oldest::new(task, unmoved_bytes, load, silence)
            }
        };
        self.watch.oldest = Some(oldest);
        oldest.silence
    }

    fn load(&self) -> Load {
        let moved_bytes = self.core.as_ref().map_or(0, |core| {
            let counters = core.counters();
            counters.data_in_bytes + counters.data_out_bytes
        });
        let lanes = self.lanes.iter().filter_map(|lane| self.lane_state(lane.id));
        Load { moved_bytes, outstanding_bytes: lanes.map(|lane| lane.outstanding_bytes()).sum() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTSTANDING_BYTES: u64 = 1000;

    /// The time for which a command seems to make no progress after `seconds`, in each of which its session moves
    /// `moved_bytes`.
    fn stands_still(seconds: u64, moved_bytes: u64) -> Duration {
        let load = |second| Load { moved_bytes: moved_bytes * second, outstanding_bytes: OUTSTANDING_BYTES };
        let at = |second| Instant::ZERO + Duration::from_secs(second);
        let silence = |second| Silence { since: at(second), placed: 1 };
        let first = Oldest::new(TaskId(1), 512, load(0), silence(0));
        let oldest = (1..=seconds).fold(first, |oldest, second| oldest.at(load(second), silence(second)));
        at(seconds).saturating_duration_since(oldest.silence.since)
    }

    #[test]
    fn a_command_does_not_stand_still_while_what_may_be_before_it_moves() {
        assert_eq!(stands_still(2 * OUTSTANDING_BYTES - 1, 1), Duration::ZERO);
    }

    #[test]
    fn a_command_that_is_passed_over_stands_still_from_then_on() {
        assert_eq!(stands_still(3 * OUTSTANDING_BYTES, 1), Duration::from_secs(OUTSTANDING_BYTES + 1));
    }

    #[test]
    fn a_command_stands_still_where_nothing_moves() {
        assert_eq!(stands_still(3600, 0), Duration::from_secs(3600));
    }
}
