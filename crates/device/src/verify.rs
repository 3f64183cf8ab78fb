//! VERIFY: reads blocks, and compares them if asked (SBC-3 §5.33).

use crate::logical_unit::LogicalUnit;
use crate::memory::{PIECE_BYTES, allocated};
use block::{Buffer, Operation, Payload};
use scsi::{Compare, Extent, Outcome, Status};

/// The initiator's data, which the medium is compared with.
enum Expected<'a> {
    Anything,
    Bytes(&'a [u8]),
    /// One block, repeated.
    Repeated(&'a [u8]),
}

impl LogicalUnit {
    /// Compares the medium's `extent` with `data` as `compare` says. A volatile cache is flushed first, because VERIFY
    /// concerns the medium.
    pub(crate) async fn verify(&self, extent: Extent, compare: Compare, data: Option<Payload>) -> Outcome {
        if self.disk.write_cache && !extent.is_empty() {
            let flushed = self.flush().await;
            if flushed.status() != Status::Good {
                return flushed;
            }
        }
        self.read_and_compare(extent, compare, data).await
    }

    /// Reads `extent`, from the cache or the medium, and compares it with `data` as `compare` says.
    pub(crate) async fn read_and_compare(
        &self,
        extent: Extent,
        compare: Compare,
        data: Option<Payload>,
    ) -> Outcome {
        let data = data.as_deref().unwrap_or_default();
        let expected = match compare {
            Compare::Medium => Expected::Anything,
            Compare::DataOut => Expected::Bytes(data),
            Compare::OneBlock => Expected::Repeated(data),
        };
        self.compare(extent, &expected).await.err().unwrap_or_else(Outcome::good)
    }

    /// Compares the blocks of `extent` with `data`, byte by byte.
    ///
    /// # Errors
    /// The outcome of a command that found a difference or could not read.
    pub(crate) async fn compare_with(&self, extent: Extent, data: &[u8]) -> Result<(), Outcome> {
        self.compare(extent, &Expected::Bytes(data)).await
    }

    async fn compare(&self, extent: Extent, expected: &Expected<'_>) -> Result<(), Outcome> {
        let (start, bytes) = (self.offset_of(extent.lba), self.bytes_of(extent));
        let mut done_bytes = 0;
        while done_bytes < bytes {
            let piece_bytes = (bytes - done_bytes).min(PIECE_BYTES.into());
            let piece = self.read_piece(start + done_bytes, piece_bytes).await?;
            if let Some(at) = expected.first_difference(&piece, done_bytes) {
                return Err(Outcome::miscompare(at));
            }
            done_bytes += piece_bytes;
        }
        Ok(())
    }

    /// Reads at most [`PIECE_BYTES`] into working memory.
    pub(crate) async fn read_piece(&self, offset: u64, bytes: u64) -> Result<Buffer, Outcome> {
        // A piece is no longer than `PIECE_BYTES`.
        #[expect(clippy::cast_possible_truncation)]
        let buffer = allocated(&self.working, bytes as usize).await;
        let completion = self.backend.submit(Operation::Read { offset, buffer }).await;
        completion.into_buffer().map_err(|error| self.read_failure(offset, &error))
    }
}

impl Expected<'_> {
    /// The offset in the initiator's data of the first byte that differs from `piece`, which starts at `done_bytes`.
    fn first_difference(&self, piece: &[u8], done_bytes: u64) -> Option<u64> {
        let start = usize::try_from(done_bytes).ok()?;
        let at = match self {
            Self::Anything => None,
            Self::Bytes(data) => {
                let data = data.get(start..).unwrap_or_default();
                differs_at(piece, data.get(..piece.len()).unwrap_or(data)).map(|at| start + at)
            }
            Self::Repeated(block) => {
                let mut blocks = piece.chunks(block.len().max(1));
                blocks.find_map(|chunk| differs_at(chunk, block))
            }
        };
        at.map(|at| at as u64)
    }
}

fn differs_at(found: &[u8], expected: &[u8]) -> Option<usize> {
    if found == expected {
        return None;
    }
    let pairs = found.iter().zip(expected);
    pairs
        .into_iter()
        .position(|(found, expected)| found != expected)
        .or(Some(found.len().min(expected.len())))
}
