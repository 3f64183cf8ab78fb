//! Figures of a run over its time.

use super::InvalidExperiment;
use super::document::Document;
use super::plan::{Cell, Plan};
use super::setup::RunLoad;
use crate::sample::HeldKind;
use crate::session_monitor::CommandSample;
use netem::Span;
use observe::report::Unit;
use observe::{SocketSample, TcpEvent, TcpEventKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// A figure of one run over its time, for each requested combination of values. Time counts from the start of the
/// relay, shortly before the workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The experiment's title, if missing.
    #[serde(default)]
    pub title: Option<String>,
    /// The curves of each connection; all of one unit.
    pub y: Vec<Observed>,
    /// Further curves, on an axis to the right; all of one unit.
    #[serde(default)]
    pub right: Vec<Observed>,
    /// Events to mark on the first curve of each connection, if the run was traced (`kernel_trace`).
    #[serde(default)]
    pub marks: Vec<TcpEventKind>,
    /// Restricts the runs to these values of these variables.
    #[serde(default)]
    pub only: BTreeMap<String, Vec<String>>,
    /// Moments of READs and WRITEs, marked above the curves.
    #[serde(default)]
    pub events: Vec<CommandEvent>,
    /// Times in which something held a session up, drawn above the moments.
    #[serde(default)]
    pub held: Vec<HeldKind>,
    /// Whether to mark the captured pauses within a command's data.
    #[serde(default)]
    pub gaps: bool,
    /// The start of the figure, since the start of the run.
    #[serde(default)]
    pub from: Span,
    /// The end of the figure, likewise; the end of the run, if missing.
    #[serde(default)]
    pub to: Option<Span>,
    /// Restricts the figure to this many READs and WRITEs, from the first that begins between `from` and `to`.
    #[serde(default)]
    pub commands: Option<NonZeroUsize>,
}

/// A moment of a command, at its initiator or its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEvent {
    /// The command got its connection, and begins to leave.
    Command,
    /// The first R2T had arrived.
    R2t,
    /// The initiator's socket had accepted the last of its data.
    DataSent,
    /// The command had arrived at the target.
    Arrived,
    /// All its data had arrived there.
    DataArrived,
    /// Its status had arrived at the initiator.
    Status,
}

impl CommandEvent {
    /// Its name for people.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::R2t => "first R2T",
            Self::DataSent => "last data taken by the socket",
            Self::Arrived => "command at the target",
            Self::DataArrived => "last data at the target",
            Self::Status => "status",
        }
    }

    /// Its time, if it happened.
    pub(crate) fn at_ns(self, command: &CommandSample) -> Option<u64> {
        match self {
            Self::Command => Some(command.pulled_ns),
            Self::R2t => command.first_r2t_ns,
            Self::DataSent => command.data_sent_ns,
            Self::Arrived => Some(command.target?.arrived_ns),
            Self::DataArrived => command.target?.started_ns,
            Self::Status => Some(command.ended_ns),
        }
    }
}

/// A property of a connection over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observed {
    /// The congestion window, in segments.
    CongestionWindow,
    /// The end of slow start, in segments; nothing before the first loss.
    SlowStartThreshold,
    /// Segments sent and not acknowledged.
    InFlight,
    /// Memory of the data in the socket, sent or not, in bytes.
    SendQueue,
    /// The limit of the send queue, in bytes.
    SendBuffer,
    /// Unsent data, in bytes.
    NotSent,
    /// The receiver's window, in bytes.
    SendWindow,
    /// The smoothed round trip.
    RoundTrip,
    /// Data acknowledged since the previous sample, in bits per second.
    AckedRate,
    /// Captured packets with payload from the client, counted from the start of the figure.
    PacketsSent,
    /// Captured payload from the client, in bits per second of each millisecond.
    SendingRate,
}

impl Observed {
    /// Its name for people.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::CongestionWindow => "congestion window",
            Self::SlowStartThreshold => "slow start threshold",
            Self::InFlight => "in flight",
            Self::SendQueue => "send queue",
            Self::SendBuffer => "send buffer",
            Self::NotSent => "not sent",
            Self::SendWindow => "send window",
            Self::RoundTrip => "round trip",
            Self::AckedRate => "acknowledged",
            Self::PacketsSent => "packets sent",
            Self::SendingRate => "sending rate",
        }
    }

    /// The unit of its numbers.
    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::CongestionWindow | Self::SlowStartThreshold | Self::InFlight => Unit::named("segments"),
            Self::SendQueue | Self::SendBuffer | Self::NotSent | Self::SendWindow => Unit::Bytes,
            Self::RoundTrip => Unit::Seconds,
            Self::AckedRate | Self::SendingRate => Unit::BitsPerSecond,
            Self::PacketsSent => Unit::named("packets"),
        }
    }

    /// Whether it comes from a capture instead of the kernel.
    pub(crate) fn is_captured(self) -> bool {
        matches!(self, Self::PacketsSent | Self::SendingRate)
    }

    /// The kernel's value, in the base of its unit.
    pub(crate) fn value(self, before: Option<&SocketSample>, sample: &SocketSample) -> Option<f64> {
        let SocketSample { tcp, memory, .. } = sample;
        match self {
            Self::CongestionWindow => Some(tcp.snd_cwnd.into()),
            Self::SlowStartThreshold => tcp.snd_ssthresh.map(f64::from),
            Self::InFlight => Some(tcp.unacked.into()),
            Self::SendQueue => Some(memory.wmem_queued_bytes.into()),
            Self::SendBuffer => Some(memory.sndbuf_bytes.into()),
            Self::NotSent => Some(tcp.notsent_bytes.into()),
            Self::SendWindow => Some(tcp.snd_wnd_bytes.into()),
            Self::RoundTrip => Some(f64::from(tcp.rtt_us) / 1e6),
            Self::AckedRate => {
                let before = before?;
                let bytes = tcp.bytes_acked.checked_sub(before.tcp.bytes_acked)?;
                let nanoseconds = sample.at_ns.checked_sub(before.at_ns).filter(|time| *time > 0)?;
                Some(bytes as f64 * 8e9 / nanoseconds as f64)
            }
            Self::PacketsSent | Self::SendingRate => None,
        }
    }
}

impl Observed {
    /// Whether events carry it, which are denser than samples.
    pub(crate) fn is_told_by_events(self) -> bool {
        !matches!(self, Self::AckedRate | Self::PacketsSent | Self::SendingRate)
    }

    /// The value at an event.
    pub(crate) fn value_at(self, event: &TcpEvent) -> Option<f64> {
        match self {
            Self::CongestionWindow => Some(event.snd_cwnd.into()),
            Self::SlowStartThreshold => event.snd_ssthresh.map(f64::from),
            Self::InFlight => Some(event.unacked.into()),
            Self::SendQueue => Some(event.wmem_queued_bytes.into()),
            Self::SendBuffer => Some(event.sndbuf_bytes.into()),
            Self::NotSent => Some(event.notsent_bytes.into()),
            Self::SendWindow => Some(event.snd_wnd_bytes.into()),
            Self::RoundTrip => Some(f64::from(event.rtt_us) / 1e6),
            Self::AckedRate | Self::PacketsSent | Self::SendingRate => None,
        }
    }
}

/// An event's name for people.
pub(crate) fn mark_label(kind: TcpEventKind) -> &'static str {
    match kind {
        TcpEventKind::Arrived => "acknowledgement",
        TcpEventKind::Retransmitted => "sent again",
        TcpEventKind::CongestionState => "congestion state changes",
        TcpEventKind::Written => "written",
    }
}

impl Document {
    /// Checks that the trace of this number can be drawn from that plan.
    pub fn check_trace(&self, number: usize, plan: &Plan) -> Result<(), InvalidExperiment> {
        let trace = &self.traces[number];
        let place = |key: &str| format!("trace {}, {key}", number + 1);
        if trace.y.is_empty() {
            return Err(InvalidExperiment::new(format!("{}: there is nothing to be drawn", place("y"))));
        }
        for (key, observed) in [("y", &trace.y), ("right", &trace.right)] {
            if observed.windows(2).any(|pair| pair[0].unit() != pair[1].unit()) {
                let error = format!("{}: what is measured by one axis must have one unit", place(key));
                return Err(InvalidExperiment::new(error));
            }
        }
        if trace.to.is_some_and(|to| to <= trace.from) {
            return Err(InvalidExperiment::new(format!("{}: it is not after from", place("to"))));
        }
        self.check_only(&trace.only, &place("only"), plan)?;
        for (_, Cell { setup, .. }) in plan.among(&trace.only) {
            if let Some(key) = trace.captured_key().filter(|_| setup.capture.is_none()) {
                let error = format!("{}: it is captured, and there is no setup.capture", place(key));
                return Err(InvalidExperiment::new(error));
            }
            if let (Some(key), RunLoad::Streams(_)) = (trace.command_key(), setup.load()) {
                let error = format!("{}: streams have no commands", place(key));
                return Err(InvalidExperiment::new(error));
            }
            if !trace.marks.is_empty() && !setup.kernel_trace {
                let error =
                    format!("{}: they are traced, and there is no setup.kernel_trace", place("marks"));
                return Err(InvalidExperiment::new(error));
            }
        }
        Ok(())
    }
}

impl Trace {
    /// The first key that needs a capture.
    fn captured_key(&self) -> Option<&'static str> {
        let is_captured = |observed: &[Observed]| observed.iter().any(|observed| observed.is_captured());
        let keys = [("y", is_captured(&self.y)), ("right", is_captured(&self.right)), ("gaps", self.gaps)];
        keys.into_iter().find_map(|(key, is_asked)| is_asked.then_some(key))
    }

    /// The first key that needs SCSI commands.
    fn command_key(&self) -> Option<&'static str> {
        let keys = [
            ("events", !self.events.is_empty()),
            ("held", !self.held.is_empty()),
            ("gaps", self.gaps),
            ("commands", self.commands.is_some()),
        ];
        keys.into_iter().find_map(|(key, is_asked)| is_asked.then_some(key))
    }
}
