//! ORWRITE (SBC-3). The task set keeps other commands from the blocks meanwhile.

use crate::logical_unit::LogicalUnit;
use crate::memory::PIECE_BYTES;
use block::Payload;
use scsi::{Extent, Outcome};

impl LogicalUnit {
    /// Replaces the blocks of `extent` by their OR with `data`, piece by piece.
    pub(crate) async fn or_write(&self, extent: Extent, fua: bool, data: Option<Payload>) -> Outcome {
        let data = data.as_deref().unwrap_or_default();
        let mut offset = self.offset_of(extent.lba);
        for added in data.chunks(PIECE_BYTES as usize) {
            let mut piece = match self.read_piece(offset, added.len() as u64).await {
                Ok(piece) => piece,
                Err(outcome) => return outcome,
            };
            piece.iter_mut().zip(added).for_each(|(byte, added)| *byte |= added);
            if let Err(error) = self.write(offset, piece.share(), fua).end(self).await {
                return self.write_failure(offset, &error);
            }
            offset += added.len() as u64;
        }
        Outcome::good()
    }
}
