//! The quantities measured in a run.

use observe::report::Unit;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The quantities measured in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Payload that arrived, in bits per second.
    Throughput,
    /// The bytes of the client's connections that the server acknowledged and that the client received, from the end of the
    /// warm-up until no more requests were submitted, in bits per second.
    SteadyThroughput,
    /// The distribution over the connections: Jain's index, from 1/n (one carried all) to 1 (equal). Beside others, the
    /// distribution over all of them: each plain stream and each client counts as one.
    Fairness,
    /// Of a workload beside others: its part of what all moved, from 0 to 1.
    Share,
    /// The round trip before the workload, the shortest of a few, in seconds.
    RoundTrip,
    /// From the submission of a request to its end, the mean, in seconds.
    RequestTime,
    /// The 99th percentile of the same, in seconds.
    RequestTimeP99,
    /// Its standard deviation, in seconds.
    RequestTimeDeviation,
    /// Ta: from the arrival of a write command at the target to that of the last of its data, or from the first data of
    /// a read to the last; the mean, in seconds.
    TransferTime,
    /// Tb + Tc: at depth 1, the time from one request to the next beyond its transfer and the path's round trip; the
    /// mean, in seconds.
    HostTime,
    /// From the moment at which a command gets its connection to the arrival of its header at the target; the mean, in
    /// seconds. It is longer than the way there by what waits before it in the socket and in the path's queue.
    CommandDelay,
    /// From the end of a command at the target's medium to the arrival of its status; the mean, in seconds.
    StatusDelay,
    /// The 99th percentile of the waits of commands at the target for commands with a smaller CmdSN, in seconds;
    /// commands that did not wait count as 0.
    OrderWaitP99,
    /// The longest of these waits, in seconds.
    OrderWaitMax,
    /// The total of the captured pauses within a command's data; the mean, in seconds.
    GapTime,
    /// Ta as captured: from the first byte of a write's command to the last of its data, or from the first data of a read to
    /// the last; the mean, in seconds.
    CapturedTransferTime,
    /// Tb as captured: the target's time; the mean, in seconds.
    CapturedTargetTime,
    /// Tc as captured: the initiator's time from a status to the next command, where nothing was outstanding in between; the
    /// mean, in seconds.
    CapturedInitiatorTime,
    /// Segments lost on the path in the direction of the data, at its queue or on the line; in both directions for a
    /// workload that reads and writes.
    Lost,
    /// Segments that the hosts which send data sent again, over all connections.
    Retransmitted,
    /// Those of the client's connections from the end of the warm-up until no more requests were submitted.
    SteadyRetransmitted,
    /// Of all of them, those that repaired a loss of which duplicate acknowledgements had told (fast recovery).
    RetransmittedInRecovery,
    /// Of all of them, those that a retransmission timeout sent, and those of the slow start after it.
    RetransmittedAfterTimeout,
    /// Segments sent to provoke an acknowledgement before a timeout (RFC 8985 §7.3).
    LossProbes,
    /// Retransmission timeouts.
    Timeouts,
    /// The congestion window of a connection that sends to the server, in segments: the mean over time and connections.
    Window,
    /// Its standard deviation over time, the mean over connections.
    WindowDeviation,
    /// The sum of the congestion windows of these connections, in segments: the mean over time.
    AggregateWindow,
    /// Its standard deviation.
    AggregateWindowDeviation,
    /// How the windows of two of these connections go together, from -1 (one is large while the other is small) over 0
    /// (they are independent) to 1: the mean of all pairs' correlation.
    WindowCorrelation,
    /// Acknowledgements for which the congestion window was compared with the control's law.
    Acknowledgements,
    /// How often the law's window was set to the control's, because the kernel had moved that: after repairs, silences and
    /// mistakes.
    Resynchronisations,
    /// How far it was from the law, the median: in segments or in fiftieths of the window if that is more.
    LawError,
    /// The 99th percentile: in two segments or in twentieths of the window.
    LawErrorP99,
    /// How far the windows after losses, and after those that were none, were from the law's, the median: as `LawError`.
    LawReductionError,
    /// The 99th percentile: as `LawErrorP99`.
    LawReductionErrorP99,
    /// How far the windows of groups were from the law, the median: as `LawError`.
    LawGroupError,
    /// The 99th percentile: as `LawErrorP99`.
    LawGroupErrorP99,
    /// Jain's index of the congestion windows of all connections, the mean over time.
    WindowFairness,
}

/// Its name in files.
impl fmt::Display for Quantity {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(to)
    }
}

impl Quantity {
    /// Its name for people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::SteadyThroughput => "throughput after the warm-up, as TCP sees it",
            Self::Fairness => "Jain's fairness index",
            Self::Share => "share beside others",
            Self::RoundTrip => "round trip",
            Self::RequestTime => "time of a request",
            Self::RequestTimeP99 => "time of a request, 99th percentile",
            Self::RequestTimeDeviation => "time of a request, standard deviation",
            Self::TransferTime => "transfer of a command's data (Ta)",
            Self::HostTime => "time at both hosts (Tb + Tc)",
            Self::CommandDelay => "delay of a command to the target",
            Self::StatusDelay => "delay of a status to the initiator",
            Self::OrderWaitP99 => "wait for earlier commands at the target, 99th percentile",
            Self::OrderWaitMax => "longest wait for earlier commands at the target",
            Self::GapTime => "gaps in a command's data, as captured",
            Self::CapturedTransferTime => "transfer of a command's data (Ta), as captured",
            Self::CapturedTargetTime => "time at the target (Tb), as captured",
            Self::CapturedInitiatorTime => "time at the initiator (Tc), as captured",
            Self::Lost => "lost on the data's way",
            Self::Retransmitted => "sent again",
            Self::SteadyRetransmitted => "sent again after the warm-up",
            Self::RetransmittedInRecovery => "sent again in fast recovery",
            Self::RetransmittedAfterTimeout => "sent again after a timeout",
            Self::LossProbes => "loss probes",
            Self::Timeouts => "retransmission timeouts",
            Self::Window => "congestion window of a connection",
            Self::WindowDeviation => "congestion window of a connection, standard deviation",
            Self::AggregateWindow => "congestion windows together",
            Self::AggregateWindowDeviation => "congestion windows together, standard deviation",
            Self::WindowCorrelation => "correlation of two congestion windows",
            Self::Acknowledgements => "acknowledgements compared with the law",
            Self::Resynchronisations => "how often the law's window was set to the control's",
            Self::LawError => "distance of the window from the law, of what is allowed",
            Self::LawErrorP99 => "distance of the window from the law, 99th percentile",
            Self::LawReductionError => "distance of reduced windows from the law, of what is allowed",
            Self::LawReductionErrorP99 => "distance of reduced windows from the law, 99th percentile",
            Self::LawGroupError => "distance of groups' windows from the law, of what is allowed",
            Self::LawGroupErrorP99 => "distance of groups' windows from the law, 99th percentile",
            Self::WindowFairness => "Jain's index of the congestion windows",
        }
    }

    /// The unit of its numbers.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::Throughput | Self::SteadyThroughput => Unit::BitsPerSecond,
            Self::Fairness
            | Self::Share
            | Self::LawError
            | Self::LawErrorP99
            | Self::LawReductionError
            | Self::LawReductionErrorP99
            | Self::LawGroupError
            | Self::LawGroupErrorP99
            | Self::WindowCorrelation
            | Self::WindowFairness => Unit::None,
            Self::RoundTrip
            | Self::RequestTime
            | Self::RequestTimeP99
            | Self::RequestTimeDeviation
            | Self::TransferTime
            | Self::HostTime
            | Self::CommandDelay
            | Self::StatusDelay
            | Self::OrderWaitP99
            | Self::OrderWaitMax
            | Self::GapTime
            | Self::CapturedTransferTime
            | Self::CapturedTargetTime
            | Self::CapturedInitiatorTime => Unit::Seconds,
            Self::Lost
            | Self::Retransmitted
            | Self::SteadyRetransmitted
            | Self::RetransmittedInRecovery
            | Self::RetransmittedAfterTimeout
            | Self::LossProbes
            | Self::Window
            | Self::WindowDeviation
            | Self::AggregateWindow
            | Self::AggregateWindowDeviation => Unit::named("segments"),
            Self::Timeouts => Unit::named("timeouts"),
            Self::Acknowledgements => Unit::named("acknowledgements"),
            Self::Resynchronisations => Unit::named("times"),
        }
    }
}

/// The quantities of SCSI commands, besides those of every workload.
pub(super) const OF_SCSI: [Quantity; 9] = [
    Quantity::RequestTime,
    Quantity::RequestTimeP99,
    Quantity::RequestTimeDeviation,
    Quantity::TransferTime,
    Quantity::HostTime,
    Quantity::CommandDelay,
    Quantity::StatusDelay,
    Quantity::OrderWaitP99,
    Quantity::OrderWaitMax,
];

/// The quantities of captured SCSI commands.
pub(super) const OF_CAPTURES: [Quantity; 4] = [
    Quantity::GapTime,
    Quantity::CapturedTransferTime,
    Quantity::CapturedTargetTime,
    Quantity::CapturedInitiatorTime,
];

/// The quantities of the hosts that send data.
pub(super) const OF_SENDERS: [Quantity; 5] = [
    Quantity::Retransmitted,
    Quantity::RetransmittedInRecovery,
    Quantity::RetransmittedAfterTimeout,
    Quantity::LossProbes,
    Quantity::Timeouts,
];

/// The quantities of connections after the warm-up.
pub(super) const STEADY: [Quantity; 2] = [Quantity::SteadyThroughput, Quantity::SteadyRetransmitted];

/// The quantities of the connections that send to the server.
pub(super) const OF_WINDOWS: [Quantity; 6] = [
    Quantity::Window,
    Quantity::WindowDeviation,
    Quantity::AggregateWindow,
    Quantity::AggregateWindowDeviation,
    Quantity::WindowCorrelation,
    Quantity::WindowFairness,
];

/// The quantities of a comparison with a law.
pub(super) const OF_LAWS: [Quantity; 8] = [
    Quantity::Acknowledgements,
    Quantity::Resynchronisations,
    Quantity::LawError,
    Quantity::LawErrorP99,
    Quantity::LawReductionError,
    Quantity::LawReductionErrorP99,
    Quantity::LawGroupError,
    Quantity::LawGroupErrorP99,
];
