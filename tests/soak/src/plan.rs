//! What is asked of a run.

use std::time::Duration;

/// The load of a run, its length, and its faults.
#[derive(Clone, Debug)]
pub struct Plan {
    /// iSCSI sessions, each a client of its own.
    pub sessions: usize,
    /// Connections of each session; as many commands are under way in it at a time.
    pub connections: u16,
    /// For how long there is load.
    pub duration: Duration,
    /// Commands per second that all clients together ask for. They ask for fewer if the answers take longer.
    pub commands_per_second: f64,
    /// Connections broken per second.
    pub breaks_per_second: f64,
    /// How often the target is stopped under load, and started again at once on the same port: by SIGTERM and by a
    /// second SIGINT in turn.
    pub restarts: u32,
    /// Where what is random begins.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            sessions: 1000,
            connections: 4,
            duration: Duration::from_secs(300),
            commands_per_second: 4000.0,
            breaks_per_second: 10.0,
            restarts: 0,
            seed: 1,
        }
    }
}

/// Descriptors of this process that a connection takes: the client's end, and both of the relay's.
const DESCRIPTORS_PER_CONNECTION: u64 = 3;

/// For connections that are being replaced, and files.
const DESCRIPTORS_BESIDE: u64 = 512;

impl Plan {
    /// Connections of all sessions together.
    #[must_use]
    pub fn all_connections(&self) -> usize {
        self.sessions * usize::from(self.connections)
    }

    /// The descriptors that this process needs; the target needs fewer.
    pub(crate) fn descriptors(&self) -> u64 {
        self.all_connections() as u64 * DESCRIPTORS_PER_CONNECTION + DESCRIPTORS_BESIDE
    }
}
