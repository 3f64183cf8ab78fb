//! H-TCP (Leith and Shorten 2004; draft-leith-tcp-htcp-06).

use super::{Flow, Law, State, WINDOW_MIN};
use pdu::{Duration, Instant};

/// The longer ago the last loss, the faster the window grows; a loss takes from it what empties the queue. Without scaling
/// by the round trip.
#[derive(Clone, Copy, Debug)]
pub struct Htcp {
    now: SinceLoss,
    /// At the last loss, in case that it was none.
    before: SinceLoss,
    rtt_min: Option<Duration>,
    round_began: Instant,
    delivered: u32,
}

/// What is known since the last loss.
#[derive(Clone, Copy, Debug)]
struct SinceLoss {
    loss: Instant,
    rtt_max: Duration,
    /// Segments per second, the most of any round trip, and between the two losses before.
    throughput_max: f64,
    earlier_throughput_max: f64,
    /// β: the part of the window that remained.
    remains: f64,
}

impl Htcp {
    /// The law of a connection that begins as `flow` is.
    #[must_use]
    pub fn new(flow: &Flow) -> Self {
        let now = SinceLoss {
            loss: flow.now,
            rtt_max: Duration::ZERO,
            throughput_max: 0.0,
            earlier_throughput_max: 0.0,
            remains: 0.5,
        };
        Self { now, before: now, rtt_min: None, round_began: flow.now, delivered: flow.delivered }
    }

    /// By how many times faster than Reno the window grows, so many seconds after a loss that halved it.
    #[must_use]
    pub fn speed(since_loss_s: f64) -> f64 {
        let beyond = since_loss_s - 1.0;
        if beyond <= 0.0 { 1.0 } else { 1.0 + 10.0 * beyond + beyond * beyond / 4.0 }
    }

    /// β after a loss now.
    fn remains(&self) -> f64 {
        let SinceLoss { throughput_max: now, earlier_throughput_max: earlier, rtt_max, .. } = self.now;
        let is_steady = earlier > 0.0 && (now - earlier).abs() <= 0.2 * earlier;
        match self.rtt_min {
            Some(rtt_min) if is_steady && !rtt_max.is_zero() => {
                (rtt_min.as_secs_f64() / rtt_max.as_secs_f64()).clamp(0.5, 0.8)
            }
            _ => 0.5,
        }
    }
}

impl Law for Htcp {
    fn ssthresh(&mut self, flow: &Flow) -> f64 {
        self.before = self.now;
        self.now = SinceLoss {
            loss: flow.now,
            rtt_max: Duration::ZERO,
            throughput_max: 0.0,
            earlier_throughput_max: self.now.throughput_max,
            remains: self.remains(),
        };
        (flow.window * self.now.remains).floor().max(WINDOW_MIN)
    }

    fn growth(&mut self, flow: &Flow) -> f64 {
        let since = flow.now.saturating_duration_since(self.now.loss);
        2.0 * (1.0 - self.now.remains) * Self::speed(since.as_secs_f64())
    }

    fn pkts_acked(&mut self, flow: &mut Flow, rtt: Option<Duration>) {
        let Some(rtt) = rtt.filter(|_| flow.state <= State::Disorder) else { return };
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        self.now.rtt_max = self.now.rtt_max.max(rtt);
        let round = flow.now.saturating_duration_since(self.round_began);
        if round >= flow.srtt && !round.is_zero() {
            let delivered = flow.delivered.wrapping_sub(self.delivered);
            let throughput = f64::from(delivered) / round.as_secs_f64();
            self.now.throughput_max = self.now.throughput_max.max(throughput);
            (self.delivered, self.round_began) = (flow.delivered, flow.now);
        }
    }

    fn undo_cwnd(&mut self, flow: &Flow) -> f64 {
        self.now = self.before;
        flow.window.max(flow.prior_window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::replay;

    #[test]
    fn two_seconds_after_a_loss_it_grows_eleven_times_as_fast_as_reno() {
        // Of a window that a loss halves, so that α is f (§3): 1 + 10 (Δ - 1) + ((Δ - 1) / 2)² after Δ seconds.
        let flow = replay::beginning(Instant::ZERO);
        let mut law = Htcp::new(&flow);
        assert_eq!(law.ssthresh(&flow), 5.0);
        for (after, alpha) in [(0.9, 1.0), (2.0, 11.25)] {
            let flow = Flow { now: flow.now + Duration::from_secs_f64(after), ..flow };
            assert!((law.growth(&flow) - alpha).abs() < 1e-9);
        }
    }
}
