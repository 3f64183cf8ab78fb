//! The Internet checksum (RFC 1071).

/// The one's complement sum of 16-bit words, not yet folded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// The sum of bytes in network order; an odd one at the end counts as if a zero followed.
    pub fn of(bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<2>();
        let sum: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
        Self(sum + rest.first().map_or(0, |byte| u64::from(*byte) << 8))
    }

    /// Adds another word.
    pub fn plus(self, word: u64) -> Self {
        Self(self.0 + word)
    }

    /// As 16 bits: the value in a packet whose checksum the interface completes.
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        while let Some(carried) = Some(sum >> 16).filter(|carried| *carried != 0) {
            sum = (sum & 0xffff) + carried;
        }
        u16::try_from(sum).unwrap_or(u16::MAX)
    }

    /// The packet's checksum, if the field was zero in the sum, or held the rest of it.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard() {
        // RFC 1071 §3.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::of(&bytes).folded(), 0xddf2);
        assert_eq!(Sum::of(&bytes).checksum(), 0x220d);
    }

    #[test]
    fn an_odd_byte_counts_as_if_a_zero_followed() {
        assert_eq!(Sum::of(&[1, 2, 3]).folded(), Sum::of(&[1, 2, 3, 0]).folded());
    }
}
