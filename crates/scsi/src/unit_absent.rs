//! Commands to a LUN without a logical unit (SPC-4, SAM-5).

use crate::cdb::Cdb;
use crate::operation_code::{COMMANDS, INQUIRY, REPORT_LUNS, REQUEST_SENSE};
use crate::{AdditionalSense, FieldPointer, Outcome, RequestSense, Sense, Step, inquiry, report_luns};

/// Dispatches a command to a LUN that does not exist for this initiator. INQUIRY says so, REPORT LUNS lists the
/// existing LUNs, and every other command, including REQUEST SENSE, reports LOGICAL UNIT NOT SUPPORTED.
#[must_use]
pub fn begin_absent(cdb: &[u8]) -> Step {
    answer(cdb).unwrap_or_else(|sense| Step::Done(Outcome::CheckCondition(sense)))
}

fn answer(bytes: &[u8]) -> Result<Step, Sense> {
    let not_supported = Sense::illegal_request(AdditionalSense::LOGICAL_UNIT_NOT_SUPPORTED);
    let operation_code = *bytes.first().ok_or(not_supported)?;
    if ![INQUIRY, REPORT_LUNS, REQUEST_SENSE].contains(&operation_code) {
        return Err(not_supported);
    }
    for command in COMMANDS.iter().filter(|command| command.operation_code == operation_code) {
        command.check_usage(bytes)?;
    }
    let cdb = Cdb::new(bytes);
    match operation_code {
        INQUIRY if cdb.bit::<1>(inquiry::EVPD_BIT) => {
            Err(Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(1, inquiry::EVPD_BIT)))
        }
        INQUIRY => inquiry::absent(&cdb).map(Step::Done),
        REPORT_LUNS => report_luns::parse(&cdb).map(Step::ReportLuns),
        _ => Ok(Step::Done(RequestSense::parse(&cdb).respond(Some(not_supported)))),
    }
}
