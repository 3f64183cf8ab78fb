//! SYNCHRONIZE CACHE (SBC-3 §5.20), and the end of every other operation that is forced to the medium.

use crate::forced::Forced;
use crate::logical_unit::{LogicalUnit, with_source};
use crate::session_driver::SessionDriver;
use crate::unit_state::NexusId;
use block::{BlockError, Completion, Done, Operation, Payload, Pending};
use scsi::{Outcome, Sense};
use session::target::TaskId;
use std::rc::Rc;

/// A write at the backend.
pub(crate) struct SubmittedWrite {
    pending: Pending,
    /// Set if the write is durable when it succeeds.
    forced: Option<Forced>,
}

impl SubmittedWrite {
    /// The write's result, if it is available without waiting.
    ///
    /// # Errors
    /// The write itself, to wait for.
    pub(crate) fn try_end(self, unit: &LogicalUnit) -> Result<Result<Done, BlockError>, Self> {
        let Self { pending, forced } = self;
        if forced.as_ref().is_some_and(|forced| !forced.is_alone()) {
            return Err(Self { pending, forced });
        }
        match pending.try_take() {
            Ok(Completion { result, .. }) => {
                if let (Err(_), Some(forced)) = (&result, forced) {
                    unit.forced_operation_failed(forced, None);
                }
                Ok(result)
            }
            Err(pending) => Err(Self { pending, forced }),
        }
    }

    /// Waits for the write's result.
    ///
    /// # Errors
    /// The backend could not write, or this write was forced and a concurrent forced operation failed.
    pub(crate) async fn end(self, unit: &LogicalUnit) -> Result<Done, BlockError> {
        let result = self.pending.await.result;
        match (&result, self.forced) {
            (Ok(_), Some(forced)) => forced.succeed().await?,
            (Err(_), Some(forced)) => unit.forced_operation_failed(forced, None),
            (_, None) => {}
        }
        result
    }
}

impl LogicalUnit {
    /// Writes `payload`, and forces it to the medium if `fua` is set or the write cache is off.
    pub(crate) fn write(&self, offset: u64, payload: Payload, fua: bool) -> SubmittedWrite {
        let fua = fua || self.writes_through();
        let forced = fua.then(|| self.forced.begin());
        SubmittedWrite { pending: self.backend.submit(Operation::Write { offset, payload, fua }), forced }
    }

    /// Makes every write durable that completed before this call. Flushes the whole device, because backends have no
    /// smaller flush, and the standard allows more than was asked for.
    ///
    /// Every nexus gets a deferred error for a failure.
    pub async fn flush(&self) -> Outcome {
        self.flush_for(|| None).await
    }

    /// Flushes. `asker` is evaluated after a failure, and names the nexus whose own command reports it instead of a
    /// deferred error.
    async fn flush_for(&self, asker: impl FnOnce() -> Option<NexusId>) -> Outcome {
        let forced = self.forced.begin();
        let result = match self.backend.submit(Operation::Flush).await.result {
            Ok(_) => forced.succeed().await,
            Err(error) => {
                self.forced_operation_failed(forced, asker());
                Err(error)
            }
        };
        match result {
            Ok(()) => Outcome::good(),
            Err(error) => {
                tracing::warn!(lun = self.number, error = %with_source(&error), "flush failed");
                Outcome::CheckCondition(Sense::FLUSH_FAILED)
            }
        }
    }

    /// The backend may have lost any initiator's writes, and the next flush may succeed. Tells every nexus except
    /// `asker`.
    fn forced_operation_failed(&self, forced: Forced, asker: Option<NexusId>) {
        forced.fail();
        self.state.borrow_mut().defer_error(Sense::FLUSH_FAILED, asker);
    }
}

/// SYNCHRONIZE CACHE without IMMED. It fails if writes were lost after it arrived and before it began.
pub(crate) async fn synchronize_cache(
    driver: Rc<SessionDriver>,
    id: TaskId,
    unit: Rc<LogicalUnit>,
) -> Outcome {
    // The response of an aborted command is suppressed, and reports nothing.
    let is_heard = || driver.state().tasks.get(&id).is_some_and(|task| !task.aborted);
    let flushed = unit.flush_for(|| is_heard().then_some(driver.nexus)).await;
    let deferred = if is_heard() { unit.state.borrow_mut().take_deferred_error(driver.nexus) } else { None };
    if let Some(task) = driver.state().tasks.get_mut(&id) {
        task.is_fenced = unit.state.borrow_mut().take_fence(driver.nexus);
    }
    match (flushed, deferred) {
        (Outcome::Good(_), Some(deferred)) => Outcome::CheckCondition(deferred),
        (flushed, Some(_) | None) => flushed,
    }
}
