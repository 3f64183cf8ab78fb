//! FAST TCP (Wei, Jin, Low and Hegde 2006).

use super::{Flow, Law, WINDOW_MIN, slow_start};
use pdu::{Duration, Instant};

/// Keeps `alpha` segments in the queue, which it knows from the round trip.
#[derive(Clone, Copy, Debug)]
pub struct Fast {
    alpha: f64,
    step_ends: Instant,
    from: f64,
    to: f64,
    base_rtt: Option<Duration>,
    /// Smoothed, in seconds.
    rtt_s: Option<f64>,
}

impl Fast {
    /// The segments in the queue unless something else is said.
    pub const ALPHA: u32 = 50;

    /// A connection's law, with so many segments in the queue.
    #[must_use]
    pub fn new(alpha: u32) -> Self {
        Self {
            alpha: alpha.into(),
            step_ends: Instant::ZERO,
            from: 0.0,
            to: 0.0,
            base_rtt: None,
            rtt_s: None,
        }
    }

    /// Another connection of the group has seen this round trip.
    pub fn share_rtt(&mut self, rtt: Duration) {
        self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
    }

    /// The part of the window that the path holds without a queue.
    fn without_queue(&self, window: f64) -> Option<f64> {
        Some(window * self.base_rtt?.as_secs_f64() / self.rtt_s?)
    }
}

impl Law for Fast {
    fn ssthresh(&mut self, flow: &Flow) -> f64 {
        self.step_ends = Instant::ZERO;
        (flow.window / 2.0).floor().max(WINDOW_MIN)
    }

    fn growth(&mut self, _: &Flow) -> f64 {
        (self.to - self.from) / 2.0
    }

    fn cong_avoid(&mut self, flow: &mut Flow, acked: u32) {
        let acked = f64::from(acked);
        let window = flow.window.floor();
        let mut left = acked;
        if window < flow.ssthresh {
            match self.without_queue(window) {
                Some(without) if window - without >= self.alpha => flow.ssthresh = window,
                _ => left = slow_start(flow, acked),
            }
        }
        let Some(without) = self.without_queue(flow.window.floor()).filter(|_| flow.window >= flow.ssthresh)
        else {
            return;
        };
        if flow.now >= self.step_ends {
            self.from = flow.window.floor();
            // Half of the way (γ), at most to twice the window.
            let to = ((self.from + without + self.alpha) / 2.0).floor();
            self.to = to.min(2.0 * self.from).max(WINDOW_MIN);
            self.step_ends = flow.now + flow.srtt * 2;
            flow.window = self.from;
        }
        let change = self.growth(flow) * left / flow.window.floor().max(1.0);
        flow.window = (flow.window + change.min(left)).max(WINDOW_MIN);
    }

    fn pkts_acked(&mut self, flow: &mut Flow, rtt: Option<Duration>) {
        let Some(rtt) = rtt else { return };
        self.share_rtt(rtt);
        let sample = rtt.as_secs_f64();
        let weight = (3.0 / flow.window.floor()).min(0.25);
        self.rtt_s = Some(self.rtt_s.map_or(sample, |before| before + (sample - before) * weight));
    }
}
