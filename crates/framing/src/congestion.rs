//! Congestion control, and groups of connections that share it.

use policy::law::{GroupTerms, InvalidTerms};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;

/// The congestion control of a socket: `cubic`, or `rw_fair:single,cubic`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Congestion {
    /// The kernel's name of it (TCP_CONGESTION).
    pub name: String,
    /// How a group of connections under it behaves, if it has groups.
    pub terms: GroupTerms,
}

impl Congestion {
    /// The control of this name, with the usual terms.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), terms: GroupTerms::default() }
    }
}

/// The number of the group of a session's connections over one path, never zero: losses of one path say nothing of another.
#[must_use]
pub fn group_of(session: impl Hash, path: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    session.hash(&mut hasher);
    path.hash(&mut hasher);
    hasher.finish().max(1)
}

impl FromStr for Congestion {
    type Err = InvalidTerms;

    fn from_str(text: &str) -> Result<Self, InvalidTerms> {
        let (name, terms) = text.split_once(':').unwrap_or((text, ""));
        Ok(Self { name: name.to_owned(), terms: terms.parse()? })
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, terms } = self;
        if *terms == GroupTerms::default() {
            formatter.write_str(name)
        } else {
            write!(formatter, "{name}:{terms}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_is_told_as_it_is_read() {
        for text in ["cubic", "rw_fair", "rw_fair:single,cubic"] {
            assert_eq!(text.parse::<Congestion>().unwrap().to_string(), text);
        }
        assert!("rw_fair:warp".parse::<Congestion>().is_err());
    }
}
