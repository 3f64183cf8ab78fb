//! A slow decline of what connections move.

use super::Found;
use super::sample::{CHANGE, Sample};

/// So many samples in a row must be low: one is an accident.
const LOW_SAMPLES: u32 = 2;

/// Compares each sample with the most that the same connections have moved. From one sample to the next, a slow decline does
/// not show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decline {
    most: Option<Found>,
    low_samples: u32,
}

impl Decline {
    /// Takes in a sample; returns what was moved once, if it is much more.
    pub fn seen_in(&mut self, sample: &Sample) -> Option<Found> {
        let most = self.most.filter(|most| sample.is_like(most)).unwrap_or_else(|| sample.found());
        let ratio = sample.ratio_to(&most);
        self.most = Some(if ratio > 1.0 { sample.found() } else { most });
        self.low_samples = if ratio < 1.0 / CHANGE { self.low_samples + 1 } else { 0 };
        (self.low_samples >= LOW_SAMPLES).then_some(most)
    }
}
