//! READ (6), (10), (12) and (16) (SBC-3).

use crate::cdb::Cdb;
use crate::{Blocks, Disk, Extent, FieldPointer, Lba, Sense, Step};

/// The number of blocks that a TRANSFER LENGTH of zero means in the six-byte commands (SBC-3).
const BLOCKS_OF_ZERO: u64 = 256;
/// FUA, in byte 1 of all but the six-byte commands.
pub const FUA_BIT: u8 = 3;

pub fn begin_6(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    Ok(Step::Read { extent: extent_6(disk, cdb)?, fua: false })
}

pub fn begin_10(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    Ok(Step::Read { extent: extent_10(disk, cdb)?, fua: cdb.bit::<1>(FUA_BIT) })
}

pub fn begin_12(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    Ok(Step::Read { extent: extent_12(disk, cdb)?, fua: cdb.bit::<1>(FUA_BIT) })
}

pub fn begin_16(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    Ok(Step::Read { extent: extent_16(disk, cdb)?, fua: cdb.bit::<1>(FUA_BIT) })
}

/// The blocks of a six-byte command.
pub fn extent_6(disk: &Disk, cdb: &Cdb) -> Result<Extent, Sense> {
    const LBA_MASK: u32 = 0x1f_ffff;
    let blocks = match cdb.u8::<4>() {
        0 => BLOCKS_OF_ZERO,
        blocks => blocks.into(),
    };
    let lba = u64::from(cdb.u24::<1>() & LBA_MASK);
    transfer(disk, (lba, FieldPointer::cdb_bit(1, 4)), (blocks, FieldPointer::cdb(4)))
}

/// The blocks of a ten-byte command.
pub fn extent_10(disk: &Disk, cdb: &Cdb) -> Result<Extent, Sense> {
    let (lba, blocks) = (cdb.u32::<2>().into(), cdb.u16::<7>().into());
    transfer(disk, (lba, FieldPointer::cdb(2)), (blocks, FieldPointer::cdb(7)))
}

/// The blocks of a twelve-byte command.
pub fn extent_12(disk: &Disk, cdb: &Cdb) -> Result<Extent, Sense> {
    let (lba, blocks) = (cdb.u32::<2>().into(), cdb.u32::<6>().into());
    transfer(disk, (lba, FieldPointer::cdb(2)), (blocks, FieldPointer::cdb(6)))
}

/// The blocks of a sixteen-byte command.
pub fn extent_16(disk: &Disk, cdb: &Cdb) -> Result<Extent, Sense> {
    let (lba, blocks) = (cdb.u64::<2>(), cdb.u32::<10>().into());
    transfer(disk, (lba, FieldPointer::cdb(2)), (blocks, FieldPointer::cdb(10)))
}

/// An extent on the disk and within MAXIMUM TRANSFER LENGTH. Each number comes with its field, for the error.
fn transfer(disk: &Disk, lba: (u64, FieldPointer), blocks: (u64, FieldPointer)) -> Result<Extent, Sense> {
    let extent = disk.extent_at(Lba(lba.0), Blocks(blocks.0), lba.1)?;
    if blocks.0 > disk.transfer_blocks_max().into() {
        return Err(Sense::invalid_field_in_cdb(blocks.1));
    }
    Ok(extent)
}
