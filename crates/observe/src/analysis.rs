//! What a capture says, for programs to read.

mod latency;
mod over_time;
mod report;

use crate::command::Kind;
use crate::flight::{Flight, RoundTrips};
use crate::statistics::Statistic;
use crate::stream::StreamCounters;
use crate::timeline::Timeline;
use crate::timing::CommandReport;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// All of it. Connections without iSCSI are only counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// The capture as a whole.
    pub capture: CaptureReport,
    /// Connections in which PDUs were found, in the order in which they appeared.
    pub connections: Vec<ConnectionReport>,
}

/// What was captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CaptureReport {
    /// Frames that were given to the analysis.
    pub frames: u64,
    /// Those that were not looked into, because they were not asked for ([`Options`](crate::Options)).
    pub frames_left_out: u64,
    /// Those that hold a TCP segment whose header is complete.
    pub segments: u64,
    /// When the first was captured, in nanoseconds since 1970-01-01 UTC.
    pub first_ns: u64,
    /// When the latest was.
    pub last_ns: u64,
    /// TCP connections, with or without iSCSI.
    pub connections: u64,
    /// Those of them that were not followed because too many others were.
    pub connections_ignored: u64,
}

/// One TCP connection that carries iSCSI.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionReport {
    /// Its number among all TCP connections of the capture, in the order of appearance, from 0.
    pub number: usize,
    /// The initiator's end.
    pub initiator: SocketAddr,
    /// The target's.
    pub target: SocketAddr,
    /// What the login called the initiator, if it was captured.
    pub initiator_name: Option<String>,
    /// And the target.
    pub target_name: Option<String>,
    /// Whether headers have digests, if known.
    pub header_digest: Option<bool>,
    /// Whether data has.
    pub data_digest: Option<bool>,
    /// Smallest round trip of the whole path, in nanoseconds: the sum of both parts'.
    pub rtt_ns_min: Option<u64>,
    /// What the initiator sent.
    pub to_target: DirectionReport,
    /// What the target sent.
    pub to_initiator: DirectionReport,
    /// Commands by kind, those only that were captured whole.
    pub summaries: Vec<CommandSummary>,
    /// Commands whose status was not captured, or that had none.
    pub commands_without_status: u64,
    /// Commands that there was no room to follow.
    pub commands_not_kept: u64,
    /// Every command that ended.
    pub commands: Vec<CommandReport>,
    /// Bytes and commands over time.
    pub timeline: Timeline,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DirectionReport {
    /// TCP's view.
    #[serde(flatten)]
    pub counters: StreamCounters,
    /// PDUs that were followed to their end.
    pub pdus: u64,
    /// Those whose header breaks the standard.
    pub invalid_pdus: u64,
    /// Bytes of which it is not known what they were: what was passed over until a segment started with a header.
    pub unknown_bytes: u64,
    /// Round trips from the point of capture to the receiver of this direction and back, from data and its
    /// acknowledgement; the receiver may delay that.
    pub rtt: Option<RttReport>,
    /// The most that had been sent and was not acknowledged.
    pub in_flight_bytes_max: u64,
    /// The smallest window that the receiver offered; `None` if its scale is not known because the SYN was not captured.
    pub window_bytes_min: Option<u64>,
    /// And the largest.
    pub window_bytes_max: Option<u64>,
}

/// Round trips, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RttReport {
    /// How many were measured.
    pub samples: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl DirectionReport {
    pub(crate) fn new(counters: StreamCounters, flight: &Flight) -> Self {
        Self {
            counters,
            rtt: RttReport::new(&flight.round_trips),
            in_flight_bytes_max: flight.bytes_max,
            window_bytes_min: flight.window.map(|(least, _)| least),
            window_bytes_max: flight.window.map(|(_, most)| most),
            ..Self::default()
        }
    }
}

impl RttReport {
    fn new(round_trips: &RoundTrips) -> Option<Self> {
        let nanoseconds = |duration: pdu::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Some(Self {
            samples: round_trips.samples,
            min_ns: nanoseconds(round_trips.min?),
            mean_ns: nanoseconds(round_trips.sum).checked_div(round_trips.samples)?,
            max_ns: nanoseconds(round_trips.max),
        })
    }
}

/// The commands of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CommandSummary {
    /// Which.
    pub kind: Kind,
    /// How many.
    pub commands: u64,
    /// Data that they moved.
    pub data_bytes: u64,
    /// Ta.
    pub ta: Option<Statistic>,
    /// Tb.
    pub tb: Option<Statistic>,
    /// Tc, of those that have one.
    pub tc: Option<Statistic>,
    /// The time from command to status.
    pub turnaround: Option<Statistic>,
    /// Waits for R2Ts, of those that had any.
    pub r2t_wait: Option<Statistic>,
    /// Silences, together, of those that had any.
    pub gaps: Option<Statistic>,
}

impl CommandSummary {
    /// Of those of one kind that were captured whole; `None` if there is none.
    pub(crate) fn of(kind: Kind, commands: &[CommandReport]) -> Option<Self> {
        let chosen = || commands.iter().filter(|command| command.kind == kind && command.whole);
        let statistic = |time: fn(&CommandReport) -> Option<u64>| Statistic::of(chosen().filter_map(time));
        chosen().next()?;
        Some(Self {
            kind,
            commands: chosen().count() as u64,
            data_bytes: chosen().map(|command| command.data_bytes).sum(),
            ta: statistic(|command| Some(command.ta_ns)),
            tb: statistic(|command| Some(command.tb_ns)),
            tc: statistic(|command| command.tc_ns),
            turnaround: statistic(|command| Some(command.turnaround_ns)),
            r2t_wait: statistic(|command| (command.r2ts > 0).then_some(command.r2t_wait_ns)),
            gaps: statistic(|command| (command.gap_count > 0).then_some(command.gap_ns)),
        })
    }
}
