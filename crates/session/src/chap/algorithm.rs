//! CHAP algorithms, and those that one end allows (RFC 7143 §12.1.3; IANA's PPP registry has their numbers).

use super::{Challenge, Secret};
use core::fmt;
use core::str::FromStr;
use md5::{Digest, Md5};
use pdu::text_value::{list, numerical};
use sha1::Sha1;
use sha2::Sha256;
use sha3::Sha3_256;

/// The hash that makes a response of identifier, secret and challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// CHAP with MD5, which every implementation has.
    Md5,
    /// CHAP with SHA-1.
    Sha1,
    /// CHAP with SHA-256.
    Sha256,
    /// CHAP with SHA3-256.
    Sha3_256,
}

impl Algorithm {
    /// All algorithms, the strongest first.
    pub const ALL: [Self; 4] = [Self::Sha3_256, Self::Sha256, Self::Sha1, Self::Md5];

    /// The algorithm's number in IANA's registry.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Md5 => 5,
            Self::Sha1 => 6,
            Self::Sha256 => 7,
            Self::Sha3_256 => 8,
        }
    }

    /// The length of a response, and of our challenges: a challenge of that length uses the algorithm's full strength.
    #[must_use]
    pub const fn response_bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 | Self::Sha3_256 => RESPONSE_BYTES_MAX,
        }
    }

    /// The algorithm's name in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha3_256 => "sha3-256",
        }
    }

    pub(super) fn response(self, challenge: &Challenge, secret: &Secret) -> Vec<u8> {
        match self {
            Self::Md5 => digest::<Md5>(challenge, secret),
            Self::Sha1 => digest::<Sha1>(challenge, secret),
            Self::Sha256 => digest::<Sha256>(challenge, secret),
            Self::Sha3_256 => digest::<Sha3_256>(challenge, secret),
        }
    }
}

/// The longest response, that of SHA-256 and SHA3-256.
pub(super) const RESPONSE_BYTES_MAX: usize = 32;

fn digest<D: Digest>(challenge: &Challenge, secret: &Secret) -> Vec<u8> {
    let hash = D::new().chain_update([challenge.identifier()]);
    hash.chain_update(secret.bytes()).chain_update(challenge.value()).finalize().to_vec()
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A name that no algorithm has, or an empty list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a CHAP algorithm: write one or more of sha3-256, sha256, sha1 and md5")]
pub struct InvalidAlgorithm(String);

impl FromStr for Algorithm {
    type Err = InvalidAlgorithm;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(text));
        named.ok_or_else(|| InvalidAlgorithm(text.into()))
    }
}

/// The algorithms that one end allows, the preferred first. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algorithms(Vec<Algorithm>);

impl Default for Algorithms {
    fn default() -> Self {
        Self(Algorithm::ALL.to_vec())
    }
}

impl Algorithms {
    /// These algorithms in this order, without repetitions. `None` if the list is empty.
    #[must_use]
    pub fn new(wanted: impl IntoIterator<Item = Algorithm>) -> Option<Self> {
        let mut algorithms = Vec::new();
        for algorithm in wanted {
            if !algorithms.contains(&algorithm) {
                algorithms.push(algorithm);
            }
        }
        (!algorithms.is_empty()).then_some(Self(algorithms))
    }

    /// These algorithms without one. `None` if that leaves none.
    #[must_use]
    pub fn without(&self, algorithm: Algorithm) -> Option<Self> {
        Self::new(self.0.iter().copied().filter(|allowed| *allowed != algorithm))
    }

    /// Whether this end allows the algorithm.
    #[must_use]
    pub fn contains(&self, algorithm: Algorithm) -> bool {
        self.0.contains(&algorithm)
    }

    /// The value of an initiator's `CHAP_A`.
    #[must_use]
    pub fn offer(&self) -> String {
        self.0.iter().map(|algorithm| algorithm.number().to_string()).collect::<Vec<_>>().join(",")
    }

    /// The first algorithm of an initiator's `CHAP_A` that this end allows. Unknown ones are ignored (§6.2.1).
    #[must_use]
    pub fn choose(&self, proposed: &str) -> Option<Algorithm> {
        let numbers = list(proposed).ok()?.filter_map(|value| numerical(value, 0..=u8::MAX.into()).ok());
        numbers.into_iter().find_map(|number| self.of_number(number))
    }

    /// The algorithm that a target chose by its `CHAP_A`, which must be one number. `None` if this end does not allow
    /// it.
    #[must_use]
    pub fn chosen(&self, answer: &str) -> Option<Algorithm> {
        numerical(answer, 0..=u8::MAX.into()).ok().and_then(|number| self.of_number(number))
    }

    fn of_number(&self, number: u64) -> Option<Algorithm> {
        self.0.iter().copied().find(|algorithm| u64::from(algorithm.number()) == number)
    }
}

/// Parses names separated by commas, the preferred first: `sha256,md5`.
impl FromStr for Algorithms {
    type Err = InvalidAlgorithm;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = text.split(',').map(|name| name.trim().parse()).collect::<Result<Vec<_>, _>>()?;
        Self::new(named).ok_or_else(|| InvalidAlgorithm(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_proposed_that_is_allowed_is_chosen() {
        let all = Algorithms::default();
        assert_eq!(all.choose("5,8"), Some(Algorithm::Md5));
        assert_eq!(all.choose("9,200,x,7,6,5"), Some(Algorithm::Sha256));
        let strong = all.without(Algorithm::Md5).unwrap();
        assert_eq!(strong.choose("5,6"), Some(Algorithm::Sha1));
        assert_eq!(strong.choose("5"), None);
        assert_eq!(all.choose(",,"), None);
        assert_eq!(all.choose("4,9,4294967301"), None);
    }

    #[test]
    fn a_target_chooses_one_of_the_offered_and_no_list() {
        let offered: Algorithms = "sha256,md5".parse().unwrap();
        assert_eq!(offered.offer(), "7,5");
        assert_eq!(offered.chosen("5"), Some(Algorithm::Md5));
        for answer in ["8", "7,5", "", "Reject"] {
            assert_eq!(offered.chosen(answer), None, "{answer}");
        }
    }

    #[test]
    fn the_strongest_is_offered_first() {
        assert_eq!(Algorithms::default().offer(), "8,7,6,5");
    }

    #[test]
    fn a_choice_is_written_by_names() {
        assert_eq!("SHA1, sha1,md5".parse::<Algorithms>().unwrap().offer(), "6,5");
        for text in ["", "md4", "md5,"] {
            assert!(text.parse::<Algorithms>().is_err(), "{text}");
        }
    }
}
