//! Laws of TCP's congestion control, as models.
//!
//! A [`Law`] has the interface of Linux's `struct tcp_congestion_ops`: a kernel, a simulator or a recording calls it with a
//! [`Flow`] whenever something happens to the connection. The programs in the directory `bpf` follow the same laws in
//! whole numbers, in the kernel; [`replay`] compares them with these models, which compute as the papers write.

mod bic;
pub mod ensemble;
mod fast;
mod group_terms;
mod hstcp;
mod htcp;
mod reno;
pub mod replay;
mod scalable;
mod westwood;

pub use bic::Bic;
pub use fast::Fast;
pub use group_terms::{AggregateLaw, GroupTerms, InvalidTerms, Mode, PARTS, Sharing};
pub use hstcp::Hstcp;
pub use htcp::Htcp;
pub use reno::Reno;
pub use scalable::Scalable;
pub use westwood::Westwood;

use pdu::{Duration, Instant};

/// No window is smaller, or a single loss would always end in a timeout.
pub const WINDOW_MIN: f64 = 2.0;

/// A connection, as Linux keeps it (`struct tcp_sock`). Windows are in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The time.
    pub now: Instant,
    /// The congestion window, with the fraction of a segment by which it has grown.
    pub window: f64,
    /// Below it, the window grows as in slow start.
    pub ssthresh: f64,
    /// The window before the last reduction.
    pub prior_window: f64,
    /// Segments delivered since the connection began.
    pub delivered: u32,
    /// The smoothed round trip.
    pub srtt: Duration,
    /// Whether the window was used: otherwise it does not grow.
    pub is_window_used: bool,
    /// What the connection does.
    pub state: State,
}

/// Linux's `icsk_ca_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It sends.
    #[default]
    Open,
    /// Something arrived out of order.
    Disorder,
    /// The window is being reduced, without a loss.
    Cwr,
    /// A loss is being repaired.
    Recovery,
    /// It begins again after a timeout.
    Loss,
}

impl State {
    /// Whether the kernel, not the law, moves the window (RFC 6937).
    #[must_use]
    pub fn is_reducing(self) -> bool {
        matches!(self, Self::Cwr | Self::Recovery)
    }
}

/// A congestion control.
pub trait Law {
    /// A loss: the window to go down to, in whole segments, at least [`WINDOW_MIN`].
    fn ssthresh(&mut self, flow: &Flow) -> f64;

    /// By how many segments the window grows per round trip in congestion avoidance.
    fn growth(&mut self, flow: &Flow) -> f64;

    /// So many segments were acknowledged while the window was used.
    fn cong_avoid(&mut self, flow: &mut Flow, acked: u32) {
        let mut acked = f64::from(acked);
        if flow.window.floor() < flow.ssthresh {
            acked = slow_start(flow, acked);
        }
        if acked > 0.0 {
            let growth = self.growth(flow) * acked / flow.window.floor().max(1.0);
            // Never faster than slow start.
            flow.window += growth.min(acked);
        }
    }

    /// Segments were acknowledged, with a sample of the round trip if there is one.
    fn pkts_acked(&mut self, _flow: &mut Flow, _rtt: Option<Duration>) {}

    /// The connection enters a state.
    fn set_state(&mut self, _flow: &Flow, _state: State) {}

    /// The connection sends again after everything was acknowledged.
    fn tx_start(&mut self, _flow: &mut Flow) {}

    /// The control ends.
    fn release(&mut self, _flow: &Flow) {}

    /// The last reduction was a mistake: the window from now on.
    fn undo_cwnd(&mut self, flow: &Flow) -> f64 {
        flow.window.max(flow.prior_window)
    }
}

/// RFC 5681 §3.1. Returns how many acknowledged segments are left for congestion avoidance.
fn slow_start(flow: &mut Flow, acked: f64) -> f64 {
    let window = (flow.window + acked).min(flow.ssthresh);
    let left = acked - (window - flow.window);
    flow.window = window;
    left.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow in congestion avoidance.
    pub(crate) fn flow(window: f64) -> Flow {
        Flow { window, ssthresh: 1.0, ..replay::beginning(Instant::ZERO) }
    }

    /// The round trips until a law that has lost at this window has it again, if each acknowledgement counts.
    fn round_trips_to_recover(law: &mut impl Law, window: f64) -> u32 {
        let mut flow = flow(window);
        flow.window = law.ssthresh(&flow);
        let mut round_trips = 0;
        while flow.window < window {
            // One acknowledgement for all of a window is as good as one for each segment.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small window")]
            let acked = flow.window as u32;
            law.cong_avoid(&mut flow, acked);
            round_trips += 1;
        }
        round_trips
    }

    #[test]
    fn reno_takes_half_of_the_window_in_round_trips_to_recover() {
        // 1 Gbit/s over 100 ms: 8333 segments of 1500 bytes, 4167 round trips, seven minutes.
        assert_eq!(round_trips_to_recover(&mut Reno, 8333.0), 4167);
    }

    #[test]
    fn counting_acknowledgements_instead_of_segments_doubles_that_if_every_other_one_is_delayed() {
        let mut flow = flow(8333.0);
        flow.window = Reno.ssthresh(&flow);
        let mut round_trips = 0;
        while flow.window < 8333.0 {
            // A window of acknowledgements, each of two segments and counted as one.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small window")]
            let acknowledgements = flow.window as u32 / 2;
            Reno.cong_avoid(&mut flow, acknowledgements);
            round_trips += 1;
        }
        assert!((8330..8345).contains(&round_trips), "{round_trips}");
    }

    #[test]
    fn scalables_time_to_recover_does_not_depend_on_the_window() {
        let [small, large] = [1_000.0, 100_000.0].map(|window| round_trips_to_recover(&mut Scalable, window));
        assert_eq!(small, large);
        assert!((13..=15).contains(&small), "ln(8/7) / ln(1.01) is 13.4: {small}");
    }

    #[test]
    fn a_window_that_grows_by_a_law_never_grows_faster_than_in_slow_start() {
        let mut flow = flow(20.0);
        Bic::default().cong_avoid(&mut flow, 1);
        assert!(flow.window <= 21.0);
    }

    #[test]
    fn fast_settles_where_alpha_segments_of_each_flow_are_in_the_queue() {
        // Four flows over 40 ms, with 1000 segments per round trip: 200 in the queue make 48 ms and windows of 300.
        let (base, rate) = (0.04, 25_000.0);
        let mut flows = [(); 4].map(|()| (Fast::new(Fast::ALPHA), flow(100.0)));
        let mut rtt = Duration::from_secs_f64(base);
        for step in 0..200_000 {
            let (fast, flow) = &mut flows[step % 4];
            flow.srtt = rtt;
            fast.pkts_acked(flow, Some(rtt));
            fast.cong_avoid(flow, 1);
            let windows: f64 = flows.iter().map(|(_, flow)| flow.window).sum();
            rtt = Duration::from_secs_f64((windows / rate).max(base));
            // The path delivers so many segments a second.
            flows.iter_mut().for_each(|(_, flow)| flow.now += Duration::from_secs_f64(1.0 / rate));
        }
        assert!((rtt.as_secs_f64() - 0.048).abs() < 0.0005, "{rtt:?}");
        let windows = flows.map(|(_, flow)| flow.window);
        assert!(windows.iter().all(|window| (window - 300.0).abs() < 10.0), "{windows:?}");
    }
}
