//! SYNCHRONIZE CACHE (SBC-3 §5.20).

use crate::logical_unit::{LogicalUnit, with_source};
use block::Operation;
use nexus::target::NexusId;
use scsi::{Outcome, Sense};

impl LogicalUnit {
    /// Makes every write durable that has completed before this is called. The whole device, whatever extent was
    /// asked for: backends know no smaller flush, and more than was asked for is allowed.
    ///
    /// If it fails, a backend may have lost what any initiator wrote, and succeed the next time. So all are told by a
    /// deferred error, but for `asker`: the nexus, if there is one, whose command does nothing else and says so itself.
    pub async fn flush(&self, asker: Option<NexusId>) -> Outcome {
        match self.backend.submit(Operation::Flush).await.result {
            Ok(_) => Outcome::good(),
            Err(error) => {
                tracing::warn!(lun = self.number, error = %with_source(&error), "flush failed");
                self.shared.borrow_mut().defer_error(Sense::FLUSH_FAILED, asker);
                Outcome::CheckCondition(Sense::FLUSH_FAILED)
            }
        }
    }
}
