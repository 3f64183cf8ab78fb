//! MODE SELECT (6) and (10) and their parameter list (SPC-4; SBC-3).
//!
//! All or nothing: a list with one wrong field changes no parameter.

use crate::cdb::Cdb;
use crate::mode_page::{ModePage, NO_SUBPAGE};
use crate::mode_sense::{BLOCK_DESCRIPTOR_BYTES, block_descriptor};
use crate::mode_settings::{ModeSelect, ModeSettings};
use crate::{AdditionalSense, Disk, FieldPointer, Sense, Step};

/// PAGE FORMAT: the list consists of the standard's pages.
const PAGE_FORMAT_BIT: u8 = 4;
const HEADER_6_BYTES: usize = 4;
const HEADER_10_BYTES: usize = 8;

pub fn begin_6(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    begin(cdb, cdb.u8::<4>().into(), HEADER_6_BYTES, 4)
}

pub fn begin_10(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    begin(cdb, cdb.u16::<7>(), HEADER_10_BYTES, 7)
}

/// SP is refused: pages cannot be saved.
fn begin(cdb: &Cdb, list_bytes: u16, header_bytes: usize, length_field: u16) -> Result<Step, Sense> {
    if list_bytes == 0 {
        return Ok(Step::ModeSelect(ModeSelect::default()));
    }
    if !cdb.bit::<1>(PAGE_FORMAT_BIT) {
        return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(1, PAGE_FORMAT_BIT)));
    }
    if usize::from(list_bytes) < header_bytes {
        return Err(length_error().at(FieldPointer::cdb(length_field)));
    }
    Ok(Step::Parameter { bytes: list_bytes.into() })
}

const fn length_error() -> Sense {
    Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR)
}

/// The mode parameter list of MODE SELECT (6).
pub fn parameter_6(disk: &Disk, _cdb: &Cdb, list: &[u8]) -> Result<Step, Sense> {
    let [.., descriptor_bytes] = *list.first_chunk::<HEADER_6_BYTES>().ok_or(length_error())?;
    parse(disk, list, HEADER_6_BYTES, descriptor_bytes.into())
}

/// The mode parameter list of MODE SELECT (10). Long block descriptors (LONGLBA) are too long to be accepted.
pub fn parameter_10(disk: &Disk, _cdb: &Cdb, list: &[u8]) -> Result<Step, Sense> {
    let [.., high, low] = *list.first_chunk::<HEADER_10_BYTES>().ok_or(length_error())?;
    parse(disk, list, HEADER_10_BYTES, u16::from_be_bytes([high, low]).into())
}

/// Parses the list. Ignores the rest of the header: MODE DATA LENGTH is reserved here, and initiators return the
/// DEVICE-SPECIFIC PARAMETER that they received.
fn parse(disk: &Disk, list: &[u8], header_bytes: usize, descriptor_bytes: usize) -> Result<Step, Sense> {
    let pages_at = header_bytes + descriptor_bytes;
    let descriptor = list.get(header_bytes..pages_at).ok_or(length_error())?;
    check_block_descriptor(disk, descriptor, header_bytes)?;
    let mut select = ModeSelect::default();
    let mut at = pages_at;
    while let Some(rest) = list.get(at..).filter(|rest| !rest.is_empty()) {
        at += take_page(disk, rest, at, &mut select)?;
    }
    Ok(Step::ModeSelect(select))
}

/// Neither capacity nor block length can change; zero blocks mean "unchanged" (SBC-3).
fn check_block_descriptor(disk: &Disk, descriptor: &[u8], at: usize) -> Result<(), Sense> {
    /// The offset of the LOGICAL BLOCK LENGTH.
    const LENGTH_AT: usize = 4;
    if descriptor.is_empty() {
        return Ok(());
    }
    if descriptor.len() != usize::from(BLOCK_DESCRIPTOR_BYTES) {
        return Err(invalid(at - 1));
    }
    let current = block_descriptor(disk);
    let ((blocks, length), (blocks_now, length_now)) =
        (descriptor.split_at(LENGTH_AT), current.split_at(LENGTH_AT));
    if blocks != blocks_now && blocks.iter().any(|byte| *byte != 0) {
        return Err(invalid(at));
    }
    if length != length_now {
        return Err(invalid(at + LENGTH_AT));
    }
    Ok(())
}

/// Takes the page at the start of `rest`, which is at byte `at` of the list; returns its length.
fn take_page(disk: &Disk, rest: &[u8], at: usize, select: &mut ModeSelect) -> Result<usize, Sense> {
    let page = page_at(disk, rest)?.ok_or(invalid(at))?;
    let before = (page.values)(disk, &ModeSettings::default());
    let header = page.header(before.len());
    let (told, values) = rest.split_at_checked(header.len()).ok_or(length_error())?;
    if told != header {
        // Code and subpage match, so the length at the end of the header differs.
        return Err(invalid(at + header.len() / 2));
    }
    let values = values.get(..before.len()).ok_or(length_error())?;
    check_unchangeable(disk, page, values, at + header.len())?;
    (page.select)(values, select);
    Ok(header.len() + before.len())
}

/// The page with the header at the start of `rest`; `None` if the disk has no such page.
fn page_at(disk: &Disk, rest: &[u8]) -> Result<Option<&'static ModePage>, Sense> {
    let [code, second] = *rest.first_chunk().ok_or(length_error())?;
    // PS is reserved here, so with it set, this is the code of no page.
    let named = |page: &&ModePage| {
        let header = page.header(0);
        header.first() == Some(&code) && (page.subpage == NO_SUBPAGE || page.subpage == second)
    };
    Ok(ModePage::of(disk).find(named))
}

/// An unchangeable bit must keep its value. No setting changes one, so that value is the default.
fn check_unchangeable(disk: &Disk, page: &ModePage, values: &[u8], at: usize) -> Result<(), Sense> {
    let before = (page.values)(disk, &ModeSettings::default());
    let changeable = (page.changeable)(disk);
    let wrong = values
        .iter()
        .zip(before)
        .zip(changeable)
        .position(|((value, before), mask)| (value ^ before) & !mask != 0);
    wrong.map_or(Ok(()), |byte| Err(invalid(at + byte)))
}

fn invalid(at: usize) -> Sense {
    Sense::invalid_field_in_parameter_list(u16::try_from(at).unwrap_or(u16::MAX))
}
