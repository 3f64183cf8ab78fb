//! The threads that move the bytes of connections.

use std::fmt;
use std::str::FromStr;

/// The threads that move a connection's bytes between its socket and the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// The one that runs the protocol, for all its connections.
    #[default]
    Shared,
    /// Two that the connection has for itself, one for each direction (paper 001).
    PerLane,
}

/// A name that no arrangement of threads has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither shared nor per-lane")]
pub struct UnknownThreads(String);

impl FromStr for Threads {
    type Err = UnknownThreads;

    fn from_str(name: &str) -> Result<Self, UnknownThreads> {
        let known = [Self::Shared, Self::PerLane].into_iter().find(|threads| threads.to_string() == name);
        known.ok_or_else(|| UnknownThreads(name.to_owned()))
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Shared => "shared",
            Self::PerLane => "per-lane",
        })
    }
}
