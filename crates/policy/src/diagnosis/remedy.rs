//! What would help against a limit.

use super::Limit;
use core::fmt;

/// A change that would help, and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Remedy {
    /// The change.
    pub change: Change,
    /// How many times as much the session would then move, unless something else limits it first.
    pub gain: f64,
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Change {
    /// The caller always has requests.
    BusierCaller,
    /// Twice as many requests are outstanding at a time.
    MoreRequests,
    /// The target admits twice as many commands.
    WiderCommandWindow,
    /// Bursts are twice as long, so that half as many have to be asked for.
    LongerBursts,
    /// The target or its disk takes no time.
    FasterTarget,
    /// Twice as many connections.
    MoreConnections,
}

/// A smaller gain is not worth a word.
const GAIN_MIN: f64 = 1.05;

/// The gain of twice as many.
const TWICE: f64 = 2.0;

impl Change {
    /// A word for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BusierCaller => "busier_caller",
            Self::MoreRequests => "more_requests",
            Self::WiderCommandWindow => "wider_command_window",
            Self::LongerBursts => "longer_bursts",
            Self::FasterTarget => "faster_target",
            Self::MoreConnections => "more_connections",
        }
    }
}

impl Remedy {
    /// Against what limits a session that moves this share of what its network carries while it moves anything; `None` if
    /// that is not known.
    ///
    /// A session that never has to wait moves all of it. Where each of several things waits alone, such as requests for
    /// their round trips, or connections for their windows, twice as many move twice as much.
    pub(super) fn against(limit: Limit, moving_share: Option<f64>, is_incoming: bool) -> Option<Self> {
        let all = moving_share.map(|moving_share| 1.0 / moving_share);
        let up_to_twice = all.map(|all| all.min(TWICE));
        let (change, gain) = match limit {
            Limit::Caller => (Change::BusierCaller, all),
            Limit::Target => (Change::FasterTarget, all),
            Limit::Depth if is_incoming => (Change::MoreRequests, up_to_twice),
            Limit::CommandWindow if is_incoming => (Change::WiderCommandWindow, up_to_twice),
            // What the network would carry is not known: a window that is not full does not leave at the path's rate.
            Limit::Depth => (Change::MoreRequests, Some(TWICE)),
            Limit::CommandWindow => (Change::WiderCommandWindow, Some(TWICE)),
            Limit::ReadyToTransfer => (Change::LongerBursts, Some(TWICE)),
            Limit::SendBuffer | Limit::ReceiveWindow | Limit::Losses | Limit::Timeouts => {
                (Change::MoreConnections, Some(TWICE))
            }
            // Nothing more is to be had, or it is not known what would help, or by how much.
            Limit::Saturation
            | Limit::Arrival
            | Limit::SlowStart
            | Limit::IdleRestart
            | Limit::CongestionWindow
            | Limit::Processor => return None,
        };
        gain.filter(|gain| gain.is_finite() && *gain >= GAIN_MIN).map(|gain| Self { change, gain })
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.change {
            Change::BusierCaller => "without these pauses",
            Change::MoreRequests => "with twice as many requests at a time",
            Change::WiderCommandWindow => "with a command window twice as wide",
            Change::LongerBursts => "with bursts twice as long",
            Change::FasterTarget => "with a faster target",
            Change::MoreConnections => "with twice as many connections",
        })?;
        write!(formatter, ", up to {:.1} times as fast", self.gain)
    }
}
