//! READ CAPACITY (10) and (16) (SBC-3).

use crate::cdb::Cdb;
use crate::{Disk, Outcome, Provisioning, Sense, Step};

/// Begins READ CAPACITY (10). A last LBA beyond four bytes becomes all ones; READ CAPACITY (16) has it.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin_10(disk: &Disk, _cdb: &Cdb) -> Result<Step, Sense> {
    let last = u32::try_from(last_lba(disk)).unwrap_or(u32::MAX);
    let data = [last.to_be_bytes(), disk.block.bytes().to_be_bytes()].concat();
    Ok(Step::Done(Outcome::Good(data)))
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin_16(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    const LBPME: u8 = 0x80;
    const LBPRZ: u8 = 0x40;
    let mut data = vec![0; 32];
    data[..8].copy_from_slice(&last_lba(disk).to_be_bytes());
    data[8..12].copy_from_slice(&disk.block.bytes().to_be_bytes());
    data[13] = disk.physical_exponent.get();
    data[14] = match disk.provisioning {
        Provisioning::Full => 0,
        Provisioning::Thin { zeroes: false, .. } => LBPME,
        Provisioning::Thin { zeroes: true, .. } => LBPME | LBPRZ,
    };
    Ok(Step::Done(Outcome::parameter_data(data, cdb.u32::<10>())))
}

/// The last LBA; zero for a disk without blocks, which the standard does not provide for.
fn last_lba(disk: &Disk) -> u64 {
    disk.blocks.0.saturating_sub(1)
}
