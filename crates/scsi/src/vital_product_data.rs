//! INQUIRY: vital product data pages (SPC-4, SBC-3).

use crate::inquiry::{CONNECTED_DISK, printable, put_ascii};
use crate::{Disk, Identity, Provisioning, TargetPort, Threshold, scsi_ports, third_party_copy};

const SUPPORTED_PAGES: u8 = 0x00;
const UNIT_SERIAL_NUMBER: u8 = 0x80;
const DEVICE_IDENTIFICATION: u8 = 0x83;
const EXTENDED_INQUIRY_DATA: u8 = 0x86;
const MODE_PAGE_POLICY: u8 = 0x87;
const SCSI_PORTS: u8 = 0x88;
const THIRD_PARTY_COPY: u8 = 0x8f;
const BLOCK_LIMITS: u8 = 0xb0;
const BLOCK_DEVICE_CHARACTERISTICS: u8 = 0xb1;
const LOGICAL_BLOCK_PROVISIONING: u8 = 0xb2;
/// In ascending order, as page 00h must list them.
const PAGES: [u8; 10] = [
    SUPPORTED_PAGES,
    UNIT_SERIAL_NUMBER,
    DEVICE_IDENTIFICATION,
    EXTENDED_INQUIRY_DATA,
    MODE_PAGE_POLICY,
    SCSI_PORTS,
    THIRD_PARTY_COPY,
    BLOCK_LIMITS,
    BLOCK_DEVICE_CHARACTERISTICS,
    LOGICAL_BLOCK_PROVISIONING,
];
/// The longest serial number that fits a page of 255 bytes.
const SERIAL_BYTES_MAX: usize = 251;

/// The page with this code, with its header; `None` if there is none.
pub fn page(disk: &Disk, code: u8) -> Option<Vec<u8>> {
    let contents = match code {
        SUPPORTED_PAGES => PAGES.to_vec(),
        UNIT_SERIAL_NUMBER => printable(&disk.identity.serial).take(SERIAL_BYTES_MAX).collect(),
        DEVICE_IDENTIFICATION => device_identification(&disk.identity, disk.target_port.as_ref()),
        EXTENDED_INQUIRY_DATA => extended_inquiry_data(disk).to_vec(),
        MODE_PAGE_POLICY => MODE_PAGES_SHARED.to_vec(),
        SCSI_PORTS => scsi_ports::page(disk),
        THIRD_PARTY_COPY => third_party_copy::page(disk),
        BLOCK_LIMITS => block_limits(disk).to_vec(),
        BLOCK_DEVICE_CHARACTERISTICS => block_device_characteristics().to_vec(),
        LOGICAL_BLOCK_PROVISIONING => logical_block_provisioning(disk).to_vec(),
        _ => return None,
    };
    let [high, low] = u16::try_from(contents.len()).ok()?.to_be_bytes();
    let mut page = vec![CONNECTED_DISK, code, high, low];
    page.extend(contents);
    Some(page)
}

/// The object that a designator names (SPC-4).
#[derive(Clone, Copy)]
#[repr(u8)]
enum Association {
    LogicalUnit = 0b00 << 4,
    TargetPort = 0b01 << 4,
    TargetDevice = 0b10 << 4,
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum CodeSet {
    Binary = 1,
    Ascii = 2,
    Utf8 = 3,
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum DesignatorType {
    T10VendorId = 1,
    Naa = 3,
    RelativeTargetPort = 4,
    TargetPortGroup = 5,
    ScsiName = 8,
}

/// Page 83h: the unit by NAA, T10 vendor ID and SCSI name; then the port that the command came through.
fn device_identification(identity: &Identity, port: Option<&TargetPort>) -> Vec<u8> {
    let mut data = Vec::new();
    let unit = Association::LogicalUnit;
    push_designator(&mut data, unit, CodeSet::Binary, DesignatorType::Naa, &identity.naa.0);
    let mut vendor = [0; 8];
    put_ascii(&mut vendor, &identity.vendor);
    let vendor_specific = printable(&identity.serial).take(SCSI_NAME_BYTES_MAX - vendor.len());
    let vendor_id: Vec<u8> = vendor.into_iter().chain(vendor_specific).collect();
    push_designator(&mut data, unit, CodeSet::Ascii, DesignatorType::T10VendorId, &vendor_id);
    push_designator(
        &mut data,
        unit,
        CodeSet::Utf8,
        DesignatorType::ScsiName,
        &scsi_name(&identity.naa.to_string()),
    );
    if let Some(port) = port {
        push_port_designators(&mut data, port);
        let name = scsi_name(&port.target_name);
        push_designator(&mut data, Association::TargetDevice, CodeSet::Utf8, DesignatorType::ScsiName, &name);
    }
    data
}

/// The port by its relative identifier, its group and its name.
pub fn push_port_designators(data: &mut Vec<u8>, port: &TargetPort) {
    let [high, low] = port.relative_identifier.to_be_bytes();
    let relative = [0, 0, high, low];
    push_designator(
        data,
        Association::TargetPort,
        CodeSet::Binary,
        DesignatorType::RelativeTargetPort,
        &relative,
    );
    let [high, low] = port.portal_group_tag.to_be_bytes();
    let group = [0, 0, high, low];
    push_designator(data, Association::TargetPort, CodeSet::Binary, DesignatorType::TargetPortGroup, &group);
    let name = format!("{},t,0x{:04x}", port.target_name, port.portal_group_tag);
    push_designator(
        data,
        Association::TargetPort,
        CodeSet::Utf8,
        DesignatorType::ScsiName,
        &scsi_name(&name),
    );
}

/// A SCSI name string is at most 256 bytes (SPC-4); its length field holds multiples of four below
/// that.
const SCSI_NAME_BYTES_MAX: usize = 252;

/// Null-terminated and null-padded to a multiple of four bytes.
fn scsi_name(name: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = name.bytes().take(SCSI_NAME_BYTES_MAX - 1).collect();
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// `designator` is at most 255 bytes long.
fn push_designator(
    data: &mut Vec<u8>,
    association: Association,
    code_set: CodeSet,
    kind: DesignatorType,
    designator: &[u8],
) {
    /// PIV: the PROTOCOL IDENTIFIER is valid, for designators of ports and devices.
    const PROTOCOL_IDENTIFIER_VALID: u8 = 0x80;
    const ISCSI: u8 = 0x5 << 4;
    let (protocol, valid) = match association {
        Association::LogicalUnit => (0, 0),
        Association::TargetPort | Association::TargetDevice => (ISCSI, PROTOCOL_IDENTIFIER_VALID),
    };
    let length = u8::try_from(designator.len()).unwrap_or(u8::MAX);
    data.extend([protocol | code_set as u8, valid | association as u8 | kind as u8, 0, length]);
    data.extend(designator.iter().take(length.into()));
}

/// Page 87h (SPC-4): all initiators share one copy of all pages and subpages.
const MODE_PAGES_SHARED: [u8; 4] = [0x3f, 0xff, 0, 0];

/// Page 86h (SPC-4): task attributes, and whether written data can be lost.
fn extended_inquiry_data(disk: &Disk) -> [u8; 60] {
    /// `HEADSUP`, `ORDSUP`, `SIMPSUP`.
    const TASK_ATTRIBUTES: u8 = 0x07;
    /// `V_SUP`: there is a volatile cache.
    const VOLATILE_CACHE: u8 = 0x01;
    let mut page = [0; 60];
    page[1] = TASK_ATTRIBUTES;
    page[2] = if disk.write_cache { VOLATILE_CACHE } else { 0 };
    page
}

/// Page B0h (SBC-3).
fn block_limits(disk: &Disk) -> [u8; 60] {
    /// UGAVALID: the UNMAP GRANULARITY ALIGNMENT is valid; it is zero.
    const UNMAP_GRANULARITY_ALIGNMENT_VALID: u32 = 1 << 31;
    /// WSNZ: a WRITE SAME of zero blocks is refused.
    const WRITE_SAME_NON_ZERO: u8 = 1;
    let limits = &disk.limits;
    let mut page = [0; 60];
    page[0] = if limits.write_same_to_end { 0 } else { WRITE_SAME_NON_ZERO };
    page[1] = limits.compare_and_write_blocks_max;
    page[4..8].copy_from_slice(&disk.transfer_blocks_max().to_be_bytes());
    if let Provisioning::Thin { granularity, .. } = disk.provisioning {
        let granularity = u32::try_from(granularity.0).unwrap_or(u32::MAX);
        page[16..20].copy_from_slice(&limits.unmap_blocks_max.to_be_bytes());
        page[20..24].copy_from_slice(&limits.unmap_descriptors_max.to_be_bytes());
        page[24..28].copy_from_slice(&granularity.to_be_bytes());
        page[28..32].copy_from_slice(&UNMAP_GRANULARITY_ALIGNMENT_VALID.to_be_bytes());
    }
    page[32..40].copy_from_slice(&limits.write_same_blocks_max.0.to_be_bytes());
    page
}

/// Page B1h (SBC-3).
fn block_device_characteristics() -> [u8; 60] {
    /// MEDIUM ROTATION RATE: non-rotating.
    const NON_ROTATING: u8 = 1;
    let mut page = [0; 60];
    page[1] = NON_ROTATING;
    page
}

/// Page B2h (SBC-3).
fn logical_block_provisioning(disk: &Disk) -> [u8; 4] {
    /// UNMAP, and the UNMAP bits of WRITE SAME (16) and (10).
    const LBPU_LBPWS_LBPWS10: u8 = 0xe0;
    const LBPRZ: u8 = 0x04;
    const THIN_PROVISIONED: u8 = 2;
    match disk.provisioning {
        Provisioning::Full => [0; 4],
        Provisioning::Thin { zeroes, threshold, .. } => {
            let reads_zeroes = if zeroes { LBPRZ } else { 0 };
            [threshold.map_or(0, Threshold::exponent), LBPU_LBPWS_LBPWS10 | reads_zeroes, THIN_PROVISIONED, 0]
        }
    }
}
