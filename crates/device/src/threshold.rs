//! How much space a thin unit has left, and who is told (SBC-3, logical block provisioning thresholds).

use crate::environment::Environment;
use crate::logical_unit::{LogicalUnit, with_source};
use block::{BlockError, Operation};
use pdu::Duration;
use scsi::{Blocks, Outcome, ProvisioningLog, Threshold};
use std::rc::{Rc, Weak};

/// How often a unit with a threshold is looked at: soon enough for whoever must find more space, and too seldom to be
/// felt.
pub(crate) const SAMPLING_INTERVAL: Duration = Duration::from_secs(5);

/// What a thin unit has allocated, and what it still can.
struct Resources {
    used: Blocks,
    available: Blocks,
}

/// Looks at a unit's space now and then, for as long as the unit is there. A query that fails is repeated: nobody else
/// would tell the initiators that space runs out.
pub(crate) async fn watch(environment: Rc<Environment>, unit: Weak<LogicalUnit>, threshold: Threshold) {
    let mut is_known = true;
    while let Some(watched) = unit.upgrade() {
        let (lun, resources) = (watched.number, watched.resources().await);
        match &resources {
            Ok(resources) => watched.shared.borrow_mut().can_allocate(resources.available, threshold),
            Err(error) if is_known => {
                tracing::warn!(lun, error = %with_source(error), "cannot find out how much space is left; trying on");
            }
            Err(_) => {}
        }
        if resources.is_ok() && !is_known {
            tracing::info!(lun, "the space that is left is known again");
        }
        is_known = resources.is_ok();
        drop(watched);
        environment.host.sleep_until(environment.now() + SAMPLING_INTERVAL).await;
    }
}

impl LogicalUnit {
    async fn resources(&self) -> Result<Resources, BlockError> {
        let space = self.backend.submit(Operation::Space).await.into_space()?;
        let blocks = |bytes: u64| Blocks(bytes / u64::from(self.disk.block.bytes()));
        Ok(Resources { used: blocks(space.used_bytes), available: blocks(space.available_bytes) })
    }

    /// LOG SENSE of the logical block provisioning page.
    pub(crate) async fn provisioning_log(&self, request: ProvisioningLog) -> Outcome {
        match self.resources().await {
            Ok(Resources { used, available }) => request.respond(used, available),
            Err(error) => self.read_failure(0, &error),
        }
    }
}
