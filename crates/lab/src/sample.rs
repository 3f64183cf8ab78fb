//! What happened in a run, moment by moment. All times are those of [`monotonic_ns`](crate::monotonic_ns).

use crate::capture::CapturedCommand;
use crate::session_monitor::{CommandSample, Interval};
use crate::streams::StreamSample;
use crate::workload::RequestSample;
use observe::{OffCpuStack, SocketSample, SocketsReport, TcpEvent};
use serde::{Deserialize, Serialize};

/// A line of a run's samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Sample {
    /// What had arrived of plain streams.
    Stream(StreamSample),
    /// A request of a SCSI workload.
    Request(RequestSample),
    /// One of its commands.
    Command(Box<CommandSample>),
    /// A time in which a session could not go on as it would.
    Held(HeldSample),
    /// One of its commands, as it was captured on the path.
    Captured(Box<CapturedCommand>),
    /// What the client's kernel knew of one of its connections.
    Socket(Box<ConnectionSocketSample>),
    /// What happened to one of the client's connections, if the run was traced.
    TcpEvent(TcpEvent),
    /// Where a thread at the client waited in the kernel, in all of a run that was traced.
    OffCpu(Box<OffCpuStack>),
}

impl Sample {
    /// When it was taken, or what it tells of began.
    #[must_use]
    pub fn at_ns(&self) -> u64 {
        match self {
            Self::Stream(sample) => sample.at_ns,
            Self::Request(sample) => sample.begun_ns,
            Self::Command(sample) => sample.pulled_ns,
            Self::Held(sample) => sample.interval.begun_ns,
            Self::Captured(sample) => sample.command.begun_ns,
            Self::Socket(sample) => sample.socket.at_ns,
            Self::TcpEvent(event) => event.at_ns,
            Self::OffCpu(stack) => stack.begun_ns,
        }
    }
}

/// A time in which something held a session up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldSample {
    /// What.
    pub what: HeldKind,
    /// Of which session, or on which connection: an index of those that the run's record names.
    pub index: usize,
    /// When, and for how long.
    #[serde(flatten)]
    pub interval: Interval,
}

/// What held a session up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldKind {
    /// Its command window was closed.
    WindowClosed,
    /// At the target there was a hole in the order of its commands.
    CmdSnHole,
    /// A connection had more to send, and its socket took nothing.
    Blocked,
}

/// What a kernel knew of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionSocketSample {
    /// Which: an index of the sockets that the run's record names.
    pub connection: usize,
    /// What it knew.
    #[serde(flatten)]
    pub socket: SocketSample,
}

/// Takes the samples out of a report.
pub(crate) fn take_socket_samples(report: &mut SocketsReport) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (connection, socket) in report.sockets.iter_mut().enumerate() {
        let of_socket = std::mem::take(&mut socket.samples).into_iter();
        let sample = |socket| Sample::Socket(Box::new(ConnectionSocketSample { connection, socket }));
        samples.extend(of_socket.map(sample));
    }
    samples
}
