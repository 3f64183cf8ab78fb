//! The results of an analysis, for programs.

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

/// The whole analysis. Connections without iSCSI are only counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// The capture as a whole.
    pub capture: CaptureReport,
    /// Connections with PDUs, in the order of their appearance.
    pub connections: Vec<ConnectionReport>,
}

/// The contents of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CaptureReport {
    /// Frames that were passed to the analysis.
    pub frames: u64,
    /// Frames that [`Options`](crate::Options) excluded.
    pub frames_left_out: u64,
    /// Frames that hold a TCP segment with a complete header.
    pub segments: u64,
    /// The time of the first frame, in nanoseconds since 1970-01-01 UTC.
    pub first_ns: u64,
    /// The time of the last frame.
    pub last_ns: u64,
    /// TCP connections, with or without iSCSI.
    pub connections: u64,
    /// Connections that were not followed because of too many others.
    pub connections_ignored: u64,
}

/// One TCP connection that carries iSCSI.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionReport {
    /// Its number among all TCP connections of the capture, in the order of appearance, from 0.
    pub number: usize,
    /// The connection with the requests of its split session, which then has its commands, too.
    pub companion_of: Option<usize>,
    /// What it carries of that session.
    pub carries: Option<String>,
    /// The initiator's end.
    pub initiator: SocketAddr,
    /// The target's end.
    pub target: SocketAddr,
    /// The initiator's name, if the login was captured.
    pub initiator_name: Option<String>,
    /// The target's name, likewise.
    pub target_name: Option<String>,
    /// Whether headers have digests, if known.
    pub header_digest: Option<bool>,
    /// Whether data has digests, if known.
    pub data_digest: Option<bool>,
    /// The smallest round trip of the whole path, in nanoseconds: the sum of both parts'.
    pub rtt_ns_min: Option<u64>,
    /// The initiator's direction.
    pub to_target: DirectionReport,
    /// The target's direction.
    pub to_initiator: DirectionReport,
    /// The captured commands by kind; only complete ones.
    pub summaries: Vec<CommandSummary>,
    /// Commands without a captured status.
    pub commands_without_status: u64,
    /// Commands without room to follow them.
    pub commands_not_kept: u64,
    /// Every command that ended.
    pub commands: Vec<CommandReport>,
    /// Bytes and commands over time.
    pub timeline: Timeline,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DirectionReport {
    /// The TCP counters.
    #[serde(flatten)]
    pub counters: StreamCounters,
    /// PDUs followed to their end.
    pub pdus: u64,
    /// PDUs with an invalid header.
    pub invalid_pdus: u64,
    /// Bytes with unknown meaning, which were skipped until a segment started with a header.
    pub unknown_bytes: u64,
    /// Round trips from the point of capture to the receiver of this direction and back, from data and its
    /// acknowledgement, which the receiver may delay.
    pub rtt: Option<RttReport>,
    /// The most bytes in flight.
    pub in_flight_bytes_max: u64,
    /// The smallest window that the receiver offered; `None` if its scale is unknown because the SYN was not captured.
    pub window_bytes_min: Option<u64>,
    /// The largest window, likewise.
    pub window_bytes_max: Option<u64>,
}

/// Round trips, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say which statistics they are")]
pub struct RttReport {
    /// The number of measurements.
    pub samples: u64,
    pub min_ns: u64,
    pub mean_ns: u64,
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
        Some(Self {
            samples: round_trips.samples,
            min_ns: pdu::nanoseconds(round_trips.min?),
            mean_ns: pdu::nanoseconds(round_trips.sum).checked_div(round_trips.samples)?,
            max_ns: pdu::nanoseconds(round_trips.max),
        })
    }
}

/// The commands of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CommandSummary {
    /// The direction of their data.
    pub kind: Kind,
    /// The number of commands.
    pub commands: u64,
    /// The data that they moved.
    pub data_bytes: u64,
    /// Ta: the transfer of their data.
    pub ta: Option<Statistic>,
    /// Tb: the target's time.
    pub tb: Option<Statistic>,
    /// Tc: the initiator's time until the next command, of the commands with one.
    pub tc: Option<Statistic>,
    /// The time from command to status.
    pub turnaround: Option<Statistic>,
    /// Waits for R2Ts, of the commands with any.
    pub r2t_wait: Option<Statistic>,
    /// The total of the gaps, of the commands with any.
    pub gaps: Option<Statistic>,
}

impl CommandSummary {
    /// What [`times`](Self::times) are, for a report's readers.
    pub const TIMES_EXPLAINED: &str = "Ta is the transfer of a command's data; Tb the target's time, from the last \
         data of a write, or the command of a read, to the status or the first data, less the round trip; Tc the \
         initiator's time from a status to the next command, if nothing was outstanding between. The turnaround is the \
         time from a command to its status, and a gap is a silence in the middle of its data.";

    /// The summary of one kind's complete commands; `None` if there are none.
    #[must_use]
    pub fn of<'a>(kind: Kind, commands: impl Iterator<Item = &'a CommandReport>) -> Option<Self> {
        let chosen: Vec<_> = commands.filter(|command| command.kind == kind && command.whole).collect();
        let statistic = |time: fn(&CommandReport) -> Option<u64>| {
            Statistic::of(chosen.iter().filter_map(|command| time(command)))
        };
        chosen.first()?;
        Some(Self {
            kind,
            commands: chosen.len() as u64,
            data_bytes: chosen.iter().map(|command| command.data_bytes).sum(),
            ta: statistic(|command| Some(command.ta_ns)),
            tb: statistic(|command| Some(command.tb_ns)),
            tc: statistic(|command| command.tc_ns),
            turnaround: statistic(|command| Some(command.turnaround_ns)),
            r2t_wait: statistic(|command| (command.r2ts > 0).then_some(command.r2t_wait_ns)),
            gaps: statistic(|command| (command.gap_count > 0).then_some(command.gap_ns)),
        })
    }

    /// Its times by name, without those that no command had.
    pub fn times(&self) -> impl Iterator<Item = (&'static str, Statistic)> {
        let times = [
            ("Ta", self.ta),
            ("Tb", self.tb),
            ("Tc", self.tc),
            ("turnaround", self.turnaround),
            ("R2T wait", self.r2t_wait),
            ("gaps of a command", self.gaps),
        ];
        times.into_iter().filter_map(|(name, time)| Some((name, time?)))
    }
}
