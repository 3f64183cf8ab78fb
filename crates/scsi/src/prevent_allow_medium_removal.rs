//! PREVENT ALLOW MEDIUM REMOVAL (SPC-4).

use crate::cdb::Cdb;
use crate::{Disk, Sense, Step};

/// Begins the command. Only the lower bit of PREVENT has a meaning; the upper one is obsolete.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    const PREVENT_BIT: u8 = 0;
    Ok(Step::PreventRemoval(cdb.bit::<4>(PREVENT_BIT)))
}
