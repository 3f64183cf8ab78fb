//! COMPARE AND WRITE (SBC-3 §5.2). The task set keeps other commands from the blocks meanwhile.

use crate::logical_unit::LogicalUnit;
use block::Payload;
use scsi::{Extent, Outcome};

impl LogicalUnit {
    /// Writes the second half of `data` to `extent` if the blocks equal the first half.
    pub(crate) async fn compare_and_write(
        &self,
        extent: Extent,
        fua: bool,
        data: Option<Payload>,
    ) -> Outcome {
        let Some(data) = data else { return Outcome::good() };
        let half = data.len() / 2;
        if let Err(outcome) = self.compare_with(extent, &data[..half]).await {
            return outcome;
        }
        let Some(new) = data.slice(half..data.len()) else { return Outcome::internal_failure() };
        let offset = self.offset_of(extent.lba);
        match self.write_anywhere(offset, new, fua).await {
            Ok(_) => Outcome::good(),
            Err(error) => self.write_failure(offset, &error),
        }
    }
}
