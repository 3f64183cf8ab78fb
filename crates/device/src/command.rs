//! The path of one command: from its session, through the unit's task set, to the backend, and back as a response.
//!
//! [`begin`] → ([`data_arrived`]) → [`ready`] → [`start`] → [`finish`]. READ and WRITE, in [`crate::read`] and
//! [`crate::write`], end within the poll in which they began if the backend is fast enough. Every other command is an
//! `async fn` of its [`LogicalUnit`].

use crate::extended_copy::Copy;
use crate::logical_unit::LogicalUnit;
use crate::piecewise::Piecewise;
use crate::session_driver::{SessionDriver, SessionState};
use crate::target_node::TargetNode;
use crate::unit_state::{Admission, NexusTask};
use crate::{flush, read, reservation, write};
use block::Payload;
use futures_channel::oneshot;
use scsi::{ExtendedCopy, MediumAccess, Outcome, Pattern, ReserveAction, SenseFormat, Step, begin_absent};
use session::seam;
use session::target::{Command, DataOut, Response, TaskId};
use std::future::Future;
use std::rc::Rc;

/// A command that was handed out and is not answered.
pub(crate) struct Task {
    pub command: Command,
    pub unit: Rc<LogicalUnit>,
    /// The operation that carries it out.
    step: Step,
    /// Its Data-Out, once it has arrived.
    data: Option<Payload>,
    /// The length of the transfer that the command asks for, for the residual count.
    wanted_bytes: u32,
    /// Block data handed to the session.
    pub delivered_bytes: u32,
    /// Its response is fenced (RFC 7143 §4.2.2.3.4).
    pub is_fenced: bool,
    /// Its response is suppressed, so it may stop early.
    pub aborted: bool,
    /// Waiters for its end; dropped with it.
    pub ends: Vec<oneshot::Sender<()>>,
    /// Set while it has started and waits for its turn at certain blocks.
    pub turn: Option<oneshot::Sender<()>>,
    /// Waiters for the end of the piece that it copies now; dropped with the piece.
    pub piece_ends: Vec<oneshot::Sender<()>>,
}

/// Begins a command that has left its session in order.
pub(crate) fn begin(driver: &Rc<SessionDriver>, state: &mut SessionState, command: Command) {
    driver.environment.gauges.count_command();
    driver.environment.tell(|observer| observer.command_begins(driver.tsih, &command));
    let id = command.task;
    let Some(unit) = driver.unit(command.lun).cloned() else {
        return begin_without_unit(driver, state, &command);
    };
    let nexus_task = NexusTask { nexus: driver.nexus, task: id };
    let arrived = unit.state.borrow_mut().arrive(nexus_task, command.attribute, command.cdb.bytes());
    if let Err(outcome) = arrived {
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
    match std::mem::replace(&mut task.step, Step::Done(Outcome::good())) {
        Step::Done(outcome) => finish(driver, state, id, outcome),
        Step::Read { extent, fua } => read::start(driver, state, id, extent, fua),
        Step::Write { extent, fua } => write::start(driver, state, id, extent, fua, data),
        Step::Verify { extent, compare } => {
            work(driver, id, async move { unit.verify(extent, compare, data).await });
        }
        Step::CompareAndWrite { extent, fua } => {
            work(driver, id, async move { unit.compare_and_write(extent, fua, data).await });
        }
        Step::WriteAndVerify { extent, compare } => {
            work(driver, id, async move { unit.write_and_verify(extent, compare, data).await });
        }
        Step::OrWrite { extent, fua } => {
            work(driver, id, async move { unit.or_write(extent, fua, data).await });
        }
        Step::PreFetch { extent, immediate } => {
            let immediate = immediate.then_some(Outcome::ConditionMet);
            work_on(driver, state, id, immediate, async move { unit.pre_fetch(extent).await });
        }
        Step::WriteSame { extent, pattern, unmap } => {
            let block = data.filter(|_| pattern == Pattern::DataOut);
            let command = Piecewise::new(driver, id);
            work(driver, id, async move {
                unit.settled(unit.write_same(extent, block, unmap, &command).await).await
            });
        }
        Step::Flush { immediate, .. } => {
            if immediate {
                work_on(driver, state, id, Some(Outcome::good()), async move { unit.flush().await });
            } else {
                work(driver, id, flush::synchronize_cache(Rc::clone(driver), id, unit));
            }
        }
        Step::Unmap(extents) => {
            let command = Piecewise::new(driver, id);
            work(driver, id, async move { unit.settled(unit.unmap(extents, &command).await).await });
        }
        Step::GetLbaStatus(request) => work(driver, id, async move { unit.get_lba_status(request).await }),
        Step::ReportLuns(request) => {
            let outcome = request.respond(driver.units.iter().map(|unit| unit.lun().0));
            finish(driver, state, id, outcome);
        }
        Step::RequestSense(request) => {
            let pending = unit.state.borrow_mut().request_sense(driver.nexus);
            task.is_fenced = unit.state.borrow_mut().take_fence(driver.nexus);
            finish(driver, state, id, request.respond(pending));
        }
        Step::ProvisioningLog(request) => {
            work(driver, id, async move { unit.provisioning_log(request).await });
        }
        Step::ModeSense(request) => {
            let outcome = request.respond(&unit.disk, unit.state.borrow().mode_settings());
            finish(driver, state, id, outcome);
        }
        Step::ModeSelect(select) => {
            let nexus = driver.nexus;
            work(driver, id, async move { unit.mode_select(nexus, select).await });
        }
        Step::Load => {
            let outcome = unit.state.borrow_mut().load(driver.nexus);
            finish(driver, state, id, outcome);
        }
        Step::Eject { flush } => work(driver, id, async move { unit.eject(flush).await }),
        Step::PreventRemoval(prevent) => {
            unit.state.borrow_mut().prevent_removal(driver.nexus, prevent);
            finish(driver, state, id, Outcome::good());
        }
        Step::ExtendedCopy(request) => copy(driver, id, unit, request),
        Step::ReceiveCopyStatus(request) => {
            let outcome = request.respond(&unit.state.borrow().held_copies(driver.nexus));
            finish(driver, state, id, outcome);
        }
        Step::PersistentReserveIn(request) => {
            let outcome = unit.state.borrow().persistent_reserve_in(&request);
            finish(driver, state, id, outcome);
        }
        Step::PersistentReserveOut(request) => {
            task.is_fenced = matches!(request.action, ReserveAction::Preempt { abort: true, .. });
            work(driver, id, reservation::persistent_reserve_out(Rc::clone(driver), id, unit, request));
        }
        Step::Reserve => work(driver, id, reservation::reserve(Rc::clone(driver), unit)),
        Step::Release => {
            let outcome = unit.state.borrow_mut().release(driver.nexus);
            finish(driver, state, id, outcome);
        }
        // The parameter list became another step when it arrived.
        Step::Parameter { .. } => finish(driver, state, id, Outcome::internal_failure()),
    }
}

/// Runs a command's future and answers the command at its end.
fn work(driver: &Rc<SessionDriver>, id: TaskId, work: impl Future<Output = Outcome> + 'static) {
    let environment = Rc::clone(&driver.environment);
    let driver = Rc::clone(driver);
    environment.spawn(async move {
        let outcome = work.await;
        driver.resume(|state| finish(&driver, state, id, outcome));
    });
}

/// Runs a command's future. An `immediate` answer is given at once (IMMED); the end of the work is then unreported,
/// except by a deferred error. If too much unreported work is running already, the answer waits after all.
fn work_on(
    driver: &Rc<SessionDriver>,
    state: &mut SessionState,
    id: TaskId,
    immediate: Option<Outcome>,
    unheard: impl Future<Output = Outcome> + 'static,
) {
    let permit = state.tasks.get(&id).and_then(|task| task.unit.unheard.try_take());
    match (immediate, permit) {
        (Some(answer), Some(permit)) => {
            driver.environment.spawn(async move {
                unheard.await;
                drop(permit);
            });
            finish(driver, state, id, answer);
        }
        _ => work(driver, id, unheard),
    }
}

/// Runs a copy between the initiator's own units, and keeps its status if required.
fn copy(driver: &Rc<SessionDriver>, id: TaskId, unit: Rc<LogicalUnit>, request: ExtendedCopy) {
    let (nexus, copy) = (driver.nexus, Copy::new(driver, id));
    work(driver, id, async move {
        let (outcome, status) = copy.run(&request).await;
        if let Some(list_id) = request.list_id {
            unit.state.borrow_mut().hold_copy(nexus, list_id, status);
        }
        outcome
    });
}

/// Ends the command: answers it, and starts the tasks that waited for it.
pub(crate) fn finish(driver: &Rc<SessionDriver>, state: &mut SessionState, id: TaskId, outcome: Outcome) {
    let Some(task) = state.tasks.remove(&id) else { return };
    driver.environment.tell(|observer| observer.command_ends(driver.tsih, id));
    let failed_read = task.command.data_in_bytes > 0 && outcome.status() != scsi::Status::Good;
    let wanted_bytes = if failed_read { task.delivered_bytes } else { task.wanted_bytes };
    let (format, is_fenced) = (task.unit.sense_format(), task.is_fenced);
    let ending = Ending { outcome, wanted_bytes, format, is_fenced };
    respond(driver, state, id, task.command.data_in_bytes, ending);
    let startable = task.unit.state.borrow_mut().finish(NexusTask { nexus: driver.nexus, task: id });
    start_others(&driver.node, startable);
}

/// Aborts the command. If it has not started, this is its end.
pub(crate) fn abort(driver: &Rc<SessionDriver>, state: &mut SessionState, id: TaskId) {
    let Some(task) = state.tasks.get_mut(&id) else { return };
    task.aborted = true;
    let cleared = task.unit.state.borrow_mut().abort_task(NexusTask { nexus: driver.nexus, task: id });
    cleared.dropped.iter().for_each(|dropped| drop_task(driver, state, dropped.task));
    start_others(&driver.node, cleared.startable);
}

/// Removes a command that was aborted before it started.
pub(crate) fn drop_task(driver: &Rc<SessionDriver>, state: &mut SessionState, id: TaskId) {
    if state.tasks.remove(&id).is_some() {
        let outcome = Outcome::Refused(scsi::Status::TaskAborted);
        let ending = Ending { outcome, wanted_bytes: 0, format: SenseFormat::Fixed, is_fenced: false };
        respond(driver, state, id, 0, ending);
    }
}

/// The answer to a command.
struct Ending {
    outcome: Outcome,
    /// The length of the transfer that the command asks for, for the residual count.
    wanted_bytes: u32,
    format: SenseFormat,
    /// Its response is fenced.
    is_fenced: bool,
}

/// Sends parameter data, up to the length that the initiator accepts, and the status.
fn respond(
    driver: &SessionDriver,
    state: &mut SessionState,
    id: TaskId,
    data_in_bytes_max: u32,
    ending: Ending,
) {
    let now = driver.now();
    let Ending { outcome, mut wanted_bytes, format, is_fenced } = ending;
    let status = outcome.status().code();
    let sense = outcome.sense().map(|sense| sense.to_bytes(format)).unwrap_or_default();
    if let Outcome::Good(mut data) = outcome
        && !data.is_empty()
    {
        wanted_bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        data.truncate(data_in_bytes_max as usize);
        state.session.data_in(now, id, seam::Payload::Inline(data));
    }
    let response = Response { status, sense, wanted_bytes };
    if is_fenced {
        state.session.respond_fenced(now, id, response);
    } else {
        state.session.respond(now, id, response);
    }
}

/// Starts commands that waited for another one, in whichever session. Runs later, because that session's state may be
/// in use now.
pub(crate) fn start_others(node: &Rc<TargetNode>, startable: Vec<NexusTask>) {
    if startable.is_empty() {
        return;
    }
    let environment = Rc::clone(&node.environment);
    let node = Rc::clone(node);
    environment.spawn(async move {
        for task in startable {
            if let Some(driver) = node.session_of(task.nexus) {
                driver.resume(|state| start(&driver, state, task.task));
            }
        }
    });
}
