//! Mode parameters that change what a unit does (SPC-4; SBC-3).

use crate::logical_unit::LogicalUnit;
use nexus::target::NexusId;
use scsi::{ModeSelect, Outcome, SenseFormat};

impl LogicalUnit {
    /// Changes mode parameters for all initiators. When the cache is switched off, what it holds is made durable
    /// before the answer, as every later write will be.
    pub(crate) async fn mode_select(&self, nexus: NexusId, select: ModeSelect) -> Outcome {
        let through_before = self.writes_through();
        self.shared.borrow_mut().mode_select(nexus, &select);
        if self.writes_through() && !through_before { self.flush().await } else { Outcome::good() }
    }

    /// Whether a write must be durable before it is answered, though there is a cache (WCE 0).
    pub(crate) fn writes_through(&self) -> bool {
        self.shared.borrow().mode_settings().write_through
    }

    /// How sense data is laid out (`D_SENSE`).
    pub(crate) fn sense_format(&self) -> SenseFormat {
        self.shared.borrow().mode_settings().sense_format()
    }

    /// The end of a command that changed blocks without a write that could be forced to the medium.
    pub(crate) async fn settled(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Good(_) if self.writes_through() => self.flush().await,
            outcome => outcome,
        }
    }
}
