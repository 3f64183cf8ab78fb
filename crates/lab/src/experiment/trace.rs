//! What is drawn over the time of a run.

use super::InvalidExperiment;
use super::document::Document;
use super::plan::Plan;
use netem::Span;
use observe::SocketSample;
use observe::report::Unit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A figure of one run over its time, for each combination of values that is asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The experiment's, if it is missing.
    #[serde(default)]
    pub title: Option<String>,
    /// What is drawn, of each connection; all of one unit.
    pub y: Vec<Observed>,
    /// What is drawn beside it, measured by an axis to the right; all of one unit.
    #[serde(default)]
    pub right: Vec<Observed>,
    /// Only runs with these values of these variables.
    #[serde(default)]
    pub only: BTreeMap<String, Vec<String>>,
    /// From when, since the first sample.
    #[serde(default)]
    pub from: Span,
    /// Up to when; the end of the run, if it is missing.
    #[serde(default)]
    pub to: Option<Span>,
}

/// What is known of a connection at each moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observed {
    /// The congestion window, in segments.
    CongestionWindow,
    /// Segments that were sent and not acknowledged.
    InFlight,
    /// Memory that data takes in the socket, whether it was sent or not, in bytes.
    SendQueue,
    /// What the send queue may grow to, in bytes.
    SendBuffer,
    /// Data that was not sent yet, in bytes.
    NotSent,
    /// What the receiver has room for, in bytes.
    SendWindow,
    /// The smoothed round trip.
    RoundTrip,
    /// What has been acknowledged since the sample before, in bits per second.
    AckedRate,
}

impl Observed {
    /// As people are told of it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::CongestionWindow => "congestion window",
            Self::InFlight => "in flight",
            Self::SendQueue => "send queue",
            Self::SendBuffer => "send buffer",
            Self::NotSent => "not sent",
            Self::SendWindow => "send window",
            Self::RoundTrip => "round trip",
            Self::AckedRate => "acknowledged",
        }
    }

    /// What its numbers count.
    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::CongestionWindow | Self::InFlight => Unit::named("segments"),
            Self::SendQueue | Self::SendBuffer | Self::NotSent | Self::SendWindow => Unit::Bytes,
            Self::RoundTrip => Unit::Seconds,
            Self::AckedRate => Unit::BitsPerSecond,
        }
    }

    /// In the base of its unit, if it is known.
    pub(crate) fn value(self, before: Option<&SocketSample>, sample: &SocketSample) -> Option<f64> {
        let SocketSample { tcp, memory, .. } = sample;
        match self {
            Self::CongestionWindow => Some(tcp.snd_cwnd.into()),
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
        }
    }
}

impl Document {
    /// Whether the trace of this number can be drawn of that plan.
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
        self.check_only(&trace.only, &place("only"), plan)
    }
}
