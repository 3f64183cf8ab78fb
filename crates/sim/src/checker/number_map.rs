//! Maps from numbers that this world gives out itself: CmdSN, task tags, connections. Nobody picks them so that they
//! collide, so one multiplication hashes them, and a map's order is the same in every run.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from numbers of this world's own.
pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Mixes the words of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

/// 2^64 divided by the golden ratio: spreads neighbours over the high bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(SPREAD);
    }

    /// The map uses the lowest and the highest bits; the lowest of a product say little.
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }
}
