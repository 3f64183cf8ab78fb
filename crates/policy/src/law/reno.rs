//! Reno (RFC 5681 §3.1).

use super::{Flow, Law, WINDOW_MIN};

/// One segment more per round trip, half of the window after a loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

impl Law for Reno {
    fn ssthresh(&mut self, flow: &Flow) -> f64 {
        (flow.window / 2.0).floor().max(WINDOW_MIN)
    }

    fn growth(&mut self, _: &Flow) -> f64 {
        1.0
    }
}
