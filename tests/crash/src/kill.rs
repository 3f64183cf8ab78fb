//! What is killed.

use clap::ValueEnum;
use std::fmt;

/// What breaks while writers work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kill {
    /// All connections, several times. Nobody may notice.
    Connections,
    /// The target, which forgets what was not flushed, and comes back.
    Target,
    /// The server of the attached disk.
    Attach,
    /// All of them at once.
    Everything,
}

impl Kill {
    pub const ALL: [Self; 4] = [Self::Connections, Self::Target, Self::Attach, Self::Everything];

    pub fn target(self) -> bool {
        matches!(self, Self::Target | Self::Everything)
    }

    pub fn attach(self) -> bool {
        matches!(self, Self::Attach | Self::Everything)
    }

    pub fn connections(self) -> bool {
        matches!(self, Self::Connections | Self::Everything)
    }
}

impl fmt::Display for Kill {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Connections => "connections",
            Self::Target => "target",
            Self::Attach => "attach",
            Self::Everything => "everything",
        })
    }
}
