//! What the kernel measured of all connections of a session, added up.

use super::seen::BUFFER;
use super::{Limit, PathEvidence};
use crate::lane_sample::{LaneSample, PathCounters, PathMeasurement};
use pdu::Duration;

/// Sums over all connections and over the time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathTally([f64; SUMS]);

/// What is added up. Times are seconds of single connections, and products are with such seconds unless they say otherwise.
#[derive(Clone, Copy, Debug)]
enum Sum {
    /// The time of all connections.
    Seen,
    /// Their shortest round trips.
    RttMin,
    /// The time of those with data unsent or unacknowledged: they work.
    Worked,
    /// Their round trips.
    Rtt,
    /// The time of those that have a queue on the path.
    Queued,
    /// The time of those whose network has stopped.
    Stalled,
    /// The time of those in slow start.
    SlowStart,
    /// The time of those whose window grows again after they were idle.
    Restarted,
    /// Bytes sent, and those of them that were sent again.
    SentBytes,
    RepeatedBytes,
    /// Bytes that came.
    ReceivedBytes,
    /// The round trips when data was sent again, times its bytes.
    RttAtLoss,
    /// Expiries of the retransmission timer.
    Timeouts,
    /// The kernel's own busy time, and the part of it that the receiver's window limited.
    Busy,
    ReceiveWindow,
    /// The time of connections with data to come from the target.
    Awaited,
    /// Their receivers' round trips.
    ReceiveRtt,
    /// The time of those whose receiver's round trip shows a queue.
    AwaitedQueued,
    /// Segments that came, and those of them that came out of order.
    Segments,
    OutOfOrder,
    /// The receiver's round trips when segments came out of order, times their number.
    ReceiveRttAtLoss,
}

const SUMS: usize = Sum::ReceiveRttAtLoss as usize + 1;

/// Slow start takes no more round trips on any path. BBR sets no threshold, and so seems to be in it for ever.
const SLOW_START_ROUND_TRIPS: f64 = 20.0;

/// A round trip of this many times the shortest shows a queue.
const QUEUE: f64 = 1.25;

/// The share of the time in which connections show something for it to be what limits them.
const TYPICAL: f64 = 0.5;

/// The share of the time in which connections wait for timeouts or recover from them, and are then limited by them.
const TIMED_OUT: f64 = 0.2;

/// More than this is not lost by a queue that TCP fills. A longer round trip then only shows that acknowledgements of
/// single segments are delayed.
const LOSS_OF_QUEUE_MAX: f64 = 0.05;

/// A path that loses less than this carries more in its windows than it can hold.
const LOSS_MIN: f64 = 1e-5;

/// A larger part of segments out of order shows losses. Behind each loss, all of a round trip are.
const OUT_OF_ORDER_MIN: f64 = 1e-3;

impl PathTally {
    fn of(&self, sum: Sum) -> f64 {
        self.0[sum as usize]
    }

    fn add(&mut self, sum: Sum, value: f64) {
        self.0[sum as usize] += value;
    }

    pub fn subtract(&mut self, earlier: &Self) {
        self.0.iter_mut().zip(earlier.0).for_each(|(sum, earlier)| *sum -= earlier);
    }

    /// What a connection's counters have counted since `before`.
    pub fn add_counters(&mut self, before: PathCounters, path: &PathMeasurement) {
        let now = path.counters;
        let repeated_bytes = now.repeated_bytes.saturating_sub(before.repeated_bytes) as f64;
        let out_of_order = f64::from(now.out_of_order_segments.wrapping_sub(before.out_of_order_segments));
        let since = |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64();
        self.add(Sum::SentBytes, now.sent_bytes.saturating_sub(before.sent_bytes) as f64);
        self.add(Sum::RepeatedBytes, repeated_bytes);
        self.add(Sum::RttAtLoss, path.rtt.as_secs_f64() * repeated_bytes);
        self.add(Sum::Timeouts, f64::from(now.timeouts.saturating_sub(before.timeouts)));
        self.add(Sum::Busy, since(now.busy, before.busy));
        self.add(Sum::ReceiveWindow, since(now.receive_window_limited, before.receive_window_limited));
        self.add(Sum::Segments, f64::from(now.received_segments.wrapping_sub(before.received_segments)));
        self.add(Sum::OutOfOrder, out_of_order);
        self.add(Sum::ReceiveRttAtLoss, path.receive_rtt.as_secs_f64() * out_of_order);
    }

    /// So many bytes have come on a connection.
    pub fn add_received(&mut self, bytes: u64) {
        self.add(Sum::ReceivedBytes, bytes as f64);
    }

    /// A time in which a connection was as it is measured now.
    pub fn add_time(
        &mut self,
        lane: &LaneSample,
        path: &PathMeasurement,
        is_restarted: bool,
        elapsed_s: f64,
    ) {
        let mut add_if = |condition: bool, sum: Sum, value: f64| {
            if condition {
                self.add(sum, value * elapsed_s);
            }
        };
        let works = !path.is_idle();
        let is_awaited = lane.load.data_in_bytes > 0;
        add_if(true, Sum::Seen, 1.0);
        add_if(true, Sum::RttMin, path.rtt_min.as_secs_f64());
        add_if(works, Sum::Worked, 1.0);
        add_if(works, Sum::Rtt, path.rtt.as_secs_f64());
        add_if(works && is_long(path.rtt, path.rtt_min), Sum::Queued, 1.0);
        add_if(works && lane.is_stalled(), Sum::Stalled, 1.0);
        add_if(works && path.is_in_slow_start, Sum::SlowStart, 1.0);
        add_if(works && is_restarted, Sum::Restarted, 1.0);
        add_if(is_awaited, Sum::Awaited, 1.0);
        add_if(is_awaited, Sum::ReceiveRtt, path.receive_rtt.as_secs_f64());
        add_if(is_awaited && is_long(path.receive_rtt, path.rtt_min), Sum::AwaitedQueued, 1.0);
    }

    pub fn evidence(&self) -> PathEvidence {
        let ratio = |part, whole| if self.of(whole) > 0.0 { self.of(part) / self.of(whole) } else { 0.0 };
        let time = |part, whole| Duration::try_from_secs_f64(ratio(part, whole)).unwrap_or_default();
        PathEvidence {
            loss: ratio(Sum::RepeatedBytes, Sum::SentBytes),
            timeouts: whole(self.of(Sum::Timeouts)),
            rtt: time(Sum::Rtt, Sum::Worked),
            rtt_at_loss: time(Sum::RttAtLoss, Sum::RepeatedBytes),
            rtt_min: time(Sum::RttMin, Sum::Seen),
            receive_window_share: ratio(Sum::ReceiveWindow, Sum::Busy),
            receive_rtt: time(Sum::ReceiveRtt, Sum::Awaited),
            receive_rtt_at_loss: time(Sum::ReceiveRttAtLoss, Sum::OutOfOrder),
            out_of_order: ratio(Sum::OutOfOrder, Sum::Segments),
        }
    }

    /// Bytes sent for the first time.
    pub fn fresh_bytes(&self) -> f64 {
        self.of(Sum::SentBytes) - self.of(Sum::RepeatedBytes)
    }

    /// Bytes that were sent for the first time or came; `None` if nothing was measured.
    pub fn carried_bytes(&self) -> Option<u64> {
        (self.of(Sum::Seen) > 0.0).then(|| whole(self.fresh_bytes() + self.of(Sum::ReceivedBytes)))
    }

    /// Whether data mostly waits in a queue on the path.
    pub fn is_queued(&self, is_incoming: bool) -> bool {
        match is_incoming {
            true => self.of(Sum::AwaitedQueued) > TYPICAL * self.of(Sum::Awaited),
            false => self.is_typical(Sum::Queued, TYPICAL),
        }
    }

    /// The share of the time of connections that work in which their windows grow again after pauses.
    pub fn restarting_share(&self) -> f64 {
        let worked = self.of(Sum::Worked);
        if worked > 0.0 { self.of(Sum::Restarted) / worked } else { 0.0 }
    }

    /// The seconds that timeouts take. A connection looks stalled only after the first round trip without an
    /// acknowledgement.
    fn timed_out_s(&self, evidence: &PathEvidence) -> f64 {
        self.of(Sum::Stalled) + self.of(Sum::Timeouts) * evidence.rtt.as_secs_f64()
    }

    /// Whether it takes more than this share of the time of connections that work.
    fn is_typical(&self, sum: Sum, share: f64) -> bool {
        self.of(sum) > share * self.of(Sum::Worked)
    }

    /// What limits data that arrives all the time.
    pub fn limit_of_arrival(&self, evidence: &PathEvidence) -> Limit {
        if self.is_queued(true) || is_long(evidence.receive_rtt_at_loss, evidence.rtt_min) {
            Limit::Saturation
        } else if evidence.out_of_order > OUT_OF_ORDER_MIN {
            Limit::Losses
        } else {
            Limit::Arrival
        }
    }

    /// Which part of a busy network limits. `age_s` is the time since the work began.
    pub fn limit(&self, evidence: &PathEvidence, age_s: f64) -> Limit {
        let is_young = age_s < SLOW_START_ROUND_TRIPS * evidence.rtt.as_secs_f64();
        if evidence.receive_window_share > BUFFER {
            Limit::ReceiveWindow
        } else if self.timed_out_s(evidence) > TIMED_OUT * self.of(Sum::Worked) {
            Limit::Timeouts
        } else if evidence.loss < LOSS_OF_QUEUE_MAX
            && (self.is_queued(false) || is_long(evidence.rtt_at_loss, evidence.rtt_min))
        {
            Limit::Saturation
        } else if evidence.loss > LOSS_MIN {
            Limit::Losses
        } else if is_young && self.is_typical(Sum::SlowStart, TYPICAL) {
            Limit::SlowStart
        } else {
            Limit::CongestionWindow
        }
    }
}

/// Whether a round trip shows a queue. What is lost while there is one is what the queue does not hold. Where others keep
/// the queue, its shortest round trips are long, and only its longest ones stand out: those at losses.
fn is_long(rtt: Duration, rtt_min: Duration) -> bool {
    rtt.as_secs_f64() >= QUEUE * rtt_min.as_secs_f64()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a sum of whole numbers")]
fn whole(sum: f64) -> u64 {
    sum as u64
}
