//! Declares the timers of a session. Both roles.
//!
//! A deadline is derived from the state that it guards whenever it is needed. It therefore cannot outlive its reason
//! and need not be set. Each role names its timers in enums and has two matches over them, one for when a timer expires
//! and one for what happens then; a timer that lacks either does not compile.

/// Declares an enum of timers. `ALL` lists them in the order in which they expire if several are due.
macro_rules! timers {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident { $($(#[$doc:meta])* $timer:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name { $($(#[$doc])* $timer),+ }

        impl $name {
            $visibility const ALL: &'static [Self] = &[$(Self::$timer),+];
        }
    };
}

pub(crate) use timers;
