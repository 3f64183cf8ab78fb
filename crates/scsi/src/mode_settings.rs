//! The parameters of a logical unit that MODE SELECT can change (SPC-4; SBC-3).

/// Mode parameters that differ from their defaults. All initiators share them; none is saved, so a reset reverts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeSettings {
    /// `D_SENSE` of the control mode page: sense data comes in descriptor format.
    pub descriptor_sense: bool,
    /// SWP of the control mode page: every write is refused.
    pub write_protected: bool,
    /// WCE of the caching mode page was cleared although there is a cache: every write is durable before its status is
    /// sent.
    pub write_through: bool,
}

/// The parameters that one MODE SELECT sets; `None` leaves one unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeSelect {
    pub(crate) descriptor_sense: Option<bool>,
    pub(crate) write_protected: Option<bool>,
    pub(crate) write_through: Option<bool>,
}

impl ModeSelect {
    /// The settings after it.
    #[must_use]
    pub fn applied_to(&self, before: ModeSettings) -> ModeSettings {
        ModeSettings {
            descriptor_sense: self.descriptor_sense.unwrap_or(before.descriptor_sense),
            write_protected: self.write_protected.unwrap_or(before.write_protected),
            write_through: self.write_through.unwrap_or(before.write_through),
        }
    }
}
