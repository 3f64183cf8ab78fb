//! What a run's tuner is shown, so that another can be shown the same.

use crate::monotonic_ns;
use pdu::{Duration, Instant};
use policy::Tuner;
use policy::tuner::{Decision, Experience, Slice, Terms, TunerChoice};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// A slice of time that a tuner was shown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceSample {
    /// When it was shown.
    pub at_ns: u64,
    /// The slice, by the client's own clock.
    pub slice: Slice,
}

/// The most slices that are kept, the first ones: eight hours of them.
const SLICES_MAX: usize = 1 << 16;

/// The slices that one client's tuner was shown.
#[derive(Clone, Default)]
pub(super) struct TunerTrace(Arc<Mutex<Vec<SliceSample>>>);

impl TunerTrace {
    /// Begins a tuner whose slices are kept here.
    pub fn begin(&self, tuner: TunerChoice, terms: Terms) -> Box<dyn Tuner> {
        Box::new(Traced { tuner: tuner.begin(terms), trace: self.clone() })
    }

    pub fn take(&self) -> Vec<SliceSample> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keep(&self, slice: Slice) {
        let mut slices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slices.len() < SLICES_MAX {
            slices.push(SliceSample { at_ns: monotonic_ns(), slice });
        }
    }
}

struct Traced {
    tuner: Box<dyn Tuner>,
    trace: TunerTrace,
}

impl Tuner for Traced {
    fn connections_at_first(&self) -> u32 {
        self.tuner.connections_at_first()
    }

    fn decide(&mut self, slice: &Slice) -> Option<Decision> {
        self.trace.keep(*slice);
        self.tuner.decide(slice)
    }

    fn login_pause(&self, now: Instant) -> Duration {
        self.tuner.login_pause(now)
    }

    fn experience(&self) -> Option<Experience> {
        self.tuner.experience()
    }
}
