//! The configuration of an initiator.

use crate::layout::PATHS_MAX;
use crate::{Portal, Reconnect};
use framing::{SocketOptions, UnsentLimit};
use pdu::{CmdSn, Duration};
use policy::tuner::{AS_FLOWS, Experience, TUNED_CONNECTIONS_MAX};
use session::chap::Credentials;
use session::parameters::{InitiatorLimits, Offer};

/// The settings of a [`crate::Target`]. The defaults suit a long fat network.
#[derive(Clone, Debug)]
pub struct Config {
    /// This initiator's iSCSI name, by which targets know it (masks, CHAP, reservations). The default is empty and
    /// refused; the library invents none.
    pub initiator_name: String,
    /// The number of TCP connections over all iSCSI sessions together.
    pub connections: Connections,
    /// What the tuner may do, if there is one.
    pub tuning: Tuning,
    /// The number of iSCSI sessions for these connections, each of which begins at another portal. `None`: one for each
    /// portal group, up to the target's MaxConnections, then more; where a session ends with one of its connections, tuned
    /// ones have one each, up to eight. `Some(1)` forbids more.
    pub sessions: Option<u16>,
    /// Portals to connect to instead of the URL's. The connections of a session take those of its portal group in turn
    /// (RFC 7143 §4.1.1); the logins tell which these are. A lost connection is replaced at the next of them.
    pub portals: Vec<Portal>,
    /// The CHAP credentials. `None`: no authentication.
    pub credentials: Option<Credentials>,
    /// The parameters to propose in negotiation. At error recovery level 2, the default, a broken connection is
    /// replaced within its session and no command is lost; below that, the session is reinstated.
    pub offer: Offer,
    /// The CmdSN of a session's first command (RFC 7143 §4.2.2.1). Targets accept any.
    pub first_cmd_sn: CmdSn,
    /// The bounds of each iSCSI session.
    pub limits: InitiatorLimits,
    /// The options of the TCP sockets.
    pub socket: SocketOptions,
    /// The memory for [`crate::Lun::allocate`], in bytes. The caller's own buffers do not count.
    pub buffer_budget_bytes: usize,
    /// The longest time for one TCP connect and login.
    pub login_timeout: Duration,
    /// The policy after the loss of an iSCSI session.
    pub reconnect: Reconnect,
    /// The longest time without progress of a session's oldest unanswered command: neither its own data moves nor any
    /// data that may precede it, although the connection answers pings. The command is then aborted, its session
    /// reinstated, and the command sent once more; if it makes no progress again, it fails. The logical unit is not
    /// reset. The limit must exceed the longest freeze of the storage behind a target. A flush gets five times as long.
    pub command_limit: Duration,
    /// The longest time for which a command is repeated that the target declines (BUSY, TASK SET FULL, becoming ready)
    /// or gives up.
    pub decline_patience: Duration,
}

/// How many TCP connections a target gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connections {
    /// As many as are worth it. A [tuner](crate::Environment::tuner) follows what they move: it sets aside those that bring
    /// nothing, and has more made where they would: at first at once, later one a second.
    #[default]
    Auto,
    /// This number, at least 1.
    Fixed(u16),
}

/// What a tuner may do, and what it begins with.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// The most connections that it may ask for.
    pub connections_max: u32,
    /// Where the path is full, the session takes no larger share of it beside others than so many flows would.
    pub as_flows: u32,
    /// The kernel's name of BBR, which it may then use on two connections where losses limit many; `None` forbids that.
    pub bbr: Option<String>,
    /// What an earlier session over the same path has found ([`crate::Report::experience`]). The tuner begins with it, and
    /// verifies it.
    pub experience: Experience,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            connections_max: TUNED_CONNECTIONS_MAX,
            as_flows: AS_FLOWS,
            bbr: None,
            experience: Experience::default(),
        }
    }
}

/// The most iSCSI sessions of a target whose connections are tuned: many targets allow few.
const TUNED_SESSIONS_MAX: usize = 8;

/// Commands queued and outstanding per session: 64 connections with 64 commands each.
const COMMANDS_MAX: u32 = 4096;

/// The silence after which a path is pinged.
const PING_AFTER: Duration = Duration::from_secs(10);

/// Ten times the longest round trip on Earth, including a bad router's buffers. Shorter values kill connections that
/// are merely busy.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Storage clusters freeze for more than half a minute while they locate a fault. Waiting for earlier commands does not
/// count: only the oldest command is timed.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);

/// The factor on [`Config::command_limit`] for SYNCHRONIZE CACHE, which may have to write gigabytes.
pub(crate) const FLUSH_LIMITS: u32 = 5;

/// The seconds for which a target is asked to keep the commands of a broken connection: twice the longest time to
/// notice the break.
const TIME2RETAIN_S: u16 = 60;

/// Four of the longest transfers on each of sixteen connections.
const BUFFER_BUDGET_BYTES: usize = 1 << 30;

impl Default for Config {
    fn default() -> Self {
        Self {
            initiator_name: String::new(),
            connections: Connections::Auto,
            tuning: Tuning::default(),
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
            socket: SocketOptions { unsent: UnsentLimit::RoundTrip, ..SocketOptions::default() },
            buffer_budget_bytes: BUFFER_BUDGET_BYTES,
            login_timeout: Duration::from_secs(15),
            reconnect: Reconnect::default(),
            command_limit: COMMAND_LIMIT,
            decline_patience: Duration::from_secs(60),
        }
    }
}

impl Config {
    /// Whether sessions that would end with one of their connections have only one each, as long as there may be more.
    pub(crate) fn may_spread(&self) -> bool {
        self.connections == Connections::Auto && self.sessions.is_none()
    }

    /// The most iSCSI sessions.
    pub(crate) fn sessions_max(&self) -> usize {
        let most = match self.connections {
            Connections::Auto => TUNED_SESSIONS_MAX,
            Connections::Fixed(_) => PATHS_MAX,
        };
        self.sessions.map_or(most, usize::from).min(PATHS_MAX)
    }
}
