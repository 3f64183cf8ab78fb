//! The protocol's events in a run: the place of each command over time, observed at both ends by their drivers.
//!
//! ```text
//! initiator   pulled ── sent ─────────── R2T ── data sent ──────────────────── ended
//! target                    arrived ── begun ───────────── started ── carried out
//! ```
//!
//! At the initiator a command is *pulled* when it gets its connection and its CmdSN, *sent* when the socket has
//! accepted the last byte of its PDU, and its *data is sent* when the socket has accepted the last byte of Data-Out. At
//! the target it has *arrived* with its header, *begins* when every earlier command has arrived and its immediate data
//! is there, *starts* when all its data is there and goes to the medium, and is *carried out* when the medium has done
//! its part.
//!
//! The monitor only observes. For each PDU it takes an uncontended lock, reads the clock and parses 48 bytes; `make
//! bench-monitor` measures the cost. All memory is bounded, and dropped samples are counted.

mod connection;
mod holes;
mod initiator_side;
mod intervals;
mod samples;
mod target_side;
mod window;

pub use intervals::{Interval, Intervals};
pub use samples::{AtTarget, CommandSample, ConnectionSample, End, SessionSamples};

use initiator_side::InitiatorSide;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use target_side::TargetSide;

/// Watches the sessions of an initiator and a target in this process.
#[derive(Debug, Default)]
pub struct SessionMonitor {
    initiator: Arc<InitiatorSide>,
    target: Arc<TargetSide>,
}

impl SessionMonitor {
    /// The observer of the initiator's connections, for [`initiator::connect_observed`].
    #[must_use]
    pub fn initiator(&self) -> Arc<dyn transport::Observer> {
        Arc::<InitiatorSide>::clone(&self.initiator)
    }

    /// The observers of the target's connections and commands, for [`target::Server::start_observed`].
    #[must_use]
    pub fn target(&self) -> target::Observers {
        target::Observers {
            connections: Some(Arc::<TargetSide>::clone(&self.target)),
            commands: Some(Arc::<TargetSide>::clone(&self.target)),
        }
    }

    /// Forgets the samples of the target and its present connections, which prepared its disk.
    pub fn restart(&self) {
        self.target.restart();
    }

    /// The commands that ended since the last call. Call it when the sessions are over.
    #[must_use]
    pub fn take(&self) -> SessionSamples {
        let mut samples = self.initiator.take();
        self.target.join(&mut samples);
        samples
    }
}

/// The most commands kept at each end.
const COMMANDS_MAX: usize = 1 << 20;

/// Nothing here panics while it holds the lock.
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
