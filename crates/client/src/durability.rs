//! The promise of a flush when sessions come and go.
//!
//! SYNCHRONIZE CACHE concerns the cache behind its own nexus. When a nexus is lost, its target may be lost too, with
//! everything in a volatile cache. Acknowledged and unflushed writes may then be gone, although every status said GOOD.

use crate::path_id::PathId;
use scsi::AdditionalSense;
use scsi::client::SenseData;
use std::collections::BTreeMap;

/// Counts the possible losses of acknowledged writes. A write acknowledged and flushed in the same generation is
/// durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// The number of writes that a path had acknowledged when a flush began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushMark(u64);

/// Counts the times that a unit's cache may have been emptied, with or without writes of ours in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheLosses(u64);

/// The writes to one logical unit that are acknowledged but not durable.
#[derive(Clone, Debug, Default)]
pub struct Durability {
    generation: Generation,
    losses: CacheLosses,
    paths: BTreeMap<PathId, Writes>,
}

/// Counted from the path's first session on, and never reset: a mark from before a loss must not cover writes
/// acknowledged after it.
#[derive(Clone, Copy, Debug, Default)]
struct Writes {
    acknowledged: u64,
    /// The writes among them that need no flush any more: durable, lost or handed over.
    settled: u64,
}

impl Writes {
    fn is_dirty(self) -> bool {
        self.acknowledged > self.settled
    }

    /// Settles all writes. Returns whether there were any.
    fn settle_all(&mut self) -> bool {
        let was_dirty = self.is_dirty();
        self.settled = self.acknowledged;
        was_dirty
    }
}

impl Durability {
    /// The current generation.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The count to take when a write leaves, for [`Self::acknowledged`].
    #[must_use]
    pub fn losses(&self) -> CacheLosses {
        self.losses
    }

    /// A write over `path` succeeded. If the cache was lost after the write left, the target may have executed the
    /// write before the loss: answers of several connections arrive in any order.
    pub fn acknowledged(&mut self, path: PathId, left_at: CacheLosses) {
        let writes = self.paths.entry(path).or_default();
        writes.acknowledged += 1;
        if left_at != self.losses {
            self.nexus_lost(path);
        }
    }

    /// An operation of several writes has ended, and the first of them was acknowledged in the generation `since`. A
    /// caller that was told of a loss in between did not count this operation among the lost ones, because it had not
    /// ended. The caller must therefore hear of another loss.
    pub fn operation_ended(&mut self, since: Generation) {
        if since != self.generation {
            self.generation.0 += 1;
        }
    }

    /// The paths to flush, and the writes that their flushes will cover.
    pub fn unflushed(&self) -> impl Iterator<Item = (PathId, FlushMark)> {
        let dirty = self.paths.iter().filter(|(_, writes)| writes.is_dirty());
        dirty.map(|(path, writes)| (*path, FlushMark(writes.acknowledged)))
    }

    /// A flush over `path` that began at `mark` succeeded.
    pub fn flushed(&mut self, path: PathId, mark: FlushMark) {
        let writes = self.paths.entry(path).or_default();
        writes.settled = writes.settled.max(mark.0);
    }

    /// `path` was logged out in order: its writes are still in the unit's cache, which `to` reaches too.
    pub fn hand_over(&mut self, path: PathId, to: PathId) {
        if self.settle(path) {
            self.acknowledged(to, self.losses);
        }
    }

    /// The nexus of `path` is lost, and perhaps its acknowledged writes.
    pub fn nexus_lost(&mut self, path: PathId) {
        if self.settle(path) {
            self.generation.0 += 1;
        }
    }

    /// The logical unit reported `sense`. A reset or a power on may have emptied its cache, and a deferred error
    /// concerns a command that it had answered with success. (The loss of a nexus was counted when it happened.)
    pub fn told(&mut self, sense: &SenseData) {
        const RESET: u8 = 0x29;
        const LAST_KIND_OF_RESET: u8 = 0x04;
        let AdditionalSense { code, qualifier } = sense.additional;
        let was_reset = sense.is_unit_attention() && code == RESET && qualifier <= LAST_KIND_OF_RESET;
        if was_reset || sense.deferred {
            self.cache_lost();
        }
    }

    /// SYNCHRONIZE CACHE, or a write forced to the medium, failed with this sense data. A device may drop the data that
    /// it could not write, report that once, and succeed the next time.
    pub fn forced_operation_failed(&mut self, sense: Option<&SenseData>) {
        const FIRST_OF_VENDORS: u8 = 0x80;
        // These say that nothing was attempted; a vendor's own code may say anything.
        let is_refused = sense.is_some_and(|sense| {
            let is_standard = sense.additional.code < FIRST_OF_VENDORS;
            sense.is_illegal_request() && is_standard || sense.is_miscompare()
        });
        if !is_refused {
            self.cache_lost();
        }
    }

    /// Any acknowledged write may be lost, on any path.
    fn cache_lost(&mut self) {
        self.losses.0 += 1;
        let mut was_dirty = false;
        for writes in self.paths.values_mut() {
            was_dirty |= writes.settle_all();
        }
        if was_dirty {
            self.generation.0 += 1;
        }
    }

    fn settle(&mut self, path: PathId) -> bool {
        self.paths.get_mut(&path).is_some_and(Writes::settle_all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: PathId = PathId(0);
    const OTHER: PathId = PathId(1);

    const RESET: SenseData = SenseData {
        key: 6,
        additional: AdditionalSense::BUS_DEVICE_RESET_FUNCTION_OCCURRED,
        information: None,
        deferred: false,
    };
    const WRITE_ERROR: SenseData =
        SenseData { key: 3, additional: AdditionalSense::WRITE_ERROR, information: None, deferred: false };

    fn dirty_paths(durability: &Durability) -> Vec<PathId> {
        durability.unflushed().map(|(path, _)| path).collect()
    }

    fn flush(durability: &mut Durability) {
        let marks: Vec<_> = durability.unflushed().collect();
        marks.into_iter().for_each(|(path, mark)| durability.flushed(path, mark));
    }

    #[test]
    fn only_paths_that_wrote_are_flushed() {
        let mut durability = Durability::default();
        durability.acknowledged(OTHER, durability.losses());
        assert_eq!(dirty_paths(&durability), [OTHER]);
        flush(&mut durability);
        assert!(dirty_paths(&durability).is_empty());
    }

    #[test]
    fn a_write_acknowledged_during_a_flush_needs_the_next() {
        let mut durability = Durability::default();
        durability.acknowledged(PATH, durability.losses());
        let (path, mark) = durability.unflushed().next().unwrap();
        durability.acknowledged(PATH, durability.losses());
        durability.flushed(path, mark);
        assert_eq!(dirty_paths(&durability), [PATH]);
    }

    #[test]
    fn a_nexus_lost_with_unflushed_writes_begins_a_generation() {
        let mut durability = Durability::default();
        durability.acknowledged(PATH, durability.losses());
        durability.nexus_lost(PATH);
        assert_eq!(durability.generation(), Generation(1));
    }

    #[test]
    fn a_nexus_lost_with_everything_flushed_does_not() {
        let mut durability = Durability::default();
        durability.acknowledged(PATH, durability.losses());
        flush(&mut durability);
        durability.nexus_lost(PATH);
        assert_eq!(durability.generation(), Generation(0));
    }

    #[test]
    fn a_flush_that_began_before_a_loss_covers_nothing_acknowledged_after_it() {
        let mut durability = Durability::default();
        durability.acknowledged(PATH, durability.losses());
        durability.acknowledged(PATH, durability.losses());
        let (path, mark) = durability.unflushed().next().unwrap();
        durability.nexus_lost(PATH);
        durability.acknowledged(PATH, durability.losses());
        durability.flushed(path, mark);
        assert_eq!(dirty_paths(&durability), [PATH]);
        let (path, mark) = durability.unflushed().next().unwrap();
        durability.told(&RESET);
        durability.acknowledged(PATH, durability.losses());
        durability.flushed(path, mark);
        assert_eq!(dirty_paths(&durability), [PATH]);
    }

    #[test]
    fn what_a_path_wrote_before_its_logout_is_flushed_over_another() {
        let mut durability = Durability::default();
        durability.acknowledged(OTHER, durability.losses());
        durability.hand_over(OTHER, PATH);
        assert_eq!(dirty_paths(&durability), [PATH]);
        assert_eq!(durability.generation(), Generation(0));
    }

    #[test]
    fn a_deferred_error_concerns_the_writes_of_every_path() {
        let mut durability = Durability::default();
        durability.acknowledged(OTHER, durability.losses());
        durability.told(&WRITE_ERROR);
        assert_eq!(durability.generation(), Generation(0));
        durability.told(&SenseData { deferred: true, ..WRITE_ERROR });
        assert_eq!(durability.generation(), Generation(1));
        assert!(dirty_paths(&durability).is_empty());
    }

    #[test]
    fn a_flush_that_failed_is_not_made_good_by_the_next() {
        let mut durability = Durability::default();
        durability.acknowledged(PATH, durability.losses());
        durability.forced_operation_failed(Some(&SenseData { key: 5, ..WRITE_ERROR }));
        assert_eq!(dirty_paths(&durability), [PATH]);
        durability.forced_operation_failed(Some(&WRITE_ERROR));
        flush(&mut durability);
        assert_eq!(durability.generation(), Generation(1));
    }

    #[test]
    fn a_flush_that_failed_and_does_not_say_why_has_lost_what_it_covers() {
        let mut durability = Durability::default();
        durability.acknowledged(PATH, durability.losses());
        durability.forced_operation_failed(None);
        assert_eq!(durability.generation(), Generation(1));
    }

    #[test]
    fn a_write_that_left_before_a_loss_and_is_acknowledged_after_it_may_be_lost() {
        let mut durability = Durability::default();
        let left_at = durability.losses();
        durability.told(&SenseData { deferred: true, ..WRITE_ERROR });
        durability.acknowledged(PATH, left_at);
        assert_eq!(durability.generation(), Generation(1));
        assert!(dirty_paths(&durability).is_empty());
        durability.acknowledged(PATH, durability.losses());
        assert_eq!(dirty_paths(&durability), [PATH]);
    }

    #[test]
    fn an_operation_that_outlives_a_loss_is_lost_again_when_it_ends() {
        let mut durability = Durability::default();
        let since = durability.generation();
        durability.acknowledged(PATH, durability.losses());
        durability.operation_ended(since);
        assert_eq!(durability.generation(), Generation(0));
        durability.nexus_lost(PATH);
        durability.acknowledged(PATH, durability.losses());
        assert_eq!(durability.generation(), Generation(1));
        durability.operation_ended(since);
        assert_eq!(durability.generation(), Generation(2));
    }

    #[test]
    fn an_illegal_request_of_a_vendor_s_own_kind_is_a_failure() {
        let mut durability = Durability::default();
        durability.acknowledged(PATH, durability.losses());
        let additional = AdditionalSense { code: 0x80, qualifier: 0 };
        durability.forced_operation_failed(Some(&SenseData { key: 5, additional, ..WRITE_ERROR }));
        assert_eq!(durability.generation(), Generation(1));
    }

    #[test]
    fn a_reset_of_the_unit_concerns_the_writes_of_every_path() {
        let mut durability = Durability::default();
        durability.acknowledged(OTHER, durability.losses());
        durability.told(&RESET);
        durability.told(&RESET);
        assert_eq!(durability.generation(), Generation(1));
    }
}
