//! The medium of a unit from which it can be removed (SPC-4, PREVENT ALLOW MEDIUM REMOVAL; SBC-3, START STOP UNIT).
//!
//! Only commands to units whose medium is removable ever change this; any other unit has its medium for ever.

use std::collections::BTreeSet;

use scsi::{AdditionalSense, Sense, SenseKey};

use super::NexusId;

/// Whether it is there, and who wants it to stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Medium {
    ejected: bool,
    /// While there is one, nothing is ejected or loaded. No more than there are nexuses.
    prevented_by: BTreeSet<NexusId>,
}

/// What LOAD found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    /// It had been ejected.
    Now,
    /// It was there.
    Before,
}

impl Medium {
    /// # Errors
    /// NOT READY, if it was ejected.
    pub(crate) fn check_present(&self) -> Result<(), Sense> {
        if self.ejected {
            return Err(Sense::new(SenseKey::NotReady, AdditionalSense::MEDIUM_NOT_PRESENT));
        }
        Ok(())
    }

    /// # Errors
    /// MEDIUM REMOVAL PREVENTED.
    pub(crate) fn load(&mut self) -> Result<Loaded, Sense> {
        self.check_allowed()?;
        Ok(if std::mem::replace(&mut self.ejected, false) { Loaded::Now } else { Loaded::Before })
    }

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

    /// This nexus wants it to stay.
    pub(crate) fn prevent_removal(&mut self, nexus: NexusId) {
        self.prevented_by.insert(nexus);
    }

    /// This nexus does not mind, or is no more.
    pub(crate) fn allow_removal(&mut self, nexus: NexusId) {
        self.prevented_by.remove(&nexus);
    }

    /// A reset: nobody minds.
    pub(crate) fn allow_removal_by_all(&mut self) {
        self.prevented_by.clear();
    }
}
