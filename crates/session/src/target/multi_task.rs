//! Task management functions over many tasks: they wait for the commands before them, drain the data of the tasks
//! they abort, and answer behind a fence (RFC 7143 §4.2.3.3; [`super::response_fence`]).

use super::event::{Event, LogicalUnitFunction, TaskId, TaskManagement, TaskManagementId};
use super::immediate::Ticket;
use super::lane::Phase;
use super::response_fence::{Handed, Units};
use super::session::Session;
use super::task::Task;
use super::task_management::Functions;
use super::transmit::Reply;
use pdu::{CmdSn, Instant, Itt, LaneId, TaskManagementOutcome};
use std::time::Duration;

/// How long the target waits for data that the initiator owes to aborted tasks. The standard demands the wait, but some
/// initiators stop sending such data when they request the reset.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);

/// A function over many tasks.
#[derive(Debug)]
pub(super) struct MultiTaskFunction {
    pub(super) lane: LaneId,
    pub(super) itt: Itt,
    pub(super) ticket: Ticket,
    /// Its place in the command order. It concerns the commands before it.
    pub(super) cmd_sn: CmdSn,
    pub(super) function: LogicalUnitFunction,
}

/// The function that is being carried out.
#[derive(Debug)]
pub(super) struct Active {
    id: TaskManagementId,
    pub(super) function: MultiTaskFunction,
    step: Step,
}

/// The progress of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The initiator owes data to tasks that are aborted.
    Draining { until: Instant },
    /// The driver is carrying the function out.
    Executing,
    /// The response waits for its fence.
    Answering,
    /// The response has arrived, or nobody waits for it.
    Answered,
}

impl LogicalUnitFunction {
    fn units(self) -> Units {
        match self {
            Self::AbortTaskSet { lun } | Self::ClearTaskSet { lun } | Self::LogicalUnitReset { lun } => {
                Units::One(lun)
            }
            Self::AbortTask { .. } | Self::TargetWarmReset | Self::TargetColdReset => Units::All,
        }
    }
}

impl MultiTaskFunction {
    /// Whether the function aborts this task. A task whose answer may have been lost with its connection is exempt: it
    /// is answered again first, on the lane to which it moves.
    fn affects(&self, task: &Task) -> bool {
        !task.silent
            && !task.is_retired
            && self.function.units().meet(Units::One(task.lun))
            && (task.immediate || task.cmd_sn.precedes(self.cmd_sn))
    }
}

impl Active {
    /// The function, if its response has not been sent.
    pub(super) fn unanswered(&mut self) -> Option<&mut MultiTaskFunction> {
        (self.step != Step::Answered).then_some(&mut self.function)
    }
}

impl Functions {
    /// The logical units that the active function concerns.
    pub(super) fn units(&self) -> Option<Units> {
        self.active.as_ref().map(|active| active.function.function.units())
    }

    /// The request of the active function.
    pub(super) fn request(&self) -> Option<(LaneId, Itt, Ticket)> {
        self.active.as_ref().map(|Active { function, .. }| (function.lane, function.itt, function.ticket))
    }

    /// Notes that the active function has been answered.
    pub(super) fn note_answered(&mut self) {
        if let Some(active) = &mut self.active {
            active.step = Step::Answered;
        }
    }

    /// When the active function stops waiting for data.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.active.as_ref()?.step {
            Step::Draining { until } => Some(until),
            _ => None,
        }
    }
}

impl Session {
    pub(super) fn manage_many_tasks(&mut self, now: Instant, function: MultiTaskFunction) {
        let window = self.order.window();
        let exp_cmd_sn = window.exp_cmd_sn;
        let is_ahead = exp_cmd_sn.precedes(function.cmd_sn);
        if is_ahead && window.max_cmd_sn.next().precedes(function.cmd_sn) {
            // The initiator cannot have sent such commands.
            let MultiTaskFunction { lane, itt, ticket, .. } = function;
            let outcome = TaskManagementOutcome::FunctionRejected;
            return self.push_reply(lane, Reply::TaskManagement { itt, outcome, ticket, is_fenced: false });
        }
        // A reset of the whole target need not wait for commands that have not arrived (§4.2.3.3 b).
        if is_ahead && function.function.units() == Units::All {
            for id in self.tasks.select(|task| function.affects(task)) {
                self.silence_and_drain(now, id);
            }
            self.order.plug_before(function.cmd_sn);
        }
        self.functions.waiting.push_back(function);
    }

    /// Starts the next function if its turn has come. Returns whether a function is active, so that later commands must
    /// wait.
    pub(super) fn starts_function(&mut self, now: Instant) -> bool {
        let exp_cmd_sn = self.order.exp_cmd_sn();
        let next = self.functions.waiting.front();
        if self.functions.active.is_none()
            && next.is_some_and(|function| !exp_cmd_sn.precedes(function.cmd_sn))
            && let Some(function) = self.functions.waiting.pop_front()
        {
            for id in self.tasks.select(|task| function.affects(task)) {
                self.silence_and_drain(now, id);
            }
            let id = self.functions.next_id();
            let step = Step::Draining { until: now + DRAIN_PATIENCE };
            self.functions.active = Some(Active { id, function, step });
        }
        self.functions.active.is_some()
    }

    /// Advances functions and fences as far as possible now.
    pub(super) fn conclude_functions(&mut self, now: Instant) {
        loop {
            self.conclude_draining(now);
            self.conclude_fence(now);
            if self.functions.active.as_ref().is_none_or(|active| active.step != Step::Answered) {
                return;
            }
            // Requests that waited for the function go on.
            self.functions.active = None;
            self.hand_out_held(now);
            self.advance(now);
        }
    }

    /// Hands the active function to the driver when no data is owed any more.
    fn conclude_draining(&mut self, now: Instant) {
        let Some(active) = &mut self.functions.active else { return };
        let Step::Draining { until } = active.step else { return };
        let is_owed = |task: &Task| task.silent && task.data_out.is_owed();
        if until <= now || !self.tasks.iter().any(|(_, task)| is_owed(task)) {
            active.step = Step::Executing;
            let (id, function) = (active.id, active.function.function);
            self.events.push_back(Event::TaskManagement(TaskManagement { id, function }));
            self.stop_draining(now);
        }
    }

    /// Stops waiting for data that is owed to aborted tasks, and frees their tags.
    fn stop_draining(&mut self, now: Instant) {
        for id in self.tasks.select(|task| task.silent) {
            self.silence(now, id);
        }
    }

    /// Queues the response of the active function, which the driver has carried out, behind a fence.
    pub(super) fn answer_behind_fence(&mut self, id: TaskManagementId, outcome: TaskManagementOutcome) {
        let is_it = |active: &&mut Active| active.id == id && active.step == Step::Executing;
        if let Some(active) = self.functions.active.as_mut().filter(is_it) {
            active.step = Step::Answering;
            self.hand_over(Handed::MultiTask(outcome));
        }
    }

    /// Whether a function's response can leave on this lane.
    pub(super) fn has_outlet(&self, lane: LaneId) -> bool {
        let outlet = self.lanes.of_responses(lane).and_then(|outlet| self.lanes.get(outlet));
        outlet.is_some_and(|lane| lane.phase != Phase::LoggedOut)
    }

    /// Hands out immediate commands that waited for a function.
    pub(super) fn hand_out_held(&mut self, now: Instant) {
        let held: Vec<TaskId> = self.functions.held_commands.drain(..).collect();
        for id in held {
            self.hand_out(now, id);
        }
    }
}
