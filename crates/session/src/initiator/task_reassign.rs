//! TASK REASSIGN: moves a task that the target has to another lane (RFC 7143 §7.2.2, §11.5.1, §11.5.6).

use super::event::{Data, Demand, TaskId};
use super::outgoing::Request;
use super::reassignments::Reassignment;
use super::session::Session;
use super::task::Allegiance;
use crate::lanes::Route;
use pdu::{
    CmdSn, DataSn, Instant, Itt, LaneId, Lun, StatSn, TaskManagementFunction, TaskManagementOutcome,
    TaskManagementRequest, TaskManagementResponse,
};

impl Session {
    /// Tasks whose connection broke and that may move to another now, each with its data that is still to be
    /// transferred. Connections come in the order of their loss, the tasks of each in the order of their CmdSNs. The
    /// driver gives each task a lane by [`Self::reassign`], and asks again whenever something was received, a timer
    /// expired or a lane was added.
    pub fn orphans(&self) -> impl Iterator<Item = Demand> + '_ {
        let may_reassign = self.reassignments.have_room();
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
    /// if the target has its command, else by sending the command again. `false` if the task is not such an orphan or
    /// the lane does not accept orphans.
    pub fn reassign(&mut self, now: Instant, task: TaskId, lane: LaneId) -> bool {
        let is_orphan = self.orphans().any(|orphan| orphan.task == task);
        let itt = Itt(task.0);
        if is_orphan
            && self.lane_state(lane).accepts_orphans
            && let Some(dead) = self.lost.adopt(itt)
        {
            self.settle_at(now, itt, lane, dead);
            self.recover(now);
            return true;
        }
        false
    }

    /// Gives a task of the lost lane `dead` the route over `lane`.
    fn settle_at(&mut self, now: Instant, itt: Itt, lane: LaneId, dead: LaneId) {
        let Some(home) = self.tasks.get(itt).and_then(|task| task.allegiance) else { return };
        let is_with_target = self.is_with_target(home);
        let Some(task) = self.tasks.get_mut(itt) else { return };
        let route = Route::over(lane);
        let command = if is_with_target { home.command } else { home.command.move_on() };
        task.allegiance = Some(Allegiance { route, command, ..home });
        self.lanes.charge(route, task.unmoved());
        if is_with_target {
            let reassignment = Reassignment { itt: self.request_tags.take(), task: itt, lane, dead };
            self.reassignments.push(now, reassignment);
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

    fn request_reassignment(&mut self, reassignment: Reassignment) {
        let Some(task) = self.tasks.get(reassignment.task) else { return };
        let exp_data_sn = match task.command.data {
            Data::In(_) => DataSn(task.input.next()),
            // The target repeats all R2Ts that are not satisfied.
            Data::Out(_) | Data::None => DataSn(0),
        };
        let request = TaskManagementRequest {
            function: TaskManagementFunction::TaskReassign,
            immediate: true,
            lun: Lun::default(),
            itt: reassignment.itt,
            referenced_task: reassignment.task,
            cmd_sn: self.window.current(),
            // Filled in when the PDU is pulled.
            exp_stat_sn: StatSn::default(),
            ref_cmd_sn: CmdSn::default(),
            exp_data_sn,
        };
        if let Some(lane) = self.lanes.get_mut(reassignment.lane) {
            lane.push(Request::TaskManagement(request));
        }
    }

    /// Repeats reassignments that were not answered or not granted, until the target forgets the tasks.
    pub(super) fn reassign_again(&mut self, now: Instant) {
        let Some(due) = self.reassignments.take_due(now) else { return self.fail() };
        due.into_iter().for_each(|reassignment| self.request_reassignment(reassignment));
    }

    /// Takes the answer to a reassignment; `false` if this answers none.
    pub(super) fn reassignment_answered(&mut self, now: Instant, pdu: &TaskManagementResponse) -> bool {
        let Some(task) = self.reassignments.task(pdu.itt) else { return false };
        match pdu.outcome {
            TaskManagementOutcome::FunctionComplete => self.reassignments.granted(pdu.itt),
            // The target has forgotten the task, or its status was acknowledged and not received: nobody knows how it
            // ended.
            TaskManagementOutcome::TaskDoesNotExist => self.lose_task(task),
            TaskManagementOutcome::ReassignmentNotSupported | TaskManagementOutcome::FunctionNotSupported => {
                self.fail();
            }
            // The target has not finished with the old connection, or is too busy. The request will be repeated.
            _ => {}
        }
        // The target has room for one more immediate request.
        if let Some(deferred) = self.reassignments.take_deferred(now) {
            self.request_reassignment(deferred);
        }
        self.recover(now);
        true
    }
}
