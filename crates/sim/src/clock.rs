//! Virtual time, shared by all that live in one world.

use pdu::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The time of one world. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// The virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        // One thread sets and reads it; it is atomic because disks must be `Sync`.
        Instant(self.0.load(Ordering::Relaxed))
    }

    /// Lets time pass until `now`; never back.
    pub fn advance(&self, now: Instant) {
        self.0.store(now.max(self.now()).0, Ordering::Relaxed);
    }
}
