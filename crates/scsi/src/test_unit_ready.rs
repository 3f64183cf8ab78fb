//! TEST UNIT READY (SPC-4).

use crate::cdb::Cdb;
use crate::{Disk, Outcome, Sense, Step};

/// Begins the command; this disk is always ready.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin(_disk: &Disk, _cdb: &Cdb) -> Result<Step, Sense> {
    Ok(Step::Done(Outcome::good()))
}
