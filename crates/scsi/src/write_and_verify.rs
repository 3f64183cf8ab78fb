//! WRITE AND VERIFY (10), (12) and (16) (SBC-3).

use crate::cdb::Cdb;
use crate::read::{extent_10, extent_12, extent_16};
use crate::{Compare, Disk, Extent, Sense, Step};

pub fn begin_10(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    write_and_verify(disk, cdb, extent_10(disk, cdb)?)
}

pub fn begin_12(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    write_and_verify(disk, cdb, extent_12(disk, cdb)?)
}

pub fn begin_16(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    write_and_verify(disk, cdb, extent_16(disk, cdb)?)
}

/// BYTCHK has one meaningful bit here: the other combinations are reserved.
fn write_and_verify(disk: &Disk, cdb: &Cdb, extent: Extent) -> Result<Step, Sense> {
    const BYTE_CHECK_BIT: u8 = 1;
    disk.check_writable()?;
    let compare = if cdb.bit::<1>(BYTE_CHECK_BIT) { Compare::DataOut } else { Compare::Medium };
    Ok(Step::WriteAndVerify { extent, compare })
}
