//! Declares the timers of a session. Both roles.
//!
//! A deadline is derived from the state that it guards whenever it is needed. It therefore cannot outlive its reason
//! and need not be set. Each role names its timers in enums and has two matches over them, one for when a timer expires
//! and one for what happens then; a timer that lacks either does not compile.

use pdu::Instant;

/// Declares an enum of timers. `ALL` lists them in the order in which they expire if several are due.
macro_rules! timers {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident { $($(#[$doc:meta])* $timer:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name { $($(#[$doc])* $timer),+ }

        impl $name {
            $visibility const ALL: &'static [Self] = &[$(Self::$timer),+];

            /// When the first of them expires. No loop over [`Self::ALL`]: the driver asks after every PDU, and each
            /// timer's match is decided by the compiler.
            #[inline]
            $visibility fn first(deadline: impl Fn(Self) -> Option<Instant>) -> Option<Instant> {
                let first = None;
                $(let first = crate::timer::earlier(first, deadline(Self::$timer));)+
                first
            }
        }
    };
}

pub(crate) use timers;

/// The earlier of two deadlines; `None` never expires.
#[inline]
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
