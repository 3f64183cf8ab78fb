//! TASK REASSIGN: a task that the target has goes on over another lane (RFC 7143 §7.2.2, §11.5.1, §11.5.6).

use super::ask::Ask;
use super::event::{Data, Demand, TaskId};
use super::outgoing::Request;
use super::session::Session;
use super::task::Allegiance;
use crate::lanes::Route;
use pdu::{
    CmdSn, DataSn, Duration, Instant, Itt, LaneId, Lun, RejectReason, StatSn, TaskManagementFunction,
    TaskManagementOutcome, TaskManagementRequest, TaskManagementResponse,
};

/// Reassignments that are asked for at first, on all lanes together. They are immediate requests, of which targets may
/// take as few as one at a time, so this is how many Rejects one may have to send at once.
const AT_A_TIME_FIRST: usize = 16;

/// The most that are asked for at a time: the usual command window.
const AT_A_TIME_MAX: usize = 128;

/// How long to wait where a target had no room for an immediate request, and nothing that it answers tells when it has.
const DEFERRED_PAUSE: Duration = Duration::from_millis(100);

/// How many reassignments may wait for their answers: one more with each that is granted, so that their number doubles
/// in a round trip, until the target has no room for one; from then on as few as at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    at_a_time: usize,
    may_grow: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { at_a_time: AT_A_TIME_FIRST, may_grow: true }
    }
}

impl Pace {
    fn granted(&mut self) {
        if self.may_grow {
            self.at_a_time = (self.at_a_time + 1).min(AT_A_TIME_MAX);
        }
    }

    fn rejected(&mut self) {
        *self = Self { at_a_time: AT_A_TIME_FIRST, may_grow: false };
    }
}

/// A task on its way to another lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reassignment {
    itt: Itt,
    pub(super) task: Itt,
    /// Where it goes.
    pub(super) lane: LaneId,
    /// Where it was.
    pub(super) dead: LaneId,
    pub(super) ask: Ask,
    /// Since when the target has no room for this: it is asked again when another is answered, or after a pause.
    deferred: Option<Instant>,
}

impl Reassignment {
    /// When to ask again.
    pub(super) fn due(&self) -> Instant {
        self.deferred.map_or(self.ask.due(), |since| since + DEFERRED_PAUSE)
    }
}

impl Session {
    /// Tasks whose connection broke and that may go on over another now, each with its data that is still to move. The
    /// connections come in the order of their loss, the tasks of each in the order of their numbers. The driver gives
    /// each a lane by [`Self::reassign`], and asks again whenever something was received, a timer expired or a lane came.
    pub fn orphans(&self) -> impl Iterator<Item = Demand> + '_ {
        let may_reassign = self.may_reassign();
        self.waiting_orphans().filter_map(move |itt| {
            let task = self.tasks.get(itt)?;
            let is_with_target = self.is_with_target(task.allegiance?);
            let unmoved = if is_with_target { task.unmoved() } else { task.unmoved_at_first() };
            (may_reassign || !is_with_target).then(|| Demand {
                task: TaskId(itt.0),
                data_out_bytes: unmoved.out_bytes(),
                data_in_bytes: unmoved.in_bytes(),
            })
        })
    }

    /// Moves one of [`Self::orphans`] to a lane with [`LaneState::accepts_orphans`](super::LaneState): by TASK REASSIGN
    /// if the target has its command, else by sending that again. `false` if the task or the lane is none of those.
    pub fn reassign(&mut self, now: Instant, task: TaskId, lane: LaneId) -> bool {
        let is_orphan = self.orphans().any(|orphan| orphan.task == task);
        let itt = Itt(task.0);
        if is_orphan
            && self.lane_state(lane).accepts_orphans
            && let Some(dead) = self.adopt_orphan(itt)
        {
            self.settle_at(now, itt, lane, dead);
            self.recover(now);
            return true;
        }
        false
    }

    /// Gives a task of `dead` its home at `lane`.
    fn settle_at(&mut self, now: Instant, itt: Itt, lane: LaneId, dead: LaneId) {
        let Some(home) = self.tasks.get(itt).and_then(|task| task.allegiance) else { return };
        let is_with_target = self.is_with_target(home);
        let Some(task) = self.tasks.get_mut(itt) else { return };
        let route = Route::over(lane);
        let command = if is_with_target { home.command } else { home.command.move_on() };
        task.allegiance = Some(Allegiance { route, command, ..home });
        self.lanes.charge(route, task.unmoved());
        if is_with_target {
            let reassignment = Reassignment {
                itt: self.request_tags.take(),
                task: itt,
                lane,
                dead,
                ask: Ask::new(now),
                deferred: None,
            };
            self.reassignments.push(reassignment);
            self.counters.reassignments += 1;
            self.request_reassignment(reassignment);
        } else {
            self.counters.retries += 1;
            self.queue_command_again(lane, itt, home.cmd_sn);
        }
    }

    /// Whether the target has received a task's command.
    fn is_with_target(&self, home: Allegiance) -> bool {
        home.command.is_here() && self.is_acknowledged(home.cmd_sn)
    }

    fn may_reassign(&self) -> bool {
        let defers = |reassignment: &Reassignment| reassignment.deferred.is_some();
        self.reassignments.len() < self.reassignment_pace.at_a_time && !self.reassignments.iter().any(defers)
    }

    /// A reassignment was rejected: it is asked for again, at the latest when its time comes.
    pub(super) fn reassignment_rejected(&mut self, now: Instant, itt: Itt, reason: RejectReason) {
        let mut rejected = self.reassignments.iter_mut().filter(|reassignment| reassignment.itt == itt);
        let Some(reassignment) = rejected.next() else { return };
        let lacks_room = reason == RejectReason::ImmediateCommandReject;
        reassignment.deferred = lacks_room.then_some(now);
        if lacks_room {
            self.reassignment_pace.rejected();
        }
    }

    /// The target has room for one more immediate request.
    fn ask_deferred(&mut self, now: Instant) {
        let mut deferred =
            self.reassignments.iter_mut().filter(|reassignment| reassignment.deferred.is_some());
        if let Some(reassignment) = deferred.next() {
            (reassignment.deferred, reassignment.ask) = (None, reassignment.ask.counted_from(now));
            let reassignment = *reassignment;
            self.request_reassignment(reassignment);
        }
    }

    fn request_reassignment(&mut self, reassignment: Reassignment) {
        let Some(task) = self.tasks.get(reassignment.task) else { return };
        let exp_data_sn = match task.command.data {
            Data::In(_) => DataSn(task.input.next()),
            // All R2Ts that are not satisfied come again.
            Data::Out(_) | Data::None => DataSn(0),
        };
        let request = TaskManagementRequest {
            function: TaskManagementFunction::TaskReassign,
            immediate: true,
            lun: Lun::default(),
            itt: reassignment.itt,
            referenced_task: reassignment.task,
            cmd_sn: self.window.current(),
            // Filled in when it is pulled.
            exp_stat_sn: StatSn::default(),
            ref_cmd_sn: CmdSn::default(),
            exp_data_sn,
        };
        if let Some(lane) = self.lanes.get_mut(reassignment.lane) {
            lane.push(Request::TaskManagement(request));
        }
    }

    /// Asks again for what was not answered, or not granted yet. When the target forgets the tasks, this ends.
    pub(super) fn reassign_again(&mut self, now: Instant) {
        let mut due = Vec::new();
        for reassignment in self.reassignments.iter_mut().filter(|reassignment| reassignment.due() <= now) {
            if reassignment.deferred.take().is_some() {
                reassignment.ask = reassignment.ask.counted_from(now);
            } else if !reassignment.ask.again(now) {
                return self.fail();
            }
            due.push(*reassignment);
        }
        due.into_iter().for_each(|reassignment| self.request_reassignment(reassignment));
    }

    /// The answer to a reassignment; `false` if this answers none.
    pub(super) fn reassignment_answered(&mut self, now: Instant, pdu: &TaskManagementResponse) -> bool {
        let Some(at) = self.reassignments.iter().position(|reassignment| reassignment.itt == pdu.itt) else {
            return false;
        };
        let task = self.reassignments[at].task;
        match pdu.outcome {
            TaskManagementOutcome::FunctionComplete => {
                self.reassignments.remove(at);
                self.reassignment_pace.granted();
            }
            // The target has forgotten it, or its status was acknowledged and not received: nobody knows how it ended.
            TaskManagementOutcome::TaskDoesNotExist => {
                self.reassignments.remove(at);
                self.lose_task(task);
            }
            TaskManagementOutcome::ReassignmentNotSupported | TaskManagementOutcome::FunctionNotSupported => {
                self.fail();
            }
            // Not yet: the target has not finished with the old connection, or has too much to do.
            _ => {}
        }
        self.ask_deferred(now);
        self.recover(now);
        true
    }

    /// Whether this is the tag of a reassignment.
    pub(super) fn is_reassignment(&self, itt: Itt) -> bool {
        self.reassignments.iter().any(|reassignment| reassignment.itt == itt)
    }

    /// What comes for a task proves that its reassignment was granted, though the answer was lost.
    pub(super) fn reassignment_proven(&mut self, lane: LaneId, itt: Itt) {
        self.reassignments.retain(|reassignment| reassignment.task != itt || reassignment.lane != lane);
    }
}
