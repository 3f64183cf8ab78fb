//! Measurements of a running session.

use crate::path_id::PathId;
use framing::Counters;
use pdu::{Cid, Instant, Isid, LaneId, Tsih};
use policy::tuner::{Decision, Experience};
use policy::{Diagnosis, PathMeasurement};
use session::parameters::{ConnectionParameters, LaneRole, SessionParameters};
use std::net::SocketAddr;

/// A sample of all paths of a target.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The target's iSCSI name.
    pub target_name: String,
    /// Its iSCSI sessions.
    pub paths: Vec<PathReport>,
    /// Commands sent again after a loss, or because the target declined them. Unit attentions, which every first
    /// command to a unit meets, do not count.
    pub retries: u64,
    /// Sessions that were lost and came back.
    pub reinstatements: u64,
    /// Sessions that were logged out because none of their connections had been needed for a minute.
    pub retired_sessions: u64,
    /// Connections of other sessions, logged out because they had not been needed for a minute.
    pub retired_connections: u64,
    /// Broken connections whose commands all continued on other connections of their session (error recovery level 2).
    pub recovered_connections: u64,
    /// Commands that moved to another connection.
    pub reassigned_tasks: u64,
    /// PDUs sent again by this end, or requested again from the target (error recovery level 1).
    pub retransmitted_pdus: u64,
    /// Operations that have begun and not ended, over all paths.
    pub operations: usize,
    /// What has kept the sessions from moving more, since they began; `None` before there is enough to judge by.
    pub diagnosis: Option<Diagnosis>,
    /// When the first connection had logged in.
    pub began: Instant,
    /// What the tuner has decided since then; nothing where the number of connections is fixed.
    pub decisions: Vec<Decision>,
    /// What it has found, for the next session over the same path ([`crate::Tuning::experience`]).
    pub experience: Experience,
}

/// One iSCSI session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PathReport {
    /// Its number in this client.
    pub path: PathId,
    /// The initiator's part of its identity.
    pub isid: Isid,
    /// The target's part; `None` while the session is lost.
    pub tsih: Option<Tsih>,
    /// The portal of its leading connection. The others may lead to other portals of the same portal group.
    pub portal: crate::Portal,
    /// Connecting, up, or gone for good.
    pub state: PathState,
    /// The negotiated parameters; `None` before the first login.
    pub parameters: Option<SessionParameters>,
    /// The reason why it has fewer connections than MaxConnections and the configuration allow.
    pub ceiling: Option<String>,
    /// Connections that it should have: those that it lacks are being made, unless the target allows fewer.
    pub connections_wanted: usize,
    /// The connections that have logged in and have not broken.
    pub connections: Vec<ConnectionReport>,
}

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathState {
    /// Logging in, for the first time or again.
    Connecting,
    /// Carrying I/O to the units whose identity it has proven.
    Up,
    /// Ended for good: logged out, refused, or given up.
    Gone,
}

/// One TCP connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionReport {
    /// Its number in this client, never reused.
    pub lane: LaneId,
    /// Its number in its iSCSI session.
    pub cid: Cid,
    /// What it carries of its session.
    pub role: LaneRole,
    /// It gets no commands, because others do as well without it.
    pub is_spare: bool,
    /// The address at the other end.
    pub peer: SocketAddr,
    /// The negotiated parameters.
    pub parameters: ConnectionParameters,
    /// Bytes and PDUs so far.
    pub counters: Counters,
    /// Unanswered commands placed on it.
    pub outstanding_commands: u32,
    /// Bytes of those commands that have not moved.
    pub outstanding_bytes: u64,
    /// The congestion control in force, by the kernel's name.
    pub congestion: Option<String>,
    /// Round-trip time, congestion window and retransmissions, if its wire measures them.
    pub path: Option<PathMeasurement>,
}

impl Report {
    /// Connections in use now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.paths.iter().map(|path| path.connections.len()).sum()
    }

    /// Those of them that take commands: the others are spare.
    pub fn working(&self) -> impl Iterator<Item = &ConnectionReport> {
        let connections = self.paths.iter().flat_map(|path| &path.connections);
        connections.filter(|connection| !connection.is_spare)
    }

    /// How many take commands.
    #[must_use]
    pub fn working_connections(&self) -> usize {
        self.working().count()
    }

    /// iSCSI sessions in use now.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.paths.iter().filter(|path| !path.connections.is_empty()).count()
    }
}
