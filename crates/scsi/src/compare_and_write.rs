//! COMPARE AND WRITE (SBC-3).

use crate::cdb::Cdb;
use crate::read::FUA_BIT;
use crate::{Blocks, Disk, FieldPointer, Lba, Sense, Step};

pub fn begin(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let blocks = cdb.u8::<13>();
    let extent = disk.extent_at(Lba(cdb.u64::<2>()), Blocks(blocks.into()), FieldPointer::cdb(2))?;
    if blocks > disk.limits.compare_and_write_blocks_max {
        return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb(13)));
    }
    disk.check_writable()?;
    Ok(Step::CompareAndWrite { extent, fua: cdb.bit::<1>(FUA_BIT) })
}
