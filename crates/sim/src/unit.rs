//! The targets and logical units of a world: where each is found, what disk is behind it, and which of its blocks all
//! hosts share.

use crate::disk::Geometry;
use crate::random::Random;
use pdu::{Duration, Lun};

/// The iSCSI name of the first target; numbers follow those of the others.
const TARGET_NAME: &str = "iqn.2026-01.org.ropewalk:sim";

/// A target of the one machine that has targets, by its place among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetIndex(pub u16);

impl TargetIndex {
    /// The target that every world has.
    pub const FIRST: Self = Self(0);

    /// Its place in a list of all targets.
    #[must_use]
    pub fn place(self) -> usize {
        self.0.into()
    }

    /// Its iSCSI name.
    #[must_use]
    pub fn name(self) -> String {
        format!("{TARGET_NAME}-{}", self.0)
    }

    /// The target of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        name.strip_prefix(TARGET_NAME)?.strip_prefix('-')?.parse().ok().map(Self)
    }
}

/// A logical unit of a world, by its place among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitIndex(pub u16);

impl UnitIndex {
    /// The unit that every world has.
    pub const FIRST: Self = Self(0);

    /// Its place in a list of all units.
    #[must_use]
    pub fn place(self) -> usize {
        self.0.into()
    }
}

/// What a logical unit is to be like.
#[derive(Clone, Debug)]
pub struct UnitPlan {
    /// The target that has it.
    pub target: TargetIndex,
    /// Its number there.
    pub number: u16,
    /// The disk behind it.
    pub disk: Geometry,
    /// The blocks that all hosts work on, from the first on. Those behind are for copies. A unit without any comes last.
    pub shared_blocks: u64,
    /// The MAXIMUM TRANSFER LENGTH that it tells, if that is a small one: a longer operation takes several commands.
    pub transfer_blocks_max: Option<u32>,
    /// Bytes of a write-back cache in the target's memory ([`block::Volatile`]) before the disk, if there is one.
    pub write_back_bytes: Option<usize>,
}

/// How rare a unit with a small MAXIMUM TRANSFER LENGTH is, and how small that is.
const SHORT_TRANSFERS_ONE_IN: u64 = 4;
const SHORT_TRANSFER_BLOCKS: (u32, u32) = (2, 12);

/// How rare a unit with a write-back cache in the target's memory is, and the cache's size: small enough to fill up.
const WRITE_BACK_ONE_IN: u64 = 6;
const WRITE_BACK_BYTES: (u64, u64) = (32 << 10, 1 << 20);

/// How rare a seed with several units is.
const SEVERAL_ONE_IN: u64 = 2;

/// Units besides the first.
const OTHERS: (u64, u64) = (1, 3);

/// Targets, at the most.
const TARGETS_MAX: u16 = 3;

/// Bytes of the shared blocks of a unit besides the first, whatever the length of its blocks.
const SHARED_BYTES: (u64, u64) = (64 << 10, 256 << 10);

/// Numbers of units besides the first: on both sides of the bounds between the formats of a LUN (SAM-5 §4.7.7).
const NUMBERS: [u16; 7] = [1, 2, 3, 255, 256, 257, 16_383];

impl UnitPlan {
    /// A unit with this disk, of which all hosts share every block.
    #[must_use]
    pub fn shared(target: TargetIndex, number: u16, disk: Geometry) -> Self {
        let shared_blocks = disk.blocks;
        Self { target, number, disk, shared_blocks, transfer_blocks_max: None, write_back_bytes: None }
    }

    /// Where it is found.
    #[must_use]
    pub fn place(&self) -> (TargetIndex, Lun) {
        (self.target, Lun::from_index(self.number))
    }

    fn limited(self, random: &mut Random) -> Self {
        let is_short = random.one_in(SHORT_TRANSFERS_ONE_IN);
        let blocks = random.between(SHORT_TRANSFER_BLOCKS.0, SHORT_TRANSFER_BLOCKS.1);
        Self { transfer_blocks_max: is_short.then_some(blocks), ..self }
    }

    fn cached(self, random: &mut Random) -> Self {
        let is_cached = random.one_in(WRITE_BACK_ONE_IN);
        let bytes = usize::try_from(random.between(WRITE_BACK_BYTES.0, WRITE_BACK_BYTES.1));
        // A disk that loses its cache would not lose this one: only a crash loses both.
        let disk = Geometry { volatile_cache: self.disk.volatile_cache && !is_cached, ..self.disk };
        Self { disk, write_back_bytes: bytes.ok().filter(|_| is_cached), ..self }
    }

    /// Whether acknowledged writes may be lost until a flush.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        self.disk.volatile_cache || self.write_back_bytes.is_some()
    }

    /// Bytes of the blocks that all hosts share.
    #[must_use]
    pub fn shared_bytes(&self) -> u64 {
        self.shared_blocks * self.block_bytes()
    }

    /// Bytes of one block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.disk.block_bytes.into()
    }
}

/// The units of a seed; the first has this disk. Every target up to the greatest has units.
#[must_use]
pub fn draw(seed: u64, first: Geometry) -> Vec<UnitPlan> {
    // With generators of their own, so that the rest of the seed is what it would be without them.
    let mut random = Random::new(seed, "units");
    let mut targets = Random::new(seed, "targets");
    let others = if random.one_in(SEVERAL_ONE_IN) { random.between(OTHERS.0, OTHERS.1) } else { 0 };
    let mut units = vec![UnitPlan::shared(TargetIndex::FIRST, 0, first)];
    for _ in 0..others {
        let last = targets_of(&units) - 1;
        let target = TargetIndex(targets.between(0, (last + 1).min(TARGETS_MAX - 1)));
        let disk = draw_disk(&mut random);
        let is_taken =
            |number: u16| units.iter().any(|unit: &UnitPlan| unit.target == target && unit.number == number);
        let free: Vec<u16> = NUMBERS.into_iter().filter(|number| !is_taken(*number)).collect();
        units.push(UnitPlan::shared(target, *random.choose(&free), disk));
    }
    let mut limits = Random::new(seed, "transfer limits");
    let mut caches = Random::new(seed, "write-back caches");
    units.into_iter().map(|unit| unit.limited(&mut limits).cached(&mut caches)).collect()
}

/// How many targets have these units.
#[must_use]
pub fn targets_of(units: &[UnitPlan]) -> u16 {
    units.iter().map(|unit| unit.target.0 + 1).max().unwrap_or(1)
}

fn draw_disk(random: &mut Random) -> Geometry {
    let block_bytes = *random.choose(&[512, 4096]);
    Geometry {
        block_bytes,
        blocks: random.between(SHARED_BYTES.0, SHARED_BYTES.1) / u64::from(block_bytes),
        volatile_cache: random.one_in(2),
        latency_max: Duration::from_micros(random.between(10, 20_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_found_by_its_name() {
        let index = TargetIndex(2);
        assert_eq!(TargetIndex::from_name(&index.name()), Some(index));
        assert_eq!(TargetIndex::from_name("iqn.2026-01.org.ropewalk:other-2"), None);
    }

    #[test]
    fn the_units_of_a_target_have_different_numbers() {
        let mut several = 0;
        for seed in 0..200 {
            let disk = draw_disk(&mut Random::new(seed, "test"));
            let units = draw(seed, disk);
            let mut places: Vec<_> = units.iter().map(|unit| (unit.target, unit.number)).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), units.len(), "seed {seed}");
            several += usize::from(targets_of(&units) > 1);
        }
        assert!(several > 20);
    }
}
