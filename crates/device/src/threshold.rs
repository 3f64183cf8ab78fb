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

/// Looks at a unit's space now and then, for as long as the unit is there.
pub(crate) async fn watch(environment: Rc<Environment>, unit: Weak<LogicalUnit>, threshold: Threshold) {
    while let Some(watched) = unit.upgrade() {
        match watched.resources().await {
            Ok(resources) => watched.shared.borrow_mut().can_allocate(resources.available, threshold),
            Err(error) => {
                let (lun, error) = (watched.number, with_source(&error));
                return tracing::warn!(lun, %error, "the space that is left cannot be known any more");
            }
        }
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
