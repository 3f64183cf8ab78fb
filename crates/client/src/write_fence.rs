//! Never lets two writes to the same blocks be outstanding together.
//!
//! Sessions have no order among them, and even within one session a target may reorder simple tasks. A write that
//! overlaps an earlier one therefore waits until the outcome of that one is known; the later write wins, as its caller
//! expects.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// One write, in the order of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(u64);

/// The fence's answer to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The write may be sent.
    Admitted,
    /// The write overlaps an earlier one; [`WriteFence::leave`] returns it when it may be sent.
    Waits,
    /// The write overlaps one whose outcome will never be known. It must not be sent, and the fence forgets it.
    Sealed,
}

/// The consequences of giving up a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sealing {
    /// Waiting writes that overlap it. They must not be sent, and the fence forgets them.
    pub refused: Vec<WriteId>,
    /// Writes that waited only for one of those, and may be sent now.
    pub admitted: Vec<WriteId>,
}

/// The unfinished writes to one logical unit. Ranges count blocks.
#[derive(Debug, Default)]
pub struct WriteFence {
    next: u64,
    /// Every write inside, admitted or waiting, the oldest first.
    inside: BTreeMap<WriteId, Range<u64>>,
    /// Admitted writes by their first block. They are disjoint.
    admitted: BTreeMap<u64, WriteId>,
    /// Waiting writes, in the order of their arrival.
    waiting: VecDeque<WriteId>,
    /// Blocks with unknown contents, closed to all writes.
    sealed: Vec<Range<u64>>,
}

impl WriteFence {
    /// Admits a write, makes it wait, or refuses it.
    pub fn enter(&mut self, range: Range<u64>) -> (WriteId, Entry) {
        let id = self.mark();
        if self.sealed.iter().any(|sealed| overlap(sealed, &range)) {
            return (id, Entry::Sealed);
        }
        let must_wait =
            self.is_blocked(&range) || self.waiting.iter().any(|other| self.overlaps(*other, &range));
        self.inside.insert(id, range.clone());
        if must_wait {
            self.waiting.push_back(id);
            return (id, Entry::Waits);
        }
        self.admit(id, &range);
        (id, Entry::Admitted)
    }

    /// A write's outcome is known. Returns the waiting writes that may be sent now, in order.
    pub fn leave(&mut self, id: WriteId) -> Vec<WriteId> {
        self.remove(id);
        self.admit_waiting()
    }

    /// A write's outcome will never be known: closes its blocks.
    pub fn seal(&mut self, id: WriteId) -> Sealing {
        let Some(range) = self.remove(id) else { return Sealing::default() };
        let refused: Vec<WriteId> =
            self.waiting.iter().copied().filter(|other| self.overlaps(*other, &range)).collect();
        for other in &refused {
            self.remove(*other);
        }
        self.sealed.push(range);
        Sealing { refused, admitted: self.admit_waiting() }
    }

    /// A point in the order of writes. [`Self::is_clear_before`] says when all earlier writes have ended.
    pub fn mark(&mut self) -> WriteId {
        self.next += 1;
        WriteId(self.next)
    }

    /// Whether every write before `mark` has a known outcome or was given up.
    #[must_use]
    pub fn is_clear_before(&self, mark: WriteId) -> bool {
        self.inside.first_key_value().is_none_or(|(oldest, _)| *oldest > mark)
    }

    fn admit_waiting(&mut self) -> Vec<WriteId> {
        let mut admitted = Vec::new();
        let mut still_waiting: VecDeque<WriteId> = VecDeque::new();
        for id in std::mem::take(&mut self.waiting) {
            let Some(range) = self.inside.get(&id).cloned() else { continue };
            if self.is_blocked(&range) || still_waiting.iter().any(|other| self.overlaps(*other, &range)) {
                still_waiting.push_back(id);
            } else {
                self.admit(id, &range);
                admitted.push(id);
            }
        }
        self.waiting = still_waiting;
        admitted
    }

    fn admit(&mut self, id: WriteId, range: &Range<u64>) {
        if !range.is_empty() {
            self.admitted.insert(range.start, id);
        }
    }

    fn remove(&mut self, id: WriteId) -> Option<Range<u64>> {
        let range = self.inside.remove(&id)?;
        if self.admitted.get(&range.start) == Some(&id) {
            self.admitted.remove(&range.start);
        }
        Some(range)
    }

    /// Whether an admitted write overlaps. Admitted writes are disjoint, so only the last one that begins before the
    /// range's end can.
    fn is_blocked(&self, range: &Range<u64>) -> bool {
        let last = self.admitted.range(..range.end).next_back();
        last.is_some_and(|(_, id)| self.overlaps(*id, range))
    }

    fn overlaps(&self, id: WriteId, range: &Range<u64>) -> bool {
        self.inside.get(&id).is_some_and(|other| overlap(other, range))
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn disjoint_writes_go_together() {
        let mut fence = WriteFence::default();
        assert_eq!(fence.enter(0..8).1, Entry::Admitted);
        assert_eq!(fence.enter(8..16).1, Entry::Admitted);
    }

    #[test]
    fn an_overlapping_write_waits_for_the_earlier_one() {
        let mut fence = WriteFence::default();
        let (first, _) = fence.enter(0..8);
        let (second, entry) = fence.enter(7..9);
        assert_eq!(entry, Entry::Waits);
        assert_eq!(fence.leave(first), [second]);
    }

    #[test]
    fn a_write_does_not_overtake_one_that_waits_for_the_same_blocks() {
        let mut fence = WriteFence::default();
        let (first, _) = fence.enter(0..8);
        let (second, _) = fence.enter(4..12);
        let (third, entry) = fence.enter(10..11);
        assert_eq!(entry, Entry::Waits);
        assert_eq!(fence.leave(first), [second]);
        assert_eq!(fence.leave(second), [third]);
    }

    #[test]
    fn a_write_inside_a_larger_one_waits() {
        let mut fence = WriteFence::default();
        fence.enter(0..100);
        assert_eq!(fence.enter(50..51).1, Entry::Waits);
    }

    #[test]
    fn blocks_of_unknown_outcome_stay_closed() {
        let mut fence = WriteFence::default();
        let (lost, _) = fence.enter(0..8);
        let (waiting, _) = fence.enter(0..1);
        assert_eq!(fence.seal(lost).refused, [waiting]);
        assert_eq!(fence.enter(7..9).1, Entry::Sealed);
        assert_eq!(fence.enter(8..9).1, Entry::Admitted);
    }

    #[test]
    fn a_write_that_waited_for_a_refused_one_goes() {
        let mut fence = WriteFence::default();
        let (lost, _) = fence.enter(0..8);
        let (refused, _) = fence.enter(4..12);
        let (waiting, _) = fence.enter(10..14);
        assert_eq!(fence.seal(lost), Sealing { refused: vec![refused], admitted: vec![waiting] });
    }

    #[test]
    fn a_mark_is_clear_when_all_earlier_writes_have_ended() {
        let mut fence = WriteFence::default();
        let (first, _) = fence.enter(0..8);
        let mark = fence.mark();
        let (second, _) = fence.enter(8..16);
        assert!(!fence.is_clear_before(mark));
        fence.leave(first);
        assert!(fence.is_clear_before(mark));
        fence.leave(second);
        assert!(fence.is_clear_before(mark));
    }

    proptest! {
        #[test]
        fn outstanding_writes_never_overlap_and_all_get_their_turn(
            steps in prop::collection::vec((0u64..40, 1u64..12, any::<bool>()), 1..60),
        ) {
            let mut fence = WriteFence::default();
            let mut outstanding: Vec<(WriteId, Range<u64>)> = Vec::new();
            let mut waiting: BTreeMap<WriteId, Range<u64>> = BTreeMap::new();
            let mut steps = steps.into_iter();
            loop {
                let step = steps.next();
                match step {
                    Some((start, blocks, true)) => {
                        let range = start..start + blocks;
                        match fence.enter(range.clone()) {
                            (id, Entry::Admitted) => outstanding.push((id, range)),
                            (id, _) => { waiting.insert(id, range); }
                        }
                    }
                    _ if outstanding.is_empty() => if step.is_none() { break },
                    other => {
                        let at = other.map_or(0, |step| usize::try_from(step.0).unwrap() % outstanding.len());
                        let (id, _) = outstanding.remove(at);
                        for id in fence.leave(id) {
                            outstanding.push((id, waiting.remove(&id).unwrap()));
                        }
                    }
                }
                for (at, (_, one)) in outstanding.iter().enumerate() {
                    for (_, other) in &outstanding[at + 1..] {
                        prop_assert!(!overlap(one, other));
                    }
                }
            }
            prop_assert!(waiting.is_empty());
        }
    }
}
