//! WRITE SAME (10) and (16) (SBC-3).

use crate::cdb::Cdb;
use crate::{Blocks, Disk, FieldPointer, Lba, Pattern, Sense, Step};

const UNMAP_BIT: u8 = 3;
const NDOB_BIT: u8 = 0;

pub fn begin_10(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let blocks = (cdb.u16::<7>().into(), FieldPointer::cdb(7));
    write_same(disk, cdb, cdb.u32::<2>().into(), blocks, Pattern::DataOut)
}

pub fn begin_16(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let blocks = (cdb.u32::<10>().into(), FieldPointer::cdb(10));
    let pattern = if cdb.bit::<1>(NDOB_BIT) { Pattern::Zeroes } else { Pattern::DataOut };
    write_same(disk, cdb, cdb.u64::<2>(), blocks, pattern)
}

fn write_same(
    disk: &Disk,
    cdb: &Cdb,
    lba: u64,
    (blocks, blocks_field): (u64, FieldPointer),
    pattern: Pattern,
) -> Result<Step, Sense> {
    disk.check_writable()?;
    let unmap = cdb.bit::<1>(UNMAP_BIT);
    if unmap && !disk.is_thin() {
        return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(1, UNMAP_BIT)));
    }
    let blocks = if blocks == 0 { blocks_to_end(disk, lba) } else { blocks };
    let extent = disk.extent_at(Lba(lba), Blocks(blocks), FieldPointer::cdb(2))?;
    if extent.is_empty() || extent.blocks > disk.limits.write_same_blocks_max {
        return Err(Sense::invalid_field_in_cdb(blocks_field));
    }
    Ok(Step::WriteSame { extent, pattern, unmap })
}

/// The blocks of a count of zero: all to the end of the disk, if it accepts that, else none. At the end of the disk it
/// is one block, which is then out of range.
fn blocks_to_end(disk: &Disk, lba: u64) -> u64 {
    if disk.limits.write_same_to_end { disk.blocks.0.saturating_sub(lba).max(1) } else { 0 }
}
