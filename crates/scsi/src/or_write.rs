//! ORWRITE (16) (SBC-3).

use crate::cdb::Cdb;
use crate::read::{FUA_BIT, extent_16};
use crate::{Disk, Sense, Step};

pub fn begin(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let extent = extent_16(disk, cdb)?;
    disk.check_writable()?;
    Ok(Step::OrWrite { extent, fua: cdb.bit::<1>(FUA_BIT) })
}
