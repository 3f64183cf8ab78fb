//! Cross traffic: packets of others, which share the bottleneck's queue and leave behind it.

use crate::model::InvalidModel;
use crate::pareto::draw_with_mean;
use crate::random::Random;
use crate::time::{NEVER, nanoseconds};
use crate::units::{Rate, Span};
use crate::virtual_clock::VirtualClock;
use serde::{Deserialize, Serialize};

/// Packets of one MTU each, which do not react to congestion. Every parallel path has the same kind, with its own
/// random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum CrossTraffic {
    /// No cross traffic.
    #[default]
    None,
    /// Evenly spaced packets.
    Constant(Rate),
    /// Bursts and pauses whose lengths have heavy tails: the sum of many such sources is self-similar, as real traffic.
    OnOff {
        /// The long-term mean rate.
        mean: Rate,
        /// The rate during a burst.
        peak: Rate,
        /// The shape of both distributions (Pareto), at least 1.05; usually 1.2 to 2.
        alpha: f64,
        /// The mean length of a burst.
        burst: Span,
    },
}

/// The least shape. Below it, nearly all bursts are far shorter than the mean, which a run then hardly ever reaches.
const ALPHA_MIN: f64 = 1.05;

impl CrossTraffic {
    pub(crate) fn validate(&self, segment_bytes_max: u64) -> Result<(), InvalidModel> {
        match self {
            Self::OnOff { alpha, .. } if !(*alpha >= ALPHA_MIN && alpha.is_finite()) => {
                Err(InvalidModel::new("alpha", alpha, "at least 1.05, as there is no mean else"))
            }
            Self::OnOff { mean, peak, .. } if mean > peak => {
                Err(InvalidModel::new("mean", mean, "not above the peak"))
            }
            Self::OnOff { burst, peak, .. } if nanoseconds(burst.0) < peak.time_ns(segment_bytes_max) => {
                Err(InvalidModel::new(
                    "burst",
                    burst,
                    "at least as long as a packet of the MTU takes at the peak rate",
                ))
            }
            Self::None | Self::Constant(_) | Self::OnOff { .. } => Ok(()),
        }
    }
}

/// When the next packet comes.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pattern: Option<Pattern>,
    packet_bytes: u64,
    next_ns: u64,
    random: Random,
}

#[derive(Clone, Debug)]
struct Pattern {
    /// The clock of bursts, which stands still during pauses.
    clock: VirtualClock,
    bursts: Option<Bursts>,
}

#[derive(Clone, Debug)]
struct Bursts {
    alpha: f64,
    mean_ns: f64,
    pause_mean_ns: f64,
    /// The time left of the present burst.
    left_ns: u64,
}

impl Source {
    pub fn new(cross_traffic: CrossTraffic, packet_bytes: u64, random: Random) -> Self {
        let mut source = Self { pattern: None, packet_bytes, next_ns: NEVER, random };
        source.set(0, cross_traffic);
        source
    }

    /// Changes the kind of cross traffic from now on.
    pub fn set(&mut self, now_ns: u64, cross_traffic: CrossTraffic) {
        self.pattern = Pattern::new(cross_traffic);
        self.next_ns = now_ns;
        self.advance();
    }

    /// When the next packet comes; [`NEVER`] if there is none.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes the packet at [`Self::next_ns`].
    pub fn advance(&mut self) {
        self.next_ns = match &mut self.pattern {
            None => NEVER,
            Some(pattern) => self.next_ns.saturating_add(pattern.step(self.packet_bytes, &mut self.random)),
        };
    }
}

impl Pattern {
    fn new(cross_traffic: CrossTraffic) -> Option<Self> {
        match cross_traffic {
            CrossTraffic::None => None,
            CrossTraffic::Constant(rate) => Some(Self { clock: VirtualClock::new(rate), bursts: None }),
            CrossTraffic::OnOff { mean, peak, alpha, burst } => {
                let burst_ns = nanoseconds(burst.0) as f64;
                let pauses = peak.bits().get() as f64 / mean.bits().get() as f64 - 1.0;
                let bursts =
                    Bursts { alpha, mean_ns: burst_ns, pause_mean_ns: burst_ns * pauses, left_ns: 0 };
                Some(Self { clock: VirtualClock::new(peak), bursts: Some(bursts) })
            }
        }
    }

    /// The time from one packet to the next.
    fn step(&mut self, packet_bytes: u64, random: &mut Random) -> u64 {
        let before_ns = self.clock.done_ns();
        let spacing_ns = self.clock.serve(before_ns, packet_bytes) - before_ns;
        let paused_ns = self.bursts.as_mut().map_or(0, |bursts| bursts.pauses_within(spacing_ns, random));
        spacing_ns.saturating_add(paused_ns)
    }
}

impl Bursts {
    /// The total length of pauses while bursts last for `spacing_ns` in total. The next burst completes a packet that a
    /// burst has begun, so short bursts count in full.
    fn pauses_within(&mut self, spacing_ns: u64, random: &mut Random) -> u64 {
        let (mut needed_ns, mut paused_ns) = (spacing_ns, 0_u64);
        while needed_ns > self.left_ns {
            needed_ns -= self.left_ns;
            paused_ns = paused_ns.saturating_add(draw_with_mean(self.pause_mean_ns, self.alpha, random));
            self.left_ns = draw_with_mean(self.mean_ns, self.alpha, random).max(1);
        }
        self.left_ns -= needed_ns;
        paused_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const PACKET_BYTES: u64 = 1250;
    const SECOND: u64 = 1_000_000_000;

    fn arrivals(cross_traffic: CrossTraffic, seconds: u64) -> Vec<u64> {
        let mut source = Source::new(cross_traffic, PACKET_BYTES, Random::new(1, "cross", 0));
        std::iter::from_fn(|| {
            let next_ns = source.next_ns();
            source.advance();
            (next_ns <= seconds * SECOND).then_some(next_ns)
        })
        .collect()
    }

    fn bursty(alpha: f64) -> CrossTraffic {
        CrossTraffic::OnOff {
            mean: Rate::megabits_per_second(10),
            peak: Rate::megabits_per_second(40),
            alpha,
            burst: Span(Duration::from_millis(10)),
        }
    }

    #[test]
    fn constant_traffic_is_evenly_spaced() {
        let arrivals = arrivals(CrossTraffic::Constant(Rate::megabits_per_second(10)), 1);
        assert_eq!(arrivals.len(), 1000);
        assert!(arrivals.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000));
    }

    #[test]
    fn bursts_and_pauses_give_the_mean_rate() {
        let expected = 1000.0 * 1000.0;
        // In 1000 s there are 25000 bursts. At alpha = 3 the deviation of each burst, and of each pause, is mean / √3.
        let count = arrivals(bursty(3.0), 1000).len() as f64;
        assert!((count - expected).abs() < 6.0 * expected * (2.0 / 3.0 / 25_000.0_f64).sqrt(), "{count}");
    }

    #[test]
    fn bursts_that_are_shorter_than_a_packet_count_too() {
        let CrossTraffic::OnOff { mean, peak, alpha, .. } = bursty(3.0) else { unreachable!() };
        let burst = Span(Duration::from_micros(250));
        let count = arrivals(CrossTraffic::OnOff { mean, peak, alpha, burst }, 100).len() as f64;
        // A hundred thousand bursts.
        assert!((count - 1e5).abs() < 6.0 * 1e5 * (2.0 / 3.0 / 1e5_f64).sqrt(), "{count}");
    }

    #[test]
    fn a_burst_is_at_the_peak_rate() {
        let arrivals = arrivals(bursty(1.5), 100);
        let spacings: Vec<u64> = arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(spacings.iter().all(|spacing| *spacing >= 250_000));
        let within_bursts = spacings.iter().filter(|spacing| **spacing == 250_000).count();
        assert!(within_bursts * 10 > spacings.len() * 9);
    }

    #[test]
    fn without_cross_traffic_nothing_comes() {
        assert!(arrivals(CrossTraffic::None, 1000).is_empty());
    }
}
