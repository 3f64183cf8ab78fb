//! One pool of connections for several targets, such as the two of a copy from one to the other.

use super::{Decision, Experience, Slice, TUNED_CONNECTIONS_MAX, Tuner};
use pdu::{Duration, Instant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What tuners of several targets share: none asks for more connections once they have [`TUNED_CONNECTIONS_MAX`] together.
///
/// They may try other numbers at the same time. Where data goes from one target to the other and losses limit both, the
/// one that has more connections moves more only if the other one has more as well.
#[derive(Clone, Debug, Default)]
pub struct Pool(Arc<Mutex<Vec<u32>>>);

/// The tuner of a target that is of a [`Pool`].
pub struct Pooled {
    tuner: Box<dyn Tuner>,
    pool: Pool,
    /// The place of its connections among those of all.
    place: usize,
}

impl Pool {
    /// Makes the connections of a tuner that has not begun part of the pool.
    #[must_use]
    pub fn join(&self, tuner: Box<dyn Tuner>) -> Pooled {
        let mut connections = self.connections();
        connections.push(tuner.connections_at_first());
        Pooled { tuner, pool: self.clone(), place: connections.len() - 1 }
    }

    /// Those that each tuner has asked for.
    fn connections(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tuner for Pooled {
    fn connections_at_first(&self) -> u32 {
        self.tuner.connections_at_first()
    }

    fn decide(&mut self, slice: &Slice) -> Option<Decision> {
        let mut connections = self.pool.connections();
        connections[self.place] = slice.connections;
        let others = connections.iter().sum::<u32>() - slice.connections;
        let left = TUNED_CONNECTIONS_MAX.saturating_sub(others).max(slice.connections);
        let slice = Slice { connections_max: slice.connections_max.min(left), ..*slice };
        let decision = self.tuner.decide(&slice)?;
        connections[self.place] = decision.connections;
        Some(decision)
    }

    fn login_pause(&self, now: Instant) -> Duration {
        self.tuner.login_pause(now)
    }

    fn experience(&self) -> Option<Experience> {
        self.tuner.experience()
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.pool.connections()[self.place] = 0;
    }
}
