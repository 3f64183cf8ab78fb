//! An initiator's configuration for a login.

use crate::chap::{Credentials, Entropy};
use crate::parameters::{LaneRole, Offer, SessionParameters};
use pdu::{Cid, CmdSn, Isid, StatSn, Tsih};

/// The configuration of one connection's login.
#[derive(Clone, Debug)]
pub struct Config {
    /// This initiator's iSCSI name.
    pub initiator_name: String,
    /// This initiator's description for people.
    pub initiator_alias: Option<String>,
    /// The target, or `None` for a discovery session.
    pub target_name: Option<String>,
    /// The initiator's part of the session identifier, the same in all connections of a session.
    pub isid: Isid,
    /// The connection's name within its session.
    pub cid: Cid,
    /// The session to join, or `None` for a new one.
    pub joining: Option<Joining>,
    /// What the connection carries in the session that it joins; meaningless for a new one.
    pub role: LaneRole,
    /// The portal group that the portal must be of. `None`: any.
    pub portal_group_tag: Option<u16>,
    /// The CmdSN of a new session's first command, or an existing session's next CmdSN. The login does not consume it.
    pub cmd_sn: CmdSn,
    /// The operational parameters to propose.
    pub offer: Offer,
    /// The account that this initiator proves by CHAP and, if authentication is mutual, the account that the target
    /// must prove. `None` skips the security stage.
    pub credentials: Option<Credentials>,
    /// Random bytes for a challenge, fresh for every login.
    pub entropy: Entropy,
}

/// The session that a connection joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joining {
    /// The session's handle.
    pub tsih: Tsih,
    /// The session's parameters, which hold for the new connection too.
    pub session: SessionParameters,
    /// The ExpStatSN of the connection that the new one reinstates ([`crate::initiator::Session::exp_stat_sn`]).
    /// Meaningless if there is none.
    pub replaced_exp_stat_sn: StatSn,
}
