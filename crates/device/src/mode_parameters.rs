//! Mode parameters that change a unit's behaviour (SPC-4; SBC-3).

use crate::logical_unit::LogicalUnit;
use crate::unit_state::NexusId;
use scsi::{ModeSelect, Outcome, SenseFormat};

impl LogicalUnit {
    /// Changes mode parameters for all initiators. If the cache is switched off, its contents are made durable before
    /// the answer, as every later write will be; the unit's task set admits no write meanwhile. This happens even if
    /// the cache was off before, because the flush of the earlier command may have failed.
    pub(crate) async fn mode_select(&self, nexus: NexusId, select: ModeSelect) -> Outcome {
        self.state.borrow_mut().mode_select(nexus, &select);
        self.settled(Outcome::good()).await
    }

    /// Whether a write must be durable before its answer, although there is a cache (WCE 0).
    pub(crate) fn writes_through(&self) -> bool {
        self.state.borrow().mode_settings().write_through
    }

    /// The format of sense data (`D_SENSE`).
    pub(crate) fn sense_format(&self) -> SenseFormat {
        self.state.borrow().mode_settings().sense_format()
    }

    /// The end of a command that changed blocks without a write that could be forced to the medium.
    pub(crate) async fn settled(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Good(_) if self.writes_through() => self.flush().await,
            outcome => outcome,
        }
    }
}
