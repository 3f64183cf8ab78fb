//! The response fence: a fenced response follows all earlier responses of its unit on every connection, and precedes
//! all later ones (RFC 7143 §4.2.2.3).
//!
//! Responses are fenced for every value of TaskReporting: `ResponseFence` demands it, the others allow it. There is one
//! fence at a time. A fenced response that comes while another fence stands waits with the responses that the fence
//! holds.

use super::event::{Response, TaskId};
use super::immediate::Ticket;
use super::session::Session;
use super::task::{Answer, Task};
use super::transmit::Reply;
use pdu::{Instant, Itt, LaneId, Lun, StatSn, TaskManagementOutcome};
use std::collections::VecDeque;

/// The standing fence, and the responses that it holds. A held response keeps its place in the command window or among
/// the immediate commands, which bounds their number.
#[derive(Debug, Default)]
pub(super) struct Fences {
    standing: Option<Fence>,
    /// The held responses, in the order in which they were handed over.
    held: VecDeque<Handed>,
}

/// A response that the device server has handed over, for a task whose initiator has sent all Data-Out that it
/// announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handed {
    /// The response of a command.
    Command(TaskId),
    /// The response of ABORT TASK.
    AbortTask(AbortTaskResponse),
    /// The response of the active function over many tasks.
    MultiTask(TaskManagementOutcome),
}

/// The answer to an ABORT TASK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AbortTaskResponse {
    pub(super) lane: LaneId,
    pub(super) itt: Itt,
    pub(super) ticket: Ticket,
    pub(super) lun: Lun,
    pub(super) outcome: TaskManagementOutcome,
}

/// The logical units that a response concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Units {
    One(Lun),
    All,
}

impl Units {
    pub(super) fn meet(self, other: Self) -> bool {
        self == Self::All || other == Self::All || self == other
    }
}

#[derive(Debug)]
struct Fence {
    response: Handed,
    units: Units,
    step: Step,
}

/// The progress of a fence.
#[derive(Debug)]
enum Step {
    /// The fence waits until the responses that were handed over before have left. If responses are kept until they are
    /// acknowledged, it waits for that too, even for those of a lost connection that another may still carry.
    Preceding(Vec<TaskId>),
    /// The fence waits until every lane has acknowledged the responses sent so far.
    Clearing(Vec<(LaneId, StatSn)>),
    /// The fenced response waits to be sent.
    Sending,
    /// The fenced response must be acknowledged before others follow.
    Confirming { lane: LaneId, mark: StatSn },
}

impl Fences {
    pub(super) fn stands(&self) -> bool {
        self.standing.is_some()
    }

    /// Notes the StatSN of the fenced response, which has been sent.
    pub(super) fn confirm(&mut self, is_it: impl Fn(Handed) -> bool, lane: LaneId, mark: StatSn) {
        if let Some(fence) = self.standing.as_mut().filter(|fence| is_it(fence.response)) {
            fence.step = Step::Confirming { lane, mark };
        }
    }
}

impl Session {
    /// Ends a task with a fenced response: the first unit attention after many tasks were aborted, or PREEMPT AND ABORT
    /// (RFC 7143 §4.2.2.3.4). Otherwise as [`Session::respond`].
    pub fn respond_fenced(&mut self, now: Instant, task: TaskId, response: Response) {
        if let Some(task) = self.tasks.get_mut(task) {
            task.is_fenced = true;
        }
        self.respond(now, task, response);
    }

    /// Hands over a response to be sent: behind a fence if it is fenced, and after a standing fence that concerns it is
    /// lifted.
    pub(super) fn hand_over(&mut self, response: Handed) {
        let Some((units, is_fenced)) = self.nature(response) else { return };
        if self.is_held_up(units, is_fenced) {
            self.note_waiting(response);
            self.fences.held.push_back(response);
        } else if is_fenced && let Some(preceding) = self.preceding(units, response) {
            self.note_waiting(response);
            self.fences.standing = Some(Fence { response, units, step: Step::Preceding(preceding) });
        } else {
            self.let_pass(response, false);
        }
    }

    /// The logical units that a response concerns, and whether it is fenced; `None` if it is not wanted any more.
    fn nature(&self, response: Handed) -> Option<(Units, bool)> {
        match response {
            Handed::Command(id) => {
                let task = self.tasks.get(id).filter(|task| !task.silent)?;
                Some((Units::One(task.lun), task.is_fenced))
            }
            Handed::AbortTask(response) => Some((Units::One(response.lun), false)),
            Handed::MultiTask(_) => self.functions.units().map(|units| (units, true)),
        }
    }

    fn is_held_up(&self, units: Units, is_fenced: bool) -> bool {
        let stands_in_the_way = |fence: &Fence| is_fenced || fence.units.meet(units);
        let goes_first = |earlier: &Handed| {
            self.nature(*earlier).is_some_and(|(its, is_fenced)| is_fenced && its.meet(units))
        };
        self.fences.standing.as_ref().is_some_and(stands_in_the_way)
            || self.fences.held.iter().any(goes_first)
    }

    /// The commands whose responses were handed over before this one and may not have arrived. `None` if nothing can be
    /// overtaken, because there is only one connection and no task of another (§4.2.2.3.3 a).
    fn preceding(&self, units: Units, response: Handed) -> Option<Vec<TaskId>> {
        let precedes = |(id, task): &(TaskId, &Task)| {
            task.stage.may_respond()
                && !task.silent
                && units.meet(Units::One(task.lun))
                && response != Handed::Command(*id)
        };
        let preceding: Vec<_> = self.tasks.iter().filter(precedes).collect();
        // The task has lost its connection, or is moving to another one, on which it is answered after the move.
        let is_orphan = |task: &Task| task.is_moving() || !self.lanes.has(task.route.response);
        let can_overtake = self.lanes.len() > 1 || preceding.iter().any(|(_, task)| is_orphan(task));
        can_overtake.then(|| preceding.into_iter().map(|(id, _)| id).collect())
    }

    fn note_waiting(&mut self, response: Handed) {
        if let Handed::Command(id) = response
            && let Some(task) = self.tasks.get_mut(id)
        {
            task.stage.answer(Answer::AtFence);
        }
    }

    /// Queues a response that nothing holds on its lane.
    fn let_pass(&mut self, response: Handed, is_fenced: bool) {
        match response {
            Handed::Command(id) => {
                let Some(task) = self.tasks.get_mut(id) else { return };
                task.stage.answer(Answer::Ready);
                if task.data_in.is_sent() {
                    self.queue_response(id);
                }
            }
            Handed::AbortTask(AbortTaskResponse { lane, itt, ticket, outcome, .. }) => {
                self.answer_function(lane, itt, ticket, outcome);
            }
            Handed::MultiTask(outcome) => {
                if let Some((lane, itt, ticket)) = self.functions.request() {
                    self.push_reply(lane, Reply::TaskManagement { itt, outcome, ticket, is_fenced });
                }
                if !is_fenced {
                    self.functions.note_answered();
                }
            }
        }
    }

    /// Advances the standing fence as far as possible now.
    pub(super) fn conclude_fence(&mut self, now: Instant) {
        while let Some(mut fence) = self.fences.standing.take() {
            let owing = self.advance_fence(&mut fence);
            if let Some(owing) = owing {
                self.fences.standing = Some(fence);
                return owing.into_iter().for_each(|lane| self.solicit_acknowledgement(now, lane));
            }
            self.lift(&fence);
        }
    }

    /// The lanes that owe a fence an acknowledgement; `None` if it can be lifted.
    fn advance_fence(&mut self, fence: &mut Fence) -> Option<Vec<LaneId>> {
        if let Step::Confirming { lane, mark } = fence.step {
            // A response that is kept until it is acknowledged may be sent again on another lane.
            let is_kept = matches!(fence.response, Handed::Command(id) if self.tasks.get(id).is_some());
            return (is_kept || !self.is_acknowledged(lane, mark)).then(|| vec![lane]);
        }
        if !self.can_be_sent(fence.response) {
            return None;
        }
        if let Step::Preceding(preceding) = &mut fence.step {
            preceding.retain(|id| self.tasks.get(*id).is_some_and(|task| !task.silent));
            if !preceding.is_empty() {
                let sent = |id: &TaskId| self.tasks.get(*id).filter(|task| task.stage.is_responded());
                return Some(preceding.iter().filter_map(sent).map(|task| task.route.response).collect());
            }
            fence.step = Step::Clearing(self.lanes.iter().map(|(id, lane)| (id, lane.mark())).collect());
        }
        if let Step::Clearing(marks) = &mut fence.step {
            marks.retain(|(lane, mark)| !self.is_acknowledged(*lane, *mark));
            if !marks.is_empty() {
                return Some(marks.iter().map(|(lane, _)| *lane).collect());
            }
            fence.step = Step::Sending;
            self.let_pass(fence.response, true);
        }
        Some(Vec::new())
    }

    /// Whether a fenced response is still wanted, and can be sent now or later.
    fn can_be_sent(&self, response: Handed) -> bool {
        self.nature(response).is_some()
            && match response {
                Handed::MultiTask(_) => {
                    self.functions.request().is_some_and(|(lane, ..)| self.has_outlet(lane))
                }
                Handed::Command(_) | Handed::AbortTask(_) => true,
            }
    }

    fn is_acknowledged(&self, lane: LaneId, mark: StatSn) -> bool {
        self.lanes.get(lane).is_none_or(|lane| lane.status.is_acknowledged(mark))
    }

    /// Hands over the responses that a fence held, up to the next fence.
    fn lift(&mut self, fence: &Fence) {
        if let Handed::MultiTask(_) = fence.response {
            self.functions.note_answered();
        }
        for response in core::mem::take(&mut self.fences.held) {
            self.hand_over(response);
        }
    }
}
