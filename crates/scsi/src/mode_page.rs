//! The mode pages (SPC-4; SBC-3).

use crate::mode_settings::{ModeSelect, ModeSettings};
use crate::{Disk, SenseFormat, provisioning_log};

pub const READ_WRITE_ERROR_RECOVERY: u8 = 0x01;
pub const CACHING: u8 = 0x08;
pub const CONTROL: u8 = 0x0a;
pub const INFORMATIONAL_EXCEPTIONS: u8 = 0x1c;
/// The subpage code of a page in `page_0` format.
pub const NO_SUBPAGE: u8 = 0x00;
/// The subpage of page 1Ch.
pub const LOGICAL_BLOCK_PROVISIONING: u8 = 0x02;

const WRITE_CACHE_ENABLE: u8 = 0x04;
const DESCRIPTOR_SENSE: u8 = 0x04;
const SOFTWARE_WRITE_PROTECT: u8 = 0x08;

/// A mode page. Its values follow the PAGE LENGTH.
pub struct ModePage {
    pub code: u8,
    /// SUBPAGE CODE; zero: the page has `page_0` format.
    pub subpage: u8,
    /// Whether a disk has it.
    pub is_offered: fn(&Disk) -> bool,
    /// The values of a disk with these settings.
    pub values: fn(&Disk, &ModeSettings) -> Vec<u8>,
    /// The bits that MODE SELECT may change, as a mask.
    pub changeable: fn(&Disk) -> Vec<u8>,
    /// Applies new values, which differ from the old ones only in changeable bits.
    pub select: fn(&[u8], &mut ModeSelect),
}

/// In ascending order of page code, as page 3Fh returns them.
pub static PAGES: [ModePage; 5] = [
    ModePage {
        code: READ_WRITE_ERROR_RECOVERY,
        values: read_write_error_recovery,
        changeable: |_| vec![0; READ_WRITE_ERROR_RECOVERY_BYTES],
        is_offered: has_threshold,
        ..UNCHANGEABLE
    },
    ModePage {
        code: CACHING,
        values: caching,
        changeable: caching_changeable,
        select: select_caching,
        ..UNCHANGEABLE
    },
    ModePage {
        code: CONTROL,
        values: control,
        changeable: control_changeable,
        select: select_control,
        ..UNCHANGEABLE
    },
    ModePage {
        code: INFORMATIONAL_EXCEPTIONS,
        values: informational_exceptions,
        changeable: |_| vec![0; INFORMATIONAL_EXCEPTIONS_BYTES],
        ..UNCHANGEABLE
    },
    ModePage {
        code: INFORMATIONAL_EXCEPTIONS,
        subpage: LOGICAL_BLOCK_PROVISIONING,
        values: logical_block_provisioning,
        changeable: |_| vec![0; LOGICAL_BLOCK_PROVISIONING_BYTES],
        is_offered: has_threshold,
        ..UNCHANGEABLE
    },
];

/// The usual page: without subpage, on every disk, without changeable bits.
const UNCHANGEABLE: ModePage = ModePage {
    code: 0,
    subpage: NO_SUBPAGE,
    is_offered: |_| true,
    values: |_, _| Vec::new(),
    changeable: |_| Vec::new(),
    select: |_, _| {},
};

impl ModePage {
    /// The pages of a disk.
    pub fn of(disk: &Disk) -> impl Iterator<Item = &'static Self> {
        PAGES.iter().filter(move |page| (page.is_offered)(disk))
    }

    /// The header before `values_bytes` of values. No page can be saved (PS 0).
    pub fn header(&self, values_bytes: usize) -> Vec<u8> {
        if self.subpage == NO_SUBPAGE {
            return vec![self.code, u8::try_from(values_bytes).unwrap_or(u8::MAX)];
        }
        let [high, low] = u16::try_from(values_bytes).unwrap_or(u16::MAX).to_be_bytes();
        vec![SUBPAGE_FORMAT | self.code, self.subpage, high, low]
    }
}

fn has_threshold(disk: &Disk) -> bool {
    disk.threshold().is_some()
}

/// SPF: byte 1 holds the SUBPAGE CODE, and the PAGE LENGTH follows it.
const SUBPAGE_FORMAT: u8 = 0x40;

const READ_WRITE_ERROR_RECOVERY_BYTES: usize = 0x0a;
const LOGICAL_BLOCK_PROVISIONING_BYTES: usize = 0x14;
const CACHING_BYTES: usize = 0x12;
const CONTROL_BYTES: usize = 0x0a;
const INFORMATIONAL_EXCEPTIONS_BYTES: usize = 0x0a;

/// Read-write error recovery (SBC-3): the unit reports thresholds of logical block provisioning (LBPERE).
fn read_write_error_recovery(_disk: &Disk, _settings: &ModeSettings) -> Vec<u8> {
    const PROVISIONING_ERROR_REPORTING: u8 = 0x80;
    let mut values = vec![0; READ_WRITE_ERROR_RECOVERY_BYTES];
    values[5] = PROVISIONING_ERROR_REPORTING;
    values
}

/// Logical block provisioning (SBC-3): one soft threshold of decreasing available blocks, reported to all initiators
/// (SITUA 0).
fn logical_block_provisioning(disk: &Disk, _settings: &ModeSettings) -> Vec<u8> {
    /// The offset of the only threshold descriptor, and in it the THRESHOLD COUNT.
    const DESCRIPTOR: usize = 12;
    const COUNT: usize = DESCRIPTOR + 4;
    /// ENABLED, THRESHOLD TYPE 000b, THRESHOLD ARMING 000b.
    const ENABLED_SOFT_DECREASING: u8 = 0x80;
    let mut values = vec![0; LOGICAL_BLOCK_PROVISIONING_BYTES];
    if let Some(threshold) = disk.threshold() {
        values[DESCRIPTOR] = ENABLED_SOFT_DECREASING;
        values[DESCRIPTOR + 1] = provisioning_log::AVAILABLE_RESOURCE;
        values[COUNT..].copy_from_slice(&threshold.count().to_be_bytes());
    }
    values
}

/// The caching page (SBC-3 §6.5.5): the write cache of a disk.
fn caching(disk: &Disk, settings: &ModeSettings) -> Vec<u8> {
    let mut values = vec![0; CACHING_BYTES];
    values[0] = if disk.write_cache && !settings.write_through { WRITE_CACHE_ENABLE } else { 0 };
    values
}

/// The write cache can be turned off; a disk without one cannot turn it on.
fn caching_changeable(disk: &Disk) -> Vec<u8> {
    let mut mask = vec![0; CACHING_BYTES];
    mask[0] = if disk.write_cache { WRITE_CACHE_ENABLE } else { 0 };
    mask
}

fn select_caching(values: &[u8], select: &mut ModeSelect) {
    select.write_through = values.first().map(|flags| flags & WRITE_CACHE_ENABLE == 0);
}

/// Control (SPC-4): commands may be reordered freely; another nexus's abort of commands causes a unit attention instead
/// of TASK ABORTED status (TAS 0).
fn control(_disk: &Disk, settings: &ModeSettings) -> Vec<u8> {
    const UNRESTRICTED_REORDERING: u8 = 0x1 << 4;
    let mut values = vec![0; CONTROL_BYTES];
    values[0] = if settings.descriptor_sense { DESCRIPTOR_SENSE } else { 0 };
    values[1] = UNRESTRICTED_REORDERING;
    values[2] = if settings.write_protected { SOFTWARE_WRITE_PROTECT } else { 0 };
    values
}

fn control_changeable(_disk: &Disk) -> Vec<u8> {
    let mut mask = vec![0; CONTROL_BYTES];
    mask[0] = DESCRIPTOR_SENSE;
    mask[2] = SOFTWARE_WRITE_PROTECT;
    mask
}

fn select_control(values: &[u8], select: &mut ModeSelect) {
    select.descriptor_sense = values.first().map(|flags| flags & DESCRIPTOR_SENSE != 0);
    select.write_protected = values.get(2).map(|flags| flags & SOFTWARE_WRITE_PROTECT != 0);
}

/// Informational exceptions control (SPC-4): none are reported (DEXCPT).
fn informational_exceptions(_disk: &Disk, _settings: &ModeSettings) -> Vec<u8> {
    const DISABLE_EXCEPTION_CONTROL: u8 = 0x08;
    let mut values = vec![0; INFORMATIONAL_EXCEPTIONS_BYTES];
    values[0] = DISABLE_EXCEPTION_CONTROL;
    values
}

impl ModeSettings {
    /// The format of the sense data of a CHECK CONDITION.
    #[must_use]
    pub const fn sense_format(&self) -> SenseFormat {
        if self.descriptor_sense { SenseFormat::Descriptor } else { SenseFormat::Fixed }
    }
}
