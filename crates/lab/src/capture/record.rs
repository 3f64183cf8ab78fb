//! The part of a capture that is kept beside its file.

use observe::{CommandReport, ConnectionReport, RttReport};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// A capture as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaptureRecord {
    /// Frames that it holds.
    pub frames: u64,
    /// Frames without room: all later ones.
    pub frames_lost: u64,
    /// The connections that carry iSCSI.
    pub connections: Vec<CapturedConnection>,
}

/// A connection with captured PDUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapturedConnection {
    /// Its number among all TCP connections of the capture, from 0.
    pub number: usize,
    /// The initiator's end.
    pub initiator: SocketAddr,
    /// The target's end.
    pub target: SocketAddr,
    /// Round trips from the point of capture to the target and back, from data and its acknowledgement.
    pub rtt: Option<RttReport>,
    /// Bytes of both directions that were sent and not captured.
    pub missed_bytes: u64,
    /// Bytes of both directions with unknown meaning.
    pub unknown_bytes: u64,
    /// Commands whose status was not captured.
    pub commands_without_status: u64,
}

impl CapturedConnection {
    pub(super) fn new(report: &ConnectionReport) -> Self {
        let ConnectionReport { to_target, to_initiator, .. } = report;
        Self {
            number: report.number,
            initiator: report.initiator,
            target: report.target,
            rtt: to_target.rtt,
            missed_bytes: to_target.counters.missed_bytes + to_initiator.counters.missed_bytes,
            unknown_bytes: to_target.unknown_bytes + to_initiator.unknown_bytes,
            commands_without_status: report.commands_without_status,
        }
    }
}

/// A command that ended within a capture. All times are those of [`monotonic_ns`](crate::monotonic_ns).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedCommand {
    /// [`CapturedConnection::number`] of its connection.
    pub connection: usize,
    /// The times of the command.
    pub command: CommandReport,
}
