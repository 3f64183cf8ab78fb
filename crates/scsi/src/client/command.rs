//! Command descriptor blocks (SPC-4, SBC-3), each padded to the 16 bytes that iSCSI carries.

use crate::operation_code as code;
use crate::{Blocks, Extent, Lba};

/// The part of a CDB that a SCSI Command PDU holds.
pub const CDB_BYTES: usize = 16;

/// A CDB, padded with zeroes.
pub type CdbBytes = [u8; CDB_BYTES];

/// VPD pages that a client asks for.
pub mod page {
    /// Device identification: the designators of the unit and its port (SPC-4 §7.8.6).
    pub const DEVICE_IDENTIFICATION: u8 = 0x83;
    /// Block limits: the most blocks of a command (SBC-3 §6.6.4).
    pub const BLOCK_LIMITS: u8 = 0xb0;
    /// Logical block provisioning: whether and how blocks can be unmapped (SBC-3 §6.6.6).
    pub const LOGICAL_BLOCK_PROVISIONING: u8 = 0xb2;
}

/// FUA, in byte 1 of a write.
const FORCE_UNIT_ACCESS: u8 = 0x08;

pub(super) fn cdb<const N: usize>(fields: [&[u8]; N]) -> CdbBytes {
    let mut cdb = [0; CDB_BYTES];
    let bytes = fields.into_iter().flatten();
    cdb.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    cdb
}

/// TEST UNIT READY (SPC-4 §6.47).
#[must_use]
pub fn test_unit_ready() -> CdbBytes {
    cdb([&[code::TEST_UNIT_READY]])
}

/// INQUIRY for the standard data (SPC-4 §6.6).
#[must_use]
pub fn inquiry(allocation_bytes: u16) -> CdbBytes {
    cdb([&[code::INQUIRY, 0, 0], &allocation_bytes.to_be_bytes()])
}

/// INQUIRY for a VPD page: the constants of [`page`].
#[must_use]
pub fn inquiry_page(page: u8, allocation_bytes: u16) -> CdbBytes {
    const EVPD: u8 = 1;
    cdb([&[code::INQUIRY, EVPD, page], &allocation_bytes.to_be_bytes()])
}

/// READ CAPACITY (10) (SBC-3 §5.15), answered with eight bytes.
#[must_use]
pub fn read_capacity_10() -> CdbBytes {
    cdb([&[code::READ_CAPACITY_10]])
}

/// READ CAPACITY (16) (SBC-3 §5.16).
#[must_use]
pub fn read_capacity_16(allocation_bytes: u32) -> CdbBytes {
    const ACTION: u8 = 0x10;
    cdb([&[code::SERVICE_ACTION_IN_16, ACTION], &[0; 8], &allocation_bytes.to_be_bytes()])
}

/// MODE SENSE (6) for the current caching page, without block descriptors (SPC-4 §6.13, SBC-3 §6.5.5).
#[must_use]
pub fn mode_sense_caching(allocation_bytes: u8) -> CdbBytes {
    const DISABLE_BLOCK_DESCRIPTORS: u8 = 0x08;
    const CACHING: u8 = 0x08;
    cdb([&[code::MODE_SENSE_6, DISABLE_BLOCK_DESCRIPTORS, CACHING, 0, allocation_bytes]])
}

/// REPORT LUNS (SPC-4 §6.33): all units that this initiator may use.
#[must_use]
pub fn report_luns(allocation_bytes: u32) -> CdbBytes {
    cdb([&[code::REPORT_LUNS, 0, 0, 0, 0, 0], &allocation_bytes.to_be_bytes()])
}

/// REPORT TARGET PORT GROUPS (SPC-4 §6.37).
#[must_use]
pub fn report_target_port_groups(allocation_bytes: u32) -> CdbBytes {
    const ACTION: u8 = 0x0a;
    cdb([&[code::MAINTENANCE_IN, ACTION, 0, 0, 0, 0], &allocation_bytes.to_be_bytes()])
}

/// READ (10), for devices without the longer form.
#[must_use]
pub fn read_10(lba: u32, blocks: u16) -> CdbBytes {
    ten(code::READ_10, 0, lba, blocks)
}

/// READ (16) (SBC-3 §5.14).
#[must_use]
pub fn read_16(lba: Lba, blocks: u32) -> CdbBytes {
    sixteen(code::READ_16, 0, lba, blocks)
}

/// WRITE (10), for devices without the longer form.
#[must_use]
pub fn write_10(lba: u32, blocks: u16, fua: bool) -> CdbBytes {
    ten(code::WRITE_10, if fua { FORCE_UNIT_ACCESS } else { 0 }, lba, blocks)
}

/// WRITE (16) (SBC-3 §5.38).
#[must_use]
pub fn write_16(lba: Lba, blocks: u32, fua: bool) -> CdbBytes {
    sixteen(code::WRITE_16, if fua { FORCE_UNIT_ACCESS } else { 0 }, lba, blocks)
}

/// The same READ or WRITE of other blocks. `None` for a command of another kind, or if it has no room for these
/// numbers.
#[must_use]
pub fn with_blocks(cdb: CdbBytes, blocks: Extent) -> Option<CdbBytes> {
    let mut moved = cdb;
    match cdb[0] {
        code::READ_10 | code::WRITE_10 => {
            moved[2..6].copy_from_slice(&u32::try_from(blocks.lba.0).ok()?.to_be_bytes());
            moved[7..9].copy_from_slice(&u16::try_from(blocks.blocks.0).ok()?.to_be_bytes());
        }
        code::READ_16 | code::WRITE_16 => {
            moved[2..10].copy_from_slice(&blocks.lba.0.to_be_bytes());
            moved[10..14].copy_from_slice(&u32::try_from(blocks.blocks.0).ok()?.to_be_bytes());
        }
        _ => return None,
    }
    Some(moved)
}

/// SYNCHRONIZE CACHE (10) of the whole unit (SBC-3 §5.24).
#[must_use]
pub fn synchronize_cache_10() -> CdbBytes {
    ten(code::SYNCHRONIZE_CACHE_10, 0, 0, 0)
}

/// SYNCHRONIZE CACHE (16) of the whole unit (SBC-3 §5.25).
#[must_use]
pub fn synchronize_cache_16() -> CdbBytes {
    sixteen(code::SYNCHRONIZE_CACHE_16, 0, Lba(0), 0)
}

/// WRITE SAME (16) (SBC-3 §5.43): its data is one block. `may_unmap` sets the UNMAP bit.
#[must_use]
pub fn write_same_16(lba: Lba, blocks: u32, may_unmap: bool) -> CdbBytes {
    const UNMAP: u8 = 0x08;
    sixteen(code::WRITE_SAME_16, if may_unmap { UNMAP } else { 0 }, lba, blocks)
}

/// COMPARE AND WRITE (SBC-3 §5.2): its data is the blocks to compare, then those to write.
#[must_use]
pub fn compare_and_write(lba: Lba, blocks: u8) -> CdbBytes {
    cdb([&[code::COMPARE_AND_WRITE, 0], &lba.0.to_be_bytes(), &[0, 0, 0, blocks]])
}

/// GET LBA STATUS from `lba` on (SBC-3 §5.4).
#[must_use]
pub fn get_lba_status(lba: Lba, allocation_bytes: u32) -> CdbBytes {
    const ACTION: u8 = 0x12;
    cdb([&[code::SERVICE_ACTION_IN_16, ACTION], &lba.0.to_be_bytes(), &allocation_bytes.to_be_bytes()])
}

/// UNMAP (SBC-3 §5.28); `list_bytes` is the length of its [`unmap_parameter_list`].
#[must_use]
pub fn unmap(list_bytes: u16) -> CdbBytes {
    cdb([&[code::UNMAP, 0, 0, 0, 0, 0, 0], &list_bytes.to_be_bytes()])
}

/// The parameter list of an UNMAP of one extent; drops blocks beyond the 32 bits of its field.
#[must_use]
pub fn unmap_parameter_list(extent: Extent) -> [u8; 24] {
    const DATA_LENGTH: u16 = 22;
    const DESCRIPTORS_LENGTH: u16 = 16;
    let Extent { lba, blocks: Blocks(blocks) } = extent;
    let mut list = [0; 24];
    list[..2].copy_from_slice(&DATA_LENGTH.to_be_bytes());
    list[2..4].copy_from_slice(&DESCRIPTORS_LENGTH.to_be_bytes());
    list[8..16].copy_from_slice(&lba.0.to_be_bytes());
    list[16..20].copy_from_slice(&u32::try_from(blocks).unwrap_or(u32::MAX).to_be_bytes());
    list
}

fn ten(operation_code: u8, flags: u8, lba: u32, blocks: u16) -> CdbBytes {
    cdb([&[operation_code, flags], &lba.to_be_bytes(), &[0], &blocks.to_be_bytes()])
}

fn sixteen(operation_code: u8, flags: u8, lba: Lba, blocks: u32) -> CdbBytes {
    cdb([&[operation_code, flags], &lba.0.to_be_bytes(), &blocks.to_be_bytes()])
}
