//! VERIFY (10), (12) and (16) (SBC-3).

use crate::cdb::Cdb;
use crate::read::{extent_10, extent_12, extent_16};
use crate::{Compare, Disk, Extent, FieldPointer, Sense, Step};

pub fn begin_10(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    verify(cdb, extent_10(disk, cdb)?)
}

pub fn begin_12(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    verify(cdb, extent_12(disk, cdb)?)
}

pub fn begin_16(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    verify(cdb, extent_16(disk, cdb)?)
}

fn verify(cdb: &Cdb, extent: Extent) -> Result<Step, Sense> {
    const BYTCHK_SHIFT: u8 = 1;
    let compare = match cdb.u8::<1>() >> BYTCHK_SHIFT & 0b11 {
        0b00 => Compare::Medium,
        0b01 => Compare::DataOut,
        0b11 => Compare::OneBlock,
        _ => return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(1, 2))),
    };
    Ok(Step::Verify { extent, compare })
}
