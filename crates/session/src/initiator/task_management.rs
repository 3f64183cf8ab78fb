//! Task management functions, and what becomes of the tasks they concern (RFC 7143 §11.5, §11.6).

use super::data_sequence::Arrival;
use super::event::{Event, FunctionId, TaskFunction};
use super::outgoing::Request;
use super::session::Session;
use super::task::Task;
use crate::seam::Fault;
use pdu::{
    CmdSn, DataSn, Instant, Itt, LaneId, Lun, StatSn, TaskManagementFunction, TaskManagementOutcome,
    TaskManagementRequest, TaskManagementResponse,
};

/// A function that has not been answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    itt: Itt,
    pub(super) lane: LaneId,
    asked: TaskFunction,
}

impl TaskFunction {
    fn code(self) -> TaskManagementFunction {
        match self {
            Self::AbortTask(_) => TaskManagementFunction::AbortTask,
            Self::AbortTaskSet(_) => TaskManagementFunction::AbortTaskSet,
            Self::ClearTaskSet(_) => TaskManagementFunction::ClearTaskSet,
            Self::LogicalUnitReset(_) => TaskManagementFunction::LogicalUnitReset,
            Self::TargetWarmReset => TaskManagementFunction::TargetWarmReset,
            Self::TargetColdReset => TaskManagementFunction::TargetColdReset,
        }
    }

    fn is_over_many_tasks(self) -> bool {
        !matches!(self, Self::AbortTask(_))
    }

    fn concerns(self, task: &Task) -> bool {
        match self {
            Self::AbortTask(one) => task.itt.0 == one.0,
            Self::AbortTaskSet(lun) | Self::ClearTaskSet(lun) | Self::LogicalUnitReset(lun) => {
                task.command.lun == lun
            }
            Self::TargetWarmReset | Self::TargetColdReset => true,
        }
    }

    /// The logical unit of functions that address one, other than by a task.
    fn lun(self) -> Lun {
        match self {
            Self::AbortTaskSet(lun) | Self::ClearTaskSet(lun) | Self::LogicalUnitReset(lun) => lun,
            Self::AbortTask(_) | Self::TargetWarmReset | Self::TargetColdReset => Lun::default(),
        }
    }

    /// Whether the tasks concerned are no more. A single task that does not exist at the target has been answered, or
    /// never will be.
    fn ended_tasks(self, outcome: TaskManagementOutcome) -> bool {
        match outcome {
            TaskManagementOutcome::FunctionComplete => true,
            TaskManagementOutcome::TaskDoesNotExist => !self.is_over_many_tasks(),
            _ => false,
        }
    }
}

impl Session {
    /// Asks for a task management function; [`Event::FunctionDone`] tells what came of it.
    ///
    /// Tasks that were queued and not started are lost at once; those that were started are lost when the target says
    /// that the function is complete, unless they complete before. While a function over many tasks is being carried
    /// out, no command is started, so that it is clear which ones it concerned. A function is answered at once if its
    /// task has not left or is no more ([`TaskManagementOutcome::FunctionComplete`],
    /// [`TaskManagementOutcome::TaskDoesNotExist`]), or if there is no lane to ask on
    /// ([`TaskManagementOutcome::FunctionRejected`]).
    pub fn task_management(&mut self, _now: Instant, function: TaskFunction) -> FunctionId {
        let itt = self.request_tags.take();
        let id = FunctionId(itt.0);
        let were_queued = self.lose_queued(|task| function.concerns(task));
        match self.task_management_request(itt, function, were_queued) {
            Ok((lane, request)) => self.ask(Function { itt, lane, asked: function }, request),
            Err(response) => self.events.push_back(Event::FunctionDone { function: id, response }),
        }
        id
    }

    /// The lane and the PDU, or the answer where there is nothing to ask.
    fn task_management_request(
        &self,
        itt: Itt,
        function: TaskFunction,
        were_queued: bool,
    ) -> Result<(LaneId, TaskManagementRequest), TaskManagementOutcome> {
        let mut request = TaskManagementRequest {
            function: function.code(),
            immediate: true,
            lun: function.lun(),
            itt,
            referenced_task: Itt::NONE,
            cmd_sn: self.window.current(),
            // Filled in when it is pulled.
            exp_stat_sn: StatSn::default(),
            ref_cmd_sn: CmdSn::default(),
            exp_data_sn: DataSn::default(),
        };
        let TaskFunction::AbortTask(task) = function else {
            let lane = self.lane_for_requests().ok_or(TaskManagementOutcome::FunctionRejected)?;
            return Ok((lane, request));
        };
        if were_queued {
            return Err(TaskManagementOutcome::FunctionComplete);
        }
        let task = self.tasks.get(Itt(task.0)).ok_or(TaskManagementOutcome::TaskDoesNotExist)?;
        let allegiance = task.allegiance.ok_or(TaskManagementOutcome::TaskDoesNotExist)?;
        request.lun = task.command.lun;
        request.referenced_task = task.itt;
        request.ref_cmd_sn = allegiance.cmd_sn;
        // It must follow its task on the same lane (§11.5.1), and does so even if that has not been pulled yet.
        Ok((allegiance.request_lane, request))
    }

    fn ask(&mut self, function: Function, request: TaskManagementRequest) {
        if let Some(lane) = self.lanes.get_mut(&function.lane) {
            lane.push(Request::TaskManagement(request));
        }
        self.functions.push(function);
        if self.is_fenced() {
            let lanes: Vec<LaneId> = self.lanes.keys().copied().collect();
            lanes.into_iter().for_each(|lane| self.acknowledge(lane));
        }
    }

    /// Whether a function over many tasks is being carried out. The target may hold its answer back until every
    /// response before it is acknowledged on every lane (§4.2.2.3.3, §11.6.1), so these are acknowledged at once.
    pub(super) fn is_fenced(&self) -> bool {
        self.functions.iter().any(|function| function.asked.is_over_many_tasks())
    }

    pub(super) fn receive_task_management(
        &mut self,
        lane: LaneId,
        pdu: &TaskManagementResponse,
    ) -> Result<(), Fault> {
        if self.receive_status(lane, pdu.stat_sn)? == Arrival::Repeated {
            return Ok(());
        }
        if !self.functions.iter().any(|function| function.itt == pdu.itt && function.lane == lane) {
            return Err(Fault::Protocol("an answer to a task management function that was not asked for"));
        }
        self.end_function(pdu.itt, pdu.outcome);
        self.acknowledge(lane);
        Ok(())
    }

    /// A command that was started and not pulled before the answer came cannot have been concerned; it is kept, for
    /// the target waits for its number.
    pub(super) fn end_function(&mut self, itt: Itt, response: TaskManagementOutcome) {
        let Some(index) = self.functions.iter().position(|function| function.itt == itt) else { return };
        let asked = self.functions.swap_remove(index).asked;
        if asked.ended_tasks(response) {
            let concerned = |task: &&Task| task.is_sent() && asked.concerns(task);
            let lost: Vec<Itt> = self.tasks.iter().filter(concerned).map(|task| task.itt).collect();
            lost.into_iter().for_each(|itt| self.lose_task(itt));
        }
        self.events.push_back(Event::FunctionDone { function: FunctionId(itt.0), response });
    }
}
