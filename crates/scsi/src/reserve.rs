//! RESERVE (6) and RELEASE (6): a unit for one initiator alone, during its session (SPC-2).
//!
//! Third-party and extent reservations are not offered: SPC-2 made extents obsolete, and iSCSI initiators do not
//! reserve for others.

use crate::cdb::Cdb;
use crate::{Disk, Sense, Step};

#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin_reserve(_disk: &Disk, _cdb: &Cdb) -> Result<Step, Sense> {
    Ok(Step::Reserve)
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin_release(_disk: &Disk, _cdb: &Cdb) -> Result<Step, Sense> {
    Ok(Step::Release)
}
