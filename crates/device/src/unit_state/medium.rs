//! The medium of a unit that allows its removal (SPC-4, PREVENT ALLOW MEDIUM REMOVAL; SBC-3, START STOP UNIT).
//!
//! Only commands to units with a removable medium ever change this state.

use std::collections::BTreeSet;

use scsi::{AdditionalSense, Sense, SenseKey};

use super::NexusId;

/// The presence of the medium, and the nexuses that prevent its removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Medium {
    ejected: bool,
    /// While any nexus is in it, nothing is ejected or loaded. It holds at most all nexuses.
    prevented_by: BTreeSet<NexusId>,
}

/// The state before a LOAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    /// The medium had been ejected.
    Now,
    /// The medium was present.
    Before,
}

impl Medium {
    /// Checks that the medium is present.
    ///
    /// # Errors
    /// NOT READY, if it was ejected.
    pub(crate) fn check_present(&self) -> Result<(), Sense> {
        if self.ejected {
            return Err(Sense::new(SenseKey::NotReady, AdditionalSense::MEDIUM_NOT_PRESENT));
        }
        Ok(())
    }

    /// Loads the medium.
    ///
    /// # Errors
    /// MEDIUM REMOVAL PREVENTED.
    pub(crate) fn load(&mut self) -> Result<Loaded, Sense> {
        self.check_allowed()?;
        Ok(if std::mem::replace(&mut self.ejected, false) { Loaded::Now } else { Loaded::Before })
    }

    /// Ejects the medium.
    ///
    /// # Errors
    /// MEDIUM REMOVAL PREVENTED.
    pub(crate) fn eject(&mut self) -> Result<(), Sense> {
        self.check_allowed()?;
        self.ejected = true;
        Ok(())
    }

    fn check_allowed(&self) -> Result<(), Sense> {
        if self.prevented_by.is_empty() {
            return Ok(());
        }
        Err(Sense::illegal_request(AdditionalSense::MEDIUM_REMOVAL_PREVENTED))
    }

    /// This nexus prevents removal.
    pub(crate) fn prevent_removal(&mut self, nexus: NexusId) {
        self.prevented_by.insert(nexus);
    }

    /// This nexus allows removal, or is gone.
    pub(crate) fn allow_removal(&mut self, nexus: NexusId) {
        self.prevented_by.remove(&nexus);
    }

    /// A reset: all nexuses allow removal.
    pub(crate) fn allow_removal_by_all(&mut self) {
        self.prevented_by.clear();
    }
}
