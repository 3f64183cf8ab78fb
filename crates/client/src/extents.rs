//! The allocated parts of a unit, in bytes.

use crate::driver::Outcome;
use crate::{Error, TargetError, Unit};
use block::{ByteRange, Extent, ExtentState};
use scsi::ProvisioningStatus;
use scsi::client::{LbaStatus, SenseData};

/// Room for 1023 runs of blocks.
pub(crate) const ANSWER_BYTES: u32 = 16 << 10;

/// The answer for a unit without GET LBA STATUS: all blocks are allocated.
pub(crate) fn all_data(offset: u64, bytes: u64) -> Vec<Extent> {
    let all = Extent { range: ByteRange { offset, bytes }, state: ExtentState::Data };
    if bytes == 0 { Vec::new() } else { vec![all] }
}

/// Parses the parameter data of GET LBA STATUS and clips it to `asked`, an offset and a length in bytes.
pub(crate) fn parse(outcome: &Outcome, asked: (u64, u64), unit: &Unit) -> Result<Vec<Extent>, Error> {
    let (offset, bytes) = asked;
    let arrived = match &outcome.result {
        Ok(arrived) => *arrived as usize,
        Err(error) if error.sense().is_some_and(SenseData::is_unsupported) => {
            return Ok(all_data(offset, bytes));
        }
        Err(error) => return Err(error.clone()),
    };
    let block_bytes = u64::from(unit.block_bytes());
    let answer = outcome.buffer.as_ref().and_then(|buffer| buffer.get(..arrived)).unwrap_or_default();
    let status = LbaStatus::parse(offset / block_bytes, answer).filter(|status| !status.runs.is_empty());
    let Some(status) = status else {
        let problem = "no provisioning status for the blocks asked for";
        return Err(TargetError::Nonsense { command: "GET LBA STATUS", lun: unit.lun, problem }.into());
    };
    let (end, reads_zero) = (offset + bytes, unit.unmapped_reads_zero());
    let mut extents: Vec<Extent> = Vec::new();
    for (run, status) in status.runs {
        let start = run.lba.0.saturating_mul(block_bytes);
        let stop = run.end().0.saturating_mul(block_bytes).min(end);
        if start >= stop {
            break;
        }
        let state = match status {
            ProvisioningStatus::Mapped => ExtentState::Data,
            ProvisioningStatus::Deallocated if reads_zero => ExtentState::Zero,
            ProvisioningStatus::Deallocated => ExtentState::Unspecified,
        };
        match extents.last_mut().filter(|last| last.state == state) {
            Some(last) => last.range.bytes += stop - start,
            None => extents.push(Extent { range: ByteRange { offset: start, bytes: stop - start }, state }),
        }
    }
    Ok(extents)
}
