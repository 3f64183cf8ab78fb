//! Task management: dispatches the requested function, and carries out ABORT TASK, which concerns one task (RFC 7143
//! §11.5, §11.6). [`super::multi_task`] has the functions over many tasks.

use super::event::{Event, LogicalUnitFunction, TaskId, TaskManagement, TaskManagementId};
use super::immediate::{ImmediateKind, Ticket};
use super::multi_task::{Active, MultiTaskFunction};
use super::request::Request;
use super::response_fence::{AbortTaskResponse, Handed};
use super::session::Session;
use super::task::{Answer, Stage, Task};
use super::transmit::Reply;
use crate::seam::{Destination, Fault, Payload, Transmit};
use pdu::{
    Header, Instant, Itt, LaneId, Lun, TaskManagementFunction, TaskManagementOutcome, TaskManagementRequest,
    TaskManagementResponse,
};
use std::collections::{BTreeMap, VecDeque};

/// Task management functions that have not been answered.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// Functions over many tasks whose turn has not come.
    pub(super) waiting: VecDeque<MultiTaskFunction>,
    /// The one that is being carried out. There is at most one.
    pub(super) active: Option<Active>,
    /// Immediate commands that arrived while a function is active.
    pub(super) held_commands: VecDeque<TaskId>,
    /// Requests that wait for the end of one task.
    aborts: BTreeMap<TaskManagementId, Abort>,
    last_id: u32,
}

/// A request that waits until the driver has ended one task.
#[derive(Debug)]
struct Abort {
    lane: LaneId,
    itt: Itt,
    ticket: Ticket,
    lun: Lun,
    /// Whether this request aborted the task. If something else did, the answer is that the task does not exist.
    is_cause: bool,
}

impl Functions {
    pub(super) fn next_id(&mut self) -> TaskManagementId {
        self.last_id = self.last_id.wrapping_add(1);
        TaskManagementId(self.last_id)
    }

    /// Whether commands must wait for the active function.
    pub(super) fn holds_commands(&self) -> bool {
        self.active.is_some()
    }

    pub(super) fn hold(&mut self, task: TaskId) {
        self.held_commands.push_back(task);
    }

    /// The lane on which the function of this tag is to be answered, if it is known and not answered.
    fn outlet(&mut self, itt: Itt) -> Option<&mut LaneId> {
        let waiting = self.waiting.iter_mut().find(|function| function.itt == itt);
        let multi_task =
            waiting.or_else(|| self.active.as_mut()?.unanswered()).filter(|known| known.itt == itt);
        let abort = self.aborts.values_mut().find(|abort| abort.itt == itt);
        multi_task.map(|function| &mut function.lane).or(abort.map(|abort| &mut abort.lane))
    }

    /// Whether this tag is that of an unanswered task management function.
    pub(super) fn contains(&self, itt: Itt) -> bool {
        self.waiting.iter().any(|function| function.itt == itt)
            || self.active.as_ref().is_some_and(|active| active.function.itt == itt)
            || self.aborts.values().any(|abort| abort.itt == itt)
    }
}

impl Session {
    pub(super) fn receive_task_management(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        pdu: TaskManagementRequest,
    ) -> Result<Destination, Fault> {
        // An initiator that has waited long cannot know whether its request arrived, and sends it again. The function
        // is carried out once, and answered on the lane of the last request. The CmdSN identifies a repeated numbered
        // request.
        if let Some(outlet) = self.functions.outlet(pdu.itt).filter(|_| pdu.immediate) {
            *outlet = lane;
            return Ok(Destination::None);
        }
        let ticket = match self.admit(lane, header, pdu.cmd_sn, ImmediateKind::of(pdu.function))? {
            Ok(ticket) => ticket,
            Err(destination) => return Ok(destination),
        };
        self.accept(now, lane, pdu.cmd_sn, ticket, Request::TaskManagement(pdu));
        Ok(Destination::None)
    }

    /// Serves a task management request that is immediate or whose turn has come.
    pub(super) fn manage_tasks(
        &mut self,
        now: Instant,
        lane: LaneId,
        ticket: Ticket,
        pdu: &TaskManagementRequest,
    ) {
        let lun = pdu.lun;
        let function = match pdu.function {
            TaskManagementFunction::AbortTask => return self.abort_task(now, lane, ticket, pdu),
            TaskManagementFunction::AbortTaskSet => LogicalUnitFunction::AbortTaskSet { lun },
            TaskManagementFunction::ClearTaskSet => LogicalUnitFunction::ClearTaskSet { lun },
            TaskManagementFunction::LogicalUnitReset => LogicalUnitFunction::LogicalUnitReset { lun },
            TaskManagementFunction::TargetWarmReset => LogicalUnitFunction::TargetWarmReset,
            TaskManagementFunction::TargetColdReset => LogicalUnitFunction::TargetColdReset,
            TaskManagementFunction::TaskReassign => return self.reassign_task(lane, ticket, pdu),
            _ => {
                let outcome = TaskManagementOutcome::FunctionNotSupported;
                return self.answer_function(lane, pdu.itt, ticket, outcome);
            }
        };
        let function = MultiTaskFunction { lane, itt: pdu.itt, ticket, cmd_sn: pdu.cmd_sn, function };
        self.manage_many_tasks(now, function);
    }

    fn abort_task(&mut self, now: Instant, lane: LaneId, ticket: Ticket, pdu: &TaskManagementRequest) {
        let TaskManagementRequest { itt, lun, .. } = *pdu;
        if self.functions.contains(pdu.referenced_task) {
            let outcome = TaskManagementOutcome::FunctionRejected;
            return self.answer_function(lane, itt, ticket, outcome);
        }
        let found = self.tasks.find(pdu.referenced_task);
        let found = found.and_then(|id| Some((id, self.tasks.get(id)?))).filter(|(_, task)| task.lun == lun);
        let outcome = match found.map(|(id, task)| (id, task.stage)) {
            Some((id, Stage::Executing)) => {
                self.silence(now, id);
                return self.bring_to_rest(id, Abort { lane, itt, ticket, lun, is_cause: true });
            }
            Some((id, Stage::Responded(_))) if self.bring_status(id, lane) => {
                TaskManagementOutcome::FunctionComplete
            }
            Some((id, Stage::Waiting | Stage::Ended(_))) => {
                self.silence(now, id);
                TaskManagementOutcome::FunctionComplete
            }
            None if self.outlive_aborted(lane, ticket, pdu) => return,
            None if self.counts_as_arrived(pdu) => TaskManagementOutcome::FunctionComplete,
            Some((_, Stage::Responded(_))) | None => TaskManagementOutcome::TaskDoesNotExist,
        };
        self.hand_over(Handed::AbortTask(AbortTaskResponse { lane, itt, ticket, lun, outcome }));
    }

    /// Defers the answer that a task does not exist while the driver still has that task after an abort, because an
    /// initiator that gets this answer may write to the same blocks. `false` if the driver has no such task.
    pub(super) fn outlive_aborted(
        &mut self,
        lane: LaneId,
        ticket: Ticket,
        pdu: &TaskManagementRequest,
    ) -> bool {
        let is_it =
            |task: &Task| task.itt == pdu.referenced_task && task.silent && task.stage == Stage::Executing;
        let Some((id, lun)) =
            self.tasks.iter().find(|(_, task)| is_it(task)).map(|(id, task)| (id, task.lun))
        else {
            return false;
        };
        self.bring_to_rest(id, Abort { lane, itt: pdu.itt, ticket, lun, is_cause: false });
        true
    }

    /// Waits for the driver to end an aborted task.
    fn bring_to_rest(&mut self, task: TaskId, abort: Abort) {
        let id = self.functions.next_id();
        self.functions.aborts.insert(id, abort);
        let function = LogicalUnitFunction::AbortTask { task };
        self.events.push_back(Event::TaskManagement(TaskManagement { id, function }));
    }

    /// Whether the command to be aborted has not arrived, so that the abort counts as its arrival (§11.6.1 b).
    fn counts_as_arrived(&mut self, pdu: &TaskManagementRequest) -> bool {
        self.tasks.find(pdu.referenced_task).is_none()
            && pdu.ref_cmd_sn.precedes(pdu.cmd_sn)
            && self.order.plug(pdu.ref_cmd_sn)
    }

    /// Aborts a task: nothing more of it reaches the initiator, and data that still arrives for it is discarded.
    pub(super) fn silence(&mut self, now: Instant, id: TaskId) {
        if let Some(task) = self.tasks.get_mut(id) {
            task.data_out.sequences.clear();
        }
        self.silence_and_drain(now, id);
    }

    /// As [`Self::silence`], but the initiator still owes the data that it was asked for, and the task stays until the
    /// data has come.
    pub(super) fn silence_and_drain(&mut self, now: Instant, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        if task.stage.is_responded() {
            // Only data that was kept to be sent again is left of the task.
            return self.finish(id);
        }
        let was_silent = core::mem::replace(&mut task.silent, true);
        task.silence();
        let given_up = task.data_in.give_up();
        if task.stage == Stage::Executing && !was_silent {
            self.events.push_back(Event::Aborted { task: id });
        }
        let is_owed = task.data_out.is_owed();
        self.events.extend(given_up.unsent.into_iter().map(Event::Release));
        self.release_retained(given_up.kept);
        if !is_owed {
            self.tasks.release_tag(id);
        }
        self.settle(now, id);
    }

    /// Aborts a task because of another session's CLEAR TASK SET or reset: its response is suppressed. The driver still
    /// ends it with [`Self::respond`].
    pub fn abort(&mut self, now: Instant, task: TaskId) {
        if self.tasks.get(task).is_some_and(|task| !task.stage.is_responded()) {
            self.silence_and_drain(now, task);
        }
        self.conclude(now);
    }

    /// Answers [`Event::TaskManagement`]. The answer reaches the initiator after every response that it must follow.
    pub fn task_management_done(
        &mut self,
        now: Instant,
        id: TaskManagementId,
        response: TaskManagementOutcome,
    ) {
        match self.functions.aborts.remove(&id) {
            Some(Abort { lane, itt, ticket, lun, is_cause }) => {
                let outcome = if is_cause { response } else { TaskManagementOutcome::TaskDoesNotExist };
                self.hand_over(Handed::AbortTask(AbortTaskResponse { lane, itt, ticket, lun, outcome }));
            }
            None => self.answer_behind_fence(id, response),
        }
        self.conclude(now);
    }

    pub(super) fn answer_function(
        &mut self,
        lane: LaneId,
        itt: Itt,
        ticket: Ticket,
        outcome: TaskManagementOutcome,
    ) {
        self.push_reply(lane, Reply::TaskManagement { itt, outcome, ticket, is_fenced: false });
    }

    pub(super) fn emit_task_management(
        &mut self,
        lane: LaneId,
        itt: Itt,
        outcome: TaskManagementOutcome,
        ticket: Ticket,
        is_fenced: bool,
    ) -> Option<Transmit> {
        self.redeem(ticket);
        let stat_sn = self.lanes.get_mut(lane)?.status.take();
        if is_fenced {
            let is_it = |response| matches!(response, Handed::MultiTask(_));
            self.fences.confirm(is_it, lane, stat_sn.next());
        }
        let window = self.order.tell();
        let header = TaskManagementResponse { outcome, itt, stat_sn, window }.emit();
        Some(Transmit { header, payload: Payload::None })
    }
}

impl Task {
    fn silence(&mut self) {
        self.response = None;
        self.stage.answer(Answer::Settling);
        self.data_out.wanted = None;
        self.data_out.withdraw_unsent();
    }
}
