//! What a host asks for next.

use super::operation::{Kind, Operation, Whereabouts};
use crate::checker::Stamp;
use crate::random::Random;
use pdu::TaskAttribute;

/// How often a host asks for what: shares, not percentages.
#[derive(Clone, Debug)]
pub struct Mix {
    /// READ.
    pub reads: u64,
    /// WRITE.
    pub writes: u64,
    /// WRITE, ORDERED, not kept apart from others of its kind.
    pub ordered_writes: u64,
    /// COMPARE AND WRITE.
    pub compare_and_writes: u64,
    /// WRITE SAME.
    pub write_sames: u64,
    /// UNMAP.
    pub unmaps: u64,
    /// SYNCHRONIZE CACHE.
    pub flushes: u64,
    /// TEST UNIT READY.
    pub test_unit_readys: u64,
    /// How many of a hundred writes have FUA set.
    pub fua_percent: u64,
    /// One in so many commands is aborted on its way.
    pub abort_one_in: u64,
    /// One in so many commands is accompanied by a reset of the logical unit.
    pub reset_one_in: u64,
    /// The longest transfer.
    pub blocks_max: u32,
}

impl Mix {
    fn kind(&self, random: &mut Random) -> (Kind, bool) {
        let shares = [
            self.reads,
            self.writes,
            self.ordered_writes,
            self.compare_and_writes,
            self.write_sames,
            self.unmaps,
            self.flushes,
            self.test_unit_readys,
        ];
        let mut at = random.below(shares.iter().sum());
        let mut chosen = 0;
        while let Some(share) = shares.get(chosen).filter(|share| at >= **share) {
            at -= share;
            chosen += 1;
        }
        let fua = random.percent(self.fua_percent);
        match chosen {
            0 => (Kind::Read, false),
            1 => (Kind::Write { fua }, false),
            2 => (Kind::Write { fua }, true),
            3 => (Kind::CompareAndWrite { expected: Stamp::ZERO }, false),
            4 => (Kind::WriteSame, false),
            5 => (Kind::Unmap, false),
            6 => (Kind::Flush, false),
            _ => (Kind::TestUnitReady, false),
        }
    }
}

/// Draws one host's operations.
#[derive(Debug)]
pub(super) struct Workload {
    pub mix: Mix,
    pub random: Random,
    host: u16,
    disk_blocks: u64,
    /// What each block was last seen to hold.
    seen: Vec<Stamp>,
    next: u32,
}

impl Workload {
    pub(super) fn new(host: u16, mix: Mix, disk_blocks: u64, random: Random) -> Self {
        let seen = (0..disk_blocks).map(|_| Stamp::ZERO).collect();
        Self { mix, random, host, disk_blocks, seen, next: 0 }
    }

    pub(super) fn disk_blocks(&self) -> u64 {
        self.disk_blocks
    }

    pub(super) fn saw(&mut self, lba: u64, stamp: Stamp) {
        let seen = usize::try_from(lba).ok().and_then(|lba| self.seen.get_mut(lba));
        seen.into_iter().for_each(|seen| *seen = stamp);
    }

    pub(super) fn next(&mut self) -> Operation {
        let (kind, ordered) = self.mix.kind(&mut self.random);
        let blocks_max = u64::from(self.mix.blocks_max).min(self.disk_blocks);
        // Short ones are the rule.
        let longest = if self.random.one_in(4) { blocks_max } else { blocks_max.min(8) };
        let blocks = self.random.between(1, longest);
        let lba = self.random.below(self.disk_blocks - blocks + 1);
        self.operation(kind, ordered, lba, blocks)
    }

    /// A read of a part of the disk.
    pub(super) fn read(&mut self, lba: u64, blocks: u64) -> Operation {
        let blocks = blocks.min(self.disk_blocks - lba);
        Operation { attribute: TaskAttribute::Simple, ..self.operation(Kind::Read, false, lba, blocks) }
    }

    fn operation(&mut self, kind: Kind, ordered: bool, lba: u64, blocks: u64) -> Operation {
        self.next += 1;
        let seen = usize::try_from(lba).ok().and_then(|lba| self.seen.get(lba)).copied();
        let (kind, blocks) = match kind {
            Kind::CompareAndWrite { .. } => (Kind::CompareAndWrite { expected: seen.unwrap_or_default() }, 1),
            Kind::Flush | Kind::TestUnitReady => (kind, 0),
            other => (other, u32::try_from(blocks).unwrap_or(1)),
        };
        let stamp = match kind {
            Kind::WriteSame => Stamp::anywhere(self.host, self.next),
            Kind::Unmap => Stamp::ZERO,
            _ => Stamp::new(self.host, self.next),
        };
        Operation {
            kind,
            lba,
            blocks,
            stamp,
            attribute: if ordered { TaskAttribute::Ordered } else { self.attribute() },
            ordered,
            number: self.next.into(),
            fence: None,
            write: None,
            read: None,
            attempts: 0,
            whereabouts: Whereabouts::Waiting,
            buffer: None,
        }
    }

    fn attribute(&mut self) -> TaskAttribute {
        match self.random.below(20) {
            0 => TaskAttribute::Ordered,
            1 => TaskAttribute::HeadOfQueue,
            2 => TaskAttribute::Untagged,
            _ => TaskAttribute::Simple,
        }
    }
}
