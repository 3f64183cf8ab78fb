//! TASK REASSIGN: moves a task of a lost connection to the one on which the request came (RFC 7143 §7.2.2, §11.5.1,
//! §11.5.6). Error recovery level 2.

use super::event::TaskId;
use super::immediate::Ticket;
use super::retention::Retention;
use super::session::Session;
use super::task::{Allegiance, Answer, Stage};
use super::transmit::Reply;
use crate::lanes::Route;
use crate::seam::Transmit;
use pdu::{Instant, Itt, LaneId, TaskManagementOutcome, TaskManagementRequest};

impl Session {
    pub(super) fn reassign_task(&mut self, lane: LaneId, ticket: Ticket, pdu: &TaskManagementRequest) {
        let id = match self.reassignable(lane, ticket, pdu.referenced_task) {
            Ok(id) => id,
            Err(TaskManagementOutcome::TaskDoesNotExist) if self.outlive_aborted(lane, ticket, pdu) => return,
            Err(outcome) => return self.answer_function(lane, pdu.itt, ticket, outcome),
        };
        if let Some(task) = self.tasks.get_mut(id) {
            task.route = Route::over(lane);
            task.allegiance = Allegiance::Moving;
            if task.stage.is_responded() {
                // Its StatSN was one of the lost connection; it will be answered again.
                task.stage = Stage::Ended(Answer::Ready);
            }
        }
        let exp_data_sn = pdu.exp_data_sn.0;
        self.push_reply(lane, Reply::Reassigned { itt: pdu.itt, ticket, task: id, exp_data_sn });
    }

    /// The task of this tag, if it may move; else the outcome to answer.
    fn reassignable(&self, lane: LaneId, ticket: Ticket, itt: Itt) -> Result<TaskId, TaskManagementOutcome> {
        if !self.recovers_connections() {
            return Err(TaskManagementOutcome::ReassignmentNotSupported);
        }
        // "TASK REASSIGN MUST be issued as an immediate command" (§11.5.1), and moves SCSI tasks only.
        if ticket == Ticket::Numbered || self.is_other_request(itt) {
            return Err(TaskManagementOutcome::FunctionRejected);
        }
        let found = self.tasks.find(itt).and_then(|id| Some((id, self.tasks.get(id)?)));
        let found = found.filter(|(_, task)| !task.silent && task.stage != Stage::Waiting);
        let (id, task) = found.ok_or(TaskManagementOutcome::TaskDoesNotExist)?;
        match self.departed.is_removed(task.route.request) {
            Some(true) => Ok(id),
            // The answer to an earlier request was lost, and is sent again.
            None if task.allegiance == Allegiance::Moved && task.route.request == lane => {
                Err(TaskManagementOutcome::FunctionComplete)
            }
            _ => Err(TaskManagementOutcome::TaskStillAllegiant),
        }
    }

    /// Moves a task that is to be aborted, and whose status may have been lost with its connection, to this lane: "its
    /// status, if sent but not acknowledged, will be resent" there before the answer (§11.5.1). `false` if its
    /// connection lives.
    pub(super) fn bring_status(&mut self, id: TaskId, lane: LaneId) -> bool {
        let Some(task) = self.tasks.get_mut(id) else { return false };
        if !self.departed.has(task.route.request) {
            return false;
        }
        task.route = Route::over(lane);
        task.snack_tag = 0;
        task.stage = Stage::Ended(Answer::Ready);
        self.queue_response(id);
        true
    }

    /// Whether a tag belongs to a request other than a SCSI command.
    fn is_other_request(&self, itt: Itt) -> bool {
        self.functions.contains(itt)
            || self.lanes.values().any(|lane| lane.text.as_ref().is_some_and(|text| text.itt() == itt))
            || self.logouts.iter().any(|logout| logout.itt() == itt)
    }

    /// Answers that the task has moved, "before the reassignment becomes effective", and then makes it effective.
    pub(super) fn emit_reassigned(
        &mut self,
        now: Instant,
        lane: LaneId,
        itt: Itt,
        ticket: Ticket,
        task: TaskId,
        exp_data_sn: u32,
    ) -> Option<Transmit> {
        let outcome = TaskManagementOutcome::FunctionComplete;
        let pdu = self.emit_task_management(lane, itt, outcome, ticket, false);
        if self.tasks.get(task).is_some_and(|task| task.route.request == lane) {
            self.counters.reassigned_tasks += 1;
            self.resume_task(now, task, exp_data_sn);
        }
        pdu
    }

    /// Resumes a task: sends all Data-In from `exp_data_sn` on, R2Ts for missing Data-Out, and the status with a StatSN
    /// of the new lane.
    fn resume_task(&mut self, now: Instant, id: TaskId, exp_data_sn: u32) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        task.allegiance = Allegiance::Moved;
        task.snack_tag = 0;
        // 0, and any invalid number, acknowledges nothing (§11.5.6).
        self.acknowledge_data(id, exp_data_sn);
        let Some(task) = self.tasks.get(id) else { return };
        let acknowledged = task.data_in.retention().map_or(0, Retention::acknowledged_sn);
        if !self.rewind(id, acknowledged) {
            self.fail_read(now, id);
        }
        self.go_on_with_data_out(now, id);
    }
}
