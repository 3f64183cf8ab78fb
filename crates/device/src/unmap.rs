//! UNMAP (SBC-3 §5.28).

use crate::logical_unit::LogicalUnit;
use crate::piecewise::{Piecewise, zeroing_pieces};
use block::Operation;
use scsi::{Extent, Outcome};

impl LogicalUnit {
    /// Deallocates the extents, piece by piece.
    pub(crate) async fn unmap(&self, extents: Vec<Extent>, command: &Piecewise) -> Outcome {
        for extent in extents {
            for (offset, bytes) in zeroing_pieces(self.offset_of(extent.lba), self.bytes_of(extent)) {
                if let Err(error) = self.backend.submit(Operation::Unmap { offset, bytes }).await.result {
                    return self.write_failure(offset, &error);
                }
                if let Err(stopped) = command.go_on().await {
                    return stopped;
                }
            }
        }
        Outcome::good()
    }
}
