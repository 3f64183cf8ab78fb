//! Recognisable contents, which can be verified when they are read.

/// The contents of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Data that no layer between here and the disk can compress or deduplicate; nothing is compared.
    Any,
    /// Every block names itself and the time it was written: every read is compared. Costs a processor about a second
    /// for a few gigabytes.
    Known {
        /// Unique to this run.
        seed: u64,
        /// The oldest generation that reads may find.
        oldest: u8,
        /// The newest generation, which is written.
        newest: u8,
    },
}

/// The length of a self-describing block: the shortest block of any disk.
const BLOCK_BYTES: usize = 512;

impl Contents {
    /// Fills memory for a write at `offset`.
    pub fn fill(self, memory: &mut [u8], offset: u64) {
        match self {
            Self::Any => fill_block(memory, mix(offset)),
            Self::Known { seed, newest, .. } => {
                for (number, block) in numbered(memory.chunks_mut(BLOCK_BYTES), offset) {
                    fill_block(block, first_word(seed, newest, number));
                }
            }
        }
    }

    /// The offset of the first block that differs from all allowed contents, in memory read from `offset`.
    #[must_use]
    pub fn first_difference(self, memory: &[u8], offset: u64) -> Option<u64> {
        let Self::Known { seed, oldest, newest } = self else { return None };
        let is_other = |number: u64, block: &[u8]| {
            let mut words = (oldest..=newest).map(|generation| first_word(seed, generation, number));
            !words.any(|word| is_block(block, word))
        };
        let mut blocks = numbered(memory.chunks(BLOCK_BYTES), offset);
        let (number, _) = blocks.find(|(number, block)| is_other(*number, block))?;
        Some(number * BLOCK_BYTES as u64)
    }
}

fn numbered<B>(blocks: impl Iterator<Item = B>, offset: u64) -> impl Iterator<Item = (u64, B)> {
    (offset / BLOCK_BYTES as u64..).zip(blocks)
}

fn first_word(seed: u64, generation: u8, number: u64) -> u64 {
    mix(mix(seed ^ u64::from(generation)) ^ number)
}

/// Words of a Weyl sequence, which are quick to make and to compare.
fn words(first: u64) -> impl Iterator<Item = [u8; 8]> {
    (0_u64..).map(move |index| (first ^ first.wrapping_add(index).wrapping_mul(WEYL)).to_le_bytes())
}

/// 2⁶⁴ by the golden ratio.
const WEYL: u64 = 0x9E37_79B9_7F4A_7C15;

fn fill_block(block: &mut [u8], first: u64) {
    for (chunk, word) in block.chunks_mut(8).zip(words(first)) {
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

fn is_block(block: &[u8], first: u64) -> bool {
    block.chunks(8).zip(words(first)).all(|(chunk, word)| *chunk == word[..chunk.len()])
}

/// Steele, Lea and Flood's `SplitMix64` (2014), one step.
pub(crate) fn mix(word: u64) -> u64 {
    let mut mixed = word.wrapping_add(WEYL);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Contents = Contents::Known { seed: 5, oldest: 0, newest: 0 };
    const SECOND: Contents = Contents::Known { seed: 5, oldest: 0, newest: 1 };
    const SECOND_ONLY: Contents = Contents::Known { seed: 5, oldest: 1, newest: 1 };

    fn written(contents: Contents, offset: u64) -> Vec<u8> {
        let mut memory = vec![0; 8 * BLOCK_BYTES];
        contents.fill(&mut memory, offset);
        memory
    }

    #[test]
    fn what_was_written_is_known_again_and_so_is_what_was_there_before() {
        assert_eq!(SECOND.first_difference(&written(SECOND, 4096), 4096), None);
        assert_eq!(SECOND.first_difference(&written(FIRST, 4096), 4096), None);
        assert_eq!(SECOND_ONLY.first_difference(&written(SECOND, 4096), 4096), None);
        assert_eq!(SECOND_ONLY.first_difference(&written(FIRST, 4096), 4096), Some(4096));
        assert_eq!(FIRST.first_difference(&written(SECOND, 4096), 4096), Some(4096));
    }

    #[test]
    fn a_block_in_the_wrong_place_or_of_another_run_is_noticed() {
        assert_eq!(FIRST.first_difference(&written(FIRST, 0), 512), Some(512));
        let other = Contents::Known { seed: 6, oldest: 0, newest: 0 };
        assert_eq!(FIRST.first_difference(&written(other, 0), 0), Some(0));
    }

    #[test]
    fn a_single_wrong_byte_is_found_in_its_block() {
        let mut memory = written(FIRST, 0);
        memory[3 * BLOCK_BYTES + 511] ^= 1;
        assert_eq!(FIRST.first_difference(&memory, 0), Some(3 * BLOCK_BYTES as u64));
    }
}
