//! SYNCHRONIZE CACHE (10) and (16) (SBC-3).

use crate::cdb::Cdb;
use crate::{Blocks, Disk, FieldPointer, Lba, Sense, Step};

pub fn begin_10(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    flush(disk, cdb, cdb.u32::<2>().into(), cdb.u16::<7>().into())
}

pub fn begin_16(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    flush(disk, cdb, cdb.u64::<2>(), cdb.u32::<10>().into())
}

fn flush(disk: &Disk, cdb: &Cdb, lba: u64, blocks: u64) -> Result<Step, Sense> {
    const IMMED_BIT: u8 = 1;
    let extent = disk.extent_at(Lba(lba), Blocks(blocks), FieldPointer::cdb(2))?;
    let extent = if extent.is_empty() { disk.extent_from(extent.lba) } else { extent };
    Ok(Step::Flush { extent, immediate: cdb.bit::<1>(IMMED_BIT) })
}
