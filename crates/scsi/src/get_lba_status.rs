//! GET LBA STATUS (SBC-3).

use crate::cdb::Cdb;
use crate::{AdditionalSense, Blocks, Disk, Extent, FieldPointer, Lba, Outcome, Sense, Step};

const HEADER_BYTES: usize = 8;
const DESCRIPTOR_BYTES: usize = 16;
/// PARAMETER DATA LENGTH does not count itself.
const LENGTH_FIELD_BYTES: usize = 4;
/// The most descriptors in one answer: bounds the memory and the extents that a backend must look up, for any
/// allocation length.
const DESCRIPTORS_MAX: usize = 1024;

/// Whether blocks have a place on the medium (SBC-3, PROVISIONING STATUS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ProvisioningStatus {
    /// They do, or the unit does not know.
    Mapped = 0,
    /// They do not.
    Deallocated = 1,
}

/// A request for the provisioning status of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetLbaStatus {
    /// From the requested LBA to the end of the disk.
    pub extent: Extent,
    /// The most runs that an answer can hold, at least one.
    pub runs_max: usize,
    allocation_bytes: u32,
}

/// Begins the command. A disk without thin provisioning also answers: all its blocks are mapped.
pub fn begin(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let field = FieldPointer::cdb(2);
    let lba = Lba(cdb.u64::<2>());
    if lba.0 >= disk.blocks.0 {
        return Err(Sense::illegal_request(AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE).at(field));
    }
    let allocation_bytes = cdb.u32::<10>();
    let room = (allocation_bytes as usize).saturating_sub(HEADER_BYTES).div_ceil(DESCRIPTOR_BYTES);
    let runs_max = room.clamp(1, DESCRIPTORS_MAX);
    Ok(Step::GetLbaStatus(GetLbaStatus { extent: disk.extent_from(lba), runs_max, allocation_bytes }))
}

impl GetLbaStatus {
    /// Answers with runs of blocks. The first begins at the extent's LBA, and each next one at the end of the one
    /// before it. Drops runs beyond [`Self::runs_max`] and blocks beyond the extent; no run at all counts as one of
    /// mapped blocks.
    #[must_use]
    pub fn respond(&self, runs: impl IntoIterator<Item = (Blocks, ProvisioningStatus)>) -> Outcome {
        let mut data = vec![0; HEADER_BYTES];
        let mut next = self.extent;
        for (blocks, status) in runs.into_iter().take(self.runs_max) {
            next = push_descriptor(&mut data, next, blocks, status);
        }
        if next == self.extent {
            push_descriptor(&mut data, next, next.blocks, ProvisioningStatus::Mapped);
        }
        let length = u32::try_from(data.len() - LENGTH_FIELD_BYTES).unwrap_or(u32::MAX);
        data[..4].copy_from_slice(&length.to_be_bytes());
        Outcome::parameter_data(data, self.allocation_bytes)
    }
}

/// Emits the run at the start of `rest` and returns the rest after it. A run longer than its four-byte field is
/// truncated and must be the last one, because the initiator continues at the end of the answer.
fn push_descriptor(data: &mut Vec<u8>, rest: Extent, blocks: Blocks, status: ProvisioningStatus) -> Extent {
    let told = u32::try_from(blocks.0.min(rest.blocks.0)).unwrap_or(u32::MAX);
    if told == 0 {
        return rest;
    }
    data.extend(rest.lba.0.to_be_bytes());
    data.extend(told.to_be_bytes());
    data.extend([status as u8, 0, 0, 0]);
    let left = if u64::from(told) < blocks.0 { 0 } else { rest.blocks.0 - u64::from(told) };
    Extent::new(rest.lba.0 + u64::from(told), left)
}
