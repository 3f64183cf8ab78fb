//! Records which of a command's Data-In PDUs or R2Ts have arrived and which are missing (RFC 7143 §4.2.2.4, §7.9).

use crate::peer_fault::PeerFault;
use crate::seam::Fault;

/// The most holes in one command's data. A connection that damages more PDUs of one command before any of them is sent
/// again is useless.
const HOLES_MAX: usize = 64;

/// Consecutive PDUs beyond the first hole.
#[derive(Clone, Copy, Debug)]
struct Run {
    begin: u32,
    end: u32,
    /// Where their data lies in the command's data.
    from_bytes: u32,
    to_bytes: u32,
}

/// Whether a PDU arrived for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    New,
    /// It had arrived before: it was sent again without need.
    Repeated,
}

/// Missing PDUs: the number of the first, and how many.
pub(super) type Hole = (u32, u32);

/// The Data-In PDUs of a read, or the R2Ts of a write, by their numbers.
///
/// DataPDUInOrder and DataSequenceInOrder are always negotiated. Data with a higher number therefore lies higher and
/// does not overlap, and a retransmission must fit exactly between its neighbours.
#[derive(Debug, Default)]
pub(super) struct InputSequence {
    /// The number of the first PDU that has not arrived.
    next: u32,
    /// The offset of that PDU's data.
    bytes: u32,
    /// The number of the first PDU that is not known to have been sent.
    sent: u32,
    /// The PDUs that arrived beyond the first hole, in order.
    later: Vec<Run>,
}

impl InputSequence {
    /// The first PDU that has not arrived.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// The bytes of data before that PDU's.
    pub(super) fn contiguous_bytes(&self) -> u32 {
        self.bytes
    }

    /// Bytes of all data that arrived.
    pub(super) fn received_bytes(&self) -> u32 {
        self.bytes + self.later_bytes()
    }

    fn later_bytes(&self) -> u32 {
        self.later.iter().map(|run| run.to_bytes - run.from_bytes).sum()
    }

    /// Whether a PDU has arrived.
    pub(super) fn has(&self, number: u32) -> bool {
        number < self.next || self.later.get(self.position(number)).is_some_and(|run| run.begin <= number)
    }

    /// Whether a PDU arrives for the first time. An error if it does not fit its neighbours.
    pub(super) fn fit(&self, number: u32, offset_bytes: u32, bytes: u32) -> Result<Arrival, Fault> {
        if self.has(number) {
            return Ok(Arrival::Repeated);
        }
        let at = self.position(number);
        let after = self.later.get(at);
        let (end, to_bytes) = self.before(at);
        let follows = if end == number { offset_bytes == to_bytes } else { offset_bytes >= to_bytes };
        let end_bytes = u64::from(offset_bytes) + u64::from(bytes);
        let precedes = after.is_none_or(|run| {
            let from_bytes = u64::from(run.from_bytes);
            if run.begin - number == 1 { end_bytes == from_bytes } else { end_bytes <= from_bytes }
        });
        if !follows || !precedes || number == u32::MAX {
            return Err(PeerFault::DataInOutOfOrder.into());
        }
        if self.later.len() >= HOLES_MAX && end != number {
            return Err(Fault::Limit("holes in the data of a command"));
        }
        Ok(Arrival::New)
    }

    /// Records a new PDU that fits. Earlier PDUs that were not known to have been sent must have been: they are the
    /// returned hole.
    pub(super) fn receive(&mut self, number: u32, offset_bytes: u32, bytes: u32) -> Option<Hole> {
        let hole = (number > self.sent).then(|| (self.sent, number - self.sent));
        self.sent = self.sent.max(number + 1);
        let at = self.position(number);
        let to_bytes = offset_bytes + bytes;
        if number == self.next {
            (self.next, self.bytes) = (number + 1, to_bytes);
        } else if let Some(before) = at.checked_sub(1).and_then(|at| self.later.get_mut(at))
            && before.end == number
        {
            (before.end, before.to_bytes) = (number + 1, to_bytes);
        } else {
            let run = Run { begin: number, end: number + 1, from_bytes: offset_bytes, to_bytes };
            self.later.insert(at, run);
        }
        self.join(at);
        hole
    }

    /// Notes that all PDUs before `end` have been sent; returns those that were not known to have been.
    pub(super) fn told(&mut self, end: u32) -> Option<Hole> {
        let begin = self.sent;
        self.sent = begin.max(end);
        (end > begin).then(|| (begin, end - begin))
    }

    /// The PDUs that were sent and have not arrived.
    pub(super) fn holes(&self) -> impl Iterator<Item = Hole> {
        let begins = std::iter::once(self.next).chain(self.later.iter().map(|run| run.end));
        let ends = self.later.iter().map(|run| run.begin).chain(std::iter::once(self.sent));
        begins.zip(ends).filter(|(begin, end)| begin < end).map(|(begin, end)| (begin, end - begin))
    }

    /// Forgets the PDUs beyond the first hole, both arrived and known to have been sent; returns the bytes forgotten.
    pub(super) fn forget_later(&mut self) -> u32 {
        let bytes = self.later_bytes();
        self.later.clear();
        self.sent = self.next;
        bytes
    }

    /// Continues the numbering at `number`, whatever came before.
    pub(super) fn go_on_from(&mut self, number: u32) {
        *self = Self { next: number, sent: number, bytes: self.bytes, later: Vec::new() };
    }

    /// The index in `later` of the run with this number, or where it would be inserted.
    fn position(&self, number: u32) -> usize {
        self.later.partition_point(|run| run.end <= number)
    }

    /// The next number and offset after the PDUs before the run at this position.
    fn before(&self, at: usize) -> (u32, u32) {
        let before = at.checked_sub(1).and_then(|at| self.later.get(at));
        before.map_or((self.next, self.bytes), |run| (run.end, run.to_bytes))
    }

    /// Joins runs that have become adjacent around this position.
    fn join(&mut self, at: usize) {
        if let Some(first) = self.later.first().filter(|first| first.begin == self.next).copied() {
            (self.next, self.bytes) = (first.end, first.to_bytes);
            self.later.remove(0);
            return;
        }
        for at in [at, at.saturating_sub(1)] {
            if let [left, right] = self.later.get(at..).unwrap_or_default().get(..2).unwrap_or_default()
                && left.end == right.begin
            {
                let joined = Run { end: right.end, to_bytes: right.to_bytes, ..*left };
                self.later.splice(at..at + 2, [joined]);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "a test's numbers are small")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PIECE_BYTES: u32 = 10;

    fn receive(sequence: &mut InputSequence, number: u32) -> Arrival {
        let arrival = sequence.fit(number, number * PIECE_BYTES, PIECE_BYTES).unwrap();
        if arrival == Arrival::New {
            sequence.receive(number, number * PIECE_BYTES, PIECE_BYTES);
        }
        arrival
    }

    fn holes(sequence: &InputSequence) -> Vec<Hole> {
        sequence.holes().collect()
    }

    #[test]
    fn what_is_between_two_pdus_is_a_hole() {
        let mut sequence = InputSequence::default();
        for number in [0, 3, 4, 7] {
            receive(&mut sequence, number);
        }
        assert_eq!(holes(&sequence), [(1, 2), (5, 2)]);
        assert_eq!((sequence.next(), sequence.received_bytes()), (1, 40));
        assert_eq!(sequence.told(10), Some((8, 2)));
        assert_eq!(holes(&sequence), [(1, 2), (5, 2), (8, 2)]);
    }

    #[test]
    fn what_does_not_fit_its_neighbours_is_refused() {
        let mut sequence = InputSequence::default();
        receive(&mut sequence, 0);
        receive(&mut sequence, 3);
        for (number, offset_bytes, bytes) in
            [(1, 9, 5), (1, 11, 5), (2, 15, 14), (2, 15, 16), (1, 10, 21), (4, 39, 1)]
        {
            assert!(sequence.fit(number, offset_bytes, bytes).is_err(), "{number} {offset_bytes} {bytes}");
        }
        assert_eq!(sequence.fit(1, 10, 20), Ok(Arrival::New));
        assert_eq!(sequence.fit(2, 15, 15), Ok(Arrival::New));
    }

    #[test]
    fn too_many_holes_are_refused() {
        let mut sequence = InputSequence::default();
        let refused = (1..1000).find(|index| {
            let fit = sequence.fit(index * 2, index * 20, 10);
            fit.is_err() || sequence.receive(index * 2, index * 20, 10).is_none()
        });
        assert_eq!(refused, Some(HOLES_MAX as u32 + 1));
    }

    proptest! {
        #[test]
        fn in_whatever_order_they_come_all_are_taken_once(numbers in proptest::collection::vec(0_u32..24, 0..80)) {
            let mut sequence = InputSequence::default();
            let mut seen = std::collections::BTreeSet::new();
            for number in numbers {
                let arrival = receive(&mut sequence, number);
                prop_assert_eq!(arrival == Arrival::New, seen.insert(number));
                let end = seen.last().map_or(0, |last| last + 1);
                let missing: Vec<u32> = (0..end).filter(|number| !seen.contains(number)).collect();
                let found: Vec<u32> = sequence.holes().flat_map(|(begin, count)| begin..begin + count).collect();
                prop_assert_eq!(found, missing);
                prop_assert_eq!(sequence.received_bytes(), seen.len() as u32 * PIECE_BYTES);
                prop_assert_eq!(sequence.next(), (0..).find(|number| !seen.contains(number)).unwrap());
            }
        }
    }
}
