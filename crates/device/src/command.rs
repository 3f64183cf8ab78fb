//! The path of one command: from its session, through the unit's task set, to its execution.
//!
//! [`begin`] → ([`data_arrived`]) → [`ready`] → [`start`] → [`execute`](crate::execution::execute) →
//! [`finish`](crate::ending::finish).

use crate::ending::{Ending, drop_task, finish, respond, start_others};
use crate::execution::{Execution, execute};
use crate::session_driver::{SessionDriver, SessionState};
use crate::task::Task;
use crate::unit_state::{Admission, NexusTask};
use scsi::{MediumAccess, Outcome, SenseFormat, Step, begin_absent};
use session::target::{Command, DataOut, TaskId};
use std::rc::Rc;

/// Begins a command that has left its session in order.
pub(crate) fn begin(driver: &Rc<SessionDriver>, state: &mut SessionState, command: Command) {
    driver.environment.gauges.count_command(&command);
    driver.environment.tell(|observer| observer.command_begins(driver.tsih, &command));
    let id = command.task;
    let Some(unit) = driver.unit(command.lun).cloned() else {
        return begin_without_unit(driver, state, &command);
    };
    let nexus_task = NexusTask { nexus: driver.nexus, task: id };
    let arrived = unit.state.borrow_mut().arrive(nexus_task, command.attribute, command.cdb.bytes());
    if let Err(outcome) = arrived {
        driver.environment.tell(|observer| observer.command_refused(driver.tsih, &command, &outcome));
        let is_fenced = unit.state.borrow_mut().take_fence(driver.nexus);
        let ending = Ending { outcome, wanted_bytes: 0, format: unit.sense_format(), is_fenced };
        return respond(driver, state, id, command.data_in_bytes, ending);
    }
    let asked = unit.seen_through(driver.identity().portal_group_tag).begin(command.cdb.bytes());
    let wanted_bytes = asked.data_out_bytes(unit.disk.block) + asked.data_in_bytes(unit.disk.block);
    let wanted_bytes = u32::try_from(wanted_bytes).unwrap_or(u32::MAX);
    let step = asked.with_data_out(command.data_out_bytes.into(), unit.disk.block);
    let needed_bytes = step.data_out_bytes(unit.disk.block).min(command.data_out_bytes.into());
    let task = Task {
        command,
        unit,
        step,
        data: None,
        wanted_bytes,
        delivered_bytes: 0,
        is_fenced: false,
        aborted: false,
        ends: Vec::new(),
        turn: None,
        until_aborted: None,
        piece_ends: Vec::new(),
    };
    state.tasks.insert(id, task);
    match u32::try_from(needed_bytes) {
        Ok(0) => ready(driver, state, id),
        Ok(bytes) => state.session.solicit(driver.now(), id, bytes, &mut state.buffers),
        Err(_) => finish(driver, state, id, Outcome::internal_failure()),
    }
}

/// Answers a command to a LUN that this initiator may not use.
fn begin_without_unit(driver: &Rc<SessionDriver>, state: &mut SessionState, command: &Command) {
    let outcome = match begin_absent(command.cdb.bytes()) {
        Step::Done(outcome) => outcome,
        Step::ReportLuns(request) => request.respond(driver.units.iter().map(|unit| unit.lun().0)),
        _ => Outcome::internal_failure(),
    };
    let ending = Ending { outcome, wanted_bytes: 0, format: SenseFormat::Fixed, is_fenced: false };
    respond(driver, state, command.task, command.data_in_bytes, ending);
}

/// The requested Data-Out has arrived.
pub(crate) fn data_arrived(driver: &Rc<SessionDriver>, state: &mut SessionState, arrived: DataOut) {
    let Some(task) = state.tasks.get_mut(&arrived.task) else { return };
    let buffer = arrived.buffer.and_then(|buffer| state.buffers.get(buffer));
    task.data = buffer.and_then(|buffer| buffer.slice(0..arrived.bytes as usize));
    if let Step::Parameter { .. } = task.step {
        let list = task.data.as_deref().unwrap_or_default();
        task.step = task.unit.disk.parameter(task.command.cdb.bytes(), list);
    }
    ready(driver, state, arrived.task);
}

/// The command has everything it needs: starts it, or lets it wait for its turn.
fn ready(driver: &Rc<SessionDriver>, state: &mut SessionState, id: TaskId) {
    let Some(task) = state.tasks.get(&id) else { return };
    let admission =
        task.unit.state.borrow_mut().ready(NexusTask { nexus: driver.nexus, task: id }, &task.step);
    match admission {
        Admission::Start => start(driver, state, id),
        Admission::Wait => {}
        Admission::Aborted => drop_task(driver, state, id),
    }
}

/// Starts a command whose turn has come.
pub(crate) fn start(driver: &Rc<SessionDriver>, state: &mut SessionState, id: TaskId) {
    let Some(task) = state.tasks.get_mut(&id) else { return };
    if let Some(turn) = task.turn.take() {
        // The copy may have ended.
        let _ = turn.send(());
        return;
    }
    let unit = Rc::clone(&task.unit);
    // The medium may have been ejected or protected since the command arrived.
    let medium = unit.state.borrow().check_medium(MediumAccess::of(task.command.cdb.bytes()));
    if let Err(sense) = medium {
        return finish(driver, state, id, Outcome::CheckCondition(sense));
    }
    driver.environment.tell(|observer| observer.command_starts(driver.tsih, id));
    let data = task.data.take();
    let step = std::mem::replace(&mut task.step, Step::Done(Outcome::good()));
    match execute(driver, state, id, unit, step, data) {
        Execution::Done(outcome) => finish(driver, state, id, outcome),
        Execution::Working(work) => {
            let environment = Rc::clone(&driver.environment);
            let driver = Rc::clone(driver);
            environment.spawn(async move {
                let outcome = work.await;
                driver.resume(|state| finish(&driver, state, id, outcome));
            });
        }
    }
}

/// Aborts the command. If it has not started, this is its end.
pub(crate) fn abort(driver: &Rc<SessionDriver>, state: &mut SessionState, id: TaskId) {
    let Some(task) = state.tasks.get_mut(&id) else { return };
    task.abort();
    let cleared = task.unit.state.borrow_mut().abort_task(NexusTask { nexus: driver.nexus, task: id });
    cleared.dropped.iter().for_each(|dropped| drop_task(driver, state, dropped.task));
    start_others(&driver.node, cleared.startable);
}
