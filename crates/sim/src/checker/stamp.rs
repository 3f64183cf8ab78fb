//! What a block is filled with: its writer's number, its place, and words that follow from them.

use crate::unit::UnitIndex;

/// Names the operation that wrote a block; zero is what a block holds that was never written, or unmapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

const WORD_BYTES: usize = 8;

/// Marks the stamp of an operation that writes one block of data to many places.
const ANYWHERE: u64 = 1 << 63;

/// A word in which nothing of a stamp is left.
const POISON: u64 = 0xbad0_bad0_bad0_bad0;

/// One word of so many bytes is marked: in every block of any length.
const POISONED_BYTES: usize = 512;

impl Stamp {
    /// Never written, or unmapped.
    pub const ZERO: Self = Self(0);

    /// The stamp of one operation of one host at one unit.
    #[must_use]
    pub const fn new(host: u16, unit: UnitIndex, operation: u32) -> Self {
        Self(((host as u64 + 1) << 40) | ((unit.0 as u64) << 32) | operation as u64)
    }

    /// The stamp of an operation that writes one block of data to many places (WRITE SAME).
    #[must_use]
    pub const fn anywhere(host: u16, operation: u32) -> Self {
        Self(Self::new(host, UnitIndex::FIRST, operation).0 | ANYWHERE)
    }

    /// Fills a buffer of blocks of this length that will be written from `lba` on.
    pub fn fill(self, buffer: &mut [u8], lba: u64, block_bytes: usize) {
        for (at, block) in buffer.chunks_exact_mut(block_bytes).enumerate() {
            self.fill_block(block, lba + at as u64);
        }
    }

    /// Fills one block.
    pub fn fill_block(self, block: &mut [u8], lba: u64) {
        if self == Self::ZERO {
            return block.fill(0);
        }
        let place = if self.0 & ANYWHERE == 0 { lba } else { ANYWHERE };
        let rest = self.rest(place);
        let (words, _) = block.as_chunks_mut::<WORD_BYTES>();
        for (at, word) in (0..).zip(&mut *words) {
            *word = (rest ^ at).to_le_bytes();
        }
        if let [first, second, ..] = words {
            (*first, *second) = (self.0.to_le_bytes(), place.to_le_bytes());
        }
    }

    /// The words behind the stamp and the place, each but for its number in the block.
    const fn rest(self, place: u64) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ place.rotate_left(32)
    }

    /// Marks a buffer so that parts of it which are never filled are noticed.
    pub fn poison(buffer: &mut [u8]) {
        for part in buffer.chunks_mut(POISONED_BYTES) {
            if let Some(word) = part.first_chunk_mut() {
                *word = POISON.to_le_bytes();
            }
        }
    }

    /// Whether all marks are where [`Self::poison`] has put them in this part of a buffer, from the first byte of a block on.
    #[must_use]
    pub fn is_poisoned(part: &[u8]) -> bool {
        let mut marks = part.chunks(POISONED_BYTES).filter_map(|part| part.first_chunk());
        marks.all(|mark| u64::from_le_bytes(*mark) == POISON)
    }

    /// Who wrote this block, which was read from `lba`.
    ///
    /// # Errors
    /// Nobody did: it is of several writes, from another place, or of none at all.
    pub fn read(block: &[u8], lba: u64) -> Result<Self, String> {
        let word = |at: usize| {
            let bytes = block.get(at * WORD_BYTES..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let (Some(stamp), Some(place)) = (word(0), word(1)) else { return Err("a short block".into()) };
        if stamp == 0 {
            // All are looked at, many at a time, as hardly any block is mixed.
            let is_zero = block.iter().fold(0, |all, byte| all | byte) == 0;
            return if is_zero { Ok(Self::ZERO) } else { Err(format!("block {lba} is mixed")) };
        }
        if stamp == POISON {
            return Err(format!("block {lba} was answered without data"));
        }
        if place != lba && (place != ANYWHERE || stamp & ANYWHERE == 0) {
            return Err(format!("block {lba} holds what was written to block {place}"));
        }
        let (words, _) = block.as_chunks::<WORD_BYTES>();
        let rest = Self(stamp).rest(place);
        // As above.
        let differences =
            (2..).zip(&words[2..]).map(|(at, word): (u64, _)| u64::from_le_bytes(*word) ^ rest ^ at);
        let is_whole = differences.fold(0, |all, one| all | one) == 0;
        if is_whole { Ok(Self(stamp)) } else { Err(format!("block {lba} is mixed")) }
    }
}

impl std::fmt::Display for Stamp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => formatter.write_str("zeroes"),
            stamp => {
                let stamp = stamp & !ANYWHERE;
                let (host, unit) = ((stamp >> 40).wrapping_sub(1), stamp >> 32 & 0xff);
                write!(formatter, "host {host} unit {unit} write {}", stamp & 0xffff_ffff)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: usize = 512;

    #[test]
    fn a_block_tells_its_writer_and_its_place() {
        let stamp = Stamp::new(3, UnitIndex::FIRST, 77);
        let mut buffer = [0; 2 * BLOCK_BYTES];
        stamp.fill(&mut buffer, 10, BLOCK_BYTES);
        assert_eq!(Stamp::read(&buffer[..BLOCK_BYTES], 10), Ok(stamp));
        assert_eq!(Stamp::read(&buffer[BLOCK_BYTES..], 11), Ok(stamp));
        assert!(Stamp::read(&buffer[BLOCK_BYTES..], 10).is_err());
        assert_eq!(Stamp::read(&[0; BLOCK_BYTES], 4), Ok(Stamp::ZERO));
    }

    #[test]
    fn a_block_of_two_writes_is_noticed() {
        let mut block = [0; BLOCK_BYTES];
        Stamp::new(0, UnitIndex::FIRST, 1).fill_block(&mut block, 5);
        let mut other = [0; BLOCK_BYTES];
        Stamp::new(0, UnitIndex::FIRST, 2).fill_block(&mut other, 5);
        block[256..].copy_from_slice(&other[256..]);
        assert!(Stamp::read(&block, 5).is_err());
        Stamp::poison(&mut block);
        assert!(Stamp::read(&block, 5).is_err());
    }
}
