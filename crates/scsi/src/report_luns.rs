//! REPORT LUNS (SPC-4).

use crate::cdb::Cdb;
use crate::{Disk, FieldPointer, Outcome, Sense, Step};

const HEADER_BYTES: usize = 8;

/// A request for the logical units behind the target port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportLuns {
    /// Only well known logical units are requested, and there are none.
    well_known_only: bool,
    allocation_bytes: u32,
}

pub fn begin(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    parse(cdb).map(Step::ReportLuns)
}

/// Parses the CDB. Also valid for a logical unit that does not exist.
pub fn parse(cdb: &Cdb) -> Result<ReportLuns, Sense> {
    let well_known_only = match cdb.u8::<2>() {
        0x00 | 0x02 => false,
        0x01 => true,
        _ => return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb(2))),
    };
    Ok(ReportLuns { well_known_only, allocation_bytes: cdb.u32::<6>() })
}

impl ReportLuns {
    /// Answers with the LUNs that this initiator may access, each as its eight bytes, most significant first.
    #[must_use]
    pub fn respond(&self, luns: impl IntoIterator<Item = u64>) -> Outcome {
        let luns = luns.into_iter().filter(|_| !self.well_known_only);
        let mut data = vec![0; HEADER_BYTES];
        data.extend(luns.flat_map(u64::to_be_bytes));
        let list_bytes = data.len() - HEADER_BYTES;
        data[..4].copy_from_slice(&u32::try_from(list_bytes).unwrap_or(u32::MAX).to_be_bytes());
        Outcome::parameter_data(data, self.allocation_bytes)
    }
}
