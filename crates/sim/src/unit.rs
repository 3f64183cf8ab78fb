//! The logical units of a world: where each is found, what disk is behind it, and which of its blocks all hosts share.

use crate::disk::Geometry;
use crate::random::Random;
use pdu::Duration;

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
    /// Its number at its target.
    pub number: u16,
    /// The disk behind it.
    pub disk: Geometry,
    /// The blocks that all hosts work on, from the first on. Those behind are for copies.
    pub shared_blocks: u64,
}

/// In one seed of so many there are several units.
const SEVERAL_ONE_IN: u64 = 2;

/// Units besides the first.
const OTHERS: (u64, u64) = (1, 3);

/// Bytes of the shared blocks of a unit besides the first, whatever the length of its blocks.
const SHARED_BYTES: (u64, u64) = (64 << 10, 256 << 10);

/// Numbers of units besides the first: on both sides of the bounds between the formats of a LUN (SAM-5 §4.7.7).
const NUMBERS: [u16; 7] = [1, 2, 3, 255, 256, 257, 16_383];

impl UnitPlan {
    /// A unit with this disk, of which all hosts share every block.
    #[must_use]
    pub fn shared(number: u16, disk: Geometry) -> Self {
        let shared_blocks = disk.blocks;
        Self { number, disk, shared_blocks }
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

/// The units of a seed; the first has this disk.
#[must_use]
pub fn draw(seed: u64, first: Geometry) -> Vec<UnitPlan> {
    // With a generator of its own, so that the rest of the seed is what it would be without it.
    let mut random = Random::new(seed, "units");
    let others = if random.one_in(SEVERAL_ONE_IN) { random.between(OTHERS.0, OTHERS.1) } else { 0 };
    let mut units = vec![UnitPlan::shared(0, first)];
    for _ in 0..others {
        let disk = draw_disk(&mut random);
        let is_free = |number: &u16| units.iter().all(|unit: &UnitPlan| unit.number != *number);
        let free: Vec<u16> = NUMBERS.into_iter().filter(is_free).collect();
        units.push(UnitPlan::shared(*random.choose(&free), disk));
    }
    units
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
