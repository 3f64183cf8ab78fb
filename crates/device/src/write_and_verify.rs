//! WRITE AND VERIFY: reads the written blocks back from the medium before the answer (SBC-3).

use crate::logical_unit::LogicalUnit;
use block::Payload;
use scsi::{Compare, Extent, Outcome};

impl LogicalUnit {
    /// Writes `data` to `extent`, makes it durable, and then reads `extent` and compares it as `compare` says.
    pub(crate) async fn write_and_verify(
        &self,
        extent: Extent,
        compare: Compare,
        data: Option<Payload>,
    ) -> Outcome {
        let Some(data) = data else { return Outcome::good() };
        let offset = self.offset_of(extent.lba);
        // Forced to the medium, because data from a cache would prove nothing.
        if let Err(error) = self.write_anywhere(offset, data.clone(), true).await {
            return self.write_failure(offset, &error);
        }
        self.read_and_compare(extent, compare, Some(data)).await
    }
}
