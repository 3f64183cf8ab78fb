//! Serial numbers, tags and handles: newtypes that the compiler keeps apart.

use core::fmt;

/// A 32-bit serial number, compared by RFC 1982 as RFC 7143 §4.2.2 requires for all of its sequence numbers.
///
/// It has no `Ord`, because serial order is not transitive.
macro_rules! serial_number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The number that follows this one.
            #[must_use]
            pub const fn next(self) -> Self {
                self.plus(1)
            }

            /// The number `count` steps after this one, modulo 2³².
            #[must_use]
            pub const fn plus(self, count: u32) -> Self {
                Self(self.0.wrapping_add(count))
            }

            /// Whether this number comes before `other` (RFC 1982 §3.2). Two numbers exactly 2³¹ apart have no order.
            #[must_use]
            pub const fn precedes(self, other: Self) -> bool {
                let ahead = other.0.wrapping_sub(self.0);
                ahead != 0 && ahead < 1 << 31
            }

            /// The steps from `earlier` to this number, modulo 2³².
            #[must_use]
            pub const fn distance_from(self, earlier: Self) -> u32 {
                self.0.wrapping_sub(earlier.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

serial_number! {
    /// Orders the commands of a session over all of its connections (RFC 7143 §4.2.2.1).
    CmdSn
}
serial_number! {
    /// Numbers the responses on one connection (RFC 7143 §4.2.2.2).
    StatSn
}
serial_number! {
    /// Numbers the data PDUs of a command or of one R2T's answer (RFC 7143 §4.2.2.3, §11.7.5).
    DataSn
}
serial_number! {
    /// Numbers the R2Ts of a command (RFC 7143 §11.8.2). A bidirectional command shares it with its Data-In
    /// PDUs.
    R2tSn
}

macro_rules! task_tag {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The reserved value: no task, no transfer.
            pub const NONE: Self = Self(0xffff_ffff);

            /// Whether this is the reserved value.
            #[must_use]
            pub const fn is_none(self) -> bool {
                self.0 == Self::NONE.0
            }

            /// Whether this names a task or a transfer.
            #[must_use]
            pub const fn is_some(self) -> bool {
                !self.is_none()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{:#010x}", self.0)
            }
        }
    };
}

task_tag! {
    /// Initiator Task Tag: names a task within its session (RFC 7143 §11.2.1.8).
    Itt
}
task_tag! {
    /// Target Transfer Tag: the target's name for a transfer, a ping or a text exchange (RFC 7143 §11.8.5).
    Ttt
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

handle! {
    /// Connection ID: the initiator's name for a connection within its session (RFC 7143 §11.12.7).
    Cid(u16)
}
handle! {
    /// Target Session Identifying Handle (RFC 7143 §11.12.6). Zero asks for a new session.
    Tsih(u16)
}
handle! {
    /// A connection within one session, named by its driver. Never on the wire: a later connection may reuse a [`Cid`],
    /// but never a lane.
    LaneId(u32)
}
handle! {
    /// A part of payload memory, named by its driver. Never on the wire.
    BufferId(u32)
}

impl Tsih {
    /// The TSIH in the leading login of a new session.
    pub const NEW_SESSION: Self = Self(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_keep_their_order_where_they_wrap() {
        let last = CmdSn(u32::MAX);
        assert_eq!(last.next(), CmdSn(0));
        assert!(last.precedes(CmdSn(0)));
        assert!(!CmdSn(0).precedes(last));
        assert_eq!(CmdSn(4).distance_from(last), 5);
    }

    #[test]
    fn a_serial_number_does_not_precede_itself() {
        assert!(!StatSn(7).precedes(StatSn(7)));
    }

    #[test]
    fn serial_numbers_half_a_circle_apart_have_no_order() {
        assert!(!DataSn(0).precedes(DataSn(1 << 31)));
        assert!(!DataSn(1 << 31).precedes(DataSn(0)));
        assert!(DataSn(0).precedes(DataSn((1 << 31) - 1)));
    }

    #[test]
    fn only_the_reserved_tag_names_nothing() {
        assert!(Itt::NONE.is_none());
        assert!(Itt(0).is_some());
        assert!(Ttt(0xffff_fffe).is_some());
    }
}
