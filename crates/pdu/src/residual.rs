//! Residual counts (RFC 7143 §11.4.5).

/// The difference between the initiator's expected transfer and the target's, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Residual {
    /// Exactly the expected length was transferred.
    #[default]
    None,
    /// The target had this much more than expected.
    Overflow(u32),
    /// This much less than expected was transferred.
    Underflow(u32),
}

impl Residual {
    /// The residual of a transfer for which the initiator expected `expected_bytes` and the command defined
    /// `actual_bytes` (§11.4.5.2). Saturates above 4 GiB.
    #[must_use]
    pub fn between(expected_bytes: u32, actual_bytes: u64) -> Self {
        let expected = u64::from(expected_bytes);
        let count = u32::try_from(expected.abs_diff(actual_bytes)).unwrap_or(u32::MAX);
        match actual_bytes.cmp(&expected) {
            core::cmp::Ordering::Equal => Self::None,
            core::cmp::Ordering::Greater => Self::Overflow(count),
            core::cmp::Ordering::Less => Self::Underflow(count),
        }
    }

    /// From the two flags and the count, or `None` if both flags are set: a protocol error (§11.4.1).
    pub(crate) const fn from_wire(overflow: bool, underflow: bool, count: u32) -> Option<Self> {
        match (overflow, underflow) {
            (false, false) => Some(Self::None),
            (true, false) => Some(Self::Overflow(count)),
            (false, true) => Some(Self::Underflow(count)),
            (true, true) => None,
        }
    }

    /// The two flags, as `overflow_bit` and `underflow_bit`.
    pub(crate) const fn flags(self, overflow_bit: u8, underflow_bit: u8) -> u8 {
        match self {
            Self::None => 0,
            Self::Overflow(_) => overflow_bit,
            Self::Underflow(_) => underflow_bit,
        }
    }

    /// The count; zero if there is none.
    pub(crate) const fn count(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Overflow(count) | Self::Underflow(count) => count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_residual_says_which_side_had_more() {
        assert_eq!(Residual::between(512, 512), Residual::None);
        assert_eq!(Residual::between(512, 500), Residual::Underflow(12));
        assert_eq!(Residual::between(512, 600), Residual::Overflow(88));
        assert_eq!(Residual::between(0, 1 << 40), Residual::Overflow(u32::MAX));
    }
}
