//! What an initiator brings to a login.

use crate::chap::{Credentials, Entropy};
use crate::parameters::{Offer, SessionParameters};
use pdu::{Cid, CmdSn, Isid, StatSn, Tsih};

/// One connection's login.
#[derive(Clone, Debug)]
pub struct Config {
    /// This initiator's iSCSI name.
    pub initiator_name: String,
    /// This initiator's description for people.
    pub initiator_alias: Option<String>,
    /// The target, or `None` for a discovery session.
    pub target_name: Option<String>,
    /// The initiator's part of the session's identity. The same in all of a session's connections.
    pub isid: Isid,
    /// The connection's name within its session.
    pub cid: Cid,
    /// The session to join, or `None` for a new one.
    pub joining: Option<Joining>,
    /// The CmdSN of a new session's first command; of an old session, the next. Login does not consume it.
    pub cmd_sn: CmdSn,
    /// What to propose.
    pub offer: Offer,
    /// What this initiator proves by CHAP; if mutual, what the target must prove. `None`: the security stage is skipped.
    pub credentials: Option<Credentials>,
    /// Random bytes for a challenge, fresh for every login.
    pub entropy: Entropy,
}

/// The session that a connection joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joining {
    /// Its handle.
    pub tsih: Tsih,
    /// Its parameters, which hold for the new connection too.
    pub session: SessionParameters,
    /// What has been received of the connection whose name, and place, the new one takes
    /// ([`crate::initiator::Session::exp_stat_sn`]). It means nothing where there is no such connection.
    pub replaced_exp_stat_sn: StatSn,
}
