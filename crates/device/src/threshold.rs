//! The free space of a thin unit, and the reports when it runs low (SBC-3, logical block provisioning thresholds).

use crate::environment::Environment;
use crate::logical_unit::{LogicalUnit, with_source};
use block::{BlockError, Operation};
use pdu::Duration;
use scsi::{Blocks, Outcome, ProvisioningLog, Threshold};
use std::rc::{Rc, Weak};

/// The interval between checks of a unit with a threshold: short enough for whoever must find more space, and too long
/// to cost anything.
pub(crate) const SAMPLING_INTERVAL: Duration = Duration::from_secs(5);

/// The allocated and the available space of a thin unit.
struct Resources {
    used: Blocks,
    available: Blocks,
}

/// Checks a unit's space at intervals, while the unit exists. A failed query is repeated, because nothing else would
/// tell the initiators that space runs out.
pub(crate) async fn watch(environment: Rc<Environment>, unit: Weak<LogicalUnit>, threshold: Threshold) {
    let mut is_known = true;
    while let Some(watched) = unit.upgrade() {
        let (lun, resources) = (watched.number, watched.resources().await);
        match &resources {
            Ok(resources) => watched.state.borrow_mut().can_allocate(resources.available, threshold),
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
