//! What the protocol did in a run: where each command was when, seen at both ends by their own drivers.
//!
//! ```text
//! initiator   pulled ── sent ─────────── R2T ── data sent ──────────────────── ended
//! target                    arrived ── begun ───────────── started ── carried out
//! ```
//!
//! At the initiator a command is *pulled* when it gets its connection and its CmdSN, *sent* when the socket has taken the
//! last byte of its PDU, and its *data is sent* when the socket has taken the last byte of Data-Out. At the target it has
//! *arrived* with its header, *begins* when every command before it has come and its immediate data is there, *starts* when
//! all its data is there and goes to the medium, and is *carried out* when the medium has done its part.
//!
//! It only reads. For each PDU it takes a lock that nobody else wants, reads the clock and parses 48 bytes; `make
//! bench-monitor` measures what that costs. All memory is bounded, and what was not kept is counted.

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
    /// For [`initiator::connect_observed`].
    #[must_use]
    pub fn initiator(&self) -> Arc<dyn transport::Observer> {
        Arc::<InitiatorSide>::clone(&self.initiator)
    }

    /// For [`target::Server::start_observed`].
    #[must_use]
    pub fn target(&self) -> target::Observers {
        target::Observers {
            connections: Some(Arc::<TargetSide>::clone(&self.target)),
            commands: Some(Arc::<TargetSide>::clone(&self.target)),
        }
    }

    /// Forgets what was seen at the target, and the connections that are there: those that prepared its disk.
    pub fn restart(&self) {
        self.target.restart();
    }

    /// What was seen since the last question: commands that have ended. Best asked when the sessions are over.
    #[must_use]
    pub fn take(&self) -> SessionSamples {
        let mut samples = self.initiator.take();
        self.target.join(&mut samples);
        samples
    }
}

/// Commands that are kept, at each end.
const COMMANDS_MAX: usize = 1 << 20;

/// Nothing here panics half-way.
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
