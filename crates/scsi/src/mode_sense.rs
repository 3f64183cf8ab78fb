//! MODE SENSE (6) and (10) (SPC-4; SBC-3).

use crate::cdb::Cdb;
use crate::mode_page::{ModePage, NO_SUBPAGE};
use crate::mode_settings::ModeSettings;
use crate::{AdditionalSense, Disk, FieldPointer, Outcome, Sense, Step};

/// DBD, in byte 1.
const DISABLE_BLOCK_DESCRIPTORS_BIT: u8 = 3;
/// Bytes of the short LBA mode parameter block descriptor (SBC-3).
pub const BLOCK_DESCRIPTOR_BYTES: u8 = 8;
/// The PAGE CODE of the CDB, which an error points to.
const PAGE_FIELD: FieldPointer = FieldPointer::cdb_bit(2, 5);
const ALL_PAGES: u8 = 0x3f;
const ALL_SUBPAGES: u8 = 0xff;

/// A request for mode pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeSense {
    form: Form,
    values: PageControl,
    page_code: u8,
    subpage: u8,
    with_block_descriptor: bool,
    allocation_bytes: u32,
}

/// The form of the parameter data's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Six,
    Ten,
}

/// The requested values (PC, SPC-4). None can be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageControl {
    Current,
    Changeable,
    Default,
}

pub fn begin_6(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    parse(disk, cdb, Form::Six, cdb.u8::<4>().into())
}

/// LLBAA allows long block descriptors but does not require them.
pub fn begin_10(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    parse(disk, cdb, Form::Ten, cdb.u16::<7>().into())
}

fn parse(disk: &Disk, cdb: &Cdb, form: Form, allocation_bytes: u32) -> Result<Step, Sense> {
    let values = match cdb.u8::<2>() >> 6 {
        0b00 => PageControl::Current,
        0b01 => PageControl::Changeable,
        0b10 => PageControl::Default,
        _ => return Err(Sense::illegal_request(AdditionalSense::SAVING_PARAMETERS_NOT_SUPPORTED)),
    };
    let (page_code, subpage) = (cdb.u8::<2>() & 0x3f, cdb.u8::<3>());
    if !ModePage::of(disk).any(|page| [ALL_PAGES, page.code].contains(&page_code)) {
        return Err(Sense::invalid_field_in_cdb(PAGE_FIELD));
    }
    if !ModePage::of(disk).any(|page| is_asked(page_code, subpage, page)) {
        return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb(3)));
    }
    let with_block_descriptor = !cdb.bit::<1>(DISABLE_BLOCK_DESCRIPTORS_BIT);
    Ok(Step::ModeSense(ModeSense {
        form,
        values,
        page_code,
        subpage,
        with_block_descriptor,
        allocation_bytes,
    }))
}

impl ModeSense {
    /// Answers for a disk with these settings.
    #[must_use]
    pub fn respond(&self, disk: &Disk, settings: &ModeSettings) -> Outcome {
        let descriptor = if self.with_block_descriptor { block_descriptor(disk) } else { Vec::new() };
        let pages = self.pages(disk, settings);
        let contents_bytes = descriptor.len() + pages.len();
        let device_specific = device_specific(disk, settings);
        let descriptor_length = if descriptor.is_empty() { 0 } else { BLOCK_DESCRIPTOR_BYTES };
        // MODE DATA LENGTH does not count itself.
        let header = match self.form {
            Form::Six => {
                let length = u8::try_from(3 + contents_bytes).unwrap_or(u8::MAX);
                vec![length, 0, device_specific, descriptor_length]
            }
            Form::Ten => {
                let [high, low] = u16::try_from(6 + contents_bytes).unwrap_or(u16::MAX).to_be_bytes();
                vec![high, low, 0, device_specific, 0, 0, 0, descriptor_length]
            }
        };
        Outcome::parameter_data([header, descriptor, pages].concat(), self.allocation_bytes)
    }

    fn pages(&self, disk: &Disk, settings: &ModeSettings) -> Vec<u8> {
        let mut data = Vec::new();
        for page in ModePage::of(disk).filter(|page| is_asked(self.page_code, self.subpage, page)) {
            let values = match self.values {
                PageControl::Current => (page.values)(disk, settings),
                PageControl::Default => (page.values)(disk, &ModeSettings::default()),
                PageControl::Changeable => (page.changeable)(disk),
            };
            data.extend(page.header(values.len()));
            data.extend(values);
        }
        data
    }
}

/// Whether a page is requested. A request for all pages includes all subpages or none.
fn is_asked(page_code: u8, subpage: u8, page: &ModePage) -> bool {
    let by_code = match page_code {
        ALL_PAGES => [ALL_SUBPAGES, NO_SUBPAGE].contains(&subpage),
        _ => page.code == page_code,
    };
    by_code && (subpage == ALL_SUBPAGES || subpage == page.subpage)
}

/// The DEVICE-SPECIFIC PARAMETER: WP, and the support of DPO and FUA (SBC-3).
fn device_specific(disk: &Disk, settings: &ModeSettings) -> u8 {
    const WRITE_PROTECT: u8 = 0x80;
    const DPOFUA: u8 = 0x10;
    if disk.read_only || settings.write_protected { WRITE_PROTECT | DPOFUA } else { DPOFUA }
}

/// The short LBA mode parameter block descriptor; a number of blocks beyond its field becomes all ones.
pub fn block_descriptor(disk: &Disk) -> Vec<u8> {
    let blocks = u32::try_from(disk.blocks.0).unwrap_or(u32::MAX);
    [blocks.to_be_bytes(), disk.block.bytes().to_be_bytes()].concat()
}
