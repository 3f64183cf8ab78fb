//! LOG SENSE and the log pages (SPC-4).

use crate::cdb::Cdb;
use crate::{Disk, FieldPointer, Outcome, Sense, Step, provisioning_log};

const SUPPORTED_PAGES: u8 = 0x00;
const INFORMATIONAL_EXCEPTIONS: u8 = 0x2f;
const NO_SUBPAGE: u8 = 0x00;
const ALL_SUBPAGES: u8 = 0xff;
const PAGE_CODE_MASK: u8 = 0x3f;
/// SPF: byte 1 holds a subpage code.
const SUBPAGE_FORMAT: u8 = 0x40;

/// The pages of a disk, in ascending order. Only a disk with a threshold has the page of its space.
const fn pages(disk: &Disk) -> &'static [u8] {
    if disk.threshold().is_some() {
        &[SUPPORTED_PAGES, provisioning_log::CODE, INFORMATIONAL_EXCEPTIONS]
    } else {
        &[SUPPORTED_PAGES, INFORMATIONAL_EXCEPTIONS]
    }
}

/// Begins the command. There are no error counters: a file or memory counts no errors, and zeroes would claim that it
/// does. Nothing is compared with thresholds here or saved, so all values of PAGE CONTROL mean the same.
pub fn begin(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let (code, subpage) = (cdb.u8::<2>() & PAGE_CODE_MASK, cdb.u8::<3>());
    let (pointer, allocation_bytes) = (cdb.u16::<5>(), cdb.u16::<7>().into());
    if !pages(disk).contains(&code) {
        return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(2, 5)));
    }
    let contents = match (code, subpage, disk.threshold()) {
        (SUPPORTED_PAGES, NO_SUBPAGE, _) => pages(disk).to_vec(),
        (SUPPORTED_PAGES, ALL_SUBPAGES, _) => supported_subpages(disk),
        (INFORMATIONAL_EXCEPTIONS, NO_SUBPAGE, _) => no_exception(pointer)?,
        (provisioning_log::CODE, NO_SUBPAGE, Some(threshold)) => {
            return provisioning_log::begin(threshold, pointer, allocation_bytes);
        }
        _ => return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb(3))),
    };
    let format = if subpage == NO_SUBPAGE { 0 } else { SUBPAGE_FORMAT };
    let [high, low] = u16::try_from(contents.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut page = vec![format | code, subpage, high, low];
    page.extend(contents);
    Ok(Step::Done(Outcome::parameter_data(page, allocation_bytes)))
}

/// Each page with each of its subpages.
fn supported_subpages(disk: &Disk) -> Vec<u8> {
    let mut pairs: Vec<_> = pages(disk).iter().map(|page| [*page, NO_SUBPAGE]).collect();
    pairs.insert(1, [SUPPORTED_PAGES, ALL_SUBPAGES]);
    pairs.concat()
}

/// Parameter 0000h of the informational exceptions log page: no failure is predicted, and no temperature is known. A
/// PARAMETER POINTER beyond it is an error.
fn no_exception(parameter_pointer: u16) -> Result<Vec<u8>, Sense> {
    /// FORMAT AND LINKING 11b: a binary list, which is neither counted nor compared.
    const BINARY_LIST: u8 = 0x03;
    const TEMPERATURE_UNKNOWN: u8 = 0xff;
    if parameter_pointer > 0 {
        return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb(5)));
    }
    Ok(vec![0, 0, BINARY_LIST, 4, 0, 0, TEMPERATURE_UNKNOWN, 0])
}
