//! MODE SENSE (6) and (10), and the mode pages (SPC-4; SBC-3).

use crate::cdb::Cdb;
use crate::{AdditionalSense, Disk, FieldPointer, Outcome, Sense, Step};

/// DBD, in byte 1.
const DISABLE_BLOCK_DESCRIPTORS_BIT: u8 = 3;
/// Bytes of the short LBA mode parameter block descriptor (SBC-3).
const BLOCK_DESCRIPTOR_BYTES: u8 = 8;
/// PAGE CODE.
const PAGE_FIELD: FieldPointer = FieldPointer::cdb_bit(2, 5);

pub fn begin_6(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let (descriptor, pages) = parameters(disk, cdb)?;
    // MODE DATA LENGTH does not count itself.
    let length = u8::try_from(3 + descriptor.len() + pages.len()).unwrap_or(u8::MAX);
    let descriptor_length = if descriptor.is_empty() { 0 } else { BLOCK_DESCRIPTOR_BYTES };
    let header = [length, 0, device_specific(disk), descriptor_length];
    let data = [&header[..], &descriptor, &pages].concat();
    Ok(Step::Done(Outcome::parameter_data(data, cdb.u8::<4>().into())))
}

/// LLBAA allows long block descriptors but does not ask for them.
pub fn begin_10(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let (descriptor, pages) = parameters(disk, cdb)?;
    let [high, low] = u16::try_from(6 + descriptor.len() + pages.len()).unwrap_or(u16::MAX).to_be_bytes();
    let descriptor_length = if descriptor.is_empty() { 0 } else { BLOCK_DESCRIPTOR_BYTES };
    let header = [high, low, 0, device_specific(disk), 0, 0, 0, descriptor_length];
    let data = [&header[..], &descriptor, &pages].concat();
    Ok(Step::Done(Outcome::parameter_data(data, cdb.u16::<7>().into())))
}

/// The DEVICE-SPECIFIC PARAMETER: WP, and that DPO and FUA are understood (SBC-3).
fn device_specific(disk: &Disk) -> u8 {
    const WRITE_PROTECT: u8 = 0x80;
    const DPOFUA: u8 = 0x10;
    if disk.read_only { WRITE_PROTECT | DPOFUA } else { DPOFUA }
}

/// Which values are asked for (PC, SPC-4). Defaults are the current ones, since nothing changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageControl {
    Current,
    Changeable,
}

/// The block descriptor, if wanted, and the pages asked for.
fn parameters(disk: &Disk, cdb: &Cdb) -> Result<(Vec<u8>, Vec<u8>), Sense> {
    let control = match cdb.u8::<2>() >> 6 {
        0b00 | 0b10 => PageControl::Current,
        0b01 => PageControl::Changeable,
        _ => return Err(Sense::illegal_request(AdditionalSense::SAVING_PARAMETERS_NOT_SUPPORTED)),
    };
    let pages = pages(disk, control, cdb.u8::<2>() & 0x3f, cdb.u8::<3>())?;
    let descriptor =
        if cdb.bit::<1>(DISABLE_BLOCK_DESCRIPTORS_BIT) { Vec::new() } else { block_descriptor(disk) };
    Ok((descriptor, pages))
}

/// The short LBA mode parameter block descriptor; more blocks than it can tell are told as all ones.
fn block_descriptor(disk: &Disk) -> Vec<u8> {
    let blocks = u32::try_from(disk.blocks.0).unwrap_or(u32::MAX);
    [blocks.to_be_bytes(), disk.block.bytes().to_be_bytes()].concat()
}

/// A page: its code, and its current values after the PAGE LENGTH. No value can be changed.
type Page = (u8, fn(&Disk) -> Vec<u8>);

/// In ascending order of page code, as page 3Fh returns them.
const PAGES: [Page; 3] = [(0x08, caching), (0x0a, control), (0x1c, informational_exceptions)];
const ALL_PAGES: u8 = 0x3f;
const NO_SUBPAGE: u8 = 0x00;
const ALL_SUBPAGES: u8 = 0xff;

fn pages(disk: &Disk, control: PageControl, code: u8, subpage: u8) -> Result<Vec<u8>, Sense> {
    if ![NO_SUBPAGE, ALL_SUBPAGES].contains(&subpage) {
        return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb(3)));
    }
    let mut data = Vec::new();
    for (page_code, values) in PAGES.into_iter().filter(|page| code == ALL_PAGES || code == page.0) {
        let mut values = values(disk);
        if control == PageControl::Changeable {
            values.fill(0);
        }
        data.extend([page_code, u8::try_from(values.len()).unwrap_or(u8::MAX)]);
        data.extend(values);
    }
    if data.is_empty() {
        return Err(Sense::invalid_field_in_cdb(PAGE_FIELD));
    }
    Ok(data)
}

/// Caching (SBC-3).
fn caching(disk: &Disk) -> Vec<u8> {
    const WRITE_CACHE_ENABLE: u8 = 0x04;
    let mut values = vec![0; 0x12];
    values[0] = if disk.write_cache { WRITE_CACHE_ENABLE } else { 0 };
    values
}

/// Control (SPC-4): fixed format sense (`D_SENSE` 0), commands may be reordered freely, other nexuses'
/// commands are aborted without TASK ABORTED status (TAS 0) but with a unit attention.
fn control(_disk: &Disk) -> Vec<u8> {
    const UNRESTRICTED_REORDERING: u8 = 0x1 << 4;
    let mut values = vec![0; 0x0a];
    values[1] = UNRESTRICTED_REORDERING;
    values
}

/// Informational exceptions control (SPC-4): none are reported (DEXCPT).
fn informational_exceptions(_disk: &Disk) -> Vec<u8> {
    const DISABLE_EXCEPTION_CONTROL: u8 = 0x08;
    let mut values = vec![0; 0x0a];
    values[0] = DISABLE_EXCEPTION_CONTROL;
    values
}
