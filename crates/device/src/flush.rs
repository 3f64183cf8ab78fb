//! SYNCHRONIZE CACHE (SBC-3 §5.20).

use crate::logical_unit::{LogicalUnit, with_source};
use block::Operation;
use scsi::Outcome;

impl LogicalUnit {
    /// Makes every write durable that has completed before this is called. The whole device, whatever extent was
    /// asked for: backends know no smaller flush, and more than was asked for is allowed.
    pub async fn flush(&self) -> Outcome {
        match self.backend.submit(Operation::Flush).await.result {
            Ok(_) => Outcome::good(),
            Err(error) => {
                tracing::warn!(lun = self.number, error = %with_source(&error), "flush failed");
                Outcome::flush_failed()
            }
        }
    }
}
