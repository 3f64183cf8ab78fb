//! EXTENDED COPY (LID1) and its parameter list (SPC-4): copy source and copy destination devices, and the segments to
//! copy.
//!
//! Devices come as identification descriptors (E4h), segments as block device to block device (02h). The executor of a
//! copy must look for the devices only among the units that the initiator may use itself.

use crate::cdb::Cdb;
use crate::{AdditionalSense, Blocks, Disk, FieldPointer, Lba, Outcome, Sense, SenseKey, Step};

/// Copy source and copy destination devices of one command: enough for one of each, several times over.
pub const TARGETS_MAX: usize = 16;
/// Segments of one command: with 65535 blocks each, more than two gigabytes, so that one command works for seconds.
pub const SEGMENTS_MAX: usize = 64;
/// MAXIMUM DESCRIPTOR LIST LENGTH: the maximum of both kinds.
pub const DESCRIPTOR_LIST_BYTES_MAX: usize = TARGETS_MAX * TARGET_BYTES + SEGMENTS_MAX * SEGMENT_BYTES;
/// Blocks of one segment: its field has two bytes.
pub const SEGMENT_BLOCKS_MAX: u16 = u16::MAX;

const HEADER_BYTES: usize = 16;
const TARGET_BYTES: usize = 32;
const SEGMENT_BYTES: usize = 28;
/// The longest designator of a target descriptor.
const DESIGNATOR_BYTES_MAX: usize = 20;

pub const IDENTIFICATION_DESCRIPTOR: u8 = 0xe4;
pub const BLOCK_TO_BLOCK: u8 = 0x02;

/// A requested copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedCopy {
    /// The number under which its status is kept; `None`: it is not kept.
    pub list_id: Option<u8>,
    /// The devices, which segments name by their index.
    pub targets: Vec<CopyTarget>,
    /// In the order of copying.
    pub segments: Vec<CopySegment>,
}

/// A copy source or copy destination device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyTarget {
    /// CODE SET, ASSOCIATION and DESIGNATOR TYPE as on VPD page 83h, and the designator itself.
    designator: DesignatorDescriptor,
    /// Bytes of a logical block, according to the initiator.
    block_bytes: u32,
}

/// A designation descriptor (VPD page 83h).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesignatorDescriptor {
    /// CODE SET: how the designator is coded.
    pub code_set: u8,
    /// ASSOCIATION and DESIGNATOR TYPE.
    pub association_and_type: u8,
    /// DESIGNATOR: the name of the unit, as received.
    pub designator: Vec<u8>,
}

/// Blocks to copy from one device to another, or within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySegment {
    /// The index of the copy source in [`ExtendedCopy::targets`]; always valid.
    pub source: usize,
    /// The index of the copy destination, likewise.
    pub destination: usize,
    /// The number of blocks.
    pub blocks: Blocks,
    /// DC: the number counts blocks of the destination instead of the source.
    pub counts_destination: bool,
    /// The first block at the source. It may lie beyond the device's end.
    pub source_lba: Lba,
    /// The first block at the destination, likewise.
    pub destination_lba: Lba,
}

/// Begins the command. An absent list is no error: nothing is copied.
pub fn begin(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let bytes = cdb.u32::<10>();
    match bytes as usize {
        0 => Ok(Step::Done(Outcome::good())),
        length if (HEADER_BYTES..=HEADER_BYTES + DESCRIPTOR_LIST_BYTES_MAX).contains(&length) => {
            Ok(Step::Parameter { bytes })
        }
        _ => Err(length_error().at(FieldPointer::cdb(10))),
    }
}

/// Parses the parameter list.
///
/// # Errors
/// A defect of the list itself, or a device that cannot be named.
pub fn parameter(_disk: &Disk, _cdb: &Cdb, list: &[u8]) -> Result<Step, Sense> {
    let (header, rest) = list.split_first_chunk::<HEADER_BYTES>().ok_or(length_error())?;
    let [id, flags, high, low, _, _, _, _, a, b, c, d, e, f, g, h] = *header;
    let list_id = list_id(id, flags)?;
    let target_bytes = usize::from(u16::from_be_bytes([high, low]));
    let segment_bytes = u32::from_be_bytes([a, b, c, d]) as usize;
    if u32::from_be_bytes([e, f, g, h]) != 0 {
        return Err(Sense::illegal_request(AdditionalSense::INLINE_DATA_LENGTH_EXCEEDED));
    }
    let (targets, rest) = rest.split_at_checked(target_bytes).ok_or(length_error())?;
    let segments = rest.get(..segment_bytes).ok_or(length_error())?;
    let targets = targets_of(targets)?;
    let segments = segments_of(segments, HEADER_BYTES + target_bytes, targets.len())?;
    Ok(Step::ExtendedCopy(ExtendedCopy { list_id, targets, segments }))
}

const fn length_error() -> Sense {
    Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR)
}

const fn copy_aborted(additional: AdditionalSense) -> Sense {
    Sense::new(SenseKey::CopyAborted, additional)
}

/// LIST ID USAGE: status kept or discarded under an identifier, or no identifier, which must then be zero.
fn list_id(id: u8, flags: u8) -> Result<Option<u8>, Sense> {
    match flags >> 3 & 0b11 {
        0b00 => Ok(Some(id)),
        0b10 => Ok(None),
        0b11 if id == 0 => Ok(None),
        0b11 => Err(Sense::invalid_field_in_parameter_list(0)),
        _ => Err(Sense::invalid_field_in_parameter_list(1)),
    }
}

fn targets_of(bytes: &[u8]) -> Result<Vec<CopyTarget>, Sense> {
    let (descriptors, incomplete) = bytes.as_chunks::<TARGET_BYTES>();
    if descriptors.len() > TARGETS_MAX {
        return Err(Sense::illegal_request(AdditionalSense::TOO_MANY_TARGET_DESCRIPTORS));
    }
    let starts = (HEADER_BYTES..).step_by(TARGET_BYTES);
    let targets =
        starts.zip(descriptors).map(|(at, descriptor)| target(descriptor, at)).collect::<Result<_, _>>()?;
    if incomplete.is_empty() { Ok(targets) } else { Err(length_error()) }
}

/// Parses the target descriptor at byte `at` of the list.
fn target(descriptor: &[u8; TARGET_BYTES], at: usize) -> Result<CopyTarget, Sense> {
    const NULL_DEVICE_BIT: u8 = 1 << 5;
    const PERIPHERAL_DEVICE_TYPE_MASK: u8 = 0x1f;
    if descriptor[0] != IDENTIFICATION_DESCRIPTOR {
        let additional = AdditionalSense::UNSUPPORTED_TARGET_DESCRIPTOR_TYPE_CODE;
        return Err(Sense::illegal_request(additional).at(pointer(at)));
    }
    // LU ID TYPE applies only to descriptors that name a unit by its number at a port, so it is ignored. A null device
    // cannot be copied from or to, and every device here is a disk.
    if descriptor[1] & (NULL_DEVICE_BIT | PERIPHERAL_DEVICE_TYPE_MASK) != 0 {
        return Err(copy_aborted(AdditionalSense::COPY_TARGET_DEVICE_NOT_REACHABLE));
    }
    let length = usize::from(descriptor[7]);
    let designator = descriptor[8..8 + DESIGNATOR_BYTES_MAX].get(..length);
    let designator = designator.ok_or(Sense::invalid_field_in_parameter_list(byte(at + 7)))?.to_vec();
    let [.., a, b, c] = *descriptor;
    Ok(CopyTarget {
        designator: DesignatorDescriptor {
            code_set: descriptor[4] & 0x0f,
            association_and_type: descriptor[5] & 0x3f,
            designator,
        },
        block_bytes: u32::from_be_bytes([0, a, b, c]),
    })
}

/// Parses the segments, which start at byte `at` of the list.
fn segments_of(bytes: &[u8], at: usize, targets: usize) -> Result<Vec<CopySegment>, Sense> {
    let (descriptors, incomplete) = bytes.as_chunks::<SEGMENT_BYTES>();
    if descriptors.len() > SEGMENTS_MAX {
        return Err(Sense::illegal_request(AdditionalSense::TOO_MANY_SEGMENT_DESCRIPTORS));
    }
    let starts = (at..).step_by(SEGMENT_BYTES);
    let segments = starts
        .zip(descriptors)
        .map(|(at, descriptor)| segment(descriptor, at, targets))
        .collect::<Result<_, _>>()?;
    // A segment of another type may have another length, so an incomplete one is judged by its type first.
    match incomplete.first() {
        None => Ok(segments),
        Some(&BLOCK_TO_BLOCK) => Err(length_error()),
        Some(_) => Err(unsupported_segment(at + descriptors.len() * SEGMENT_BYTES)),
    }
}

fn unsupported_segment(at: usize) -> Sense {
    Sense::illegal_request(AdditionalSense::UNSUPPORTED_SEGMENT_DESCRIPTOR_TYPE_CODE).at(pointer(at))
}

/// Parses the segment descriptor at byte `at` of the list.
fn segment(descriptor: &[u8; SEGMENT_BYTES], at: usize, targets: usize) -> Result<CopySegment, Sense> {
    const DESTINATION_COUNT_BIT: u8 = 1 << 1;
    /// DESCRIPTOR LENGTH does not count the four bytes up to and including itself.
    const DESCRIPTOR_LENGTH: [u8; 2] = [0, 24];
    let [kind, flags, length @ ..] = *descriptor;
    if kind != BLOCK_TO_BLOCK {
        return Err(unsupported_segment(at));
    }
    if length[..2] != DESCRIPTOR_LENGTH {
        return Err(Sense::invalid_field_in_parameter_list(byte(at + 2)));
    }
    let device = |high: u8, low: u8| {
        let index = usize::from(u16::from_be_bytes([high, low]));
        if index < targets { Ok(index) } else { Err(copy_aborted(AdditionalSense::UNREACHABLE_COPY_TARGET)) }
    };
    let [_, _, _, _, s0, s1, d0, d1, _, _, b0, b1, lbas @ ..] = *descriptor;
    let [a, b, c, d, e, f, g, h, destination_lba @ ..] = lbas;
    Ok(CopySegment {
        source: device(s0, s1)?,
        destination: device(d0, d1)?,
        blocks: Blocks(u16::from_be_bytes([b0, b1]).into()),
        counts_destination: flags & DESTINATION_COUNT_BIT != 0,
        source_lba: Lba(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
        destination_lba: Lba(u64::from_be_bytes(destination_lba)),
    })
}

fn byte(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}

fn pointer(at: usize) -> FieldPointer {
    FieldPointer::parameter(byte(at))
}

impl CopyTarget {
    /// Whether it names this disk, by its NAA designator, which is the same over every path, and its block length. With
    /// a different block length, the copy would overwrite the wrong blocks.
    #[must_use]
    pub fn names(&self, disk: &Disk) -> bool {
        const BINARY: u8 = 0x1;
        /// ASSOCIATION 00b, the logical unit; DESIGNATOR TYPE 3h.
        const UNIT_BY_NAA: u8 = 0x03;
        self.block_bytes == disk.block.bytes()
            && self.designator.code_set == BINARY
            && self.designator.association_and_type == UNIT_BY_NAA
            && self.designator.designator == disk.identity.naa.0
    }
}

impl CopySegment {
    /// The ranges that the segment reads and writes.
    ///
    /// # Errors
    /// The segment does not lie within both devices, or is not a whole number of blocks of each: COPY ABORTED.
    pub fn ranges(&self, source: &Disk, destination: &Disk) -> Result<CopyRanges, Sense> {
        let counted = if self.counts_destination { destination } else { source };
        let bytes = counted.block.times(self.blocks);
        let whole = |disk: &Disk| bytes.is_multiple_of(disk.block.bytes().into());
        if !whole(source) || !whole(destination) {
            return Err(copy_aborted(AdditionalSense::UNEXPECTED_INEXACT_SEGMENT));
        }
        let offset = |disk: &Disk, lba: Lba| {
            let blocks = Blocks(bytes / u64::from(disk.block.bytes()));
            let extent = disk.extent_at(lba, blocks, FieldPointer::parameter(0));
            let extent = extent.map_err(|_| copy_aborted(AdditionalSense::NONE))?;
            Ok(disk.block.times(Blocks(extent.lba.0)))
        };
        Ok(CopyRanges {
            source_offset: offset(source, self.source_lba)?,
            destination_offset: offset(destination, self.destination_lba)?,
            bytes,
        })
    }
}

/// The ranges of a segment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRanges {
    /// First byte at the copy source.
    pub source_offset: u64,
    /// First byte at the copy destination.
    pub destination_offset: u64,
    /// The length of both.
    pub bytes: u64,
}

impl ExtendedCopy {
    /// A target descriptor names no unit that the initiator may use.
    #[must_use]
    pub const fn unreachable() -> Outcome {
        Outcome::CheckCondition(copy_aborted(AdditionalSense::COPY_TARGET_DEVICE_NOT_REACHABLE))
    }

    /// A copy source could not be read or a copy destination could not be written.
    #[must_use]
    pub const fn device_failed() -> Outcome {
        Outcome::CheckCondition(copy_aborted(AdditionalSense::THIRD_PARTY_DEVICE_FAILURE))
    }
}
