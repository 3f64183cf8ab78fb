//! Chooses the parts of a copy to read back. Pure.

use block::ByteRange;

/// How much of a copy is verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Nothing is verified.
    Off,
    /// Both ends are verified, and 4 KiB of every 16 MiB between, chosen at random. The data of a stream is not kept,
    /// only a checksum of each request: of a stream, whole requests are verified, one of every 64.
    #[default]
    Sample,
    /// Every byte is verified.
    Full,
}

/// The part of a disk that is read back of every [`GROUP_BYTES`]. A sample finds damage that is everywhere or in long
/// runs (a wrong offset, a lost cache, a device that wraps around): many places tell more than many bytes. All parts are
/// under way at once, and short enough for the first window that TCP sends (RFC 6928).
const SAMPLE_BYTES: u64 = 4 << 10;
const GROUP_BYTES: u64 = 16 << 20;

/// One of this many requests of a stream is read back.
const STREAM_DIVISOR: u64 = 64;

/// What is to be verified.
#[derive(Clone, Copy, Debug)]
pub struct Original {
    /// Its length.
    pub bytes: u64,
    /// The length of a request of the copy.
    pub request_bytes: u64,
    /// The longest block of both ends.
    pub unit_bytes: u64,
    /// It is known only by the checksums of requests.
    pub is_stream: bool,
}

/// Equal parts, in groups of which each has one that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grouping {
    part_bytes: u64,
    group_parts: u64,
}

impl Verify {
    /// The parts that are compared, in order. The same seed chooses the same ones.
    pub fn parts(self, original: Original, seed: u64) -> impl Iterator<Item = ByteRange> {
        let Grouping { part_bytes, group_parts } = self.grouping(original);
        let parts = if self == Self::Off { 0 } else { original.bytes.div_ceil(part_bytes) };
        chosen(parts, group_parts, seed).map(move |part| {
            let offset = part * part_bytes;
            ByteRange { offset, bytes: part_bytes.min(original.bytes - offset) }
        })
    }

    /// The length of every part but the last one.
    pub(crate) fn part_bytes(self, original: Original) -> u64 {
        self.grouping(original).part_bytes
    }

    fn grouping(self, original: Original) -> Grouping {
        match self {
            Self::Sample if original.is_stream => {
                Grouping { part_bytes: original.request_bytes, group_parts: STREAM_DIVISOR }
            }
            Self::Sample => {
                let part_bytes = SAMPLE_BYTES.next_multiple_of(original.unit_bytes.max(1));
                Grouping { part_bytes, group_parts: (GROUP_BYTES / part_bytes).max(1) }
            }
            Self::Full | Self::Off => Grouping { part_bytes: original.request_bytes, group_parts: 1 },
        }
    }
}

/// The first and the last of so many parts, and one of each group.
fn chosen(parts: u64, group_parts: u64, seed: u64) -> impl Iterator<Item = u64> {
    let groups = parts.div_ceil(group_parts);
    (0..groups).flat_map(move |group| {
        let first = group * group_parts;
        let length = group_parts.min(parts - first);
        let drawn = first + mix(seed ^ mix(first)) % length;
        let begin = (group == 0 && drawn > 0).then_some(0);
        let end = (group + 1 == groups && drawn + 1 < parts).then_some(parts - 1);
        begin.into_iter().chain([drawn]).chain(end)
    })
}

/// The finalizer of Steele, Lea and Flood's `SplitMix64` (2014): every bit of the result depends on every bit of the
/// seed.
fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn disk(bytes: u64) -> Original {
        Original { bytes, request_bytes: MIB, unit_bytes: 512, is_stream: false }
    }

    fn parts(verify: Verify, original: Original, seed: u64) -> Vec<ByteRange> {
        verify.parts(original, seed).collect()
    }

    #[test]
    fn the_first_the_last_and_one_of_every_group_are_chosen_in_order() {
        for parts in [1, 2, 63, 64, 65, 1000, 6401] {
            for seed in 0..50 {
                let chosen: Vec<u64> = chosen(parts, 64, seed).collect();
                assert_eq!((chosen.first(), chosen.last()), (Some(&0), Some(&(parts - 1))));
                assert!(chosen.is_sorted_by(|one, next| one < next));
                assert!((0..parts.div_ceil(64)).all(|group| chosen.iter().any(|part| part / 64 == group)));
                assert!(chosen.len() as u64 <= parts.div_ceil(64) + 2);
            }
        }
    }

    #[test]
    fn every_part_is_chosen_by_some_seed() {
        let seen: std::collections::BTreeSet<u64> =
            (0..2000).flat_map(|seed| chosen(128, 64, seed)).collect();
        assert_eq!(seen.len(), 128);
    }

    #[test]
    fn a_sample_of_a_disk_is_both_ends_and_a_short_part_of_every_group() {
        for seed in 0..50 {
            let sample = parts(Verify::Sample, disk(512 * MIB + 512), seed);
            assert!((33..=35).contains(&sample.len()));
            assert!(sample.iter().all(|part| part.bytes <= SAMPLE_BYTES && part.bytes % 512 == 0));
            assert_eq!((sample[0].offset, sample.last().unwrap().end()), (0, 512 * MIB + 512));
        }
    }

    #[test]
    fn a_sample_of_a_stream_is_of_whole_requests() {
        let stream = Original { is_stream: true, ..disk(512 * MIB) };
        let sample = parts(Verify::Sample, stream, 1);
        assert!(sample.iter().all(|part| part.bytes == MIB && part.offset % MIB == 0));
        assert!((8..=10).contains(&sample.len()));
    }

    #[test]
    fn a_part_is_no_shorter_than_a_block() {
        let large = Original { unit_bytes: 64 << 10, ..disk(64 * MIB) };
        assert!(parts(Verify::Sample, large, 1).iter().all(|part| part.bytes == 64 << 10));
    }

    #[test]
    fn full_is_everything_and_off_is_nothing() {
        let full = parts(Verify::Full, disk(2 * MIB + 7), 1);
        assert_eq!(full.iter().map(|part| part.bytes).collect::<Vec<_>>(), [MIB, MIB, 7]);
        assert!(parts(Verify::Off, disk(MIB), 1).is_empty());
        assert!(parts(Verify::Sample, disk(0), 1).is_empty());
    }
}
