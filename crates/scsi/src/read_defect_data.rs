//! READ DEFECT DATA (10) and (12): the lists are empty (SBC-3).

use crate::cdb::Cdb;
use crate::{Disk, Outcome, Sense, Step};

/// `REQ_PLIST`, `REQ_GLIST` and DEFECT LIST FORMAT.
const REQUEST_MASK: u8 = 0x1f;

/// Four bytes: the requested lists and format, and a DEFECT LIST LENGTH of zero.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin_10(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let data = vec![0, cdb.u8::<2>() & REQUEST_MASK, 0, 0];
    Ok(Step::Done(Outcome::parameter_data(data, cdb.u16::<7>().into())))
}

/// Eight bytes; any index into an empty list returns an empty list.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin_12(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let data = vec![0, cdb.u8::<1>() & REQUEST_MASK, 0, 0, 0, 0, 0, 0];
    Ok(Step::Done(Outcome::parameter_data(data, cdb.u32::<6>())))
}
