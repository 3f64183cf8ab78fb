//! Randomness that is the same in every run of one seed (`SplitMix64`).

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub struct Dice(u64);

/// 2⁶⁴ divided by the golden ratio.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Dice {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(mixed(seed))
    }

    /// Any number of 64 bits.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mixed(self.0)
    }

    /// A number below `bound`, or 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // Less than `bound`, which is a usize.
        usize::try_from(self.number() % (bound.max(1) as u64)).unwrap_or(0)
    }

    /// From 0 up to, but without, 1.
    pub fn fraction(&mut self) -> f64 {
        // As many bits as a float holds exactly.
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Every bit of the result depends on every bit of `number`.
pub fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
