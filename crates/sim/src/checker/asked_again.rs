//! What a SNACK may ask for, and what may be sent again for it, in one sequence of numbers: the Data-In or R2Ts of a task, or
//! the responses of a connection (RFC 7143 §11.16).
//!
//! An initiator asks for what it knows to have been sent and has not received; a target sends again what it was asked for,
//! as often as it was asked, and nothing else. A SNACK may wait before it leaves, and what it asks for may come meanwhile.

use super::number_map::NumberMap;

/// One sequence, as both ends know it.
#[derive(Debug, Default)]
pub(super) struct AskedAgain {
    /// Arrivals at the initiator so far.
    arrivals: u32,
    /// So many arrivals brought their numbers in order from the first on, undamaged, before anything else came: as almost
    /// always, so that nothing is kept of them.
    in_order: u32,
    /// The arrival that first brought each other number undamaged.
    whole: NumberMap<u32, u32>,
    /// Where the sequence ended as far as the initiator knew, from which arrival on; if that says more than the arrivals in
    /// order did.
    known_ends: Vec<(u32, u32)>,
    /// How often each number is to be sent again.
    asked: NumberMap<u32, u32>,
    /// The numbers may mean something else now.
    is_void: bool,
}

impl AskedAgain {
    /// Arrivals at the initiator so far.
    pub fn arrivals(&self) -> u32 {
        self.arrivals
    }

    /// A number has arrived at the initiator; whole, if its data is not damaged.
    pub fn arrive(&mut self, number: u32, is_whole: bool) {
        let is_next = number == self.in_order && self.arrivals == self.in_order;
        self.arrivals += 1;
        if is_whole && is_next {
            self.in_order += 1;
            return;
        }
        self.learn_end(number.saturating_add(1));
        if is_whole && number >= self.in_order {
            self.whole.entry(number).or_insert(self.arrivals);
        }
    }

    /// The arrival that first brought a number undamaged, if one has.
    fn brought_by(&self, number: u32) -> Option<u32> {
        if number < self.in_order { Some(number + 1) } else { self.whole.get(&number).copied() }
    }

    /// The initiator is told that all numbers before `end` have been sent.
    pub fn learn_end(&mut self, end: u32) {
        if self.known_end_before(u32::MAX) < end {
            self.known_ends.push((self.arrivals, end));
        }
    }

    fn known_end_before(&self, arrival: u32) -> u32 {
        let told = self.known_ends.iter().rfind(|(from, _)| *from < arrival);
        told.map_or(0, |(_, end)| *end).max(self.in_order.min(arrival.saturating_sub(1)))
    }

    /// The initiator asks for `count` numbers from `begin` on, or for all from there on if that is none, of which the target
    /// has sent those before `sent`.
    ///
    /// # Errors
    /// They were not sent, or had arrived before the initiator could miss them.
    pub fn check_request(&self, begin: u32, count: u32, sent: u32) -> Result<(), String> {
        let end = begin.saturating_add(count);
        if self.is_void {
            return Ok(());
        }
        if end > sent {
            return Err(format!("a SNACK for {begin}..{end}, of which {sent} were sent"));
        }
        // A long run may be asked for whose beginning was never sent.
        let first = (begin..end).filter_map(|number| self.brought_by(number)).min();
        match first {
            Some(first) if self.known_end_before(first) < end => {
                Err(format!("a SNACK for {begin}..{end}, some of which had arrived"))
            }
            _ => Ok(()),
        }
    }

    /// A SNACK has reached the target, which has sent the numbers before `sent`.
    pub fn ask(&mut self, begin: u32, count: u32, sent: u32) {
        let end = if count == 0 { sent } else { begin.saturating_add(count).min(sent) };
        (begin..end).for_each(|number| *self.asked.entry(number).or_default() += 1);
    }

    /// The target sends a number again.
    ///
    /// # Errors
    /// It was not asked to.
    pub fn send_again(&mut self, number: u32) -> Result<(), String> {
        let left =
            self.asked.get_mut(&number).and_then(|times| times.checked_sub(1).map(|left| (times, left)));
        match left {
            Some((times, left)) => *times = left,
            None if self.is_void => {}
            None => return Err(format!("number {number} again, which was not asked for")),
        }
        Ok(())
    }

    /// The task goes on elsewhere, where its data may be cut anew.
    pub fn void(&mut self) {
        self.is_void = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_may_be_asked_for_even_if_it_has_come_meanwhile() {
        let mut sequence = AskedAgain::default();
        [0, 3].into_iter().for_each(|number| sequence.arrive(number, true));
        assert_eq!(sequence.check_request(1, 2, 4), Ok(()));
        sequence.arrive(1, true);
        assert_eq!(sequence.check_request(1, 2, 4), Ok(()));
    }

    #[test]
    fn what_came_in_order_was_never_missed_unless_its_end_was_told_before() {
        let mut sequence = AskedAgain::default();
        (0..2).for_each(|number| sequence.arrive(number, true));
        sequence.learn_end(4);
        (2..5).for_each(|number| sequence.arrive(number, true));
        assert!(sequence.check_request(1, 1, 5).is_err());
        assert_eq!(sequence.check_request(2, 2, 5), Ok(()));
        assert!(sequence.check_request(3, 2, 5).is_err());
    }

    #[test]
    fn what_was_not_sent_or_was_never_missed_may_not_be_asked_for() {
        let mut sequence = AskedAgain::default();
        [0, 3].into_iter().for_each(|number| sequence.arrive(number, true));
        assert!(sequence.check_request(0, 2, 4).is_err());
        assert!(sequence.check_request(2, 2, 4).is_err());
        assert!(sequence.check_request(4, 1, 4).is_err());
    }

    #[test]
    fn what_came_damaged_may_be_asked_for() {
        let mut sequence = AskedAgain::default();
        sequence.arrive(0, false);
        assert_eq!(sequence.check_request(0, 1, 1), Ok(()));
    }

    #[test]
    fn a_number_is_sent_again_as_often_as_it_is_asked_for() {
        let mut sequence = AskedAgain::default();
        sequence.ask(2, 0, 4);
        assert!(sequence.send_again(1).is_err());
        assert_eq!(sequence.send_again(3), Ok(()));
        assert!(sequence.send_again(3).is_err());
    }
}
