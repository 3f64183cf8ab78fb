//! The parameters of sessions and connections, and the limits that each side sets for itself.

pub use crate::negotiation::{Offer, SessionParameters};

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use pdu::{Cid, CmdSn, Isid, StatSn, Tsih, Window};

/// Whether a session carries SCSI or only finds targets (RFC 7143 §13.21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionType {
    /// A session for SCSI commands.
    Normal,
    /// A session for SendTargets only.
    Discovery,
}

/// A session's identity: a new login with the same identity reinstates the session (RFC 7143 §6.3.5).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// iSCSI name of the initiator.
    pub initiator_name: String,
    /// Initiator's part of the session identifier.
    pub isid: Isid,
    /// iSCSI name of the target; empty in a discovery session.
    pub target_name: String,
    /// Portal group through which the session was made.
    pub portal_group_tag: u16,
}

/// How a session's PDUs are spread over its connections.
///
/// A split session is one bundle of connections, each with a [`LaneRole`]: this project's extension of RFC 7143, which
/// demands that a command and all that belongs to it use the same connection (§4.2.5.1). It has error recovery level 0,
/// and is lost with any of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SplitLanes {
    /// Every connection carries everything.
    #[default]
    None,
    /// Requests on one connection, responses on another (paper 001).
    Two,
    /// The data of reads on a third, so that nothing which a write waits for is behind it.
    Three,
}

impl SplitLanes {
    /// All, in the order of the values of the key SplitLanes.
    pub(crate) const ALL: [Self; 3] = [Self::None, Self::Two, Self::Three];

    /// The roles of the session's connections, that of the leading one first.
    #[must_use]
    pub const fn roles(self) -> &'static [LaneRole] {
        match self {
            Self::None => &[LaneRole::Whole],
            Self::Two => &[LaneRole::Requests, LaneRole::Responses],
            Self::Three => &[LaneRole::Requests, LaneRole::Responses, LaneRole::DataIn],
        }
    }

    /// The role of the connections that bring the data of reads.
    #[must_use]
    pub const fn brings_reads(self) -> LaneRole {
        match self {
            Self::None => LaneRole::Whole,
            Self::Two => LaneRole::Responses,
            Self::Three => LaneRole::DataIn,
        }
    }
}

/// A name that no split has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of whole, split and split3")]
pub struct UnknownSplit(String);

impl FromStr for SplitLanes {
    type Err = UnknownSplit;

    fn from_str(name: &str) -> Result<Self, UnknownSplit> {
        let known = Self::ALL.into_iter().find(|split| split.to_string() == name);
        known.ok_or_else(|| UnknownSplit(name.to_owned()))
    }
}

impl fmt::Display for SplitLanes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "whole",
            Self::Two => "split",
            Self::Three => "split3",
        })
    }
}

/// What one connection of a session carries. Each also carries pings, for its own sake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaneRole {
    /// Everything.
    #[default]
    Whole,
    /// What the initiator sends.
    Requests,
    /// What the target sends; the data of reads only if no other connection carries it.
    Responses,
    /// The data of reads.
    DataIn,
}

impl LaneRole {
    /// Its name in the key Lane, for people too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Requests => "requests",
            Self::Responses => "responses",
            Self::DataIn => "data-in",
        }
    }

    /// The role with which a connection joins a split session. The leading connection's needs no name.
    pub(crate) fn of_joining(name: &str) -> Option<Self> {
        [Self::Responses, Self::DataIn].into_iter().find(|role| role.name() == name)
    }

    /// Whether the initiator sends its requests here.
    #[must_use]
    pub const fn takes_requests(self) -> bool {
        matches!(self, Self::Whole | Self::Requests)
    }
}

/// Keys that hold for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionParameters {
    /// CRC32C over headers.
    pub header_digest: bool,
    /// CRC32C over data segments.
    pub data_digest: bool,
    /// The longest data segment that the peer accepts, in bytes.
    pub send_segment_bytes_max: u32,
    /// The longest data segment that this side accepts, in bytes.
    pub receive_segment_bytes_max: u32,
}

/// A connection whose login is done, as it enters its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Established {
    /// The identity of its session.
    pub identity: Identity,
    /// The target's part of the session identifier, never zero.
    pub tsih: Tsih,
    /// The number that the initiator gave the connection (RFC 7143 §11.12.7).
    pub cid: Cid,
    /// Session-wide keys. For a connection that joins a session these are the session's.
    pub session: SessionParameters,
    /// This connection's keys.
    pub connection: ConnectionParameters,
    /// What it carries.
    pub role: LaneRole,
    /// The CmdSN of the session's first command, when this is its leading connection.
    pub cmd_sn: CmdSn,
    /// The next StatSN on this connection.
    pub stat_sn: StatSn,
    /// The ExpStatSN of the first Login Request: it acknowledges responses of the connection that this one reinstates
    /// (RFC 7143 §11.12.9). Meaningless if there is none.
    pub replaced_exp_stat_sn: StatSn,
    /// The command window that the last Login Response told.
    pub window: Window,
}

/// One side's wish for a digest (RFC 7143 §13.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestPreference {
    /// `CRC32C` only: no connection without a digest.
    Required,
    /// `CRC32C,None`: with a digest, if the peer supports it.
    Preferred,
    /// `None,CRC32C`: only if the peer wants it.
    Accepted,
    /// `None` only: no connection with a digest.
    Never,
}

/// The most connections that one session may have.
///
/// Sixty-four connections exceed every published gain from parallel streams; the bound keeps per-session state small.
pub const MAX_CONNECTIONS: u16 = 64;

/// Limits on the resources of one session at a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetLimits {
    /// The size of the command window: commands from ExpCmdSN to MaxCmdSN, both included. Window × FirstBurstLength
    /// must fit the session's share of the buffer budget, because a window cannot be taken back.
    pub window_commands: u32,
    /// The most immediate commands (with the I bit) in execution at a time: they bypass the window. TASK REASSIGN is
    /// counted apart: there may be as many as the window has commands.
    pub immediate_commands_max: u32,
    /// The longest transfer of one command, in bytes. The device server refuses a longer one, and its data is
    /// discarded.
    pub transfer_bytes_max: u32,
    /// The most Data-In, in bytes, that is kept after it was sent, so that it can be sent again (error recovery level 1
    /// and above). Beyond that limit the oldest data is dropped. It should be at least twice MaxBurstLength, because
    /// the target does not ask for a single read's acknowledgement sooner. It must be less than the driver's own limit
    /// on buffers in use, or a long read would wait for itself.
    pub retained_bytes_max: u32,
    /// How long a lane may be silent before the target pings it.
    pub ping_after: Duration,
    /// The longest silence of a pinged peer before the lane is given up.
    pub ping_timeout: Duration,
}

/// Limits on one session at an initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiatorLimits {
    /// The most commands that are queued or outstanding.
    pub commands_max: u32,
    /// How long a lane may be silent before the initiator pings it, whether or not something is outstanding.
    pub ping_after: Duration,
    /// The longest silence of a pinged peer before the lane is given up.
    pub ping_timeout: Duration,
}
