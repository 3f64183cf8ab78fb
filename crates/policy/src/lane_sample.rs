//! A connection, described for a policy at one instant.

use pdu::{Duration, LaneId};

/// A lane is silent after two round trips, and at least after this.
const SILENCE_MIN: Duration = Duration::from_millis(50);

/// One connection as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSample {
    /// The connection's number, never used twice.
    pub lane: LaneId,
    /// Why the lane cannot take a command; `None` if it can.
    pub obstacle: Option<Obstacle>,
    /// Work placed on the lane and not finished.
    pub load: LaneLoad,
    /// Commands that the lane's session holds until its command window opens (RFC 7143 §4.2.2.1), and that leave before
    /// the one to be placed. They have no lane yet.
    pub parked_commands: u32,
    /// The most data that a write on this lane sends without waiting for an R2T (RFC 7143 §13.14).
    pub unsolicited_bytes: u32,
    /// All bytes that have come on the lane since its login.
    pub received_bytes: u64,
    /// A PDU from the target has arrived in part.
    pub is_receiving: bool,
    /// The last measurement of the network under the lane, at most 10 ms old. `None` if nothing measures it, or if the
    /// policy does not ask for it ([`Placement::wants_measurements`](crate::Placement::wants_measurements)).
    pub path: Option<PathMeasurement>,
}

/// A reason for which a lane takes no command at present. A policy must not choose such a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The lane, or its session, is being logged out or closed.
    Leaving,
    /// The lane's session holds as many commands as it may.
    SessionFull,
    /// The lane gets no work, because fewer lanes do as well. It may be called on at any time.
    Spare,
}

/// Work placed on one lane and not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneLoad {
    /// Commands that have not been answered.
    pub commands: u32,
    /// Bytes of those commands' data that have not left for the target.
    pub data_out_bytes: u64,
    /// Bytes of those commands' data that have not come from the target.
    pub data_in_bytes: u64,
    /// Bytes of headers and data that the session has handed out and the socket has not taken.
    pub unsent_bytes: u64,
}

impl LaneLoad {
    /// Bytes of data that have not moved, in both directions.
    #[must_use]
    pub fn outstanding_bytes(&self) -> u64 {
        self.data_out_bytes + self.data_in_bytes
    }
}

/// Measurements by this end of a lane: TCP_INFO, for a socket. They are those of the sender of data to the target, except
/// where the receiver is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMeasurement {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// The shortest round-trip time of late, without queues and delayed acknowledgements.
    pub rtt_min: Duration,
    /// Payload that the target acknowledged per second, when it was last measured; zero before.
    pub delivery_bytes_per_second: u64,
    /// The most bytes that the sender's congestion control lets be in flight.
    pub congestion_window_bytes: u64,
    /// Bytes sent and not acknowledged.
    pub in_flight_bytes: u64,
    /// Bytes that the socket has taken and not sent.
    pub unsent_bytes: u64,
    /// Bytes before the socket, which wait for the thread that writes to it; zero without such a thread.
    pub waiting_bytes: u64,
    /// The sender is repairing a loss.
    pub is_recovering: bool,
    /// A retransmission timeout has expired, and nothing sent since has been acknowledged in full.
    pub is_timed_out: bool,
    /// The congestion window doubles in each round trip, because it has not reached slow start's threshold (RFC 5681).
    pub is_in_slow_start: bool,
    /// The time since data was last sent or acknowledged.
    pub out_silence: Duration,
    /// The time since data last arrived.
    pub in_silence: Duration,
    /// The round-trip time that the receiver measures while data comes from the target; zero before.
    pub receive_rtt: Duration,
    /// Totals since the connection began.
    pub counters: PathCounters,
}

/// Totals since a connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Payload sent, repetitions included.
    pub sent_bytes: u64,
    /// Payload sent again.
    pub repeated_bytes: u64,
    /// Segments sent again.
    pub repeated_segments: u32,
    /// Expiries of the retransmission timer; zero where the kernel does not count them (Linux before 6.7).
    pub timeouts: u32,
    /// The time with data unsent or unacknowledged.
    pub busy: Duration,
    /// The part of it in which the receiver's window let nothing more be sent.
    pub receive_window_limited: Duration,
    /// Segments with data that came from the target.
    pub received_segments: u32,
    /// Those of them that came before others that precede them: behind a loss, all of a round trip.
    pub out_of_order_segments: u32,
}

impl PathMeasurement {
    /// Bytes that the connection has and has not sent: they go before whatever comes.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.unsent_bytes + self.waiting_bytes
    }

    /// Whether nothing is under way, and nothing is to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight_bytes == 0 && self.pending_bytes() == 0
    }
}

#[cfg(test)]
impl PathMeasurement {
    /// A path of 40 ms on which nothing has happened.
    pub(crate) const QUIET: Self = Self {
        rtt: Duration::from_millis(40),
        rtt_min: Duration::from_millis(40),
        delivery_bytes_per_second: 0,
        congestion_window_bytes: 100_000,
        in_flight_bytes: 0,
        unsent_bytes: 0,
        waiting_bytes: 0,
        is_recovering: false,
        is_timed_out: false,
        is_in_slow_start: false,
        out_silence: Duration::ZERO,
        in_silence: Duration::ZERO,
        receive_rtt: Duration::ZERO,
        counters: PathCounters {
            sent_bytes: 0,
            repeated_bytes: 0,
            repeated_segments: 0,
            timeouts: 0,
            busy: Duration::ZERO,
            receive_window_limited: Duration::ZERO,
            received_segments: 0,
            out_of_order_segments: 0,
        },
    };
}

impl LaneSample {
    /// A lane without load, of which nothing is measured.
    #[must_use]
    pub fn idle(lane: LaneId) -> Self {
        Self {
            lane,
            obstacle: None,
            load: LaneLoad::default(),
            parked_commands: 0,
            unsolicited_bytes: 0,
            received_bytes: 0,
            is_receiving: false,
            path: None,
        }
    }

    /// Whether the lane can take a command.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.obstacle.is_none()
    }

    /// Whether the lane is meant to carry work: it is not about to end, and not spare.
    #[must_use]
    pub fn is_working(&self) -> bool {
        !matches!(self.obstacle, Some(Obstacle::Leaving | Obstacle::Spare))
    }

    /// Whether the network under the lane has stopped: after a retransmission timeout, or when it is
    /// [silent](Self::is_silent_for) for two round trips and at least 50 ms.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        let Some(path) = &self.path else { return false };
        path.is_timed_out || self.is_silent_for((path.rtt * 2).max(SILENCE_MIN))
    }

    /// Whether for so long nothing that was sent has been acknowledged, or nothing has come of a PDU that began to arrive.
    #[must_use]
    pub fn is_silent_for(&self, silence: Duration) -> bool {
        let Some(path) = &self.path else { return false };
        let is_unheard = path.in_flight_bytes > 0 && path.out_silence >= silence;
        let has_broken_off = self.is_receiving && path.in_silence >= silence;
        is_unheard || has_broken_off
    }

    /// Whether nothing is outstanding on the lane, unsent or parked: no event on it is to be expected.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.load == LaneLoad::default() && self.parked_commands == 0
    }
}
