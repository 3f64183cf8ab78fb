//! A command that is never answered, though the target answers pings.
//!
//! Only the oldest command of a session is watched: those before it, which a target does first as a rule, cost it no
//! time, however slow the path is. It stands still if no byte of its data moves, while the session moves none that may be
//! before it: data of many commands takes turns, and on a slow path a turn may take minutes. Whoever stands still for too
//! long is aborted. Unless the target confirms that, and nothing can have been written, the session is closed too, so that the login
//! that reinstates it proves the command dead (RFC 7143 §6.3.5). Then the command is sent again, once.

use super::flush::SYNCHRONIZE_CACHE;
use super::{Driver, Path};
use crate::config::FLUSH_LIMITS;
use crate::{Error, TargetError};
use pdu::{Duration, Instant, TaskManagementOutcome};
use session::initiator::{FunctionId, TaskFunction, TaskId};

/// Commands are looked at so many times within the time that they may stand still.
const CHECKS: u32 = 8;

/// How often a command may stand still for too long: the first time, the session may be at fault.
const OVERDUE_MAX: u32 = 2;

/// What is known of a session's oldest command.
#[derive(Debug, Default)]
pub(super) struct Watch {
    oldest: Option<Oldest>,
    abort: Option<Abort>,
    /// The session is being closed.
    is_given_up: bool,
}

#[derive(Clone, Copy, Debug)]
struct Oldest {
    task: TaskId,
    unmoved_bytes: u32,
    /// Since when it stands still.
    since: Instant,
    /// What the session had moved when it was last looked at.
    moved_bytes: u64,
    /// What it will have moved when nothing can be before this task any more.
    turn_bytes: u64,
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
    fn new(task: TaskId, unmoved_bytes: u32, load: Load, now: Instant) -> Self {
        // What one turn of every command brings, and as much of those that come meanwhile.
        let turn_bytes = load.moved_bytes + 2 * load.outstanding_bytes;
        Self { task, unmoved_bytes, since: now, moved_bytes: load.moved_bytes, turn_bytes }
    }

    /// The same command, none of its data moved, at a later time.
    fn at(self, load: Load, now: Instant) -> Self {
        let is_behind = self.moved_bytes < load.moved_bytes && load.moved_bytes < self.turn_bytes;
        let since = if is_behind { now } else { self.since };
        Self { since, moved_bytes: load.moved_bytes, ..self }
    }
}

/// ABORT TASK, asked for.
#[derive(Clone, Copy, Debug)]
struct Abort {
    function: FunctionId,
    until: Instant,
}

impl Driver {
    fn check_interval(&self) -> Duration {
        self.command_limit / CHECKS
    }

    pub(super) fn check_deadline(&self) -> Option<Instant> {
        self.paths.iter().any(|path| !path.tasks.is_empty()).then_some(self.next_check)
    }

    /// Looks at the oldest command of each session, if it is time.
    pub(super) fn check_commands(&mut self, now: Instant) {
        if self.check_deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        self.next_check = now + self.check_interval();
        for at in 0..self.paths.len() {
            self.check_path(at, now);
        }
    }

    fn check_path(&mut self, at: usize, now: Instant) {
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
        let placed = |(_, key): &(&TaskId, &usize)| self.requests[**key].placed;
        let oldest = path.tasks.iter().min_by_key(placed).map(|(task, key)| (*task, *key));
        let Some((task, key)) = oldest else { return };
        if path.stands_still(task, now) >= self.limit_of(key) {
            self.abort(at, task, key, now);
        }
    }

    fn limit_of(&self, key: usize) -> Duration {
        let is_flush = self.command_name(key) == SYNCHRONIZE_CACHE;
        self.command_limit.saturating_mul(if is_flush { FLUSH_LIMITS } else { 1 })
    }

    fn abort(&mut self, at: usize, task: TaskId, key: usize, now: Instant) {
        let command = self.command_name(key);
        let request = &mut self.requests[key];
        request.overdue += 1;
        let until = now + self.check_interval();
        let path = &mut self.paths[at];
        tracing::warn!(path = %path.id, lun = %self.requests[key].lun, command, "a command is not answered: aborting it");
        let Some(core) = &mut path.core else { return };
        let function = core.task_management(now, TaskFunction::AbortTask(task));
        path.watch = Watch { abort: Some(Abort { function, until }), ..Watch::default() };
    }

    /// ABORT TASK was answered. What was aborted, the session has reported lost before.
    pub(super) fn aborted(
        &mut self,
        at: usize,
        function: FunctionId,
        outcome: TaskManagementOutcome,
        now: Instant,
    ) {
        let watch = &mut self.paths[at].watch;
        if watch.abort.take_if(|abort| abort.function == function).is_some()
            && !matches!(
                outcome,
                TaskManagementOutcome::FunctionComplete | TaskManagementOutcome::TaskDoesNotExist
            )
        {
            self.give_session_up(at, "ABORT TASK failed", now);
        }
    }

    /// Writes were lost in a session that lives on: only its end proves that they are dead.
    /// `true` if that was begun.
    pub(super) fn close_where_stranded(&mut self, at: usize, now: Instant) -> bool {
        let path = &self.paths[at];
        if path.core.is_some() && !path.stranded.is_empty() && !path.watch.is_given_up {
            self.give_session_up(at, "it lost a write", now);
            return true;
        }
        false
    }

    fn give_session_up(&mut self, at: usize, why: &str, now: Instant) {
        let path = &mut self.paths[at];
        path.watch = Watch { is_given_up: true, ..Watch::default() };
        tracing::warn!(path = %path.id, why, "the session is to be reinstated");
        path.give_up(now);
    }

    /// Sends a command again whose nexus is known to be dead, unless it has been in vain twice.
    pub(super) fn repeat(&mut self, key: usize) {
        match self.unanswered(key).filter(|_| self.requests[key].overdue >= OVERDUE_MAX) {
            Some(error) => self.end_request(key, Err(error)),
            None => {
                self.retries += 1;
                self.enqueue(key);
            }
        }
    }

    /// What to say of a command that stood still for too long.
    pub(super) fn unanswered(&self, key: usize) -> Option<Error> {
        let request = &self.requests[key];
        let (command, lun) = (self.command_name(key), request.lun);
        let seconds = self.limit_of(key).as_secs();
        (request.overdue > 0).then(|| TargetError::Unanswered { command, lun, seconds }.into())
    }
}

impl Path {
    /// For how long `task`, the oldest, has stood still as far as is known. The time without any connection is the
    /// network's.
    fn stands_still(&mut self, task: TaskId, now: Instant) -> Duration {
        let unmoved_bytes = self.core.as_ref().and_then(|core| core.unmoved_bytes(task)).unwrap_or(0);
        let load = self.load();
        let is_same = |known: &Oldest| (known.task, known.unmoved_bytes) == (task, unmoved_bytes);
        let known = self.watch.oldest.filter(is_same).filter(|_| self.connections() > 0);
        let oldest = known.map_or(Oldest::new(task, unmoved_bytes, load, now), |known| known.at(load, now));
        self.watch.oldest = Some(oldest);
        now.saturating_duration_since(oldest.since)
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

    /// For how long a command that does not move seems to stand still after so many seconds, in each of which its session
    /// moves so much.
    fn stands_still(seconds: u64, moved_bytes: u64) -> Duration {
        let load = |second| Load { moved_bytes: moved_bytes * second, outstanding_bytes: OUTSTANDING_BYTES };
        let at = |second| Instant::ZERO + Duration::from_secs(second);
        let first = Oldest::new(TaskId(1), 512, load(0), at(0));
        let oldest = (1..=seconds).fold(first, |oldest, second| oldest.at(load(second), at(second)));
        at(seconds).saturating_duration_since(oldest.since)
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
