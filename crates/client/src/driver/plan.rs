//! Cuts an operation into commands that the unit accepts.

use crate::path_id::PathId;
use crate::retry::CommandKind;
use crate::{Transfer, Unit};
use block::{Buffer, Payload};
use pdu::{BufferId, Cdb, Lun, TaskAttribute};
use scsi::client::{self, CdbBytes};
use scsi::{Extent, Lba};
use session::initiator;
use session::seam::PayloadRef;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The longest transfer of one command, even if the unit accepts more: about one burst (RFC 7143 §13.13), so that a
/// retry repeats little and lanes stay balanced.
const TRANSFER_BYTES_MAX: u64 = 16 << 20;

/// The longest range of one WRITE SAME, even if the unit accepts more, so that it ends within any timeout.
const WRITE_SAME_BYTES_MAX: u64 = 1 << 30;

/// An operation and its commands.
pub(crate) struct Plan {
    pub lun: Lun,
    /// The command's name, for messages.
    pub command: &'static str,
    pub kind: CommandKind,
    /// The blocks that it writes; no other write to them is outstanding meanwhile.
    pub writes: Option<Range<u64>>,
    /// Whether its write needs a flush to be durable.
    pub dirties: bool,
    pub data: Transfer,
    pub pieces: Vec<Piece>,
    /// The only path that may carry it; `None` for any path to the unit.
    pub path: Option<PathId>,
    /// The generation known to the caller, if a flush follows a success.
    pub then_flush: Option<Arc<AtomicU64>>,
    /// The order of its commands among others at the device (SAM-5 §8.6).
    pub attribute: TaskAttribute,
}

/// One command of an operation.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub cdb: Cdb,
    /// Its part of the operation's memory.
    pub offset_bytes: u32,
    pub bytes: u32,
    /// The blocks that it reads or writes.
    pub extent: Extent,
    /// Whether a short transfer is an error.
    pub exact: bool,
}

impl Piece {
    /// A command without a range of blocks.
    pub fn plain(cdb: impl Into<Cdb>, bytes: u32) -> Self {
        Self { cdb: cdb.into(), offset_bytes: 0, bytes, extent: Extent::default(), exact: false }
    }

    /// Its part of this memory.
    pub(super) fn data(&self, buffer: Option<BufferId>, is_in: bool) -> initiator::Data {
        let Some(buffer) = buffer.filter(|_| self.bytes > 0) else { return initiator::Data::None };
        let payload = PayloadRef { buffer, offset_bytes: self.offset_bytes, bytes: self.bytes };
        if is_in { initiator::Data::In(payload) } else { initiator::Data::Out(payload) }
    }
}

impl Plan {
    /// A command that changes nothing and asks for parameter data.
    pub fn inquire(
        lun: Lun,
        command: &'static str,
        cdb: CdbBytes,
        data: Transfer,
        path: Option<PathId>,
    ) -> Self {
        let bytes = match &data {
            Transfer::In(buffer) => u32::try_from(buffer.len()).unwrap_or(u32::MAX),
            Transfer::None | Transfer::Out(_) => 0,
        };
        Self {
            lun,
            command,
            kind: CommandKind::Read,
            writes: None,
            dirties: false,
            data,
            pieces: vec![Piece::plain(cdb, bytes)],
            path,
            then_flush: None,
            attribute: TaskAttribute::Simple,
        }
    }

    /// PERSISTENT RESERVE OUT over one path. Everything that is asked of it here may be repeated.
    pub fn reserve_out(lun: Lun, cdb: CdbBytes, list: Payload, path: PathId) -> Self {
        let bytes = u32::try_from(list.len()).unwrap_or(u32::MAX);
        let pieces = vec![Piece::plain(cdb, bytes)];
        let plan = Self::inquire(lun, "PERSISTENT RESERVE OUT", cdb, Transfer::None, Some(path));
        Self { data: Transfer::Out(list), pieces, ..plan }
    }

    pub fn read(unit: &Unit, extent: Extent, buffer: Buffer) -> Self {
        let pieces = unit.transfers(extent, |unit, part| match (unit.long_addresses, short(part)) {
            (false, Some((lba, blocks))) => client::read_10(lba, blocks),
            _ => client::read_16(part.lba, count(part)),
        });
        Self {
            lun: unit.lun,
            command: "READ",
            kind: CommandKind::Read,
            writes: None,
            dirties: false,
            data: Transfer::In(buffer),
            pieces,
            path: None,
            then_flush: None,
            attribute: TaskAttribute::Simple,
        }
    }

    /// The device honours `fua` if it can; otherwise a flush for the holder of `seen` follows.
    pub fn write(unit: &Unit, extent: Extent, payload: Payload, fua: bool, seen: &Arc<AtomicU64>) -> Self {
        let by_device = fua && unit.mode.fua;
        let pieces = unit.transfers(extent, |unit, part| unit.write_cdb(part, by_device));
        let then_flush = (fua && !by_device).then(|| Arc::clone(seen));
        Self {
            dirties: !by_device,
            then_flush,
            ..Self::change(unit, "WRITE", blocks(extent), payload, pieces)
        }
    }

    /// `pattern` is one block of zeroes.
    pub fn write_zeroes(unit: &Unit, extent: Extent, pattern: Payload, may_unmap: bool) -> Self {
        let unmap = may_unmap && unit.provisioning.write_same_unmaps && unit.unmapped_reads_zero();
        let pieces = split(extent, unit.write_same_blocks_max()).map(|extent| Piece {
            cdb: client::write_same_16(extent.lba, count(extent), unmap).into(),
            offset_bytes: 0,
            bytes: unit.block_bytes(),
            extent,
            exact: false,
        });
        Self::change(unit, super::completion::WRITE_SAME, blocks(extent), pattern, pieces.collect())
    }

    /// The same without WRITE SAME: repeated WRITEs of `zeroes`.
    pub fn write_zeroes_out(unit: &Unit, extent: Extent, zeroes: Payload) -> Self {
        let pieces = Self::zero_writes(unit, extent, zeroes.len());
        Self::change(unit, "WRITE", blocks(extent), zeroes, pieces)
    }

    /// WRITEs of the same zeroes that cover all of `extent`.
    pub(super) fn zero_writes(unit: &Unit, extent: Extent, zeroes_bytes: usize) -> Vec<Piece> {
        let most = (zeroes_bytes as u64 / u64::from(unit.block_bytes())).max(1);
        let parts = split(extent, most)
            .flat_map(|part| unit.transfers(part, |unit, part| unit.write_cdb(part, false)));
        parts.map(|piece| Piece { offset_bytes: 0, ..piece }).collect()
    }

    /// `list` has room for as many parameter lists as there are commands.
    pub fn unmap(unit: &Unit, extents: &[Extent], list: Payload) -> Self {
        const LIST_BYTES: u16 = 24;
        let whole =
            extents.first().zip(extents.last()).map_or(0..0, |(first, last)| first.lba.0..last.end().0);
        let pieces = (0u32..).zip(extents).map(|(at, extent)| Piece {
            cdb: client::unmap(LIST_BYTES).into(),
            offset_bytes: at * u32::from(LIST_BYTES),
            bytes: LIST_BYTES.into(),
            extent: *extent,
            exact: false,
        });
        Self::change(unit, "UNMAP", whole, list, pieces.collect())
    }

    /// `payload` holds the blocks to compare, then the blocks to write; at most 255 each.
    pub fn compare_and_write(unit: &Unit, extent: Extent, payload: Payload) -> Self {
        let blocks_count = u8::try_from(extent.blocks.0).unwrap_or(u8::MAX);
        let bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let cdb = client::compare_and_write(extent.lba, blocks_count).into();
        let pieces = vec![Piece { cdb, offset_bytes: 0, bytes, extent, exact: false }];
        let plan = Self::change(unit, "COMPARE AND WRITE", blocks(extent), payload, pieces);
        Self { kind: CommandKind::Once, ..plan }
    }

    /// Commands that change these blocks. All but COMPARE AND WRITE may be repeated.
    fn change(
        unit: &Unit,
        command: &'static str,
        blocks: Range<u64>,
        payload: Payload,
        pieces: Vec<Piece>,
    ) -> Self {
        Self {
            lun: unit.lun,
            command,
            kind: CommandKind::Write,
            writes: Some(blocks),
            dirties: true,
            data: Transfer::Out(payload),
            pieces,
            path: None,
            then_flush: None,
            attribute: TaskAttribute::Simple,
        }
    }
}

impl Unit {
    /// Splits an extent into the extents that UNMAP accepts.
    pub(crate) fn unmap_extents(&self, extent: Extent) -> Vec<Extent> {
        split(extent, self.unmap_blocks_max()).collect()
    }

    /// The number of these extents.
    pub(crate) fn unmap_commands(&self, extent: Extent) -> u64 {
        extent.blocks.0.div_ceil(self.unmap_blocks_max())
    }

    fn unmap_blocks_max(&self) -> u64 {
        self.limits.unmap_blocks_max.unwrap_or(u32::MAX).into()
    }

    /// The number of WRITE SAME commands for an extent.
    pub(crate) fn write_same_commands(&self, extent: Extent) -> u64 {
        extent.blocks.0.div_ceil(self.write_same_blocks_max())
    }

    fn write_same_blocks_max(&self) -> u64 {
        let own_limit = (WRITE_SAME_BYTES_MAX / u64::from(self.block_bytes())).max(1);
        self.limits.write_same_blocks_max.map_or(own_limit, |limit| limit.min(own_limit))
    }

    /// Commands that transfer `extent` to or from consecutive memory.
    pub(super) fn transfers(&self, extent: Extent, cdb: impl Fn(&Self, Extent) -> CdbBytes) -> Vec<Piece> {
        let block_bytes = u64::from(self.block_bytes());
        let own_limit = (TRANSFER_BYTES_MAX / block_bytes).max(1);
        let form_limit = if self.long_addresses { u32::MAX } else { u16::MAX.into() };
        let most =
            u64::from(self.limits.transfer_blocks_max.unwrap_or(u32::MAX).min(form_limit)).min(own_limit);
        let piece = |part: Extent| Piece {
            cdb: cdb(self, part).into(),
            offset_bytes: bytes_u32((part.lba.0 - extent.lba.0) * block_bytes),
            bytes: bytes_u32(part.blocks.0 * block_bytes),
            extent: part,
            exact: true,
        };
        split(extent, most).map(piece).collect()
    }

    pub(super) fn write_cdb(&self, part: Extent, fua: bool) -> CdbBytes {
        match (self.long_addresses, short(part)) {
            (false, Some((lba, blocks))) => client::write_10(lba, blocks, fua),
            _ => client::write_16(part.lba, count(part), fua),
        }
    }
}

fn blocks(extent: Extent) -> Range<u64> {
    extent.lba.0..extent.end().0
}

/// Splits `extent` into parts of at most `blocks_max` blocks, in order.
fn split(extent: Extent, blocks_max: u64) -> impl Iterator<Item = Extent> {
    let end = extent.end().0;
    let mut next = extent.lba.0;
    std::iter::from_fn(move || {
        let blocks = (end - next).min(blocks_max.max(1));
        let part = Extent::new(next, blocks);
        next += blocks;
        (blocks > 0).then_some(part)
    })
}

/// The 32-bit block count of a long CDB; no part is longer.
fn count(part: Extent) -> u32 {
    u32::try_from(part.blocks.0).unwrap_or(u32::MAX)
}

/// Address and count of a short CDB, if they fit.
fn short(part: Extent) -> Option<(u32, u16)> {
    let Lba(lba) = part.lba;
    u32::try_from(lba).ok().zip(u16::try_from(part.blocks.0).ok())
}

/// Buffers are far shorter than 4 GiB ([`block::BUFFER_BYTES_MAX`]).
fn bytes_u32(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_cut_without_gaps() {
        let parts: Vec<Extent> = split(Extent::new(5, 10), 4).collect();
        assert_eq!(parts, [Extent::new(5, 4), Extent::new(9, 4), Extent::new(13, 2)]);
        assert_eq!(split(Extent::new(5, 0), 4).count(), 0);
    }
}
