//! REQUEST SENSE (SPC-4).

use crate::cdb::Cdb;
use crate::{Disk, Outcome, Sense, Step};

/// A question for the unit attention that is pending, if one is. Descriptor format (DESC) is refused: only
/// fixed format is made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSense {
    allocation_bytes: u32,
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    Ok(Step::RequestSense(RequestSense::parse(cdb)))
}

impl RequestSense {
    pub(crate) fn parse(cdb: &Cdb) -> Self {
        Self { allocation_bytes: cdb.u8::<4>().into() }
    }

    /// Answers with what is pending, which is thereby reported; [`Sense::NONE`] if nothing is.
    #[must_use]
    pub fn respond(&self, pending: Option<Sense>) -> Outcome {
        let sense = pending.unwrap_or(Sense::NONE);
        Outcome::parameter_data(sense.to_fixed().to_vec(), self.allocation_bytes)
    }
}
