//! Commands whose transfer is longer or shorter than their CDB asks for (RFC 7143 §11.4.5.2).

use crate::checker::Stamp;
use crate::random::Random;

/// Both lengths of such a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mismatch {
    /// Blocks that the CDB names.
    pub cdb_blocks: u32,
    /// The length of the buffer.
    pub transfer_bytes: usize,
}

impl Mismatch {
    /// Makes one of an operation that has so many blocks. Neither length exceeds that of the operation, for memory may
    /// be scarce.
    pub fn draw(blocks: u32, block_bytes: usize, random: &mut Random) -> Self {
        let bytes = blocks as usize * block_bytes;
        let (is_long, is_whole) = (random.one_in(2), random.one_in(2));
        if blocks == 1 {
            return Self { cdb_blocks: 1, transfer_bytes: 1 + random.index(bytes - 1) };
        }
        let fewer = random.between(1, blocks - 1);
        let transfer_bytes = match (is_long, is_whole) {
            (true, true) => bytes,
            (true, false) => bytes - 1 - random.index(block_bytes - 1),
            (false, true) => fewer as usize * block_bytes,
            (false, false) => 1 + random.index(bytes - 1),
        };
        Self { cdb_blocks: if is_long { fewer } else { blocks }, transfer_bytes }
    }

    /// The bytes that both lengths cover.
    pub fn moved_bytes(self, block_bytes: usize) -> usize {
        self.transfer_bytes.min(self.cdb_blocks as usize * block_bytes)
    }

    /// Whether a WRITE would have to write a part of a block.
    pub fn splits_block(self, block_bytes: usize) -> bool {
        !self.moved_bytes(block_bytes).is_multiple_of(block_bytes)
    }

    /// A READ has brought so many bytes into this buffer, which was poisoned.
    ///
    /// # Errors
    /// More or fewer than it should, or the rest of the buffer was touched.
    pub fn judge_read(self, data: &[u8], arrived_bytes: u32, block_bytes: usize) -> Result<(), String> {
        let moved_bytes = self.moved_bytes(block_bytes);
        if arrived_bytes as usize != moved_bytes {
            return Err(format!("{arrived_bytes} bytes arrived where {moved_bytes} were due: {self:?}"));
        }
        let is_long = self.transfer_bytes > moved_bytes;
        if is_long && !data.get(moved_bytes..).is_some_and(Stamp::is_poisoned) {
            return Err(format!("the buffer was touched behind {moved_bytes} bytes: {self:?}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: usize = 512;

    #[test]
    fn no_length_exceeds_the_operation_and_they_always_differ() {
        let mut random = Random::new(1, "test");
        for blocks in (1..6).cycle().take(1000) {
            let mismatch = Mismatch::draw(blocks, BLOCK_BYTES, &mut random);
            let (cdb_bytes, most) =
                (mismatch.cdb_blocks as usize * BLOCK_BYTES, blocks as usize * BLOCK_BYTES);
            assert!(mismatch.transfer_bytes > 0 && mismatch.cdb_blocks > 0, "{mismatch:?}");
            assert!(mismatch.transfer_bytes <= most && cdb_bytes <= most, "{mismatch:?}");
            assert_ne!(mismatch.transfer_bytes, cdb_bytes, "{mismatch:?}");
        }
    }

    #[test]
    fn a_read_that_touches_more_than_it_brings_is_noticed() {
        let long = Mismatch { cdb_blocks: 1, transfer_bytes: 3 * BLOCK_BYTES };
        let mut buffer = vec![0; long.transfer_bytes];
        Stamp::poison(&mut buffer);
        assert_eq!(long.judge_read(&buffer, 512, BLOCK_BYTES), Ok(()));
        assert!(long.judge_read(&buffer, 513, BLOCK_BYTES).is_err());
        buffer[2 * BLOCK_BYTES] = 0;
        assert!(long.judge_read(&buffer, 512, BLOCK_BYTES).is_err());
    }
}
