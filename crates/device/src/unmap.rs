//! UNMAP (SBC-3 §5.28).

use crate::logical_unit::LogicalUnit;
use block::Operation;
use scsi::{Extent, Outcome};

impl LogicalUnit {
    /// Deallocates the extents.
    pub(crate) async fn unmap(&self, extents: Vec<Extent>) -> Outcome {
        for extent in extents.into_iter().filter(|extent| !extent.is_empty()) {
            let offset = self.offset_of(extent.lba);
            let operation = Operation::Unmap { offset, bytes: self.bytes_of(extent) };
            if let Err(error) = self.backend.submit(operation).await.result {
                return self.write_failure(offset, &error);
            }
        }
        Outcome::good()
    }
}
