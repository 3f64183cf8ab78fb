//! One frame of a capture.

use pdu::Instant;

/// A captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The time of the capture, since 1970-01-01 UTC.
    pub at: Instant,
    /// The kind of its first header.
    pub link: LinkType,
    /// Its captured bytes, from the first on.
    pub bytes: &'a [u8],
    /// Its original length, including headers. Longer than any frame on the wire if the network card cuts (GSO) or
    /// joins (GRO) segments beyond the point of capture.
    pub wire_bytes: u32,
}

/// The headers before the Internet Protocol's, by the numbers of the registry of link types (LINKTYPE_…).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet, perhaps with VLAN tags.
    Ethernet,
    /// None: IPv4 or IPv6, told apart by the version in the first byte.
    RawIp,
    /// Linux's header for the interface `any` ("cooked", SLL).
    LinuxCooked,
    /// Its successor (SLL2).
    LinuxCooked2,
    /// A type that is not followed.
    Other(u16),
}

impl LinkType {
    /// The link type of a registered number.
    #[must_use]
    pub const fn from_wire(code: u16) -> Self {
        match code {
            1 => Self::Ethernet,
            // Raw IP as three registered numbers: any version, version 4, version 6.
            101 | 228 | 229 => Self::RawIp,
            113 => Self::LinuxCooked,
            276 => Self::LinuxCooked2,
            other => Self::Other(other),
        }
    }

    /// The registered number.
    #[must_use]
    pub const fn wire(self) -> u16 {
        match self {
            Self::Ethernet => 1,
            Self::RawIp => 101,
            Self::LinuxCooked => 113,
            Self::LinuxCooked2 => 276,
            Self::Other(code) => code,
        }
    }
}
