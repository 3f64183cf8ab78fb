//! Reservations: keys and types.

/// A reservation key (SPC-4): the name and the proof of a registrant. Zero is no key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationKey(pub u64);

impl ReservationKey {
    /// No key: requests nothing, or the end of a registration.
    pub const NONE: Self = Self(0);
}

/// The type of a persistent reservation (SPC-4): the restrictions on other nexuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReservationType {
    /// Only the holder writes.
    WriteExclusive = 0x1,
    /// Only the holder reads and writes.
    ExclusiveAccess = 0x3,
    /// Only registrants write; one of them holds it.
    WriteExclusiveRegistrantsOnly = 0x5,
    /// Only registrants read and write; one of them holds it.
    ExclusiveAccessRegistrantsOnly = 0x6,
    /// Only registrants write; all of them hold it.
    WriteExclusiveAllRegistrants = 0x7,
    /// Only registrants read and write; all of them hold it.
    ExclusiveAccessAllRegistrants = 0x8,
}

impl ReservationType {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::WriteExclusive,
        Self::ExclusiveAccess,
        Self::WriteExclusiveRegistrantsOnly,
        Self::ExclusiveAccessRegistrantsOnly,
        Self::WriteExclusiveAllRegistrants,
        Self::ExclusiveAccessAllRegistrants,
    ];

    /// The value of the TYPE field.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The type with this code; `None` for reserved and obsolete codes.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Whether it also excludes reading.
    #[must_use]
    pub const fn excludes_reading(self) -> bool {
        matches!(
            self,
            Self::ExclusiveAccess
                | Self::ExclusiveAccessRegistrantsOnly
                | Self::ExclusiveAccessAllRegistrants
        )
    }

    /// Whether every registrant holds it.
    #[must_use]
    pub const fn is_all_registrants(self) -> bool {
        matches!(self, Self::WriteExclusiveAllRegistrants | Self::ExclusiveAccessAllRegistrants)
    }

    /// Whether every registrant has the holder's rights: the "registrants only" and "all registrants" types.
    #[must_use]
    pub const fn admits_registrants(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }
}
