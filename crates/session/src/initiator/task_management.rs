//! Task management functions, and the end of the tasks that they concern (RFC 7143 §11.5, §11.6).

use super::ask::Ask;
use super::data_sequence::Arrival;
use super::event::{Event, FunctionId, TaskFunction};
use super::outgoing::Request;
use super::session::{Life, Session};
use super::task::Task;
use crate::peer_fault::Question;
use crate::seam::Fault;
use pdu::{
    CmdSn, DataSn, Instant, Itt, LaneId, Lun, StatSn, TaskManagementFunction, TaskManagementOutcome,
    TaskManagementRequest, TaskManagementResponse,
};

/// A function that has not been answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    pub(super) itt: Itt,
    pub(super) lane: LaneId,
    pub(super) asked: TaskFunction,
    /// The request, kept to be sent again.
    pub(super) request: TaskManagementRequest,
    /// When the request was last sent, at error recovery level 1 and above.
    pub(super) ask: Option<Ask>,
    asker: Asker,
}

/// The one that asked for a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Owner,
    /// This session itself, so that the target does not wait for a command that will not come.
    Session,
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

    /// The logical unit that a function addresses directly, else the default.
    fn lun(self) -> Lun {
        match self {
            Self::AbortTaskSet(lun) | Self::ClearTaskSet(lun) | Self::LogicalUnitReset(lun) => lun,
            Self::AbortTask(_) | Self::TargetWarmReset | Self::TargetColdReset => Lun::default(),
        }
    }

    /// Whether the target's outcome means that the function's tasks have ended. A single task that does not exist at
    /// the target has been answered, or never will be.
    fn ended_tasks(self, outcome: TaskManagementOutcome) -> bool {
        match outcome {
            TaskManagementOutcome::FunctionComplete => true,
            TaskManagementOutcome::TaskDoesNotExist => !self.is_over_many_tasks(),
            _ => false,
        }
    }
}

impl Session {
    /// Requests a task management function; [`Event::FunctionDone`] reports its outcome.
    ///
    /// Concerned tasks that were not started are reported lost at once. Started ones are reported lost when the target
    /// says that the function is complete, unless they complete before. While a function over many tasks is being
    /// carried out, no command is started, so that it is clear which tasks the function concerned. A function is
    /// answered at once if its task has not left ([`TaskManagementOutcome::FunctionComplete`]), if its task has ended
    /// ([`TaskManagementOutcome::TaskDoesNotExist`]), or if there is no lane for the request
    /// ([`TaskManagementOutcome::FunctionRejected`]).
    pub fn task_management(&mut self, now: Instant, function: TaskFunction) -> FunctionId {
        let itt = self.request_tags.take();
        let id = FunctionId(itt.0);
        let were_queued = self.lose_queued(|task| function.concerns(task));
        match self.task_management_request(itt, function, were_queued) {
            Ok((lane, request)) => self.ask(now, lane, function, request, Asker::Owner),
            Err(response) => self.events.push_back(Event::FunctionDone { function: id, response }),
        }
        id
    }

    /// The lane and the request, or the outcome if no request is needed or possible.
    fn task_management_request(
        &self,
        itt: Itt,
        function: TaskFunction,
        were_queued: bool,
    ) -> Result<(LaneId, TaskManagementRequest), TaskManagementOutcome> {
        let mut request = self.function_request(itt, function);
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
        // The request must follow its task on the same lane (§11.5.1), even if the command has not been pulled yet.
        Ok((allegiance.route.request, request))
    }

    pub(super) fn function_request(&self, itt: Itt, function: TaskFunction) -> TaskManagementRequest {
        TaskManagementRequest {
            function: function.code(),
            immediate: true,
            lun: function.lun(),
            itt,
            referenced_task: Itt::NONE,
            cmd_sn: self.window.current(),
            // Filled in when the PDU is pulled.
            exp_stat_sn: StatSn::default(),
            ref_cmd_sn: CmdSn::default(),
            exp_data_sn: DataSn::default(),
        }
    }

    pub(super) fn ask(
        &mut self,
        now: Instant,
        lane: LaneId,
        asked: TaskFunction,
        request: TaskManagementRequest,
        asker: Asker,
    ) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.push(Request::TaskManagement(request));
        }
        let ask = self.recovers().then(|| Ask::new(now));
        self.functions.push(Function { itt: request.itt, lane, asked, request, ask, asker });
        if self.is_fenced() {
            let lanes = self.lanes.ids();
            lanes.into_iter().for_each(|lane| self.acknowledge(lane));
        }
    }

    /// Whether a function over many tasks is being carried out. The target may delay its answer until every earlier
    /// response is acknowledged on every lane (§4.2.2.3.3, §11.6.1), so meanwhile responses are acknowledged at once.
    pub(super) fn is_fenced(&self) -> bool {
        self.functions.iter().any(|function| function.asked.is_over_many_tasks())
    }

    pub(super) fn receive_task_management(
        &mut self,
        now: Instant,
        lane: LaneId,
        pdu: &TaskManagementResponse,
    ) -> Result<(), Fault> {
        if self.receive_status(lane, pdu.stat_sn)? == Arrival::Repeated {
            return Ok(());
        }
        if self.reassignment_answered(now, pdu) {
            return Ok(());
        }
        if !self
            .functions
            .iter()
            .any(|function| function.itt == pdu.itt && self.lanes.of_responses(function.lane) == Some(lane))
        {
            return self.late_answer(Question::TaskManagement);
        }
        self.end_function(pdu.itt, pdu.outcome);
        self.acknowledge(lane);
        Ok(())
    }

    /// Ends a function with the target's answer. A command that was started but not pulled before the answer came was
    /// not concerned; it is kept, because the target waits for its CmdSN.
    pub(super) fn end_function(&mut self, itt: Itt, response: TaskManagementOutcome) {
        let Some(index) = self.functions.iter().position(|function| function.itt == itt) else { return };
        let Function { asked, asker, request, .. } = self.functions.swap_remove(index);
        if asked.ended_tasks(response) {
            let concerned = |task: &&Task| task.is_sent() && asked.concerns(task);
            let lost: Vec<Itt> = self.tasks.iter().filter(concerned).map(|task| task.itt).collect();
            lost.into_iter().for_each(|itt| self.lose_task(itt));
        }
        if asker == Asker::Owner {
            self.events.push_back(Event::FunctionDone { function: FunctionId(itt.0), response });
        } else if response != TaskManagementOutcome::FunctionComplete
            && self.life == Life::Open
            && !self.recovers()
            && !self.is_acknowledged(request.ref_cmd_sn)
        {
            // The target waits for a command that will not come, and at error recovery level 0 nobody repeats the abort.
            self.fail();
        }
    }
}
