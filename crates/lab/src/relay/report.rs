//! The relay's report, and the verdict on a run through it.

use hdrhistogram::Histogram;
use netem::Counters;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, SystemTime};

/// The relay's work since its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelayReport {
    /// The start, on the wall clock.
    pub begun_at: SystemTime,
    /// The same moment on the clock of all samples ([`monotonic_ns`](crate::monotonic_ns)), from which a tap counts.
    pub begun_ns: u64,
    /// The time since the start.
    pub elapsed: Duration,
    /// Whether it had priority over all ordinary processes (`SCHED_FIFO`); not without root.
    pub has_priority: bool,
    /// Whether processors were kept from halting meanwhile.
    #[serde(default)]
    pub keeps_processors_awake: bool,
    /// Whether its sockets had large enough buffers; not without root, unless `net.core.rmem_max` is 64 MiB and
    /// `net.core.wmem_max` 16 MiB.
    pub has_large_buffers: bool,
    /// The path's round trip without queues.
    pub round_trip: Duration,
    /// From the client to the server.
    pub forward: WayReport,
    /// From the server to the client.
    pub backward: WayReport,
    /// The times for which it did not look although there was something to look at.
    pub gaps: Distribution,
    /// The share of a processor that it took over its whole life, from 0 to 1. It includes the kernel's work on frames
    /// up to waking the program at the receiving host, which is most of it at high rates.
    pub processor_share: f64,
    /// The share of a processor in the busiest second.
    pub processor_share_max: f64,
    /// Sightings that a tap could not take.
    pub sightings_lost: u64,
}

/// The relay's work in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WayReport {
    /// Incoming frames: packets and super-packets.
    pub frames_in: u64,
    /// Frames that were handed to the receiver, duplicates included.
    pub frames_out: u64,
    /// Frames that the kernel dropped because the relay did not take them in time.
    pub dropped_by_kernel: u64,
    /// Frames that the relay could not read, because they were too long or of an unknown kind.
    pub unreadable: u64,
    /// Frames for which there was no memory.
    pub beyond_memory: u64,
    /// Frames that the kernel refused at the far end.
    pub writes_failed: u64,
    /// The delay of frames beyond the model's.
    pub lateness: Distribution,
    /// The model's counters.
    pub path: Counters,
}

/// A distribution of times, in nanoseconds; all zero if nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say which statistics they are")]
pub struct Distribution {
    /// The number of measurements.
    pub count: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
}

/// Whether a measurement through the relay reflects the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It reflects the path.
    Valid,
    /// The relay may have affected it.
    Invalid(Vec<Reason>),
}

/// The reason why a run is invalid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Frames were lost at the relay's own sockets.
    DroppedByKernel(u64),
    /// Frames were lost because they could not be read.
    Unreadable(u64),
    /// Frames were lost because there was no memory for them.
    BeyondMemory(u64),
    /// Frames were lost because the kernel refused them.
    WritesFailed(u64),
    /// More than one frame in a thousand left later than the model by more than the limit.
    Late {
        /// The 99.9th percentile of the lateness.
        p999: Duration,
        /// The most that is allowed at this round trip.
        limit: Duration,
    },
    /// The relay once did not look for too long.
    Gap {
        /// The longest time.
        longest: Duration,
        /// The most that is allowed at this round trip.
        limit: Duration,
    },
    /// The relay's thread was nearly always busy, in its busiest second: the share of a processor, from 0 to 1.
    Busy(f64),
}

/// The share of the round trip that lateness may take.
const LATENESS_SHARE_MAX: f64 = 0.02;
/// The best that an ordinary kernel's timers allow. The report shows its effect on a path of less than 10 ms.
const LATENESS_FLOOR: Duration = Duration::from_micros(200);
/// The longest single pause of the relay, in round trips. Frames keep the times at which they arrived, so a pause delays and
/// bunches them, once; that it happens rarely is for [`Reason::Late`] to say. `HyStart++` is the most sensitive to a pause:
/// it ends a slow start when the round trip has grown by an eighth, or by 16 ms (RFC 9406 §4.2).
const GAP_ROUND_TRIPS_MAX: f64 = 1.0;
const GAP_MAX: Duration = Duration::from_millis(32);
/// A host of virtual machines takes a processor away for so long.
const GAP_FLOOR: Duration = Duration::from_millis(10);
const PROCESSOR_SHARE_MAX: f64 = 0.7;

/// The most that all but one frame in a thousand may be late at this round trip.
pub(super) fn lateness_max(round_trip: Duration) -> Duration {
    round_trip.mul_f64(LATENESS_SHARE_MAX).max(LATENESS_FLOOR)
}

impl RelayReport {
    /// The verdict on the run.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let reasons: Vec<Reason> = self.losses().chain(self.delays()).collect();
        if reasons.is_empty() { Verdict::Valid } else { Verdict::Invalid(reasons) }
    }

    fn losses(&self) -> impl Iterator<Item = Reason> {
        let sum = |count: fn(&WayReport) -> u64| count(&self.forward) + count(&self.backward);
        let dropped_by_kernel = sum(|way| way.dropped_by_kernel);
        let unreadable = sum(|way| way.unreadable);
        let beyond_memory = sum(|way| way.beyond_memory);
        let writes_failed = sum(|way| way.writes_failed);
        [
            (dropped_by_kernel > 0).then_some(Reason::DroppedByKernel(dropped_by_kernel)),
            (unreadable > 0).then_some(Reason::Unreadable(unreadable)),
            (beyond_memory > 0).then_some(Reason::BeyondMemory(beyond_memory)),
            (writes_failed > 0).then_some(Reason::WritesFailed(writes_failed)),
        ]
        .into_iter()
        .flatten()
    }

    /// The delay of frames beyond the model's, in the worse direction.
    #[must_use]
    pub fn lateness(&self) -> Distribution {
        let (forward, backward) = (self.forward.lateness, self.backward.lateness);
        if forward.p999_ns >= backward.p999_ns { forward } else { backward }
    }

    fn delays(&self) -> impl Iterator<Item = Reason> {
        let late_limit = lateness_max(self.round_trip);
        let gap_limit = self.round_trip.mul_f64(GAP_ROUND_TRIPS_MAX).clamp(GAP_FLOOR, GAP_MAX);
        let p999 = Duration::from_nanos(self.lateness().p999_ns);
        let longest = Duration::from_nanos(self.gaps.max_ns);
        let share = self.processor_share_max;
        [
            (p999 > late_limit).then_some(Reason::Late { p999, limit: late_limit }),
            (longest > gap_limit).then_some(Reason::Gap { longest, limit: gap_limit }),
            (share > PROCESSOR_SHARE_MAX).then_some(Reason::Busy(share)),
        ]
        .into_iter()
        .flatten()
    }
}

impl Verdict {
    /// Whether it is valid.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        *self == Self::Valid
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Invalid(reasons) = self else { return to.write_str("VALID") };
        to.write_str("INVALID: ")?;
        for (index, reason) in reasons.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(to, "{separator}{reason}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DroppedByKernel(frames) => {
                write!(to, "{frames} frames were dropped at the relay's sockets")
            }
            Self::Unreadable(frames) => write!(to, "the relay could not read {frames} frames"),
            Self::BeyondMemory(frames) => write!(to, "there was no memory for {frames} frames"),
            Self::WritesFailed(frames) => write!(to, "the kernel refused {frames} frames of the relay"),
            Self::Late { p999, limit } => {
                write!(
                    to,
                    "one frame of a thousand was late by {p999:.1?} or more, and {limit:.1?} is allowed"
                )
            }
            Self::Gap { longest, limit } => {
                write!(to, "the relay did not look for {longest:.1?}, and {limit:.1?} is allowed")
            }
            Self::Busy(share) => {
                write!(to, "the relay was busy for {:.0} % of its busiest second", share * 100.0)
            }
        }
    }
}

/// A histogram of measured durations.
#[derive(Clone, Debug)]
pub(crate) struct Durations(Histogram<u64>);

/// Longer durations count as this.
const LONGEST: Duration = Duration::from_secs(60);

impl Durations {
    pub fn new() -> Self {
        let longest_ns = pdu::nanoseconds(LONGEST);
        Self(Histogram::new_with_bounds(1, longest_ns, 3).expect("bounds and precision are allowed ones"))
    }

    pub fn record(&mut self, duration: Duration) {
        self.0.saturating_record(pdu::nanoseconds(duration));
    }

    pub fn distribution(&self) -> Distribution {
        Distribution {
            count: self.0.len(),
            p50_ns: self.0.value_at_quantile(0.5),
            p99_ns: self.0.value_at_quantile(0.99),
            p999_ns: self.0.value_at_quantile(0.999),
            max_ns: self.0.max(),
        }
    }
}

#[cfg(test)]
mod tests;
