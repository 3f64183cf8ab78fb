//! Task management functions over many tasks: they wait for the commands before them, drain the data of the tasks
//! they abort, and answer behind a fence (RFC 7143 §4.2.2.3, §4.2.3.3).

use super::event::{Event, LogicalUnitFunction, TaskId, TaskManagement, TaskManagementId};
use super::immediate::Ticket;
use super::lane::Phase;
use super::session::Session;
use super::task::{Stage, Task};
use super::task_management::Functions;
use super::transmit::Reply;
use pdu::{CmdSn, Instant, Itt, LaneId, Lun, StatSn, TaskManagementOutcome};
use std::time::Duration;

/// How long the data that the initiator owes to aborted tasks is waited for. The standard wants it waited for, but
/// some initiators stop sending it when they ask for the reset.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);

/// A function over many tasks.
#[derive(Debug)]
pub(super) struct MultiTaskFunction {
    pub(super) lane: LaneId,
    pub(super) itt: Itt,
    pub(super) ticket: Ticket,
    /// Its place in the command order: it concerns the commands before it.
    pub(super) cmd_sn: CmdSn,
    pub(super) function: LogicalUnitFunction,
}

/// The function being carried out.
#[derive(Debug)]
pub(super) struct Active {
    id: TaskManagementId,
    pub(super) function: MultiTaskFunction,
    step: Step,
}

/// How far it has come.
#[derive(Debug)]
enum Step {
    /// The initiator owes data to tasks that are aborted.
    Draining { until: Instant },
    /// The driver carries it out.
    Executing,
    /// The responses sent so far must be acknowledged on every lane.
    Fencing { outcome: TaskManagementOutcome, marks: Vec<(LaneId, StatSn)> },
    /// Its response waits to be sent.
    Answering,
    /// Its response must be acknowledged before others follow.
    Confirming { lane: LaneId, mark: StatSn },
}

impl LogicalUnitFunction {
    /// The logical unit; `None` for all.
    fn unit(self) -> Option<Lun> {
        match self {
            Self::AbortTaskSet { lun } | Self::ClearTaskSet { lun } | Self::LogicalUnitReset { lun } => {
                Some(lun)
            }
            Self::AbortTask { .. } | Self::TargetWarmReset | Self::TargetColdReset => None,
        }
    }
}

impl MultiTaskFunction {
    fn is_at(&self, lun: Lun) -> bool {
        self.function.unit().is_none_or(|unit| unit == lun)
    }

    /// Whether a task is one that it aborts.
    fn affects(&self, task: &Task) -> bool {
        let is_answered = task.stage == Stage::Responded;
        !task.silent
            && !is_answered
            && self.is_at(task.lun)
            && (task.immediate || task.cmd_sn.precedes(self.cmd_sn))
    }
}

impl Functions {
    /// Whether a task's response must wait for the active function's.
    pub(super) fn fences(&self, task: &Task) -> bool {
        self.active.as_ref().is_some_and(|active| {
            let has_fence = !matches!(active.step, Step::Draining { .. } | Step::Executing);
            has_fence && active.function.is_at(task.lun)
        })
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
        let window = self.window.advertised();
        let exp_cmd_sn = window.exp_cmd_sn;
        let is_ahead = exp_cmd_sn.precedes(function.cmd_sn);
        if is_ahead && window.max_cmd_sn.next().precedes(function.cmd_sn) {
            // Such commands cannot have been sent.
            let MultiTaskFunction { lane, itt, ticket, .. } = function;
            let outcome = TaskManagementOutcome::FunctionRejected;
            return self.push_reply(lane, Reply::TaskManagement { itt, outcome, ticket, is_fenced: false });
        }
        // A reset of the whole target need not wait for commands that have not arrived (§4.2.3.3 b).
        if is_ahead && function.function.unit().is_none() {
            for id in self.tasks.select(|task| function.affects(task)) {
                self.silence_and_drain(now, id);
            }
            self.window.plug_before(function.cmd_sn);
        }
        self.functions.waiting.push_back(function);
    }

    /// Starts the next function if its turn has come. Returns whether one is active: commands after it must wait.
    pub(super) fn starts_function(&mut self, now: Instant) -> bool {
        let exp_cmd_sn = self.window.exp_cmd_sn();
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

    /// Goes on with the active function, as far as it gets now.
    pub(super) fn conclude_function(&mut self, now: Instant) {
        let Some(active) = &mut self.functions.active else { return };
        let is_gone = |lane| self.lanes.get(&lane).is_none_or(|lane| lane.phase == Phase::LoggedOut);
        let is_acknowledged =
            |(lane, mark)| self.lanes.get(&lane).is_none_or(|lane| lane.status.is_acknowledged(mark));
        match &active.step {
            Step::Draining { until } => {
                let is_owed = |task: &Task| task.silent && task.data_out.is_owed();
                if *until <= now || !self.tasks.iter().any(|(_, task)| is_owed(task)) {
                    active.step = Step::Executing;
                    let (id, function) = (active.id, active.function.function);
                    self.events.push_back(Event::TaskManagement(TaskManagement { id, function }));
                    self.stop_draining(now);
                }
            }
            Step::Fencing { outcome, marks } => {
                let late: Vec<_> = marks.iter().copied().filter(|mark| !is_acknowledged(*mark)).collect();
                if late.is_empty() {
                    let outcome = *outcome;
                    active.step = Step::Answering;
                    let MultiTaskFunction { lane, itt, ticket, .. } = active.function;
                    self.push_reply(lane, Reply::TaskManagement { itt, outcome, ticket, is_fenced: true });
                    return self.conclude_function(now);
                }
                for (lane, _) in late {
                    self.solicit_acknowledgement(now, lane);
                }
            }
            Step::Answering if is_gone(active.function.lane) => self.lift_fence(now),
            Step::Confirming { lane, mark } if is_acknowledged((*lane, *mark)) => self.lift_fence(now),
            Step::Confirming { lane, .. } => {
                let lane = *lane;
                self.solicit_acknowledgement(now, lane);
            }
            Step::Executing | Step::Answering => {}
        }
    }

    /// What aborted tasks are still owed is not waited for; their tags are free.
    fn stop_draining(&mut self, now: Instant) {
        for id in self.tasks.select(|task| task.silent) {
            self.silence(now, id);
        }
    }

    /// The driver has carried out the active function. With several lanes, its response must wait until all
    /// responses before it have arrived; on a single lane they do so by themselves (§4.2.2.3.3).
    pub(super) fn fence(&mut self, now: Instant, id: TaskManagementId, outcome: TaskManagementOutcome) {
        let is_alone = self.lanes.len() <= 1;
        let marks: Vec<_> = self.lanes.iter().map(|(id, lane)| (*id, lane.mark())).collect();
        let Some(active) = &mut self.functions.active else { return };
        if active.id != id || !matches!(active.step, Step::Executing) {
            return;
        }
        if is_alone {
            let MultiTaskFunction { lane, itt, ticket, .. } = active.function;
            self.push_reply(lane, Reply::TaskManagement { itt, outcome, ticket, is_fenced: false });
            return self.lift_fence(now);
        }
        active.step = Step::Fencing { outcome, marks };
    }

    /// The active function's response has been pulled: nothing passes before it is acknowledged.
    pub(super) fn confirm_fence(&mut self, lane: LaneId, mark: StatSn) {
        if let Some(active) = &mut self.functions.active {
            active.step = Step::Confirming { lane, mark };
        }
    }

    /// The active function is done: what waited for it goes on.
    fn lift_fence(&mut self, now: Instant) {
        self.functions.active = None;
        for id in core::mem::take(&mut self.functions.held_responses) {
            self.settle(now, id);
        }
        self.hand_out_held(now);
        self.advance(now);
    }

    /// Immediate commands that waited for a function.
    pub(super) fn hand_out_held(&mut self, now: Instant) {
        let held: Vec<TaskId> = self.functions.held_commands.drain(..).collect();
        for id in held {
            self.hand_out(now, id);
        }
    }
}
