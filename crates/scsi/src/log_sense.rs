//! LOG SENSE and the log pages (SPC-4).

use crate::cdb::Cdb;
use crate::{Disk, FieldPointer, Outcome, Sense, Step};

const SUPPORTED_PAGES: u8 = 0x00;
const INFORMATIONAL_EXCEPTIONS: u8 = 0x2f;
const PAGES: [u8; 2] = [SUPPORTED_PAGES, INFORMATIONAL_EXCEPTIONS];
const NO_SUBPAGE: u8 = 0x00;
const ALL_SUBPAGES: u8 = 0xff;
const PAGE_CODE_MASK: u8 = 0x3f;
/// SPF: byte 1 holds a subpage code.
const SUBPAGE_FORMAT: u8 = 0x40;

/// No error counters: a file or memory counts none, and zeroes would say that it does. Nothing has thresholds or
/// is saved, so PAGE CONTROL chooses between values that are all the same.
pub fn begin(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let (code, subpage) = (cdb.u8::<2>() & PAGE_CODE_MASK, cdb.u8::<3>());
    let contents = match (code, subpage) {
        (SUPPORTED_PAGES, NO_SUBPAGE) => PAGES.to_vec(),
        (SUPPORTED_PAGES, ALL_SUBPAGES) => supported_subpages(),
        (INFORMATIONAL_EXCEPTIONS, NO_SUBPAGE) => no_exception(cdb.u16::<5>())?,
        (SUPPORTED_PAGES | INFORMATIONAL_EXCEPTIONS, _) => {
            return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb(3)));
        }
        _ => return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(2, 5))),
    };
    let format = if subpage == NO_SUBPAGE { 0 } else { SUBPAGE_FORMAT };
    let [high, low] = u16::try_from(contents.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut page = vec![format | code, subpage, high, low];
    page.extend(contents);
    Ok(Step::Done(Outcome::parameter_data(page, cdb.u16::<7>().into())))
}

/// Each page with each of its subpages.
fn supported_subpages() -> Vec<u8> {
    let mut pairs: Vec<_> = PAGES.into_iter().map(|page| [page, NO_SUBPAGE]).collect();
    pairs.insert(1, [SUPPORTED_PAGES, ALL_SUBPAGES]);
    pairs.concat()
}

/// Parameter 0000h of the informational exceptions log page: no failure is foreseen, and there is no
/// temperature to tell. A PARAMETER POINTER beyond it points at nothing.
fn no_exception(parameter_pointer: u16) -> Result<Vec<u8>, Sense> {
    /// FORMAT AND LINKING 11b: a binary list, which is neither counted nor compared.
    const BINARY_LIST: u8 = 0x03;
    const TEMPERATURE_UNKNOWN: u8 = 0xff;
    if parameter_pointer > 0 {
        return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb(5)));
    }
    Ok(vec![0, 0, BINARY_LIST, 4, 0, 0, TEMPERATURE_UNKNOWN, 0])
}
