//! REQUEST SENSE (SPC-4).

use crate::cdb::Cdb;
use crate::{Disk, Outcome, Sense, SenseFormat, Step};

/// A request for the pending unit attention, in the format that DESC selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSense {
    format: SenseFormat,
    allocation_bytes: u32,
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
pub fn begin(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    Ok(Step::RequestSense(RequestSense::parse(cdb)))
}

impl RequestSense {
    pub(crate) fn parse(cdb: &Cdb) -> Self {
        const DESC_BIT: u8 = 0;
        let format = if cdb.bit::<1>(DESC_BIT) { SenseFormat::Descriptor } else { SenseFormat::Fixed };
        Self { format, allocation_bytes: cdb.u8::<4>().into() }
    }

    /// Answers with the pending condition, which is thereby reported; with [`Sense::NONE`] if there is none.
    #[must_use]
    pub fn respond(&self, pending: Option<Sense>) -> Outcome {
        let sense = pending.unwrap_or(Sense::NONE);
        Outcome::parameter_data(sense.to_bytes(self.format), self.allocation_bytes)
    }
}
