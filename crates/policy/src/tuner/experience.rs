//! What tuners have found, for the next session over the same path.

use super::Law;

/// What tuners have found over a path, for each direction of the data: of reads, the target's sending decides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Experience {
    /// For writes.
    pub to_target: Option<Found>,
    /// For reads.
    pub from_target: Option<Found>,
}

/// What a tuner has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The connections.
    pub connections: u32,
    /// Their congestion control.
    pub law: Law,
    /// What they moved.
    pub bytes_per_second: f64,
}

impl Experience {
    pub(super) fn of(&self, is_incoming: bool) -> Option<Found> {
        if is_incoming { self.from_target } else { self.to_target }
    }

    pub(super) fn keep(&mut self, is_incoming: bool, found: Found) {
        let kept = if is_incoming { &mut self.from_target } else { &mut self.to_target };
        *kept = Some(found);
    }

    /// The most connections with the configured congestion control that were worth it.
    pub(super) fn connections_max(&self) -> u32 {
        let found = [self.to_target, self.from_target].into_iter().flatten();
        let configured = found.filter(|found| found.law == Law::Configured);
        configured.map(|found| found.connections).max().unwrap_or(0)
    }
}
