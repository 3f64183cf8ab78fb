//! StatSN and ExpStatSN: the numbers of one lane's responses (RFC 7143 §4.2.2.2).

use pdu::StatSn;

/// The responses of one lane: the number of the next one, and of the first that the initiator has not acknowledged.
#[derive(Clone, Debug)]
pub(super) struct StatusNumbers {
    next: StatSn,
    acknowledged: StatSn,
    unacknowledged_max: u32,
    /// How often in a row the initiator was asked to acknowledge and acknowledged nothing new.
    asked: u32,
}

impl StatusNumbers {
    /// A lane's numbers, with at most `unacknowledged_max` responses outstanding.
    pub(super) fn new(first: StatSn, unacknowledged_max: u32) -> Self {
        Self { next: first, acknowledged: first, unacknowledged_max, asked: 0 }
    }

    /// The StatSN of the next response. PDUs other than responses carry it without taking it.
    pub(super) fn next(&self) -> StatSn {
        self.next
    }

    /// Takes the StatSN of a response.
    pub(super) fn take(&mut self) -> StatSn {
        let number = self.next;
        self.next = number.next();
        number
    }

    /// Whether no further response may be sent before one is acknowledged.
    pub(super) fn is_full(&self) -> bool {
        self.next.distance_from(self.acknowledged) >= self.unacknowledged_max
    }

    /// The first StatSN that is not acknowledged; [`Self::next`] if all are.
    pub(super) fn acknowledged(&self) -> StatSn {
        self.acknowledged
    }

    /// Takes an ExpStatSN; returns how many more responses it acknowledges. One that goes back, or acknowledges
    /// responses that were never sent, is ignored.
    pub(super) fn acknowledge(&mut self, expected: StatSn) -> u32 {
        if !self.acknowledged.precedes(expected) || self.next.precedes(expected) {
            return 0;
        }
        let news = expected.distance_from(self.acknowledged);
        (self.acknowledged, self.asked) = (expected, 0);
        news
    }

    /// Whether asking for an acknowledgement may help. An initiator that misses data of a command acknowledges neither
    /// that command's status nor later ones, and asking it every round trip does not change that.
    pub(super) fn may_ask(&self) -> bool {
        /// An initiator that processes responses late may have to be asked more than once.
        const ASKED_MAX: u32 = 4;
        self.acknowledged == self.next || self.asked < ASKED_MAX
    }

    /// Counts a request for an acknowledgement.
    pub(super) fn note_asked(&mut self) {
        self.asked += u32::from(self.acknowledged != self.next);
    }

    /// Whether all responses before `mark` are acknowledged.
    pub(super) fn is_acknowledged(&self, mark: StatSn) -> bool {
        !self.acknowledged.precedes(mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_says_nothing() {
        let mut numbers = StatusNumbers::new(StatSn(u32::MAX), 2);
        assert_eq!(numbers.take(), StatSn(u32::MAX));
        assert_eq!(numbers.take(), StatSn(0));
        assert!(numbers.is_full());
        numbers.acknowledge(StatSn(2));
        assert!(numbers.is_full());
        numbers.acknowledge(StatSn(0));
        assert!(!numbers.is_full());
        assert!(!numbers.is_acknowledged(StatSn(1)));
        numbers.acknowledge(StatSn(1));
        assert!(numbers.is_acknowledged(StatSn(1)));
    }

    #[test]
    fn an_old_acknowledgement_takes_nothing_back() {
        let mut numbers = StatusNumbers::new(StatSn(7), 1);
        numbers.take();
        numbers.acknowledge(StatSn(8));
        numbers.acknowledge(StatSn(7));
        assert!(!numbers.is_full());
    }
}
