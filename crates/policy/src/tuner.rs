//! How many connections a session works with, decided from what they move.
//!
//! The driver cuts the time into [`Slice`]s, in each of which the same connections worked, and shows each to a
//! [`Tuner`] at its end. The tuner answers with a [`Decision`], or waits for more. The driver then sets connections
//! aside, calls on spare ones, or makes more. A slice in which a connection breaks or joins is not shown.

mod apt2010;
mod choice;
mod decline;
mod experience;
mod guided;
mod pool;
mod rest;
mod sample;

pub use apt2010::Apt2010;
pub use choice::{TunerChoice, UnknownTuner};
pub use experience::{Experience, Found};
pub use guided::Guided;
pub use pool::{Pool, Pooled};

use crate::diagnosis::{Diagnosis, Limit};
use core::fmt;
use pdu::{Duration, Instant};

/// The most connections that a tuner asks for.
pub const TUNED_CONNECTIONS_MAX: u32 = 64;

/// The connections that a session begins with, unless its tuner begins with fewer. On a clean path sixteen reach what
/// one does; under loss they reach what one would without it, as long as the round trip and the loss are not extreme.
pub const FIRST_CONNECTIONS: u32 = 16;

/// A time in which the same connections worked.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Slice {
    /// Its end.
    pub end: Instant,
    /// The time in which the bytes were moved: its length, up to the moments at which that was looked at.
    pub length: Duration,
    /// The connections that took commands.
    pub connections: u32,
    /// Their congestion control.
    pub law: Law,
    /// The most connections that there can be, as far as is known: at most [`TUNED_CONNECTIONS_MAX`].
    pub connections_max: u32,
    /// They may use BBR, at most [`BBR_CONNECTIONS_MAX`] of them.
    pub may_use_bbr: bool,
    /// What the network carried in both directions; where nothing measures it, payload of the commands that the target
    /// answered.
    pub moved_bytes: u64,
    /// What limited the session; `None` if that cannot be said.
    pub diagnosis: Option<Diagnosis>,
}

/// How connections react to losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Law {
    /// As the user, or the system, has chosen.
    #[default]
    Configured,
    /// By BBR, which takes no notice of single losses.
    Bbr,
}

/// The most connections under BBR. Each takes its measured share of the path twice over, so that several fill the queue
/// between them and crowd others out.
pub const BBR_CONNECTIONS_MAX: u32 = 2;

/// The flows as which a session behaves toward others, unless its user says otherwise. Beside one other flow, eight take
/// eight ninths; over four parallel paths that share flows out at random, they reach nine tenths of what these carry, and
/// four only two thirds.
pub const AS_FLOWS: u32 = 8;

/// The time between two logins after the start: each costs the target some work.
pub const LOGIN_PAUSE: Duration = Duration::from_secs(1);

/// What a tuner may ask for, and what it begins with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The most connections under the configured congestion control.
    pub connections_max: u32,
    /// The connections that are kept over a full path, whether or not more would move more there: beside others, the
    /// session takes the share of so many flows.
    pub as_flows: u32,
    /// What was found over the same path before. It is a start, and is verified.
    pub experience: Experience,
}

impl Default for Terms {
    fn default() -> Self {
        Self { connections_max: TUNED_CONNECTIONS_MAX, as_flows: AS_FLOWS, experience: Experience::default() }
    }
}

impl Slice {
    /// How long a slice lasts on a path with this round trip. In ten round trips a new connection's window has grown to
    /// what most paths hold.
    #[must_use]
    pub fn length_on(rtt: Duration) -> Duration {
        const LENGTH_MIN: Duration = Duration::from_millis(500);
        const ROUND_TRIPS: u32 = 10;
        (rtt * ROUND_TRIPS).max(LENGTH_MIN)
    }
}

/// Decides how many connections work.
pub trait Tuner: Send {
    /// The connections to begin with.
    fn connections_at_first(&self) -> u32;

    /// Takes in the slice that has just ended. A decision for another number of connections ends all slices that are
    /// under way.
    fn decide(&mut self, slice: &Slice) -> Option<Decision>;

    /// The shortest time between the end of one login that it asks for and the next one.
    fn login_pause(&self, _now: Instant) -> Duration {
        LOGIN_PAUSE
    }

    /// What the next session over the same path may begin with; `None` for a tuner that does not say.
    fn experience(&self) -> Option<Experience> {
        None
    }
}

/// A tuner's decision, and what led to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// When it was made.
    pub at: Instant,
    /// The connections that worked.
    pub connections_before: u32,
    /// The connections that are to work.
    pub connections: u32,
    /// Their congestion control.
    pub law: Law,
    /// What those that worked moved.
    pub bytes_per_second: f64,
    /// What led to it.
    pub reason: Reason,
}

/// What leads a tuner to a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// This limits each connection, so more of them may move more.
    EachIsLimited(Limit),
    /// This limits each connection, and may not limit BBR.
    BbrMayDo(Limit),
    /// This limits each connection, and BBR was better before.
    BbrKnown(Limit),
    /// BBR moves this many times as much.
    BbrBetter(f64),
    /// BBR moves only this many times as much.
    BbrNotBetter(f64),
    /// BBR, which was chosen over another path, moves this many times what it moved.
    PathChanged(f64),
    /// Nothing shows that fewer would move less.
    FewerMayDo(Limit),
    /// The other number moves this many times as much.
    Better(f64),
    /// The other number moves only this many times as much.
    NotBetter(f64),
    /// More move only this many times as much, and lose more.
    Overload(f64),
    /// Fewer move this many times as much, which is enough.
    AsGood(f64),
    /// Fewer move this many times as much, which is too little.
    Worse(f64),
    /// Fewer move this many times as much, and still fill the path: others have the rest.
    StillFull(f64),
    /// No further connection could be made.
    NoneCame,
    /// The other number could not be judged in time, before the session moved data the other way or hardly any.
    TooLate,
    /// Something other than the connections limits now, so no more are made.
    LimitedElsewhere(Limit),
    /// The search goes on at this number.
    Searching,
    /// The search has ended at this number.
    Found,
}

impl Reason {
    /// A word for programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::EachIsLimited(_) => "each_is_limited",
            Self::BbrMayDo(_) => "bbr_may_do",
            Self::BbrKnown(_) => "bbr_known",
            Self::BbrBetter(_) => "bbr_better",
            Self::BbrNotBetter(_) => "bbr_not_better",
            Self::PathChanged(_) => "path_changed",
            Self::FewerMayDo(_) => "fewer_may_do",
            Self::Better(_) => "better",
            Self::NotBetter(_) => "not_better",
            Self::Overload(_) => "overload",
            Self::AsGood(_) => "as_good",
            Self::Worse(_) => "worse",
            Self::StillFull(_) => "still_full",
            Self::NoneCame => "none_came",
            Self::TooLate => "too_late",
            Self::LimitedElsewhere(_) => "limited_elsewhere",
            Self::Searching => "searching",
            Self::Found => "found",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EachIsLimited(limit) => write!(formatter, "tried: {}", of_each(*limit)),
            Self::BbrMayDo(limit) => write!(formatter, "BBR tried: {}", of_each(*limit)),
            Self::BbrKnown(limit) => {
                write!(formatter, "BBR, as it was better before: {}", of_each(*limit))
            }
            Self::BbrBetter(ratio) => {
                write!(formatter, "BBR kept, because it moves {ratio:.2} times as much")
            }
            Self::BbrNotBetter(ratio) => {
                write!(formatter, "back, because BBR moves only {ratio:.2} times as much")
            }
            Self::PathChanged(ratio) => {
                write!(formatter, "begun again without BBR, which moves {ratio:.2} times what it moved")
            }
            Self::FewerMayDo(Limit::Saturation) => formatter.write_str("tried: the path is full"),
            Self::FewerMayDo(_) => formatter.write_str("tried: fewer may do as well"),
            Self::Better(ratio) => write!(formatter, "kept, because more move {ratio:.2} times as much"),
            Self::NotBetter(ratio) => {
                write!(formatter, "no better: more move only {ratio:.2} times as much")
            }
            Self::Overload(ratio) => {
                write!(formatter, "back, because more lose more, and move only {ratio:.2} times as much")
            }
            Self::AsGood(ratio) => write!(formatter, "kept, because fewer move {ratio:.2} times as much"),
            Self::Worse(ratio) => write!(formatter, "back, because fewer move only {ratio:.2} times as much"),
            Self::StillFull(ratio) => {
                write!(formatter, "kept: fewer move {ratio:.2} times as much, but the path is still full")
            }
            Self::NoneCame => formatter.write_str("no further connection could be made"),
            Self::TooLate => formatter.write_str("back, because it could not be judged in time"),
            Self::LimitedElsewhere(limit) => {
                let what = limit.beyond_connections().unwrap_or_else(|| limit.name());
                write!(formatter, "no more are made: {what} limits now")
            }
            Self::Searching => formatter.write_str("the search goes on here"),
            Self::Found => formatter.write_str("the search ends here"),
        }
    }
}

/// How something limits each connection, in words.
fn of_each(limit: Limit) -> &'static str {
    match limit {
        Limit::Losses => "losses keep each connection slow",
        Limit::Timeouts => "timeouts keep each connection slow",
        Limit::ReceiveWindow => "the receiver's window limits each connection",
        Limit::SendBuffer => "the send buffer limits each connection",
        _ => "more may move more",
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connections_before, connections, bytes_per_second, reason, .. } = self;
        let megabits = bytes_per_second * 8e-6;
        if connections == connections_before {
            write!(formatter, "{connections} connections, {megabits:.1} Mbit/s: {reason}")
        } else {
            write!(
                formatter,
                "{connections_before} → {connections} connections after {megabits:.1} Mbit/s: {reason}"
            )
        }
    }
}
