//! Numbers that only look random: the same seed gives the same ones, on every machine and in every release.

/// A small generator (`SplitMix64`). Parts of the world have generators of their own, so that a change in one leaves
/// the others' numbers as they were.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of `seed` for the part of the world called `part`.
    #[must_use]
    pub fn new(seed: u64, part: &str) -> Self {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let mut random = Self(part.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix));
        random.word();
        random
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product: even enough for any bound that is small beside 2^64.
        u64::try_from((u128::from(self.word()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// A number of `from..=to`.
    pub fn between<T: TryFrom<u64> + Into<u64> + Copy>(&mut self, from: T, to: T) -> T {
        let (least, most) = (from.into(), to.into());
        T::try_from(least + self.below(most.saturating_sub(least) + 1)).unwrap_or(to)
    }

    /// A serial number that is often close to its wrap.
    pub fn near_wrap(&mut self) -> u32 {
        let word = self.between(0, u32::MAX);
        if self.one_in(3) { u32::MAX - word % 500 } else { word }
    }

    /// True once in `times` on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// True in `percent` of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A place in something of `length`.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// If there are none.
    pub fn choose<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_part_others() {
        let numbers = |mut random: Random| (0..4).map(|_| random.word()).collect::<Vec<_>>();
        assert_eq!(numbers(Random::new(7, "disk")), numbers(Random::new(7, "disk")));
        assert_ne!(numbers(Random::new(7, "disk")), numbers(Random::new(7, "network")));
        assert_ne!(numbers(Random::new(7, "disk")), numbers(Random::new(8, "disk")));
    }

    #[test]
    fn a_number_between_bounds_reaches_both() {
        let mut random = Random::new(1, "test");
        let numbers: Vec<u64> = (0..200).map(|_| random.between(3u64, 6)).collect();
        assert_eq!((numbers.iter().min(), numbers.iter().max()), (Some(&3), Some(&6)));
    }
}
