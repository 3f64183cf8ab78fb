//! The threshold at which initiators are warned that a thin disk runs out of space (SBC-3, logical block provisioning
//! thresholds).

use crate::Blocks;

/// A soft threshold of the blocks that can still be allocated. It is reached when their number falls to it, and again
/// only after the number has risen above it.
///
/// It counts in threshold sets, each a power of two of blocks and about a thousandth of the disk. A set is also the
/// change of the number that causes another warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Threshold {
    exponent: u8,
    count: u32,
}

/// A disk has at least 2^10 threshold sets, if it has twice as many blocks.
const SETS_EXPONENT: u32 = 10;

impl Threshold {
    /// The threshold of a disk of this many blocks that is reached when `percent` of it is allocated, or when the rest
    /// cannot be. `None`: the percentage is not from 1 to 99.
    #[must_use]
    pub fn from_used_percent(percent: u8, disk: Blocks) -> Option<Self> {
        let available_percent =
            100_u8.checked_sub(percent).filter(|available| (1..=99).contains(available))?;
        // Zero would mean that there is no threshold.
        let exponent = disk.0.checked_ilog2()?.saturating_sub(SETS_EXPONENT).max(1);
        let available = u128::from(disk.0) * u128::from(available_percent) / 100;
        let count = u32::try_from(available >> exponent).unwrap_or(u32::MAX).max(1);
        Some(Self { exponent: u8::try_from(exponent).ok()?, count })
    }

    /// Whether the threshold is reached with this many available blocks. Within one set around the threshold the state
    /// `before` stays.
    #[must_use]
    pub fn is_reached(self, before: bool, available: Blocks) -> bool {
        let center = u64::from(self.count) << self.exponent;
        let half_range = 1 << (self.exponent - 1);
        if before { available.0 <= center + half_range } else { available.0 < center - half_range }
    }

    /// THRESHOLD EXPONENT: the power of two of blocks in a threshold set.
    pub(crate) const fn exponent(self) -> u8 {
        self.exponent
    }

    /// THRESHOLD COUNT: the threshold, in threshold sets.
    pub(crate) const fn count(self) -> u32 {
        self.count
    }

    /// The number of whole threshold sets in these blocks.
    pub(crate) fn sets(self, blocks: Blocks) -> u32 {
        u32::try_from(blocks.0 >> self.exponent).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_fit_their_field_whatever_the_capacity() {
        for blocks in [1, 2, 3, 2047, 2048, 1 << 31, 1 << 54, u64::MAX] {
            let threshold = Threshold::from_used_percent(80, Blocks(blocks)).expect("a threshold");
            assert!(threshold.exponent >= 1 && blocks >> threshold.exponent < 1 << 32, "{blocks}");
            assert!(threshold.count >= 1);
        }
    }

    #[test]
    fn it_is_reached_below_its_range_and_left_above() {
        let threshold = Threshold::from_used_percent(75, Blocks(1 << 20)).expect("a threshold");
        let (center, half) = (1 << 18, 1 << 9);
        assert!(!threshold.is_reached(false, Blocks(center - half)));
        assert!(threshold.is_reached(false, Blocks(center - half - 1)));
        assert!(threshold.is_reached(true, Blocks(center + half)));
        assert!(!threshold.is_reached(true, Blocks(center + half + 1)));
    }

    #[test]
    fn a_disk_without_any_space_left_has_reached_it() {
        for blocks in [1, 100, 1 << 40] {
            let threshold = Threshold::from_used_percent(99, Blocks(blocks)).expect("a threshold");
            assert!(threshold.is_reached(false, Blocks(0)));
        }
    }

    #[test]
    fn percentages_that_say_nothing_are_none() {
        for percent in [0, 100, 255] {
            assert_eq!(Threshold::from_used_percent(percent, Blocks(1 << 20)), None);
        }
        assert_eq!(Threshold::from_used_percent(80, Blocks(0)), None);
    }
}
