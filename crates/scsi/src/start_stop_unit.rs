//! START STOP UNIT (SBC-3).

use crate::cdb::Cdb;
use crate::{Disk, Outcome, Sense, Step};

const IMMED_BIT: u8 = 0;
const START_BIT: u8 = 0;
const LOEJ_BIT: u8 = 1;
const NO_FLUSH_BIT: u8 = 2;
const POWER_CONDITION_SHIFT: u8 = 4;

/// Begins the command on a disk with a fixed medium. One of several initiators cannot stop a shared disk, but the
/// command keeps its promise: all writes are durable, unless `NO_FLUSH`. Power conditions and LOEJ are refused, because
/// the disk has no idle state and nothing to eject.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin_fixed(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    Ok(start_or_stop(disk, cdb))
}

/// Begins the command on a disk with a removable medium, which it loads or ejects. A power condition changes nothing,
/// and overrides START and LOEJ.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin_removable(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    if cdb.u8::<4>() >> POWER_CONDITION_SHIFT != 0 {
        return Ok(Step::Done(Outcome::good()));
    }
    if !cdb.bit::<4>(LOEJ_BIT) {
        return Ok(start_or_stop(disk, cdb));
    }
    if cdb.bit::<4>(START_BIT) {
        Ok(Step::Load)
    } else {
        Ok(Step::Eject { flush: !cdb.bit::<4>(NO_FLUSH_BIT) })
    }
}

fn start_or_stop(disk: &Disk, cdb: &Cdb) -> Step {
    if cdb.bit::<4>(START_BIT) || cdb.bit::<4>(NO_FLUSH_BIT) {
        return Step::Done(Outcome::good());
    }
    Step::Flush { extent: disk.extent(), immediate: cdb.bit::<1>(IMMED_BIT) }
}
