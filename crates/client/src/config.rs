//! How an initiator behaves.

use crate::{Portal, Reconnect};
use framing::SocketOptions;
use pdu::{CmdSn, Duration};
use session::chap::Credentials;
use session::parameters::{InitiatorLimits, Offer};

/// Everything that can be chosen about a [`crate::Target`]. The defaults suit a long fat network.
#[derive(Clone, Debug)]
pub struct Config {
    /// This initiator's iSCSI name. Targets know initiators by it (masks, CHAP, reservations). None is made up here: the
    /// default is empty, and refused.
    pub initiator_name: String,
    /// TCP connections, over all iSCSI sessions together. At least 1.
    pub connections: u16,
    /// iSCSI sessions to spread the connections over. `None`: one, as far as the target's MaxConnections
    /// reaches, then more. `Some(1)` forbids more.
    pub sessions: Option<u16>,
    /// Where to connect instead of the URL's portal; sessions take them in turn. With several, there are at
    /// least as many sessions as portals, if connections and [`Self::sessions`] allow.
    pub portals: Vec<Portal>,
    /// What to prove by CHAP. `None`: nothing.
    pub credentials: Option<Credentials>,
    /// What to propose in negotiation. At error recovery level 2, which is proposed by default, a broken connection is
    /// replaced within its session, and no command is lost with it; below that, its session is reinstated.
    pub offer: Offer,
    /// The number of a session's first command (RFC 7143 §4.2.2.1). Targets take any.
    pub first_cmd_sn: CmdSn,
    /// Bounds on what each iSCSI session holds.
    pub limits: InitiatorLimits,
    /// Options of the TCP sockets.
    pub socket: SocketOptions,
    /// Memory that [`crate::Lun::allocate`] hands out, in bytes. Buffers of the caller's own do not count.
    pub buffer_budget_bytes: usize,
    /// How long one TCP connect and login may take.
    pub login_timeout: Duration,
    /// What to do when an iSCSI session is lost.
    pub reconnect: Reconnect,
    /// For how long the oldest unanswered command of an iSCSI session may stand still, neither its data moving nor any
    /// that may be before it, on a connection that answers pings. Then it is aborted, its session is reinstated, and it is sent once more; if it
    /// stands still that long again, it fails. A logical unit is not reset. Longer than storage behind a target may
    /// freeze; a flush gets five times as long.
    pub command_limit: Duration,
    /// For how long a command that the target declines (BUSY, TASK SET FULL, becoming ready) or gives up is
    /// sent again.
    pub decline_patience: Duration,
}

/// Commands queued and outstanding per session: 64 connections with 64 commands each.
const COMMANDS_MAX: u32 = 4096;

/// A path that carries nothing for this long is asked whether it lives.
const PING_AFTER: Duration = Duration::from_secs(10);

/// Ten times the longest round trip on Earth, buffers of a bad router included. Shorter values kill connections
/// that are merely busy.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Storage clusters freeze for half a minute and more while they find out what has failed. A command that waited for
/// those before it is the oldest only when they are answered, so that their time does not count.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);

/// How many times [`Config::command_limit`] a SYNCHRONIZE CACHE may take: there may be gigabytes to write.
pub(crate) const FLUSH_LIMITS: u32 = 5;

/// For how many seconds a target is asked to keep the commands of a connection that broke: twice what it takes at most
/// to notice that it did.
const TIME2RETAIN_S: u16 = 60;

/// Sixteen of the longest transfers per connection, on four connections.
const BUFFER_BUDGET_BYTES: usize = 1 << 30;

impl Default for Config {
    fn default() -> Self {
        Self {
            initiator_name: String::new(),
            connections: 4,
            sessions: None,
            portals: Vec::new(),
            credentials: None,
            offer: Offer {
                error_recovery_level: 2,
                default_time2retain_s: TIME2RETAIN_S,
                ..Offer::default()
            },
            first_cmd_sn: CmdSn(1),
            limits: InitiatorLimits {
                commands_max: COMMANDS_MAX,
                ping_after: PING_AFTER,
                ping_timeout: PING_TIMEOUT,
            },
            socket: SocketOptions {
                unsent_bytes: Some(SocketOptions::PLACEMENT_UNSENT_BYTES),
                ..SocketOptions::default()
            },
            buffer_budget_bytes: BUFFER_BUDGET_BYTES,
            login_timeout: Duration::from_secs(15),
            reconnect: Reconnect::default(),
            command_limit: COMMAND_LIMIT,
            decline_patience: Duration::from_secs(60),
        }
    }
}
