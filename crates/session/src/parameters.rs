//! What two sides agreed on, and what each side is willing to agree on.

pub use crate::negotiation::{Offer, SessionParameters};

use core::time::Duration;
use pdu::{Cid, CmdSn, Isid, StatSn, Tsih, Window};

/// Whether a session carries SCSI or only finds targets (RFC 7143 §13.21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionType {
    /// SCSI commands.
    Normal,
    /// SendTargets only.
    Discovery,
}

/// What makes a session that session: a new login with the same identity reinstates it (RFC 7143 §6.3.5).
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

/// Keys that hold for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionParameters {
    /// CRC32C over headers.
    pub header_digest: bool,
    /// CRC32C over data segments.
    pub data_digest: bool,
    /// The longest data segment that the peer takes.
    pub send_segment_bytes_max: u32,
    /// The longest data segment that this side takes.
    pub receive_segment_bytes_max: u32,
}

/// A connection whose login is done: what it brings to its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Established {
    /// The session it belongs to.
    pub identity: Identity,
    /// The target's part of the session identifier, never zero.
    pub tsih: Tsih,
    /// Connection id.
    pub cid: Cid,
    /// Session-wide keys. For a connection that joins a session these are the session's.
    pub session: SessionParameters,
    /// This connection's keys.
    pub connection: ConnectionParameters,
    /// The CmdSN of the session's first command, when this is its leading connection.
    pub cmd_sn: CmdSn,
    /// The next StatSN on this connection.
    pub stat_sn: StatSn,
    /// What the initiator has received of the connection whose name, and place, this one takes: the ExpStatSN of the
    /// first Login Request (RFC 7143 §11.12.9). It means nothing where there is no such connection.
    pub replaced_exp_stat_sn: StatSn,
    /// The command window that the last Login Response told.
    pub window: Window,
}

/// How much one side wants a digest (RFC 7143 §13.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestPreference {
    /// `CRC32C` only: no connection without it.
    Required,
    /// `CRC32C,None`.
    Preferred,
    /// `None,CRC32C`: only if the peer wants it.
    Accepted,
    /// `None` only.
    Never,
}

/// The most connections that one session may have, whatever a peer offers.
///
/// Sixty-four connections exceed every published gain from parallel streams; the bound keeps per-session state small.
pub const MAX_CONNECTIONS: u16 = 64;

/// Bounds on what one session may hold at a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetLimits {
    /// Commands between ExpCmdSN and MaxCmdSN, both included: the command window. Window × FirstBurstLength
    /// must fit the session's share of the buffer budget, because a window cannot be taken back.
    pub window_commands: u32,
    /// Immediate commands (those that carry the I bit) being executed at once: they bypass the window. TASK REASSIGN is
    /// not counted here; of these there may be as many as the window has commands.
    pub immediate_commands_max: u32,
    /// The longest transfer of one command; a longer one is refused by the device server, its data discarded.
    pub transfer_bytes_max: u32,
    /// Data-In that was sent and is kept until the initiator acknowledges it, so that it can be sent again (error
    /// recovery level 1 and above). Beyond it reads lose what they could repeat, the oldest first. Twice MaxBurstLength or
    /// more, for a single read is not asked for an acknowledgement sooner; and less than the driver's own bound on
    /// buffers that it has handed over, or a long read would wait for itself.
    pub retained_bytes_max: u32,
    /// How long a lane may be silent before the target pings it.
    pub ping_after: Duration,
    /// How long a peer that was pinged may be silent, at the most, before the lane is given up.
    pub ping_timeout: Duration,
}

/// Bounds on what one session holds at an initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiatorLimits {
    /// Commands queued and outstanding.
    pub commands_max: u32,
    /// How long a lane may be silent, while something is outstanding or not, before the initiator pings it.
    pub ping_after: Duration,
    /// How long a peer that was pinged may be silent, at the most, before the lane is given up.
    pub ping_timeout: Duration,
}
