//! GET LBA STATUS (SBC-3 §5.4).

use crate::logical_unit::LogicalUnit;
use block::{Extent, ExtentState, Operation};
use scsi::{Blocks, GetLbaStatus, Outcome, Provisioning, ProvisioningStatus};

impl LogicalUnit {
    /// Asks the backend for the allocated blocks.
    pub(crate) async fn get_lba_status(&self, request: GetLbaStatus) -> Outcome {
        if matches!(self.disk.provisioning, Provisioning::Full) {
            return request.respond([]);
        }
        let start = self.offset_of(request.extent.lba);
        let mut runs: Vec<(Blocks, ProvisioningStatus)> = Vec::new();
        let (mut offset, end) = (start, start + self.bytes_of(request.extent));
        while offset < end && runs.len() < request.runs_max {
            let operation = Operation::Extents { offset, bytes: end - offset };
            let extents = match self.backend.submit(operation).await.into_extents() {
                Ok(extents) => extents,
                Err(error) => return self.read_failure(offset, &error),
            };
            let Some(last) = extents.last() else { break };
            offset = last.range.offset + last.range.bytes;
            extents.iter().for_each(|extent| self.append(&mut runs, extent));
        }
        request.respond(runs)
    }

    /// Adds an extent to the runs, and merges runs of the same state. A block is mapped if any part of it is.
    fn append(&self, runs: &mut Vec<(Blocks, ProvisioningStatus)>, extent: &Extent) {
        let blocks = Blocks(extent.range.bytes / u64::from(self.disk.block.bytes()));
        let status = match extent.state {
            ExtentState::Data => ProvisioningStatus::Mapped,
            ExtentState::Zero | ExtentState::Unspecified => ProvisioningStatus::Deallocated,
        };
        match runs.last_mut() {
            Some((run, last)) if *last == status => run.0 += blocks.0,
            _ => runs.push((blocks, status)),
        }
    }
}
