//! UNMAP and its parameter list (SBC-3).

use crate::cdb::Cdb;
use crate::{AdditionalSense, Blocks, Disk, Extent, FieldPointer, Lba, Sense, Step};

const HEADER_BYTES: usize = 8;
const DESCRIPTOR_BYTES: usize = 16;
/// UNMAP DATA LENGTH does not count itself.
const LENGTH_FIELD_BYTES: usize = 2;
/// The offset of the UNMAP BLOCK DESCRIPTOR DATA LENGTH.
const DESCRIPTOR_LENGTH_AT: u16 = 2;

/// Begins the command. An empty parameter list is no error: nothing is unmapped.
pub fn begin(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    disk.check_writable()?;
    match cdb.u16::<7>() {
        0 => Ok(Step::Unmap(Vec::new())),
        bytes if usize::from(bytes) < HEADER_BYTES => {
            Err(Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR).at(FieldPointer::cdb(7)))
        }
        bytes => Ok(Step::Parameter { bytes: bytes.into() }),
    }
}

/// Parses the parameter list into extents.
pub fn parameter(disk: &Disk, _cdb: &Cdb, list: &[u8]) -> Result<Step, Sense> {
    extents(disk, list).map(Step::Unmap)
}

/// The extents in a parameter list, without empty ones. Ignores an incomplete descriptor at the end, as the standard
/// requires.
fn extents(disk: &Disk, list: &[u8]) -> Result<Vec<Extent>, Sense> {
    let descriptors = descriptors(list)?;
    if descriptors.len() as u64 > disk.limits.unmap_descriptors_max.into() {
        return Err(Sense::invalid_field_in_parameter_list(DESCRIPTOR_LENGTH_AT));
    }
    let mut extents = Vec::with_capacity(descriptors.len());
    let mut blocks_left = u64::from(disk.limits.unmap_blocks_max);
    for (at, descriptor) in (8u16..).step_by(DESCRIPTOR_BYTES).zip(descriptors) {
        let extent = extent(disk, descriptor, at)?;
        blocks_left = blocks_left
            .checked_sub(extent.blocks.0)
            .ok_or(Sense::invalid_field_in_parameter_list(at.saturating_add(8)))?;
        if !extent.is_empty() {
            extents.push(extent);
        }
    }
    Ok(extents)
}

/// The complete descriptors of a list with consistent length fields.
fn descriptors(list: &[u8]) -> Result<&[[u8; DESCRIPTOR_BYTES]], Sense> {
    let truncated = Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR);
    let (header, rest) = list.split_first_chunk::<HEADER_BYTES>().ok_or(truncated)?;
    let data_bytes = usize::from(u16::from_be_bytes([header[0], header[1]]));
    let descriptor_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if data_bytes + LENGTH_FIELD_BYTES > list.len() {
        return Err(truncated);
    }
    Ok(rest.get(..descriptor_bytes).ok_or(truncated)?.as_chunks().0)
}

/// The extent of the descriptor at byte `at` of the list.
fn extent(disk: &Disk, descriptor: &[u8; DESCRIPTOR_BYTES], at: u16) -> Result<Extent, Sense> {
    let [a, b, c, d, e, f, g, h, blocks @ ..] = *descriptor;
    let [i, j, k, l, ..] = blocks;
    let lba = Lba(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
    let blocks = Blocks(u32::from_be_bytes([i, j, k, l]).into());
    disk.extent_at(lba, blocks, FieldPointer::parameter(at))
}
