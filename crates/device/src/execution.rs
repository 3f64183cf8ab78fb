//! What each command does once its turn has come.
//!
//! READ and WRITE, in [`crate::read`] and [`crate::write`], end within the poll in which they began if the backend is
//! fast enough. Every other command that needs the backend is an `async fn` of its [`LogicalUnit`].

use crate::extended_copy::Copy;
use crate::logical_unit::LogicalUnit;
use crate::piecewise::Piecewise;
use crate::session_driver::{SessionDriver, SessionState};
use crate::{flush, read, reservation};
use block::Payload;
use scsi::{ExtendedCopy, Outcome, Pattern, ReserveAction, Step};
use session::target::TaskId;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// How a command ends.
pub(crate) enum Execution {
    /// It has ended.
    Done(Outcome),
    /// It ends with this future.
    Working(Pin<Box<dyn Future<Output = Outcome>>>),
}

impl Execution {
    pub(crate) fn working(work: impl Future<Output = Outcome> + 'static) -> Self {
        Self::Working(Box::pin(work))
    }
}

/// Begins to carry out a step of a command, with its Data-Out.
pub(crate) fn execute(
    driver: &Rc<SessionDriver>,
    state: &mut SessionState,
    id: TaskId,
    unit: Rc<LogicalUnit>,
    step: Step,
    data: Option<Payload>,
) -> Execution {
    match step {
        Step::Read { extent, fua } => read::start(driver, state, id, extent, fua),
        Step::Write { extent, fua } => unit.start_write(extent, fua, data),
        Step::Verify { extent, compare } => {
            Execution::working(async move { unit.verify(extent, compare, data).await })
        }
        Step::CompareAndWrite { extent, fua } => {
            Execution::working(async move { unit.compare_and_write(extent, fua, data).await })
        }
        Step::WriteAndVerify { extent, compare } => {
            Execution::working(async move { unit.write_and_verify(extent, compare, data).await })
        }
        Step::OrWrite { extent, fua } => {
            Execution::working(async move { unit.or_write(extent, fua, data).await })
        }
        Step::PreFetch { extent, immediate } => {
            let answer = immediate.then_some(Outcome::ConditionMet);
            let pre_fetch = {
                let unit = Rc::clone(&unit);
                async move { unit.pre_fetch(extent).await }
            };
            answered_early(driver, &unit, answer, pre_fetch)
        }
        Step::WriteSame { extent, pattern, unmap } => {
            let block = data.filter(|_| pattern == Pattern::DataOut);
            let command = Piecewise::new(driver, id);
            Execution::working(async move {
                unit.settled(unit.write_same(extent, block, unmap, &command).await).await
            })
        }
        Step::Flush { immediate: false, .. } => {
            Execution::working(flush::synchronize_cache(Rc::clone(driver), id, unit))
        }
        Step::Flush { immediate: true, .. } => {
            let flush = {
                let unit = Rc::clone(&unit);
                async move { unit.flush().await }
            };
            answered_early(driver, &unit, Some(Outcome::good()), flush)
        }
        Step::Unmap(extents) => {
            let command = Piecewise::new(driver, id);
            Execution::working(async move { unit.settled(unit.unmap(extents, &command).await).await })
        }
        Step::GetLbaStatus(request) => Execution::working(async move { unit.get_lba_status(request).await }),
        Step::ProvisioningLog(request) => {
            Execution::working(async move { unit.provisioning_log(request).await })
        }
        Step::ModeSelect(select) => {
            let nexus = driver.nexus;
            Execution::working(async move { unit.mode_select(nexus, select).await })
        }
        Step::Eject { flush } => Execution::working(async move { unit.eject(flush).await }),
        Step::ExtendedCopy(request) => copy(driver, id, unit, request),
        Step::PersistentReserveOut(request) => {
            if matches!(request.action, ReserveAction::Preempt { abort: true, .. }) {
                state.fence(id, true);
            }
            Execution::working(reservation::persistent_reserve_out(Rc::clone(driver), id, unit, request))
        }
        Step::Reserve => Execution::working(reservation::reserve(Rc::clone(driver), unit)),
        step => Execution::Done(answer(driver, state, id, &unit, step)),
    }
}

/// Carries out a step that needs nothing but the unit's state.
fn answer(
    driver: &SessionDriver,
    state: &mut SessionState,
    id: TaskId,
    unit: &LogicalUnit,
    step: Step,
) -> Outcome {
    let mut shared = unit.state.borrow_mut();
    match step {
        Step::Done(outcome) => outcome,
        Step::ReportLuns(request) => request.respond(driver.units.iter().map(|unit| unit.lun().0)),
        Step::RequestSense(request) => {
            let pending = shared.request_sense(driver.nexus);
            state.fence(id, shared.take_fence(driver.nexus));
            request.respond(pending)
        }
        Step::ModeSense(request) => request.respond(&unit.disk, shared.mode_settings()),
        Step::Load => shared.load(driver.nexus),
        Step::PreventRemoval(prevent) => {
            shared.prevent_removal(driver.nexus, prevent);
            Outcome::good()
        }
        Step::ReceiveCopyStatus(request) => request.respond(&shared.held_copies(driver.nexus)),
        Step::PersistentReserveIn(request) => shared.persistent_reserve_in(&request),
        Step::Release => shared.release(driver.nexus),
        // The parameter list became another step when it arrived, and the others are carried out above.
        _ => Outcome::internal_failure(),
    }
}

/// Gives an `answer`, if there is one, at once (IMMED); the end of the work is then unreported, except by a deferred
/// error. If too much unreported work is running already, the answer waits after all.
fn answered_early(
    driver: &SessionDriver,
    unit: &LogicalUnit,
    answer: Option<Outcome>,
    work: impl Future<Output = Outcome> + 'static,
) -> Execution {
    let Some(answer) = answer else { return Execution::working(work) };
    let Some(permit) = unit.unheard.try_take(1) else { return Execution::working(work) };
    driver.environment.spawn(async move {
        work.await;
        drop(permit);
    });
    Execution::Done(answer)
}

/// A copy between the initiator's own units. Keeps its status if required.
fn copy(driver: &Rc<SessionDriver>, id: TaskId, unit: Rc<LogicalUnit>, request: ExtendedCopy) -> Execution {
    let (nexus, copy) = (driver.nexus, Copy::new(driver, id));
    Execution::working(async move {
        let (outcome, status) = copy.run(&request).await;
        if let Some(list_id) = request.list_id {
            unit.state.borrow_mut().hold_copy(nexus, list_id, status);
        }
        outcome
    })
}
