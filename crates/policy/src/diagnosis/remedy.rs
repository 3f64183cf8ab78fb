//! What would help against a limit.

use super::Limit;
use core::fmt;

/// A change that would help, and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remedy {
    /// The change.
    pub change: Change,
    /// How many times as much the session would then move, unless something else limits it first.
    pub gain: f64,
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The caller always has requests.
    BusierCaller,
    /// More requests are outstanding at a time.
    MoreRequests,
    /// The target admits more commands.
    WiderCommandWindow,
    /// Unsolicited data, or longer bursts.
    FewerR2ts,
    /// The target or its disk takes no time.
    FasterTarget,
    /// Twice as many connections.
    MoreConnections,
}

impl Change {
    /// A word for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BusierCaller => "busier_caller",
            Self::MoreRequests => "more_requests",
            Self::WiderCommandWindow => "wider_command_window",
            Self::FewerR2ts => "fewer_r2ts",
            Self::FasterTarget => "faster_target",
            Self::MoreConnections => "more_connections",
        }
    }
}

impl Remedy {
    /// Against what limits a session whose network is busy for this share of the time. Without the limit, it would be
    /// busy all the time; and of two equal sets of connections that are limited alone, each moves as much as the other.
    pub(super) fn against(limit: Limit, network_share: f64) -> Option<Self> {
        let (change, gain) = match limit {
            Limit::Caller => (Change::BusierCaller, 1.0 / network_share),
            Limit::Depth => (Change::MoreRequests, 1.0 / network_share),
            Limit::CommandWindow => (Change::WiderCommandWindow, 1.0 / network_share),
            Limit::ReadyToTransfer => (Change::FewerR2ts, 1.0 / network_share),
            Limit::Target => (Change::FasterTarget, 1.0 / network_share),
            Limit::SendBuffer | Limit::ReceiveWindow | Limit::Losses | Limit::Timeouts => {
                (Change::MoreConnections, 2.0)
            }
            // Nothing more is to be had, or it is not known what would help, or by how much.
            Limit::Saturation
            | Limit::Arrival
            | Limit::SlowStart
            | Limit::IdleRestart
            | Limit::CongestionWindow
            | Limit::Processor => return None,
        };
        gain.is_finite().then_some(Self { change, gain })
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.change {
            Change::BusierCaller => "without these pauses",
            Change::MoreRequests => "with more requests at a time",
            Change::WiderCommandWindow => "with a wider command window",
            Change::FewerR2ts => "with unsolicited data or longer bursts",
            Change::FasterTarget => "with a faster target",
            Change::MoreConnections => "with twice as many connections",
        })?;
        write!(formatter, " up to {:.1} times as fast", self.gain)
    }
}
