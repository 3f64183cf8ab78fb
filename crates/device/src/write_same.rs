//! WRITE SAME: writes one block to all blocks of an extent (SBC-3 §5.43).

use crate::logical_unit::LogicalUnit;
use crate::memory::{PIECE_BYTES, allocated};
use crate::piecewise::{Piecewise, zeroing_pieces};
use block::{BlockError, Done, Operation, Payload};
use scsi::{Extent, Outcome, Provisioning};

impl LogicalUnit {
    /// Writes `block` (or zeroes, without one) to every block of `extent`, piece by piece. With `unmap` the blocks may
    /// be deallocated instead, if they then read the same.
    pub(crate) async fn write_same(
        &self,
        extent: Extent,
        block: Option<Payload>,
        unmap: bool,
        command: &Piecewise,
    ) -> Outcome {
        let zeroes = block.as_ref().is_none_or(|block| block.iter().all(|byte| *byte == 0));
        let result = match block {
            Some(block) if !zeroes => self.write_pattern(extent, &block, command).await,
            _ => self.write_zeroes(extent, unmap, command).await,
        };
        result.err().unwrap_or_else(Outcome::good)
    }

    async fn write_zeroes(&self, extent: Extent, unmap: bool, command: &Piecewise) -> Result<(), Outcome> {
        let reads_zero = matches!(self.disk.provisioning, Provisioning::Thin { zeroes: true, .. });
        for (offset, bytes) in zeroing_pieces(self.offset_of(extent.lba), self.bytes_of(extent)) {
            let operation = Operation::WriteZeroes { offset, bytes, may_unmap: unmap && reads_zero };
            let written = self.backend.submit(operation).await.result;
            written.map_err(|error| self.write_failure(offset, &error))?;
            command.go_on().await?;
        }
        Ok(())
    }

    async fn write_pattern(&self, extent: Extent, block: &[u8], command: &Piecewise) -> Result<(), Outcome> {
        let (mut offset, mut left) = (self.offset_of(extent.lba), self.bytes_of(extent));
        let piece_bytes = left.min(PIECE_BYTES.into());
        // A piece is no longer than `PIECE_BYTES`.
        #[expect(clippy::cast_possible_truncation)]
        let mut piece = allocated(&self.working, piece_bytes as usize).await;
        piece.chunks_mut(block.len().max(1)).for_each(|chunk| chunk.copy_from_slice(&block[..chunk.len()]));
        let piece = piece.share();
        while left > 0 {
            let bytes = left.min(piece_bytes);
            let part = usize::try_from(bytes).ok().and_then(|bytes| piece.slice(0..bytes));
            let payload = part.unwrap_or_else(|| piece.clone());
            let written = self.write(offset, payload, false).end(self).await;
            written.map_err(|error| self.write_failure(offset, &error))?;
            offset += bytes;
            left -= bytes;
            command.go_on().await?;
        }
        Ok(())
    }

    /// Writes a payload with any alignment. A device that bypasses the page cache needs aligned memory; for such a
    /// device the payload is copied, piece by piece.
    pub(crate) async fn write_anywhere(
        &self,
        offset: u64,
        payload: Payload,
        fua: bool,
    ) -> Result<Done, BlockError> {
        if payload.as_ptr().addr().is_multiple_of(block::BUFFER_ALIGNMENT_BYTES) {
            return self.write(offset, payload, fua).end(self).await;
        }
        let mut written = 0;
        while written < payload.len() {
            let bytes = (payload.len() - written).min(PIECE_BYTES as usize);
            let mut piece = allocated(&self.working, bytes).await;
            piece.copy_from_slice(&payload[written..written + bytes]);
            self.write(offset + written as u64, piece.share(), fua).end(self).await?;
            written += bytes;
        }
        Ok(Done::Complete)
    }
}
