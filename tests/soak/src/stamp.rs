//! Blocks that say which they are and when they were written.

use ropewalk_interop::dice::{GOLDEN, mixed};

/// The unit in which is written, read and stamped.
pub const BLOCK_BYTES: usize = 4096;

/// How often a block was written: 0 if never, and then it holds zeroes.
pub type Version = u64;

/// Fills a block. No two blocks, and no two versions of one, have a word in common at the same place.
pub fn fill(bytes: &mut [u8], block: u64, version: Version) {
    for (word, place) in bytes.chunks_exact_mut(8).zip(words(block, version)) {
        word.copy_from_slice(&place.to_le_bytes());
    }
}

/// Whether a block holds all of this version.
pub fn holds(bytes: &[u8], block: u64, version: Version) -> bool {
    if version == 0 {
        return bytes.iter().all(|byte| *byte == 0);
    }
    let words = words(block, version);
    bytes.chunks_exact(8).zip(words).all(|(word, expected)| word == expected.to_le_bytes())
}

fn words(block: u64, version: Version) -> impl Iterator<Item = u64> {
    let first = mixed(block ^ mixed(version));
    (0_u64..).map(move |at| first.wrapping_add(at.wrapping_mul(GOLDEN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_known_by_its_number_and_version() {
        let mut block = vec![0; BLOCK_BYTES];
        assert!(holds(&block, 7, 0));
        fill(&mut block, 7, 3);
        assert!(holds(&block, 7, 3));
        assert!(!holds(&block, 7, 2) && !holds(&block, 6, 3) && !holds(&block, 7, 0));
    }

    #[test]
    fn one_wrong_byte_is_seen() {
        let mut block = vec![0; BLOCK_BYTES];
        fill(&mut block, 1, 1);
        block[BLOCK_BYTES - 1] ^= 1;
        assert!(!holds(&block, 1, 1));
    }
}
