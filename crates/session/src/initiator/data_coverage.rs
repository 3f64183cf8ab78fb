//! Records which of a write's data has been sent at least once, so that data sent twice is not counted for data that
//! was never asked for.

/// The most separate pieces that are recorded beyond the first gap. Targets ask for data in order, except for lost
/// pieces. Pieces beyond this limit do not count as sent, so the command ends short.
const PIECES_MAX: usize = 256;

/// The ranges of a command's data that were sent.
#[derive(Debug, Default)]
pub(super) struct DataCoverage {
    /// All bytes before this offset were sent.
    prefix_bytes: u32,
    /// Further ranges in order, as first byte and end, without touching each other.
    later: Vec<(u32, u32)>,
}

impl DataCoverage {
    /// Records a range as sent; returns how many of its bytes had not been sent before.
    pub(super) fn add(&mut self, offset_bytes: u32, bytes: u32) -> u32 {
        let (mut from, mut to) = (offset_bytes, offset_bytes.saturating_add(bytes));
        if from <= self.prefix_bytes && self.later.is_empty() {
            let new_bytes = to.saturating_sub(self.prefix_bytes);
            self.prefix_bytes += new_bytes;
            return new_bytes;
        }
        if bytes == 0 {
            return 0;
        }
        let before_bytes = self.sent_bytes();
        let touched = |piece: &(u32, u32)| piece.0 <= to && from <= piece.1;
        let first = self.later.iter().position(touched);
        let count = self.later.iter().filter(|piece| touched(piece)).count();
        let at = first.unwrap_or_else(|| self.later.partition_point(|piece| piece.1 < from));
        for piece in &self.later[at..at + count] {
            (from, to) = (from.min(piece.0), to.max(piece.1));
        }
        let has_room = count > 0 || from <= self.prefix_bytes || self.later.len() < PIECES_MAX;
        self.later.splice(at..at + count, has_room.then_some((from, to)));
        while let Some((_, to)) = self.later.first().filter(|piece| piece.0 <= self.prefix_bytes).copied() {
            self.prefix_bytes = self.prefix_bytes.max(to);
            self.later.remove(0);
        }
        self.sent_bytes() - before_bytes
    }

    fn sent_bytes(&self) -> u32 {
        self.prefix_bytes + self.later.iter().map(|(from, to)| to - from).sum::<u32>()
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "a test's numbers are small")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_scattered_too_widely_is_not_counted() {
        let mut coverage = DataCoverage::default();
        let counted: u32 = (1..1000).map(|index| coverage.add(index * 2, 1)).sum();
        assert_eq!(counted as usize, PIECES_MAX);
        assert_eq!(coverage.add(0, 3000), 3000 - counted);
    }

    proptest! {
        #[test]
        fn every_byte_counts_once(pieces in proptest::collection::vec((0_u32..60, 0_u32..20), 0..40)) {
            let mut coverage = DataCoverage::default();
            let mut sent = BTreeSet::new();
            for (offset, bytes) in pieces {
                let before = sent.len();
                sent.extend(offset..offset + bytes);
                prop_assert_eq!(coverage.add(offset, bytes) as usize, sent.len() - before);
            }
        }
    }
}
