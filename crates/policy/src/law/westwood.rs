//! Westwood+ (Grieco and Mascolo 2004).

use super::{Flow, Law, WINDOW_MIN};
use pdu::{Duration, Instant};

/// Grows as Reno; after a loss, the window is what the measured bandwidth fills in the shortest round trip.
#[derive(Clone, Copy, Debug)]
pub struct Westwood {
    sample_began: Instant,
    delivered: u32,
    /// Segments per second; `None` before the first sample.
    bandwidth: Option<f64>,
    rtt_min: Option<Duration>,
}

/// A sample of the bandwidth takes a round trip, but no less than this.
const SAMPLE_MIN: Duration = Duration::from_millis(50);

impl Westwood {
    /// The law of a connection that begins as `flow` is.
    #[must_use]
    pub fn new(flow: &Flow) -> Self {
        Self { sample_began: flow.now, delivered: flow.delivered, bandwidth: None, rtt_min: None }
    }
}

impl Law for Westwood {
    fn ssthresh(&mut self, flow: &Flow) -> f64 {
        let measured = self.bandwidth.zip(self.rtt_min);
        let window = measured.map_or(flow.window / 2.0, |(bandwidth, rtt)| bandwidth * rtt.as_secs_f64());
        window.min(flow.window).floor().max(WINDOW_MIN)
    }

    fn growth(&mut self, _: &Flow) -> f64 {
        1.0
    }

    fn pkts_acked(&mut self, flow: &mut Flow, rtt: Option<Duration>) {
        self.rtt_min = self.rtt_min.into_iter().chain(rtt).min();
        let length = flow.now.saturating_duration_since(self.sample_began);
        if length < SAMPLE_MIN.max(flow.srtt) {
            return;
        }
        let sample = f64::from(flow.delivered.wrapping_sub(self.delivered)) / length.as_secs_f64();
        self.bandwidth = Some(self.bandwidth.map_or(sample, |before| before + (sample - before) / 8.0));
        (self.sample_began, self.delivered) = (flow.now, flow.delivered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::tests::flow;

    /// Delivers a window of 100 in each of many round trips of 100 ms.
    fn deliver(law: &mut Westwood, flow: &mut Flow) {
        flow.srtt = Duration::from_millis(100);
        for _ in 0..100 {
            flow.now += Duration::from_millis(100);
            flow.delivered += 100;
            law.pkts_acked(flow, Some(Duration::from_millis(100)));
        }
    }

    #[test]
    fn a_loss_leaves_what_the_bandwidth_fills_without_the_queue() {
        // A window of 100 over 100 ms, half of which is the queue: 1000 segments per second, which 50 ms hold 50 of.
        let mut flow = flow(100.0);
        let mut law = Westwood::new(&flow);
        assert_eq!(law.ssthresh(&flow), 50.0, "a half, before anything is measured");
        law.pkts_acked(&mut flow, Some(Duration::from_millis(50)));
        deliver(&mut law, &mut flow);
        assert_eq!(law.ssthresh(&flow), 50.0);
    }

    #[test]
    fn losses_that_no_queue_causes_do_not_reduce_the_window() {
        let mut flow = flow(100.0);
        let mut law = Westwood::new(&flow);
        deliver(&mut law, &mut flow);
        assert_eq!(law.ssthresh(&flow), 100.0);
    }
}
