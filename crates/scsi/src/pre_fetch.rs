//! PRE-FETCH (10) and (16) (SBC-3): a hint that blocks will be read.

use crate::cdb::Cdb;
use crate::{Blocks, Disk, FieldPointer, Lba, Outcome, Sense, Step};

pub fn begin_10(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    pre_fetch(disk, cdb, cdb.u32::<2>().into(), cdb.u16::<7>().into())
}

pub fn begin_16(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    pre_fetch(disk, cdb, cdb.u64::<2>(), cdb.u32::<10>().into())
}

/// Begins a PRE-FETCH. Zero blocks mean all to the end of the disk. More blocks than one READ could have are not
/// fetched, and the answer is GOOD, which says that the cache does not hold them all.
fn pre_fetch(disk: &Disk, cdb: &Cdb, lba: u64, blocks: u64) -> Result<Step, Sense> {
    const IMMED_BIT: u8 = 1;
    let extent = disk.extent_at(Lba(lba), Blocks(blocks), FieldPointer::cdb(2))?;
    let extent = if extent.is_empty() { disk.extent_from(extent.lba) } else { extent };
    if extent.blocks.0 > disk.transfer_blocks_max().into() {
        return Ok(Step::Done(Outcome::good()));
    }
    Ok(Step::PreFetch { extent, immediate: cdb.bit::<1>(IMMED_BIT) })
}
