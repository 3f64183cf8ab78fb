//! Chooses the parts of a copy to read back. Pure.

/// How much of a copy is verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Nothing is verified.
    Off,
    /// The first and the last request, and one chosen at random of every [`SAMPLE_DIVISOR`] requests between.
    #[default]
    Sample,
    /// Every byte is verified.
    Full,
}

/// One of this many requests is read back. That finds damage that is everywhere or in long runs (a wrong offset, a lost
/// cache, a device that wraps around), at under two percent of a copy's cost.
pub const SAMPLE_DIVISOR: u64 = 64;

impl Verify {
    /// Whether request number `request` of `requests` is read back. The same seed chooses the same ones.
    #[must_use]
    pub fn chooses(self, request: u64, requests: u64, seed: u64) -> bool {
        match self {
            Self::Off => false,
            Self::Full => true,
            Self::Sample => {
                let first_of_group = request - request % SAMPLE_DIVISOR;
                let group_length = SAMPLE_DIVISOR.min(requests - first_of_group);
                request == 0
                    || request + 1 == requests
                    || request == first_of_group + mix(seed ^ mix(first_of_group)) % group_length
            }
        }
    }
}

/// The finalizer of Steele, Lea and Flood's `SplitMix64` (2014): every bit of the result depends on every bit of the
/// seed.
fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(verify: Verify, requests: u64, seed: u64) -> Vec<u64> {
        (0..requests).filter(|request| verify.chooses(*request, requests, seed)).collect()
    }

    #[test]
    fn a_sample_has_the_first_the_last_and_one_of_every_64() {
        for requests in [1, 2, 63, 64, 65, 1000, 6401] {
            for seed in 0..50 {
                let chosen = chosen(Verify::Sample, requests, seed);
                assert!(chosen.contains(&0) && chosen.contains(&(requests - 1)));
                for group in 0..requests / SAMPLE_DIVISOR {
                    assert!(chosen.iter().any(|request| request / SAMPLE_DIVISOR == group));
                }
                assert!(chosen.len() as u64 <= requests.div_ceil(SAMPLE_DIVISOR) + 2);
            }
        }
    }

    #[test]
    fn every_request_is_chosen_by_some_seed() {
        let seen: std::collections::BTreeSet<_> =
            (0..2000).flat_map(|seed| chosen(Verify::Sample, 128, seed)).collect();
        assert_eq!(seen.len(), 128);
    }

    #[test]
    fn full_is_everything_and_off_is_nothing() {
        assert_eq!(chosen(Verify::Full, 5, 1), [0, 1, 2, 3, 4]);
        assert!(chosen(Verify::Off, 5, 1).is_empty());
    }
}
