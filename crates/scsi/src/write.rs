//! WRITE (6), (10), (12) and (16) (SBC-3).

use crate::cdb::Cdb;
use crate::read::{FUA_BIT, extent_6, extent_10, extent_12, extent_16};
use crate::{Disk, Extent, Sense, Step};

pub fn begin_6(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    write(disk, extent_6(disk, cdb)?, false)
}

pub fn begin_10(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    write(disk, extent_10(disk, cdb)?, cdb.bit::<1>(FUA_BIT))
}

pub fn begin_12(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    write(disk, extent_12(disk, cdb)?, cdb.bit::<1>(FUA_BIT))
}

pub fn begin_16(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    write(disk, extent_16(disk, cdb)?, cdb.bit::<1>(FUA_BIT))
}

fn write(disk: &Disk, extent: Extent, fua: bool) -> Result<Step, Sense> {
    disk.check_writable()?;
    Ok(Step::Write { extent, fua })
}
