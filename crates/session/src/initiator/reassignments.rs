//! Tasks that are moving to another lane: how many TASK REASSIGN requests are outstanding, and when each is repeated.

use super::ask::Ask;
use pdu::{Duration, Instant, Itt, LaneId, RejectReason};

/// The first limit on outstanding requests, on all lanes together. They are immediate requests, and a target may accept
/// as few as one at a time, so it may have to reject this many at once.
const AT_A_TIME_FIRST: usize = 16;

/// The highest limit on outstanding requests: a usual command window.
const AT_A_TIME_MAX: usize = 128;

/// How long to wait after the target had no room for an immediate request, if no other answer shows earlier that it
/// has.
const DEFERRED_PAUSE: Duration = Duration::from_millis(100);

/// A task that is moving to another lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reassignment {
    /// The tag of the TASK REASSIGN request.
    pub(super) itt: Itt,
    pub(super) task: Itt,
    /// The new lane.
    pub(super) lane: LaneId,
    /// The lost lane.
    pub(super) dead: LaneId,
}

/// A reassignment that was requested.
#[derive(Debug)]
struct Asked {
    reassignment: Reassignment,
    ask: Ask,
    /// When the target had no room for the request. It is repeated when another is answered, or after a pause.
    deferred: Option<Instant>,
}

impl Asked {
    /// When to repeat the request.
    fn due(&self) -> Instant {
        self.deferred.map_or(self.ask.due(), |since| since + DEFERRED_PAUSE)
    }
}

/// Reassignments that were requested and not granted, `at_a_time` at most. Each grant raises that limit by one, so it
/// doubles every round trip. When the target first has no room, the limit returns to its first value for good.
#[derive(Debug)]
pub(super) struct Reassignments {
    asked: Vec<Asked>,
    at_a_time: usize,
    may_grow: bool,
}

impl Default for Reassignments {
    fn default() -> Self {
        Self { asked: Vec::new(), at_a_time: AT_A_TIME_FIRST, may_grow: true }
    }
}

impl Reassignments {
    /// Whether one more may be requested.
    pub(super) fn have_room(&self) -> bool {
        self.asked.len() < self.at_a_time && self.asked.iter().all(|asked| asked.deferred.is_none())
    }

    /// Notes a reassignment that is being requested.
    pub(super) fn push(&mut self, now: Instant, reassignment: Reassignment) {
        self.asked.push(Asked { reassignment, ask: Ask::new(now), deferred: None });
    }

    /// The task whose reassignment has this tag.
    pub(super) fn task(&self, itt: Itt) -> Option<Itt> {
        let mut tasks = self.asked.iter().map(|asked| asked.reassignment);
        tasks.find(|reassignment| reassignment.itt == itt).map(|reassignment| reassignment.task)
    }

    /// Whether a task is moving.
    pub(super) fn moves(&self, task: Itt) -> bool {
        self.asked.iter().any(|asked| asked.reassignment.task == task)
    }

    /// Whether a task of this lost lane is moving.
    pub(super) fn moves_from(&self, dead: LaneId) -> bool {
        self.asked.iter().any(|asked| asked.reassignment.dead == dead)
    }

    /// When the first request must be repeated.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.asked.iter().map(Asked::due).min()
    }

    /// Returns the reassignments whose requests must be repeated now; `None` if one may not be repeated again.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Vec<Reassignment>> {
        let mut due = Vec::new();
        for asked in self.asked.iter_mut().filter(|asked| asked.due() <= now) {
            if asked.deferred.take().is_some() {
                asked.ask = asked.ask.counted_from(now);
            } else if !asked.ask.again(now) {
                return None;
            }
            due.push(asked.reassignment);
        }
        Some(due)
    }

    /// The target has room for one more immediate request: returns the deferred one to repeat.
    pub(super) fn take_deferred(&mut self, now: Instant) -> Option<Reassignment> {
        let asked = self.asked.iter_mut().find(|asked| asked.deferred.is_some())?;
        (asked.deferred, asked.ask) = (None, asked.ask.counted_from(now));
        Some(asked.reassignment)
    }

    /// Ends the reassignment of this tag, which the target has granted.
    pub(super) fn granted(&mut self, itt: Itt) {
        self.asked.retain(|asked| asked.reassignment.itt != itt);
        if self.may_grow {
            self.at_a_time = (self.at_a_time + 1).min(AT_A_TIME_MAX);
        }
    }

    /// Takes the Reject of the reassignment of this tag, if there is one. It is requested again, at the latest when it
    /// is due.
    pub(super) fn rejected(&mut self, now: Instant, itt: Itt, reason: RejectReason) {
        let Some(asked) = self.asked.iter_mut().find(|asked| asked.reassignment.itt == itt) else { return };
        let lacks_room = reason == RejectReason::ImmediateCommandReject;
        asked.deferred = lacks_room.then_some(now);
        if lacks_room {
            (self.at_a_time, self.may_grow) = (AT_A_TIME_FIRST, false);
        }
    }

    /// A PDU of the task on its new lane proves that its reassignment was granted, though the answer was lost.
    pub(super) fn proven(&mut self, task: Itt, lane: LaneId) {
        self.asked
            .retain(|Asked { reassignment, .. }| reassignment.task != task || reassignment.lane != lane);
    }

    /// Forgets a task that has ended.
    pub(super) fn forget_task(&mut self, task: Itt) {
        self.asked.retain(|asked| asked.reassignment.task != task);
    }

    /// Forgets the reassignments to a lost lane: their tasks are orphans again.
    pub(super) fn forget_lane(&mut self, lane: LaneId) {
        self.asked.retain(|asked| asked.reassignment.lane != lane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    /// As many reassignments as there is room for, with tags that count up.
    fn full() -> Reassignments {
        let mut reassignments = Reassignments::default();
        let mut number = 0;
        while reassignments.have_room() {
            number += 1;
            let (itt, task) = (Itt(number), Itt(1000 + number));
            reassignments.push(NOW, Reassignment { itt, task, lane: LaneId(1), dead: LaneId(0) });
        }
        reassignments
    }

    #[test]
    fn each_that_is_granted_makes_room_for_two() {
        let mut reassignments = full();
        reassignments.granted(Itt(1));
        for (number, itt) in [(0, 100), (1, 101)] {
            assert!(reassignments.have_room(), "{number}");
            let (itt, task) = (Itt(itt), Itt(1000 + itt));
            reassignments.push(NOW, Reassignment { itt, task, lane: LaneId(1), dead: LaneId(0) });
        }
        assert!(!reassignments.have_room());
    }

    #[test]
    fn one_that_lacks_room_waits_for_an_answer_to_another_or_a_pause() {
        let mut reassignments = full();
        reassignments.rejected(NOW, Itt(2), RejectReason::ImmediateCommandReject);
        assert_eq!(reassignments.deadline(), Some(NOW + DEFERRED_PAUSE));
        reassignments.granted(Itt(1));
        assert!(!reassignments.have_room(), "another would find no room either");
        assert_eq!(reassignments.take_deferred(NOW).map(|again| again.itt), Some(Itt(2)));
        assert!(reassignments.have_room());
    }

    #[test]
    fn a_task_whose_new_lane_is_lost_is_not_on_its_way() {
        let mut reassignments = full();
        assert!(reassignments.moves(Itt(1001)) && reassignments.moves_from(LaneId(0)));
        reassignments.forget_lane(LaneId(1));
        assert!(!reassignments.moves(Itt(1001)) && !reassignments.moves_from(LaneId(0)));
        assert_eq!(reassignments.deadline(), None);
    }
}
