//! Cuts a source into pieces of work along its known holes. Pure.

use block::{ByteRange, Extent, ExtentState};
use std::collections::VecDeque;

/// A hole shorter than this is read with its neighbours, because a command of its own would cost more.
const HOLE_BYTES_MIN: u64 = 64 << 10;

/// The longest piece of a hole to zero at once, so that no command takes long and progress shows.
const ZERO_BYTES_MAX: u64 = 64 << 20;

/// The most holes that are known ahead. With that many, the cutter asks for no more.
const HOLES_AHEAD_MAX: usize = 4096;

/// A piece of the source. Pieces are ascending, without gaps or overlaps, in whole units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A range to read. It never crosses a multiple of the request's length.
    Data(ByteRange),
    /// A range that is known to be zero.
    Zero(ByteRange),
}

/// The remaining work of a source whose extents become known step by step.
#[derive(Debug)]
pub struct Cutter {
    request_bytes: u64,
    /// Pieces begin and end at multiples of this.
    unit_bytes: u64,
    end: u64,
    at: u64,
    /// Holes in `at..mapped`, ascending, in the source's own blocks.
    holes: VecDeque<ByteRange>,
    mapped: u64,
}

impl Cutter {
    /// A cutter for a source of `bytes` with unknown extents, to be copied in units of `unit_bytes` (a power of two
    /// that divides `request_bytes`). The last unit may reach beyond the source.
    #[must_use]
    pub fn new(bytes: u64, request_bytes: u64, unit_bytes: u64) -> Self {
        let end = bytes.next_multiple_of(unit_bytes);
        Self { request_bytes, unit_bytes, end, at: 0, holes: VecDeque::new(), mapped: 0 }
    }

    /// The offset from which to ask for extents, if more are needed now.
    #[must_use]
    pub fn unmapped(&self) -> Option<u64> {
        (self.mapped < self.end && self.holes.len() < HOLES_AHEAD_MAX).then_some(self.mapped)
    }

    /// Takes the extents from [`Self::unmapped`] on. Extents that do not follow each other are ignored.
    pub fn map(&mut self, extents: &[Extent]) {
        for extent in extents {
            if extent.range.offset != self.mapped || extent.range.bytes == 0 {
                break;
            }
            self.mapped = extent.range.end().min(self.end);
            if extent.state == ExtentState::Zero {
                self.add_hole(extent.range);
            }
        }
    }

    /// Treats the unmapped rest as data, because its extents cannot be learnt.
    pub fn map_rest_as_data(&mut self) {
        self.mapped = self.end;
    }

    fn add_hole(&mut self, hole: ByteRange) {
        match self.holes.back_mut() {
            Some(last) if last.end() == hole.offset => last.bytes += hole.bytes,
            _ => self.holes.push_back(hole),
        }
    }

    /// The next piece, as far as extents are known.
    pub fn next_piece(&mut self) -> Option<Piece> {
        let known =
            if self.mapped == self.end { self.end } else { self.mapped - self.mapped % self.unit_bytes };
        if self.at >= known {
            return None;
        }
        let hole = self.next_hole();
        let boundary = (self.at / self.request_bytes + 1) * self.request_bytes;
        let (is_hole, limit) = match hole {
            Some(hole) if hole.offset <= self.at => (true, hole.end().min(self.at + ZERO_BYTES_MAX)),
            Some(hole) => (false, boundary.min(hole.offset)),
            None => (false, boundary),
        };
        let range = ByteRange { offset: self.at, bytes: limit.min(known) - self.at };
        self.at = range.end();
        Some(if is_hole { Piece::Zero(range) } else { Piece::Data(range) })
    }

    /// The first hole that ends after `at`, in whole units, if it is long enough for a command.
    fn next_hole(&mut self) -> Option<ByteRange> {
        while let Some(hole) = self.holes.front() {
            let offset = hole.offset.next_multiple_of(self.unit_bytes);
            // The padding beyond the source's last block is zero, too.
            let end =
                if hole.end() >= self.end { self.end } else { hole.end() - hole.end() % self.unit_bytes };
            if end > self.at && end >= offset.saturating_add(HOLE_BYTES_MIN.min(self.request_bytes)) {
                return Some(ByteRange { offset, bytes: end - offset });
            }
            if hole.end() == self.mapped && self.mapped < self.end {
                // The hole may continue in the unmapped part.
                return None;
            }
            self.holes.pop_front();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn extent(offset: u64, bytes: u64, state: ExtentState) -> Extent {
        Extent { range: ByteRange { offset, bytes }, state }
    }

    fn data(offset: u64, bytes: u64) -> Piece {
        Piece::Data(ByteRange { offset, bytes })
    }

    fn zero(offset: u64, bytes: u64) -> Piece {
        Piece::Zero(ByteRange { offset, bytes })
    }

    fn pieces(cutter: &mut Cutter) -> Vec<Piece> {
        std::iter::from_fn(|| cutter.next_piece()).collect()
    }

    #[test]
    fn data_is_cut_at_multiples_of_the_request_and_holes_are_not_read() {
        let mut cutter = Cutter::new(4 * MIB, MIB, 512);
        assert_eq!(cutter.next_piece(), None);
        cutter.map(&[
            extent(0, 512 * KIB, ExtentState::Data),
            extent(512 * KIB, 2 * MIB, ExtentState::Zero),
            extent(2560 * KIB, 1536 * KIB, ExtentState::Unspecified),
        ]);
        assert_eq!(
            pieces(&mut cutter),
            [data(0, 512 * KIB), zero(512 * KIB, 2 * MIB), data(2560 * KIB, 512 * KIB), data(3 * MIB, MIB)]
        );
        assert_eq!(cutter.at, cutter.end);
    }

    #[test]
    fn a_short_hole_is_read_with_its_neighbours() {
        let mut cutter = Cutter::new(MIB, MIB, 512);
        cutter.map(&[
            extent(0, 512 * KIB, ExtentState::Data),
            extent(512 * KIB, 4 * KIB, ExtentState::Zero),
            extent(516 * KIB, 508 * KIB, ExtentState::Data),
        ]);
        assert_eq!(pieces(&mut cutter), [data(0, MIB)]);
    }

    #[test]
    fn the_last_unit_reaches_beyond_the_source() {
        let mut cutter = Cutter::new(MIB + 1, MIB, 4096);
        cutter.map_rest_as_data();
        assert_eq!(pieces(&mut cutter), [data(0, MIB), data(MIB, 4096)]);
    }

    #[test]
    fn a_hole_is_zeroed_only_in_whole_units() {
        let mut cutter = Cutter::new(2 * MIB, MIB, 4096);
        cutter.map(&[
            extent(0, 512, ExtentState::Data),
            extent(512, MIB, ExtentState::Zero),
            extent(MIB + 512, MIB - 512, ExtentState::Data),
        ]);
        assert_eq!(pieces(&mut cutter), [data(0, 4096), zero(4096, MIB - 4096), data(MIB, MIB)]);
    }

    #[test]
    fn an_answer_that_leaves_a_gap_is_believed_only_up_to_the_gap() {
        let mut cutter = Cutter::new(4 * MIB, MIB, 512);
        cutter.map(&[extent(0, MIB, ExtentState::Zero), extent(2 * MIB, MIB, ExtentState::Zero)]);
        assert_eq!(cutter.unmapped(), Some(MIB));
    }

    proptest! {
        #[test]
        fn pieces_cover_the_source_once_and_call_nothing_zero_that_is_data(
            lengths in proptest::collection::vec((1_u64..600, any::<bool>()), 1..40),
            unit_shift in 9_u32..13,
            answers in 1_usize..5,
        ) {
            let (mut extents, mut end) = (Vec::new(), 0);
            for (blocks, is_zero) in lengths {
                let state = if is_zero { ExtentState::Zero } else { ExtentState::Data };
                extents.push(extent(end, blocks * 512, state));
                end += blocks * 512;
            }
            let mut cutter = Cutter::new(end, 64 * KIB, 1 << unit_shift);
            let (mut at, mut answered) = (0, 0);
            while cutter.at < cutter.end {
                if cutter.unmapped().is_some_and(|unmapped| unmapped >= end) {
                    cutter.map_rest_as_data();
                } else if cutter.unmapped().is_some() {
                    cutter.map(&extents[answered..(answered + answers).min(extents.len())]);
                    answered += answers;
                }
                for piece in pieces(&mut cutter) {
                    let (Piece::Data(range) | Piece::Zero(range)) = piece;
                    prop_assert_eq!(range.offset, at);
                    prop_assert!(range.bytes > 0);
                    at = range.end();
                    if matches!(piece, Piece::Zero(_)) {
                        let overlaps = |data: &&Extent| {
                            data.state == ExtentState::Data
                                && data.range.offset < range.end()
                                && range.offset < data.range.end()
                        };
                        prop_assert_eq!(extents.iter().find(overlaps), None);
                    }
                }
            }
            prop_assert_eq!(at, end.next_multiple_of(1 << unit_shift));
        }
    }
}
