//! Tasks on their way to another lane: at what pace their reassignments are asked for, and when each is asked for again.

use super::ask::Ask;
use pdu::{Duration, Instant, Itt, LaneId, RejectReason};

/// Reassignments that are asked for at first, on all lanes together. They are immediate requests, of which targets may
/// take as few as one at a time, so this is how many Rejects one may have to send at once.
const AT_A_TIME_FIRST: usize = 16;

/// The most that are asked for at a time: the usual command window.
const AT_A_TIME_MAX: usize = 128;

/// How long to wait where a target had no room for an immediate request, and nothing that it answers tells when it has.
const DEFERRED_PAUSE: Duration = Duration::from_millis(100);

/// A task on its way to another lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reassignment {
    /// The tag of the request.
    pub(super) itt: Itt,
    pub(super) task: Itt,
    /// Where it goes.
    pub(super) lane: LaneId,
    /// Where it was.
    pub(super) dead: LaneId,
}

/// One that was asked for.
#[derive(Debug)]
struct Asked {
    reassignment: Reassignment,
    ask: Ask,
    /// Since when the target has no room for this: it is asked again when another is answered, or after a pause.
    deferred: Option<Instant>,
}

impl Asked {
    /// When to ask again.
    fn due(&self) -> Instant {
        self.deferred.map_or(self.ask.due(), |since| since + DEFERRED_PAUSE)
    }
}

/// Reassignments that were asked for and not granted. As many may wait for their answers as `at_a_time` says: one more
/// with each that is granted, so that their number doubles in a round trip, until the target has no room for one; from
/// then on as few as at first.
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
    /// Whether one more may be asked for.
    pub(super) fn have_room(&self) -> bool {
        self.asked.len() < self.at_a_time && self.asked.iter().all(|asked| asked.deferred.is_none())
    }

    /// One is asked for.
    pub(super) fn push(&mut self, now: Instant, reassignment: Reassignment) {
        self.asked.push(Asked { reassignment, ask: Ask::new(now), deferred: None });
    }

    /// The task whose reassignment has this tag.
    pub(super) fn task(&self, itt: Itt) -> Option<Itt> {
        let mut tasks = self.asked.iter().map(|asked| asked.reassignment);
        tasks.find(|reassignment| reassignment.itt == itt).map(|reassignment| reassignment.task)
    }

    /// Whether a task is on its way.
    pub(super) fn moves(&self, task: Itt) -> bool {
        self.asked.iter().any(|asked| asked.reassignment.task == task)
    }

    /// Whether a task of this lost lane is on its way.
    pub(super) fn moves_from(&self, dead: LaneId) -> bool {
        self.asked.iter().any(|asked| asked.reassignment.dead == dead)
    }

    /// When the first is to be asked for again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.asked.iter().map(Asked::due).min()
    }

    /// Those that are to be asked for again now; `None` if one was asked for often enough.
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

    /// The target has room for one more immediate request: the one to ask for again.
    pub(super) fn take_deferred(&mut self, now: Instant) -> Option<Reassignment> {
        let asked = self.asked.iter_mut().find(|asked| asked.deferred.is_some())?;
        (asked.deferred, asked.ask) = (None, asked.ask.counted_from(now));
        Some(asked.reassignment)
    }

    /// The target has granted the one of this tag.
    pub(super) fn granted(&mut self, itt: Itt) {
        self.asked.retain(|asked| asked.reassignment.itt != itt);
        if self.may_grow {
            self.at_a_time = (self.at_a_time + 1).min(AT_A_TIME_MAX);
        }
    }

    /// The target has rejected the one of this tag, if there is one: it is asked for again, at the latest when its time
    /// comes.
    pub(super) fn rejected(&mut self, now: Instant, itt: Itt, reason: RejectReason) {
        let Some(asked) = self.asked.iter_mut().find(|asked| asked.reassignment.itt == itt) else { return };
        let lacks_room = reason == RejectReason::ImmediateCommandReject;
        asked.deferred = lacks_room.then_some(now);
        if lacks_room {
            (self.at_a_time, self.may_grow) = (AT_A_TIME_FIRST, false);
        }
    }

    /// What came for a task on a lane proves that its reassignment to that was granted, though the answer was lost.
    pub(super) fn proven(&mut self, task: Itt, lane: LaneId) {
        self.asked
            .retain(|Asked { reassignment, .. }| reassignment.task != task || reassignment.lane != lane);
    }

    /// A task has ended.
    pub(super) fn forget_task(&mut self, task: Itt) {
        self.asked.retain(|asked| asked.reassignment.task != task);
    }

    /// A lane is gone: tasks that were to move to it are orphans again.
    pub(super) fn forget_lane(&mut self, lane: LaneId) {
        self.asked.retain(|asked| asked.reassignment.lane != lane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    /// As many as there is room for, each with its number as its tag.
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
