//! Status codes (SAM-5).

/// How a command ended, as one byte of the SCSI Response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Good = 0x00,
    /// Refused or failed; sense data says why.
    CheckCondition = 0x02,
    /// Done, and what was asked is so: PRE-FETCH has all its blocks in a cache.
    ConditionMet = 0x04,
    /// Cannot be taken now; try again.
    Busy = 0x08,
    /// Another initiator holds a reservation against this.
    ReservationConflict = 0x18,
    /// No room for another task.
    TaskSetFull = 0x28,
    /// Aborted by another I_T nexus, where the control mode page's TAS bit asks for this answer.
    TaskAborted = 0x40,
}

impl Status {
    /// The byte on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}
