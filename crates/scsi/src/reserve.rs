//! RESERVE (6) and RELEASE (6): a unit for one initiator alone, as long as its session lasts (SPC-2).
//!
//! Third-party and extent reservations are not offered: SPC-2 made extents obsolete, and nobody reserves for
//! another over iSCSI.

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
