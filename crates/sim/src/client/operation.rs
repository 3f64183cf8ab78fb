//! One thing that a host wants of the disk: a SCSI command, sent until it is answered for good.

use crate::checker::{Change, Port, ReadId, Stamp, Version, WriteId};
use crate::disk::BLOCK_BYTES;
use nexus::initiator::{CommandKind, WriteId as FenceId};
use pdu::{Cdb, Instant, TaskAttribute};
use scsi::client as command;
use scsi::{Blocks, Extent, Lba};
use session::initiator::TaskId;
use std::ops::Range;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write {
        fua: bool,
    },
    WriteSame,
    Unmap,
    CompareAndWrite {
        /// What the block is believed to hold.
        expected: Stamp,
    },
    Flush,
    TestUnitReady,
    /// PERSISTENT RESERVE OUT.
    Reserve(Change),
}

impl Kind {
    /// Whether blocks may read differently afterwards.
    pub(super) fn changes_data(self) -> bool {
        !matches!(self, Self::Read | Self::Flush | Self::TestUnitReady | Self::Reserve(_))
    }

    pub(super) fn command_kind(self) -> CommandKind {
        match self {
            Self::Read | Self::TestUnitReady => CommandKind::Read,
            Self::Write { .. } | Self::WriteSame | Self::Unmap => CommandKind::Write,
            Self::CompareAndWrite { .. } | Self::Reserve(_) => CommandKind::Once,
            Self::Flush => CommandKind::Flush,
        }
    }
}

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// Behind the write fence, in the host's queue, or pausing.
    Waiting,
    /// With a session.
    Sent { path: usize, task: TaskId, at: Instant, aborting: bool },
    /// Its nexus was lost; it waits for the proof that this is dead.
    Stranded,
}

/// One operation.
#[derive(Debug)]
pub(super) struct Operation {
    pub kind: Kind,
    pub lba: u64,
    pub blocks: u32,
    /// What its blocks hold afterwards.
    pub stamp: Stamp,
    pub attribute: TaskAttribute,
    /// In the order of its path's ORDERED writes, outside the fence; never sent again.
    pub ordered: bool,
    pub number: u64,
    pub fence: Option<FenceId>,
    pub write: Option<WriteId>,
    pub read: Option<ReadId>,
    /// Where it must be sent, if that matters.
    pub path: Option<usize>,
    /// What the reservations were when it was sent last.
    pub begun: Version,
    pub attempts: u32,
    /// Its host has asked for its end since it was sent last, and perhaps been refused.
    pub aborted: bool,
    pub whereabouts: Whereabouts,
    /// Its data of the attempt in progress.
    pub buffer: Option<pdu::BufferId>,
}

/// Bytes of an UNMAP parameter list with one descriptor.
const UNMAP_LIST_BYTES: u16 = 24;

/// Bytes of the parameter list of PERSISTENT RESERVE OUT.
const RESERVE_LIST_BYTES: usize = 24;

impl Operation {
    pub(super) fn range(&self) -> Range<u64> {
        self.lba..self.lba + u64::from(self.blocks)
    }

    pub(super) fn cdb(&self, port: Port) -> Cdb {
        let lba = Lba(self.lba);
        let cdb = match self.kind {
            Kind::Read => command::read_16(lba, self.blocks),
            Kind::Write { fua } => command::write_16(lba, self.blocks, fua),
            Kind::WriteSame => command::write_same_16(lba, self.blocks, false),
            Kind::Unmap => command::unmap(UNMAP_LIST_BYTES),
            Kind::CompareAndWrite { .. } => command::compare_and_write(lba, 1),
            Kind::Flush => command::synchronize_cache_16(),
            Kind::TestUnitReady => command::test_unit_ready(),
            Kind::Reserve(change) => command::persistent_reserve_out(&change.request(port)).0,
        };
        cdb.into()
    }

    /// Bytes to receive.
    pub(super) fn data_in_bytes(&self) -> usize {
        if self.kind == Kind::Read { self.blocks as usize * BLOCK_BYTES } else { 0 }
    }

    /// Bytes to send.
    pub(super) fn data_out_bytes(&self) -> usize {
        match self.kind {
            Kind::Write { .. } => self.blocks as usize * BLOCK_BYTES,
            Kind::WriteSame => BLOCK_BYTES,
            Kind::Unmap => UNMAP_LIST_BYTES.into(),
            Kind::CompareAndWrite { .. } => 2 * BLOCK_BYTES,
            Kind::Reserve(_) => RESERVE_LIST_BYTES,
            Kind::Read | Kind::Flush | Kind::TestUnitReady => 0,
        }
    }

    /// Fills its buffer: with what it sends, or so that what it does not receive is noticed.
    pub(super) fn fill(&self, port: Port, buffer: &mut [u8]) {
        match self.kind {
            Kind::Read => Stamp::poison(buffer),
            Kind::Write { .. } | Kind::WriteSame => self.stamp.fill(buffer, self.lba),
            Kind::Unmap => {
                let extent = Extent { lba: Lba(self.lba), blocks: Blocks(self.blocks.into()) };
                let list = command::unmap_parameter_list(extent);
                buffer.copy_from_slice(&list);
            }
            Kind::CompareAndWrite { expected } => {
                let (before, after) = buffer.split_at_mut(BLOCK_BYTES);
                expected.fill(before, self.lba);
                self.stamp.fill(after, self.lba);
            }
            Kind::Reserve(change) => {
                let (_, list) = command::persistent_reserve_out(&change.request(port));
                buffer.copy_from_slice(&list);
            }
            Kind::Flush | Kind::TestUnitReady => {}
        }
    }
}
