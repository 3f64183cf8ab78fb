//! Data by offset: pieces that do not overlap, the latest on top.

use std::collections::BTreeMap;

use crate::extent::ByteRange;
use crate::payload::Payload;

/// Data at one offset.
#[derive(Clone)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) data: Payload,
    /// Lower is older.
    age: u64,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }

    /// The part of it within `start..end`.
    fn part(&self, start: u64, end: u64) -> Option<Self> {
        let (start, end) = (start.max(self.offset), end.min(self.end()));
        if start >= end {
            return None;
        }
        let within = |offset: u64| usize::try_from(offset - self.offset).ok();
        let data = self.data.slice(within(start)?..within(end)?)?;
        Some(Self { offset: start, data, age: self.age })
    }

    /// Copies the piece, which lies within the read data, over that data, which starts at `offset`.
    pub(crate) fn copy_into(&self, offset: u64, read: &mut [u8]) {
        let place = self.offset.checked_sub(offset).and_then(|start| usize::try_from(start).ok());
        if let Some(place) = place.and_then(|start| read.get_mut(start..)?.get_mut(..self.data.len())) {
            place.copy_from_slice(&self.data);
        }
    }
}

#[derive(Default)]
pub(crate) struct DirtyMap {
    pieces: BTreeMap<u64, Piece>,
    next_age: u64,
}

impl DirtyMap {
    /// Adds data over existing data.
    pub(crate) fn insert(&mut self, offset: u64, data: Payload) {
        if data.is_empty() {
            return;
        }
        let piece = Piece { offset, data, age: self.next_age };
        self.next_age += 1;
        self.take(ByteRange { offset, bytes: piece.data.len() as u64 });
        self.put(piece);
    }

    /// The age of the next piece: all that is here now is older.
    pub(crate) fn next_age(&self) -> u64 {
        self.next_age
    }

    /// The age of something that is not data; the next piece is younger.
    pub(crate) fn pass(&mut self) -> u64 {
        self.next_age += 1;
        self.next_age - 1
    }

    /// Drops everything older than this.
    pub(crate) fn forget(&mut self, older_than: u64) {
        self.pieces.retain(|_, piece| piece.age >= older_than);
    }

    /// Everything, in order.
    pub(crate) fn all(&self) -> Vec<Piece> {
        self.pieces.values().cloned().collect()
    }

    /// Adds data under existing data: a piece that was taken out and comes back.
    pub(crate) fn insert_beneath(&mut self, piece: &Piece) {
        let mut start = piece.offset;
        for above in self.overlapping(ByteRange { offset: piece.offset, bytes: piece.data.len() as u64 }) {
            self.put_part(piece, start, above.offset);
            start = above.end();
        }
        self.put_part(piece, start, piece.end());
    }

    /// Everything within the range, in order; cuts pieces that reach beyond.
    pub(crate) fn overlapping(&self, range: ByteRange) -> Vec<Piece> {
        let first = self.pieces.range(..range.offset).next_back();
        let others = self.pieces.range(range.offset..range.end());
        first
            .into_iter()
            .chain(others)
            .filter_map(|(_, piece)| piece.part(range.offset, range.end()))
            .collect()
    }

    /// Takes everything within the range; parts beyond the range stay.
    pub(crate) fn take(&mut self, range: ByteRange) -> Vec<Piece> {
        let taken = self.overlapping(range);
        for part in &taken {
            let Some((&start, _)) = self.pieces.range(..=part.offset).next_back() else { continue };
            let Some(piece) = self.pieces.remove(&start) else { continue };
            self.put_part(&piece, piece.offset, part.offset);
            self.put_part(&piece, part.end(), piece.end());
        }
        taken
    }

    pub(crate) fn take_all(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.pieces).into_values().collect()
    }

    /// Takes the oldest pieces, until they hold `bytes` or there are no more.
    pub(crate) fn take_oldest(&mut self, bytes: usize) -> Vec<Piece> {
        let mut by_age = self.pieces.values().map(|piece| (piece.age, piece.offset)).collect::<Vec<_>>();
        by_age.sort_unstable();
        let mut taken = Vec::new();
        let mut taken_bytes = 0;
        for (_, offset) in by_age {
            if taken_bytes >= bytes {
                break;
            }
            if let Some(piece) = self.pieces.remove(&offset) {
                taken_bytes += piece.data.len();
                taken.push(piece);
            }
        }
        taken
    }

    fn put(&mut self, piece: Piece) {
        self.pieces.insert(piece.offset, piece);
    }

    fn put_part(&mut self, piece: &Piece, start: u64, end: u64) {
        if let Some(part) = piece.part(start, end) {
            self.put(part);
        }
    }
}
