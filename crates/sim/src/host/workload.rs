//! What a host asks for next.

use super::mismatch::Mismatch;
use super::operation::{Kind, Operation};
use crate::checker::Stamp;
use crate::random::Random;
use crate::unit::{UnitIndex, UnitPlan};
use pdu::TaskAttribute;

/// How often a host asks for what: shares, not percentages.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Share of READ.
    pub reads: u64,
    /// Share of WRITE.
    pub writes: u64,
    /// WRITE as a command that the client does not know, with any task attribute.
    pub raw_writes: u64,
    /// COMPARE AND WRITE.
    pub compare_and_writes: u64,
    /// Share of writes of zeroes.
    pub zeroes: u64,
    /// The same, if the device likes by unmapping.
    pub unmaps: u64,
    /// Share of SYNCHRONIZE CACHE.
    pub flushes: u64,
    /// TEST UNIT READY.
    pub test_unit_readys: u64,
    /// How many of a hundred writes have FUA set.
    pub fua_percent: u64,
    /// How many of a hundred reads are of all blocks that the hosts share.
    pub whole_reads_percent: u64,
    /// How rare a command is that a reset of the logical unit accompanies.
    pub reset_one_in: u64,
    /// Whether it makes reservations.
    pub reservations: bool,
    /// How many of a hundred reads and writes are commands whose transfer is not as long as their CDB asks.
    pub mismatched_percent: u64,
    /// The longest transfer, in bytes; of a unit with longer blocks one block.
    pub transfer_bytes_max: u64,
}

impl Mix {
    fn kind(&self, random: &mut Random) -> (Kind, bool) {
        let shares = [
            self.reads,
            self.writes,
            self.raw_writes,
            self.compare_and_writes,
            self.zeroes,
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
            4 => (Kind::WriteZeroes { may_unmap: false }, false),
            5 => (Kind::WriteZeroes { may_unmap: true }, false),
            6 => (Kind::Flush, false),
            _ => (Kind::TestUnitReady, false),
        }
    }
}

/// The blocks for which hosts compete with COMPARE AND WRITE, and how many of a hundred go there.
const CONTENDED_BLOCKS: u64 = 3;
const CONTENDED_PERCENT: u64 = 80;

/// Draws one host's operations at one unit.
#[derive(Debug)]
pub(super) struct Workload {
    pub mix: Mix,
    pub random: Random,
    host: u16,
    unit: UnitIndex,
    /// Decides about the lengths of transfers: a generator of its own, so that the other's numbers are what they would be
    /// without it.
    lengths: Random,
    block_bytes: usize,
    /// The blocks that it works on, from the first on; nobody else writes to those behind.
    area_blocks: u64,
    /// The longest transfer.
    blocks_max: u64,
    /// The longest transfer of one command.
    command_blocks_max: u64,
    next: u32,
}

impl Workload {
    pub(super) fn new(host: u16, mix: Mix, unit: (UnitIndex, &UnitPlan), random: Random) -> Self {
        let (unit, plan) = unit;
        let area_blocks = plan.shared_blocks;
        let blocks_max = (mix.transfer_bytes_max / plan.block_bytes()).clamp(1, area_blocks);
        let command_blocks_max = plan.transfer_blocks_max.map_or(u64::MAX, u64::from);
        let lengths = Random::new(random.clone().word(), "transfer lengths");
        let block_bytes = plan.disk.block_bytes as usize;
        Self {
            mix,
            random,
            host,
            unit,
            lengths,
            block_bytes,
            area_blocks,
            blocks_max,
            command_blocks_max,
            next: 0,
        }
    }

    /// The next; `guesses` is what the blocks are believed to hold.
    pub(super) fn next(&mut self, guesses: &[Stamp]) -> Operation {
        let (kind, raw) = self.mix.kind(&mut self.random);
        if let Kind::CompareAndWrite { .. } = kind {
            return self.compare_and_write(guesses);
        }
        if kind == Kind::Read && self.random.percent(self.mix.whole_reads_percent) {
            return self.operation(kind, raw, 0, self.area_blocks);
        }
        let mismatched = self.is_mismatched(kind);
        let raw = raw || mismatched;
        let blocks_max = if raw { self.blocks_max.min(self.command_blocks_max) } else { self.blocks_max };
        // Short ones are the rule.
        let longest = if self.random.one_in(4) { blocks_max } else { blocks_max.min(8) };
        let blocks = self.random.between(1, longest);
        let lba = self.random.below(self.area_blocks - blocks + 1);
        let mut operation = self.operation(kind, raw, lba, blocks);
        if mismatched {
            self.mismatch(&mut operation);
        }
        operation
    }

    fn is_mismatched(&mut self, kind: Kind) -> bool {
        let moves_data = matches!(kind, Kind::Read | Kind::Write { .. });
        moves_data && self.lengths.percent(self.mix.mismatched_percent)
    }

    /// Makes its transfer longer or shorter than its CDB asks.
    fn mismatch(&mut self, operation: &mut Operation) {
        let mismatch = Mismatch::draw(operation.blocks, self.block_bytes, &mut self.lengths);
        operation.mismatch = Some(mismatch);
        let blocks = mismatch.moved_bytes(self.block_bytes) / self.block_bytes;
        let blocks = if operation.is_refused(self.block_bytes) { 0 } else { blocks };
        operation.blocks = u32::try_from(blocks).unwrap_or(0);
    }

    /// Mostly on a few blocks where the hosts meet.
    fn compare_and_write(&mut self, guesses: &[Stamp]) -> Operation {
        let blocks = if self.random.percent(CONTENDED_PERCENT) { CONTENDED_BLOCKS } else { self.area_blocks };
        let lba = self.random.below(blocks.min(self.area_blocks));
        let expected = usize::try_from(lba).ok().and_then(|lba| guesses.get(lba)).copied();
        let kind = Kind::CompareAndWrite { expected: expected.unwrap_or_default() };
        self.operation(kind, false, lba, 1)
    }

    /// A read of a part of the unit.
    pub(super) fn read(&mut self, lba: u64, blocks: u64) -> Operation {
        self.operation(Kind::Read, false, lba, blocks)
    }

    /// Whether an operation takes several commands.
    pub(super) fn is_cut(&self, operation: &Operation) -> bool {
        u64::from(operation.blocks) > self.command_blocks_max
    }

    fn operation(&mut self, kind: Kind, raw: bool, lba: u64, blocks: u64) -> Operation {
        self.next += 1;
        let blocks = match kind {
            Kind::Flush | Kind::TestUnitReady => 0,
            _ => u32::try_from(blocks).unwrap_or(1),
        };
        let stamp = match kind {
            Kind::WriteZeroes { .. } => Stamp::ZERO,
            _ => Stamp::new(self.host, self.unit, self.next),
        };
        let attribute = self.attribute();
        Operation { kind, lba, blocks, mismatch: None, stamp, attribute, raw, number: self.next }
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
