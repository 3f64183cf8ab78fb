//! The events and states of a run. All times are those of [`monotonic_ns`](crate::monotonic_ns).

use crate::capture::CapturedCommand;
use crate::scsi_run::SliceSample;
use crate::session_monitor::{CommandSample, Interval};
use crate::streams::StreamSample;
use crate::workload::RequestSample;
use observe::{OffCpuStack, SocketSample, SocketsReport, TcpEvent};
use serde::{Deserialize, Serialize};

/// A line of a run's samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Sample {
    /// The data of plain streams so far.
    Stream(StreamSample),
    /// A request of a SCSI workload.
    Request(RequestSample),
    /// One of its commands.
    Command(Box<CommandSample>),
    /// What a tuner was shown.
    Slice(Box<SliceSample>),
    /// A time in which a session was held up.
    Held(HeldSample),
    /// A command of a SCSI workload, as captured on the path.
    Captured(Box<CapturedCommand>),
    /// The client kernel's view of one of its connections.
    Socket(Box<ConnectionSocketSample>),
    /// An event of one of the client's connections, if the run was traced.
    TcpEvent(TcpEvent),
    /// A wait of a thread at the client in the kernel, over a whole traced run.
    OffCpu(Box<OffCpuStack>),
}

impl Sample {
    /// The time of the sample, or the start of its period.
    #[must_use]
    pub fn at_ns(&self) -> u64 {
        match self {
            Self::Stream(sample) => sample.at_ns,
            Self::Request(sample) => sample.begun_ns,
            Self::Command(sample) => sample.pulled_ns,
            Self::Slice(sample) => sample.at_ns,
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
    /// The reason for the delay.
    pub what: HeldKind,
    /// The session or connection: an index into those of the run's record.
    pub index: usize,
    /// The time for which it lasted.
    #[serde(flatten)]
    pub interval: Interval,
}

/// The reason why a session was held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldKind {
    /// Its command window was closed.
    WindowClosed,
    /// Commands at the target waited for an earlier one.
    CmdSnHole,
    /// A connection had more to send, but its socket accepted nothing.
    Blocked,
}

/// A kernel's view of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionSocketSample {
    /// The connection: an index into the sockets of the run's record.
    pub connection: usize,
    /// The kernel's view of its socket.
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
