//! The mode pages (SPC-4; SBC-3).

use crate::mode_settings::{ModeSelect, ModeSettings};
use crate::{Disk, SenseFormat};

pub const CACHING: u8 = 0x08;
pub const CONTROL: u8 = 0x0a;
pub const INFORMATIONAL_EXCEPTIONS: u8 = 0x1c;

const WRITE_CACHE_ENABLE: u8 = 0x04;
const DESCRIPTOR_SENSE: u8 = 0x04;
const SOFTWARE_WRITE_PROTECT: u8 = 0x08;

/// A mode page in `page_0` format. Its values come after the PAGE LENGTH.
pub struct ModePage {
    /// PAGE CODE.
    pub code: u8,
    /// The values of a disk with these settings.
    pub values: fn(&Disk, &ModeSettings) -> Vec<u8>,
    /// A bit for each that MODE SELECT may change.
    pub changeable: fn(&Disk) -> Vec<u8>,
    /// What new values, which differ from the old ones in changeable bits only, mean.
    pub select: fn(&[u8], &mut ModeSelect),
}

/// In ascending order of page code, as page 3Fh returns them.
pub static PAGES: [ModePage; 3] = [
    ModePage { code: CACHING, values: caching, changeable: caching_changeable, select: select_caching },
    ModePage { code: CONTROL, values: control, changeable: control_changeable, select: select_control },
    ModePage {
        code: INFORMATIONAL_EXCEPTIONS,
        values: informational_exceptions,
        changeable: |_| vec![0; INFORMATIONAL_EXCEPTIONS_BYTES],
        select: |_, _| {},
    },
];

const CACHING_BYTES: usize = 0x12;
const CONTROL_BYTES: usize = 0x0a;
const INFORMATIONAL_EXCEPTIONS_BYTES: usize = 0x0a;

/// Caching (SBC-3).
fn caching(disk: &Disk, settings: &ModeSettings) -> Vec<u8> {
    let mut values = vec![0; CACHING_BYTES];
    values[0] = if disk.write_cache && !settings.write_through { WRITE_CACHE_ENABLE } else { 0 };
    values
}

/// A cache can be written through; where there is none, none can be had.
fn caching_changeable(disk: &Disk) -> Vec<u8> {
    let mut mask = vec![0; CACHING_BYTES];
    mask[0] = if disk.write_cache { WRITE_CACHE_ENABLE } else { 0 };
    mask
}

fn select_caching(values: &[u8], select: &mut ModeSelect) {
    select.write_through = values.first().map(|flags| flags & WRITE_CACHE_ENABLE == 0);
}

/// Control (SPC-4): commands may be reordered freely, other nexuses' commands are aborted without TASK ABORTED status
/// (TAS 0) but with a unit attention.
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
    /// In which format sense data goes with a CHECK CONDITION.
    #[must_use]
    pub const fn sense_format(&self) -> SenseFormat {
        if self.descriptor_sense { SenseFormat::Descriptor } else { SenseFormat::Fixed }
    }
}
