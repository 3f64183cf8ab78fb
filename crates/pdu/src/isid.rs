//! Initiator Session ID: the initiator's part of a session's identity (RFC 7143 §11.12.5).

use core::fmt;

/// Six bytes that identify a session, together with the initiator's name, the target's name and the portal group. An
/// initiator that returns with the same ISID reinstates its session (§6.3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Isid(pub [u8; 6]);

/// The T field of the "Random" format, in the two upper bits of the first byte.
const FORMAT_RANDOM: u8 = 0b10 << 6;

impl Isid {
    /// An ISID of the "Random" format. The 24 random bits make a collision between initiators of one name unlikely; the
    /// qualifier distinguishes the sessions of one initiator.
    #[must_use]
    pub const fn random(random: [u8; 3], qualifier: u16) -> Self {
        let [b0, b1, c] = random;
        let [d0, d1] = qualifier.to_be_bytes();
        Self([FORMAT_RANDOM, b0, b1, c, d0, d1])
    }
}

impl fmt::Display for Isid {
    /// Twelve hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_isid_says_so_and_keeps_its_qualifier() {
        assert_eq!(Isid::random([1, 2, 3], 0x0405).to_string(), "800102030405");
    }
}
