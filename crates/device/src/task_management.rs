//! Task management functions that concern a logical unit (RFC 7143 §11.5, SAM-5 §7).
//!
//! A function is complete when the tasks that it aborted have come to rest: at once if they had not started, otherwise
//! when the backend has finished them. Copies that continue, but use the unit's blocks, must finish their current
//! piece.

use crate::ending::{drop_task, start_others};
use crate::session_driver::{SessionDriver, SessionState};
use crate::unit_state::{Cleared, NexusTask, Reset, UnitState};
use futures_channel::oneshot;
use pdu::{Lun, TaskManagementOutcome};
use session::target::{LogicalUnitFunction, TaskManagement};
use std::rc::Rc;

/// Carries out a function for a session. Runs later, because it may concern other sessions while this one is in use.
pub(crate) fn begin(driver: &Rc<SessionDriver>, function: TaskManagement) {
    let environment = Rc::clone(&driver.environment);
    let driver = Rc::clone(driver);
    environment.spawn(async move {
        let outcome = execute(&driver, function.function).await;
        driver.resume(|state| state.session.task_management_done(driver.now(), function.id, outcome));
        if function.function == LogicalUnitFunction::TargetColdReset {
            let affected =
                driver.node.sessions().into_iter().filter(|session| driver.shares_units_with(session));
            affected.for_each(|session| session.close());
            driver.close();
        }
    });
}

async fn execute(driver: &Rc<SessionDriver>, function: LogicalUnitFunction) -> TaskManagementOutcome {
    match function {
        LogicalUnitFunction::AbortTask { task } => {
            let unit = driver.resume(|state| state.tasks.get(&task).map(|task| Rc::clone(&task.unit)));
            // The driver has just answered this task; the session orders its response before this function's.
            let Some(unit) = unit else { return TaskManagementOutcome::FunctionComplete };
            let cleared = unit.state.borrow_mut().abort_task(NexusTask { nexus: driver.nexus, task });
            quiesce(driver, cleared).await;
            TaskManagementOutcome::FunctionComplete
        }
        LogicalUnitFunction::AbortTaskSet { lun } => {
            on_unit(driver, lun, |unit| unit.abort_task_set(driver.nexus)).await
        }
        LogicalUnitFunction::ClearTaskSet { lun } => {
            on_unit(driver, lun, |unit| unit.clear_task_set(driver.nexus)).await
        }
        LogicalUnitFunction::LogicalUnitReset { lun } => {
            on_unit(driver, lun, |unit| unit.reset(Reset::LogicalUnit)).await
        }
        LogicalUnitFunction::TargetWarmReset | LogicalUnitFunction::TargetColdReset => {
            // For an initiator, the target consists of the units that it may use: it resets no other unit.
            for unit in &driver.units {
                let cleared = unit.state.borrow_mut().reset(Reset::Target);
                quiesce(driver, cleared).await;
            }
            TaskManagementOutcome::FunctionComplete
        }
    }
}

async fn on_unit(
    driver: &Rc<SessionDriver>,
    lun: Lun,
    clear: impl FnOnce(&mut UnitState) -> Cleared,
) -> TaskManagementOutcome {
    let Some(unit) = driver.unit(lun) else { return TaskManagementOutcome::LunDoesNotExist };
    let cleared = clear(&mut unit.state.borrow_mut());
    quiesce(driver, cleared).await;
    TaskManagementOutcome::FunctionComplete
}

/// Ends the tasks that had not started, and waits for those that had and for the current pieces of copies.
pub(crate) async fn quiesce(driver: &Rc<SessionDriver>, cleared: Cleared) {
    for task in cleared.dropped {
        with_task(driver, task, |session, state| drop_task(session, state, task.task));
    }
    let mut ends = Vec::new();
    for task in cleared.started {
        let (sender, end) = oneshot::channel();
        with_task(driver, task, |_, state| {
            if let Some(task) = state.tasks.get_mut(&task.task) {
                task.abort();
                task.ends.push(sender);
            }
        });
        ends.push(end);
    }
    for copy in cleared.copying {
        let (sender, end) = oneshot::channel();
        in_session_of(driver, copy, |_, state| {
            if let Some(task) = state.tasks.get_mut(&copy.task) {
                task.piece_ends.push(sender);
            }
        });
        ends.push(end);
    }
    start_others(&driver.node, cleared.startable);
    for end in ends {
        // The sender is dropped with its task, or with the piece.
        let _ = end.await;
    }
}

/// Changes an aborted task in its session. The session that asked for the abort has suppressed the responses of its own
/// tasks; the other sessions must do so now.
fn with_task(
    asking: &Rc<SessionDriver>,
    task: NexusTask,
    change: impl FnOnce(&Rc<SessionDriver>, &mut SessionState),
) {
    in_session_of(asking, task, |session, state| {
        if session.nexus != asking.nexus {
            state.session.abort(session.now(), task.task);
        }
        change(session, state);
    });
}

/// Calls a function with the session of a task, if that still lives.
pub(crate) fn in_session_of(
    asking: &Rc<SessionDriver>,
    task: NexusTask,
    change: impl FnOnce(&Rc<SessionDriver>, &mut SessionState),
) {
    let Some(session) = asking.node.session_of(task.nexus) else { return };
    session.resume(|state| change(&session, state));
}
