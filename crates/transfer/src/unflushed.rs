//! Acknowledged writes that may not be durable, and must be written again if the device loses them. Pure.

use std::collections::VecDeque;

/// Acknowledged writes since the last successful flush, each with the work to repeat it (`T`).
#[derive(Debug)]
pub struct Unflushed<T> {
    writes: VecDeque<(u64, T)>,
    bytes: u64,
    /// How many of `writes`, from the front, the current flush covers.
    covered: Option<usize>,
    epoch: Epoch,
}

/// The time between two losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(u64);

impl<T> Default for Unflushed<T> {
    fn default() -> Self {
        Self { writes: VecDeque::new(), bytes: 0, covered: None, epoch: Epoch::default() }
    }
}

impl<T> Unflushed<T> {
    /// The present epoch, which the caller keeps with a write that begins now.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Notes that a write of `bytes`, which began in `begun`, was acknowledged. Returns its work to be repeated if
    /// there was a loss meanwhile, because the acknowledgement may be older than the loss.
    #[must_use]
    pub fn acknowledged(&mut self, begun: Epoch, bytes: u64, write: T) -> Option<T> {
        if begun != self.epoch {
            return Some(write);
        }
        self.bytes += bytes;
        self.writes.push_back((bytes, write));
        None
    }

    /// Notes that a flush is about to be submitted. It covers the writes that were acknowledged until now (SBC-3
    /// §5.20), and no more.
    pub fn flush_begins(&mut self) {
        self.covered = Some(self.writes.len());
    }

    /// Drops the writes that a successful flush covered: they are durable.
    pub fn flush_succeeded(&mut self) {
        for _ in 0..self.covered.take().unwrap_or(0) {
            self.bytes -= self.writes.pop_front().map_or(0, |(bytes, _)| bytes);
        }
    }

    /// Takes all writes to be repeated after a loss, not only those that the flush covered, because nobody knows when
    /// the loss happened.
    pub fn lost(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.covered = None;
        self.bytes = 0;
        self.epoch.0 += 1;
        std::mem::take(&mut self.writes).into_iter().map(|(_, write)| write)
    }

    /// Whether a flush is under way.
    #[must_use]
    pub fn is_flushing(&self) -> bool {
        self.covered.is_some()
    }

    /// Bytes of data acknowledged and not known to be durable.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of these writes, those without data included.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.writes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(writes: &[char]) -> Unflushed<char> {
        let mut unflushed = Unflushed::default();
        for write in writes {
            assert_eq!(unflushed.acknowledged(unflushed.epoch(), 10, *write), None);
        }
        unflushed
    }

    #[test]
    fn a_flush_covers_what_was_acknowledged_before_it() {
        let mut unflushed = with(&['a', 'b']);
        unflushed.flush_begins();
        assert_eq!(unflushed.acknowledged(unflushed.epoch(), 10, 'c'), None);
        unflushed.flush_succeeded();
        assert_eq!((unflushed.bytes(), unflushed.writes()), (10, 1));
        assert!(unflushed.lost().eq(['c']));
    }

    #[test]
    fn a_loss_concerns_everything_since_the_last_successful_flush() {
        let mut unflushed = with(&['a', 'b']);
        unflushed.flush_begins();
        assert_eq!(unflushed.acknowledged(unflushed.epoch(), 10, 'c'), None);
        assert!(unflushed.lost().eq(['a', 'b', 'c']));
        assert!(!unflushed.is_flushing());
        assert_eq!((unflushed.bytes(), unflushed.writes()), (0, 0));
    }

    #[test]
    fn a_write_that_began_before_a_loss_is_done_again_even_if_acknowledged_after_it() {
        let mut unflushed = with(&[]);
        let begun = unflushed.epoch();
        let _ = unflushed.lost();
        assert_eq!(unflushed.acknowledged(begun, 10, 'a'), Some('a'));
        assert_eq!(unflushed.acknowledged(unflushed.epoch(), 10, 'a'), None);
    }

    #[test]
    fn a_flush_that_was_overtaken_by_a_loss_makes_nothing_durable() {
        let mut unflushed = with(&['a']);
        unflushed.flush_begins();
        let _ = unflushed.lost();
        assert_eq!(unflushed.acknowledged(unflushed.epoch(), 10, 'a'), None);
        unflushed.flush_succeeded();
        assert_eq!(unflushed.bytes(), 10);
    }
}
