//! START STOP UNIT (SBC-3).

use crate::cdb::Cdb;
use crate::{Disk, Outcome, Sense, Step};

/// A disk that several initiators share does not stop because one of them asks. What stopping promises is
/// kept: everything written is durable, unless `NO_FLUSH`. Power conditions and LOEJ are refused: there is
/// nothing to idle and nothing to eject.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    const IMMED_BIT: u8 = 0;
    const START_BIT: u8 = 0;
    const NO_FLUSH_BIT: u8 = 2;
    if cdb.bit::<4>(START_BIT) || cdb.bit::<4>(NO_FLUSH_BIT) {
        return Ok(Step::Done(Outcome::good()));
    }
    Ok(Step::Flush { extent: disk.extent(), immediate: cdb.bit::<1>(IMMED_BIT) })
}
