//! INQUIRY: standard data (SPC-4).

use crate::cdb::Cdb;
use crate::{Disk, FieldPointer, Identity, Outcome, Sense, Step, vital_product_data};

/// EVPD, in byte 1.
pub const EVPD_BIT: u8 = 0;
/// PERIPHERAL QUALIFIER 000b (connected), PERIPHERAL DEVICE TYPE 00h (direct access block device).
pub const CONNECTED_DISK: u8 = 0x00;
/// PERIPHERAL QUALIFIER 011b (no unit is or can be here), PERIPHERAL DEVICE TYPE 1Fh (unknown).
const NO_UNIT: u8 = 0x7f;
const STANDARD_BYTES: usize = 96;
/// ADDITIONAL LENGTH does not count the five bytes up to and including itself.
const ADDITIONAL_BYTES: u8 = 91;
const SPC_4: u8 = 0x06;
/// HISUP (LUNs have the structure of SAM-5), RESPONSE DATA FORMAT 2.
const FORMAT: u8 = 0x12;
/// CMDQUE: the full task set management model.
const COMMAND_QUEUING: u8 = 0x02;
/// SAM-5, iSCSI, SPC-4 and SBC-3, without claiming a version of any (SPC-4, VERSION DESCRIPTOR).
const VERSION_DESCRIPTORS: [u16; 4] = [0x00a0, 0x0960, 0x0460, 0x04c0];

pub fn begin(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let (page_code, allocation_bytes) = (cdb.u8::<2>(), cdb.u16::<3>().into());
    let data = if cdb.bit::<1>(EVPD_BIT) {
        vital_product_data::page(disk, page_code).ok_or(Sense::invalid_field_in_cdb(FieldPointer::cdb(2)))?
    } else {
        check_no_page(page_code)?;
        standard_of(disk)
    };
    Ok(Step::Done(Outcome::parameter_data(data, allocation_bytes)))
}

/// The answer for an absent logical unit. Everything but the qualifier equals that of a present unit, so that an
/// initiator sees the identity of the target.
pub fn absent(cdb: &Cdb) -> Result<Outcome, Sense> {
    check_no_page(cdb.u8::<2>())?;
    Ok(Outcome::parameter_data(standard(NO_UNIT, &Identity::from_name("")), cdb.u16::<3>().into()))
}

/// The standard data besides the disk's identity.
fn standard_of(disk: &Disk) -> Vec<u8> {
    /// TPGS 01b: implicit asymmetric logical unit access.
    const IMPLICIT_ACCESS: u8 = 0x10;
    /// MULTIP: the device has several ports.
    const MULTIPLE_PORTS: u8 = 0x10;
    /// RMB: the medium is removable.
    const REMOVABLE_MEDIUM: u8 = 0x80;
    /// 3PC: EXTENDED COPY.
    const THIRD_PARTY_COPY: u8 = 0x08;
    let mut data = standard(CONNECTED_DISK, &disk.identity);
    data[1] = if disk.removable { REMOVABLE_MEDIUM } else { 0 };
    data[5] = THIRD_PARTY_COPY;
    match disk.all_ports().count() {
        0 => {}
        1 => data[5] |= IMPLICIT_ACCESS,
        _ => {
            data[5] |= IMPLICIT_ACCESS;
            data[6] |= MULTIPLE_PORTS;
        }
    }
    data
}

/// PAGE CODE must be zero unless EVPD is set.
fn check_no_page(page_code: u8) -> Result<(), Sense> {
    if page_code != 0 {
        return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb(2)));
    }
    Ok(())
}

fn standard(peripheral: u8, identity: &Identity) -> Vec<u8> {
    let mut data = vec![0; STANDARD_BYTES];
    data[0] = peripheral;
    data[2] = SPC_4;
    data[3] = FORMAT;
    data[4] = ADDITIONAL_BYTES;
    data[7] = COMMAND_QUEUING;
    put_ascii(&mut data[8..16], &identity.vendor);
    put_ascii(&mut data[16..32], &identity.product);
    put_ascii(&mut data[32..36], &identity.revision);
    for (field, version) in data[58..].chunks_exact_mut(2).zip(VERSION_DESCRIPTORS) {
        field.copy_from_slice(&version.to_be_bytes());
    }
    data
}

/// Writes left-aligned ASCII to a field padded with spaces (SPC-4).
pub fn put_ascii(field: &mut [u8], text: &str) {
    field.fill(b' ');
    field.iter_mut().zip(printable(text)).for_each(|(to, from)| *to = from);
}

/// The characters that an ASCII field may hold; others become question marks.
pub fn printable(text: &str) -> impl Iterator<Item = u8> {
    text.chars().map(|character| {
        u8::try_from(character).ok().filter(|byte| (0x20..=0x7e).contains(byte)).unwrap_or(b'?')
    })
}
