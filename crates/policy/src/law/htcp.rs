//! H-TCP (Leith and Shorten 2004; draft-leith-tcp-htcp-06).

use super::{Flow, Law, WINDOW_MIN};
use pdu::{Duration, Instant};

/// The longer ago the last loss, the faster the window grows; a loss takes from it what empties the queue. Without scaling
/// by the round trip.
#[derive(Clone, Copy, Debug)]
pub struct Htcp {
    last_loss: Instant,
    /// The one before it.
    earlier_loss: Instant,
    rtt_min: Option<Duration>,
    /// Since the last loss.
    rtt_max: Duration,
    round_began: Instant,
    delivered: u32,
    /// Segments per second, the most of any round trip since the last loss, and between the two before it.
    throughput_max: f64,
    earlier_throughput_max: f64,
    /// β: the part of the window that the last loss has left.
    remains: f64,
}

impl Htcp {
    /// The law of a connection that begins as `flow` is.
    #[must_use]
    pub fn new(flow: &Flow) -> Self {
        Self {
            last_loss: flow.now,
            earlier_loss: flow.now,
            rtt_min: None,
            rtt_max: Duration::ZERO,
            round_began: flow.now,
            delivered: flow.delivered,
            throughput_max: 0.0,
            earlier_throughput_max: 0.0,
            remains: 0.5,
        }
    }

    /// α before the factor for the backoff: by how many segments the window grows per round trip, so many seconds after a
    /// loss.
    #[must_use]
    pub fn speed(since_loss_s: f64) -> f64 {
        let beyond = since_loss_s - 1.0;
        if beyond <= 0.0 { 1.0 } else { 1.0 + 10.0 * beyond + beyond * beyond / 4.0 }
    }
}

impl Law for Htcp {
    fn ssthresh(&mut self, flow: &Flow) -> f64 {
        let change = (self.throughput_max - self.earlier_throughput_max).abs();
        let is_steady = self.earlier_throughput_max > 0.0 && change <= 0.2 * self.earlier_throughput_max;
        self.remains = match self.rtt_min {
            Some(rtt_min) if is_steady && !self.rtt_max.is_zero() => {
                (rtt_min.as_secs_f64() / self.rtt_max.as_secs_f64()).clamp(0.5, 0.8)
            }
            _ => 0.5,
        };
        (self.earlier_loss, self.last_loss) = (self.last_loss, flow.now);
        self.earlier_throughput_max = self.throughput_max;
        (self.throughput_max, self.rtt_max) = (0.0, Duration::ZERO);
        (flow.window * self.remains).floor().max(WINDOW_MIN)
    }

    fn growth(&mut self, flow: &Flow) -> f64 {
        let since = flow.now.saturating_duration_since(self.last_loss);
        2.0 * (1.0 - self.remains) * Self::speed(since.as_secs_f64())
    }

    fn pkts_acked(&mut self, flow: &mut Flow, rtt: Option<Duration>) {
        let Some(rtt) = rtt else { return };
        if flow.state.is_reducing() || flow.state == super::State::Loss {
            return;
        }
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        self.rtt_max = self.rtt_max.max(rtt);
        let round = flow.now.saturating_duration_since(self.round_began);
        if round >= flow.srtt && !round.is_zero() {
            let delivered = flow.delivered.wrapping_sub(self.delivered);
            let throughput = f64::from(delivered) / round.as_secs_f64();
            self.throughput_max = self.throughput_max.max(throughput);
            (self.delivered, self.round_began) = (flow.delivered, flow.now);
        }
    }

    fn undo_cwnd(&mut self, flow: &Flow) -> f64 {
        self.last_loss = self.earlier_loss;
        self.throughput_max = self.throughput_max.max(self.earlier_throughput_max);
        flow.window.max(flow.prior_window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seconds_after_a_loss_it_grows_eleven_times_as_fast_as_reno() {
        assert!((Htcp::speed(0.9) - 1.0).abs() < 1e-9);
        assert!((Htcp::speed(2.0) - 11.25).abs() < 1e-9);
    }
}
