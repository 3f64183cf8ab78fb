//! What happens next: virtual time, and the things that are due in it.

use pdu::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Things in the order of their time; those of the same time in the order in which they were entered.
#[derive(Debug)]
pub struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    entered: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Instant,
    number: u64,
    what: T,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), entered: 0 }
    }
}

impl<T> Agenda<T> {
    /// Enters an entry; entries of one instant come out in the order in which they were entered.
    pub fn push(&mut self, at: Instant, what: T) {
        self.entered += 1;
        self.heap.push(Reverse(Entry { at, number: self.entered, what }));
    }

    /// The time of what is next.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.0.at)
    }

    /// Takes what is next.
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }

    /// Takes what is next if it is due.
    pub fn pop_due(&mut self, now: Instant) -> Option<T> {
        (self.next_at()? <= now).then(|| self.pop())?.map(|(_, what)| what)
    }

    /// Drops every entry, due or not.
    pub fn clear(&mut self) {
        self.heap.clear();
    }
}

impl<T> Entry<T> {
    fn key(&self) -> (Instant, u64) {
        (self.at, self.number)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_in_the_order_of_their_time_and_then_of_their_entry() {
        let mut agenda = Agenda::default();
        agenda.push(Instant(5), 'c');
        agenda.push(Instant(2), 'a');
        agenda.push(Instant(2), 'b');
        assert_eq!(agenda.pop_due(Instant(1)), None);
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop()).map(|(_, what)| what).collect();
        assert_eq!(order, ['a', 'b', 'c']);
    }
}
