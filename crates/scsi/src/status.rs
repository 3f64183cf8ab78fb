//! Status codes (SAM-5).

/// The end of a command, as one byte of the SCSI Response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// The command succeeded.
    Good = 0x00,
    /// Refusal or failure, with sense data.
    CheckCondition = 0x02,
    /// Success with a positive answer: PRE-FETCH has all its blocks in a cache.
    ConditionMet = 0x04,
    /// The unit cannot accept the command now; try again.
    Busy = 0x08,
    /// Another initiator's reservation conflicts.
    ReservationConflict = 0x18,
    /// The task set has no room for another task.
    TaskSetFull = 0x28,
    /// Another I_T nexus aborted the task, and the control mode page's TAS bit requests this status.
    TaskAborted = 0x40,
}

impl Status {
    /// The byte on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}
