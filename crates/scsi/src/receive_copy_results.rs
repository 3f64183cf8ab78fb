//! RECEIVE COPY STATUS (LID1) and RECEIVE COPY OPERATING PARAMETERS (SPC-4).

use crate::cdb::Cdb;
use crate::extended_copy::{
    BLOCK_TO_BLOCK, DESCRIPTOR_LIST_BYTES_MAX, IDENTIFICATION_DESCRIPTOR, SEGMENT_BLOCKS_MAX, SEGMENTS_MAX,
    TARGETS_MAX,
};
use crate::{Disk, FieldPointer, Outcome, Sense, Status, Step};
use std::collections::VecDeque;

/// The most statuses held for one initiator: more than it can have copies outstanding, so that it can ask for each.
const HELD_MAX: usize = 16;
/// AVAILABLE DATA does not count itself.
const LENGTH_BYTES: usize = 4;

/// The results of one I_T nexus's copies, by its list identifiers. A result is held only once the copy has ended,
/// because its command lasts as long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldCopies(VecDeque<(u8, CopyStatus)>);

/// The result of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyStatus {
    /// Whether everything was copied.
    pub complete: bool,
    /// Copied segments, the last of them perhaps in part.
    pub segments: u16,
    /// The number of copied bytes.
    pub bytes: u64,
}

impl HeldCopies {
    /// Holds a copy's status and replaces an earlier one with that identifier; beyond the bound, drops the oldest.
    pub fn hold(&mut self, list_id: u8, status: CopyStatus) {
        self.0.retain(|(held, _)| *held != list_id);
        if self.0.len() >= HELD_MAX {
            self.0.pop_front();
        }
        self.0.push_back((list_id, status));
    }

    fn get(&self, list_id: u8) -> Option<CopyStatus> {
        self.0.iter().find(|(held, _)| *held == list_id).map(|(_, status)| *status)
    }
}

/// A request for the status of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveCopyStatus {
    list_id: u8,
    allocation_bytes: u32,
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin_status(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    Ok(Step::ReceiveCopyStatus(ReceiveCopyStatus {
        list_id: cdb.u8::<2>(),
        allocation_bytes: cdb.u32::<10>(),
    }))
}

impl ReceiveCopyStatus {
    /// Answers from the statuses held for this nexus; with INVALID FIELD IN CDB if there is none for this identifier.
    #[must_use]
    pub fn respond(&self, held: &HeldCopies) -> Outcome {
        /// COPY MANAGER STATUS: the command has ended, without or with errors.
        const COMPLETED: u8 = 0x01;
        const COMPLETED_WITH_ERRORS: u8 = 0x02;
        /// TRANSFER COUNT UNITS: kibibytes, so that no copy exceeds the field.
        const KIBIBYTES: u8 = 0x01;
        let Some(status) = held.get(self.list_id) else {
            return Outcome::CheckCondition(Sense::invalid_field_in_cdb(FieldPointer::cdb(2)));
        };
        let manager = if status.complete { COMPLETED } else { COMPLETED_WITH_ERRORS };
        let [high, low] = status.segments.to_be_bytes();
        let mut data = vec![0, 0, 0, 8, manager, high, low, KIBIBYTES];
        data.extend(u32::try_from(status.bytes >> 10).unwrap_or(u32::MAX).to_be_bytes());
        Outcome::parameter_data(data, self.allocation_bytes)
    }
}

/// The limits of EXTENDED COPY. Only statuses are held, inline data is not supported, and one copy at a time is
/// promised.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin_operating_parameters(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    /// SNLID: a list may come without an identifier.
    const NO_LIST_IDENTIFIER: u8 = 0x01;
    const CODES: [u8; 2] = [BLOCK_TO_BLOCK, IDENTIFICATION_DESCRIPTOR];
    let mut data = vec![0; 44];
    data[4] = NO_LIST_IDENTIFIER;
    data[8..10].copy_from_slice(&count(TARGETS_MAX).to_be_bytes());
    data[10..12].copy_from_slice(&count(SEGMENTS_MAX).to_be_bytes());
    data[12..16].copy_from_slice(&u32::from(count(DESCRIPTOR_LIST_BYTES_MAX)).to_be_bytes());
    data[16..20].copy_from_slice(&segment_bytes_max(disk).to_be_bytes());
    // TOTAL CONCURRENT COPIES and MAXIMUM CONCURRENT COPIES.
    data[35] = 1;
    data[36] = 1;
    // DATA SEGMENT GRANULARITY, a power of two: one block.
    data[37] = u8::try_from(disk.block.bytes().trailing_zeros()).unwrap_or(0);
    data[43] = u8::try_from(CODES.len()).unwrap_or(0);
    data.extend(CODES);
    let available = u32::try_from(data.len() - LENGTH_BYTES).unwrap_or(u32::MAX);
    data[..LENGTH_BYTES].copy_from_slice(&available.to_be_bytes());
    Ok(Step::Done(Outcome::parameter_data(data, cdb.u32::<10>())))
}

fn count(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// MAXIMUM SEGMENT LENGTH, in bytes.
pub fn segment_bytes_max(disk: &Disk) -> u32 {
    u32::from(SEGMENT_BLOCKS_MAX) * disk.block.bytes()
}

impl CopyStatus {
    /// The status of a copy with this outcome.
    #[must_use]
    pub fn of(outcome: &Outcome, segments: usize, bytes: u64) -> Self {
        Self { complete: outcome.status() == Status::Good, segments: count(segments), bytes }
    }
}
