//! The congestion controls that are ours.

use crate::Error;
use std::collections::BTreeSet;
use std::sync::{Mutex, Once, PoisonError};

/// A congestion control that can be loaded into the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is known by this name")]
pub enum Control {
    Bic,
    Fair,
    Fast,
    Hstcp,
    Htcp,
    Reno,
    Scalable,
    Westwood,
}

impl Control {
    /// All of them, by their names' order.
    pub const ALL: [Self; 8] = [
        Self::Bic,
        Self::Fair,
        Self::Fast,
        Self::Hstcp,
        Self::Htcp,
        Self::Reno,
        Self::Scalable,
        Self::Westwood,
    ];

    /// The kernel's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bic => "rw_bic",
            Self::Fair => "rw_fair",
            Self::Fast => "rw_fast",
            Self::Hstcp => "rw_hstcp",
            Self::Htcp => "rw_htcp",
            Self::Reno => "rw_reno",
            Self::Scalable => "rw_scalable",
            Self::Westwood => "rw_westwood",
        }
    }

    /// The control of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|control| control.name() == name)
    }

    /// What it does, and where it was published.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Bic => "a search for the window of the last loss (Xu, Harfoush, Rhee 2004)",
            Self::Fair => "one window for all connections of a session (Kumar, Narayan, Gopinath)",
            Self::Fast => {
                "a fixed number of segments in the queue, known by the round trip (Wei et al. 2006)"
            }
            Self::Hstcp => "faster growth and smaller cuts for large windows (RFC 3649)",
            Self::Htcp => "growth by the time since the last loss (Leith, Shorten 2004)",
            Self::Reno => "one segment per round trip, half the window per loss (RFC 5681)",
            Self::Scalable => "growth in proportion to the window (Kelly 2003)",
            Self::Westwood => "after a loss, the measured bandwidth's window (Grieco, Mascolo 2004)",
        }
    }

    /// Whether connections under it can share what they know of the path.
    #[must_use]
    pub fn has_groups(self) -> bool {
        matches!(self, Self::Fair | Self::Fast)
    }

    /// The kernel's own to use where this one cannot be, for this reason. Warns of it, once in the life of the process.
    #[must_use]
    pub fn instead(self, reason: &Error) -> &'static str {
        static WARNED: Mutex<BTreeSet<Control>> = Mutex::new(BTreeSet::new());
        let instead = if self == Self::Reno { "reno" } else { "cubic" };
        if WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(self) {
            tracing::warn!("using {instead} instead of {}: {reason}", self.name());
        }
        instead
    }

    /// Warns that a connection has no group because there was no place for it, once in the life of the process.
    pub fn warn_of_no_room(self) {
        static WARNED: Once = Once::new();
        WARNED.call_once(|| {
            tracing::warn!(
                "a connection under {} shares nothing with others: the places that its group could have are taken (\"ropewalk cc status\" shows all groups)",
                self.name()
            );
        });
    }
}
