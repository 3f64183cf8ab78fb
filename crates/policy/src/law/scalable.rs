//! Scalable TCP (Kelly 2003).

use super::{Flow, Law, WINDOW_MIN};

/// A hundredth of what is acknowledged, and an eighth of the window for a loss: the time to recover from a loss does not
/// depend on the window. Below 100 segments it grows as Reno.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scalable;

impl Law for Scalable {
    fn ssthresh(&mut self, flow: &Flow) -> f64 {
        (flow.window.floor() * 7.0 / 8.0).ceil().max(WINDOW_MIN)
    }

    fn growth(&mut self, flow: &Flow) -> f64 {
        (0.01 * flow.window).max(1.0)
    }
}
