//! PRE-FETCH: reads blocks so that a cache below, if there is one, holds them (SBC-3).

use crate::logical_unit::LogicalUnit;
use scsi::{Compare, Extent, Outcome};

impl LogicalUnit {
    /// Reads `extent` and discards it.
    pub(crate) async fn pre_fetch(&self, extent: Extent) -> Outcome {
        match self.read_and_compare(extent, Compare::Medium, None).await {
            Outcome::Good(_) => Outcome::ConditionMet,
            failed => failed,
        }
    }
}
