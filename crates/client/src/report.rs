//! What can be observed of a session while it runs.

use framing::{Counters, PathSample};
use nexus::initiator::PathId;
use pdu::{Cid, Isid, LaneId, Tsih};
use session::parameters::{ConnectionParameters, SessionParameters};
use std::net::SocketAddr;

/// A sample of everything.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The target's iSCSI name.
    pub target_name: String,
    /// Its iSCSI sessions.
    pub paths: Vec<PathReport>,
    /// Commands that were sent again: after a loss, or because the target declined them. Unit attentions, which
    /// every first command to a unit meets, are not counted.
    pub retries: u64,
    /// Sessions that were lost and came back.
    pub reinstatements: u64,
    /// Connections that broke, and whose commands all went on over others of their session (error recovery level 2).
    pub recovered_connections: u64,
    /// Commands that went on over another connection than the one they were sent on.
    pub reassigned_tasks: u64,
    /// PDUs that were sent again, or that the target was asked to send again (error recovery level 1).
    pub retransmitted_pdus: u64,
    /// Operations that have not ended.
    pub operations: usize,
}

/// One iSCSI session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PathReport {
    /// Its number here.
    pub path: PathId,
    /// The initiator's part of its identity.
    pub isid: Isid,
    /// The target's part; `None` while it is lost.
    pub tsih: Option<Tsih>,
    /// Where it goes.
    pub portal: crate::Portal,
    /// How it stands.
    pub state: PathState,
    /// What was negotiated; `None` before the first login.
    pub parameters: Option<SessionParameters>,
    /// Why it has fewer connections than MaxConnections and the configuration would allow.
    pub ceiling: Option<String>,
    /// Its connections.
    pub connections: Vec<ConnectionReport>,
}

/// How a path stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathState {
    /// Logging in, for the first time or again.
    Connecting,
    /// Carries I/O to the units whose identity it has shown.
    Up,
    /// Ended for good: logged out, refused, or given up.
    Gone,
}

/// One TCP connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionReport {
    /// Its number here, never used twice.
    pub lane: LaneId,
    /// Its number in its iSCSI session.
    pub cid: Cid,
    /// The address at the other end.
    pub peer: SocketAddr,
    /// What was negotiated for it.
    pub parameters: ConnectionParameters,
    /// Bytes and PDUs so far.
    pub counters: Counters,
    /// Commands placed on it that are not answered.
    pub outstanding_commands: u32,
    /// Bytes of those commands that have not moved.
    pub outstanding_bytes: u64,
    /// The congestion control in force, as the kernel names it.
    pub congestion: Option<String>,
    /// Round-trip time, congestion window, retransmissions, if its wire measures them.
    pub sample: Option<PathSample>,
}

impl Report {
    /// Connections in use now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.paths.iter().map(|path| path.connections.len()).sum()
    }

    /// iSCSI sessions in use now.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.paths.iter().filter(|path| !path.connections.is_empty()).count()
    }
}
