//! Records which responses on one lane have arrived, which are missing, and which may be acknowledged (RFC 7143
//! §4.2.2.2, §7.9).

use super::ask::Ask;
use super::data_sequence::Arrival;
use crate::peer_fault::PeerFault;
use crate::seam::Fault;
use pdu::StatSn;
use std::collections::VecDeque;

/// How far beyond the first missing response another may be. This exceeds the commands and functions that a session has
/// outstanding on one lane, and bounds the memory that a wild StatSN can claim.
const STATUSES_MAX: u32 = 8192;

/// The state of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Response {
    Missing,
    /// It has arrived, and must not be acknowledged before its command's data has (§7.9).
    Held,
    Here,
}

/// Missing responses: the StatSN of the first, and how many.
pub(super) type Gap = (StatSn, u32);

/// The responses on one lane, by their numbers.
#[derive(Debug)]
pub(super) struct StatusSequence {
    /// The StatSN of the first response that cannot be acknowledged.
    next: StatSn,
    /// The responses from `next` on that are known to have been sent.
    known: VecDeque<Response>,
    /// The ExpStatSN that the target has, or will have when the queued PDUs arrive.
    acknowledged: StatSn,
    /// The last request for the missing responses.
    pub(super) asked: Option<Ask>,
}

impl StatusSequence {
    pub(super) fn new(first: StatSn) -> Self {
        Self { next: first, known: VecDeque::new(), acknowledged: first, asked: None }
    }

    /// Takes the StatSN of a response at error recovery level 0, where none is ever sent again (§7.9).
    pub(super) fn receive_in_order(&mut self, stat_sn: StatSn) -> Result<(), Fault> {
        if stat_sn != self.next {
            return Err(PeerFault::StatSnOutOfOrder.into());
        }
        self.next = stat_sn.next();
        Ok(())
    }

    /// Takes the StatSN of a response. A response that `is_held` is not acknowledged before [`Self::release`].
    pub(super) fn receive(&mut self, stat_sn: StatSn, is_held: bool) -> Result<Arrival, Fault> {
        if stat_sn.precedes(self.next) {
            return Ok(Arrival::Repeated);
        }
        self.extend(stat_sn.next())?;
        let response = if is_held { Response::Held } else { Response::Here };
        let arrival = match self.get_mut(stat_sn) {
            Some(missing) if *missing == Response::Missing => {
                *missing = response;
                Arrival::New
            }
            _ => Arrival::Repeated,
        };
        self.advance();
        Ok(arrival)
    }

    /// Notes that all responses before `next` have been sent; returns the missing ones that were not known to have
    /// been.
    pub(super) fn told(&mut self, next: StatSn) -> Result<Option<Gap>, Fault> {
        let known = u32::try_from(self.known.len()).unwrap_or(STATUSES_MAX);
        let begin = self.next.plus(known);
        if !begin.precedes(next) {
            return Ok(None);
        }
        self.extend(next)?;
        Ok(Some((begin, next.distance_from(begin))))
    }

    fn extend(&mut self, end: StatSn) -> Result<(), Fault> {
        let count = end.distance_from(self.next);
        if count > STATUSES_MAX {
            return Err(Fault::Limit("responses beyond a missing one"));
        }
        if count as usize > self.known.len() {
            self.known.resize(count as usize, Response::Missing);
        }
        Ok(())
    }

    /// Lets a held response be acknowledged, because its command is complete.
    pub(super) fn release(&mut self, stat_sn: StatSn) {
        if let Some(response) = self.get_mut(stat_sn).filter(|response| **response == Response::Held) {
            *response = Response::Here;
        }
        self.advance();
    }

    fn get_mut(&mut self, stat_sn: StatSn) -> Option<&mut Response> {
        self.known.get_mut(stat_sn.distance_from(self.next) as usize)
    }

    fn advance(&mut self) {
        while self.known.front() == Some(&Response::Here) {
            self.known.pop_front();
            self.next = self.next.next();
        }
    }

    /// The gaps: responses that were sent and have not arrived.
    pub(super) fn gaps(&self) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        let missing = self.known.iter().zip(0..).filter(|(response, _)| **response == Response::Missing);
        for stat_sn in missing.map(|(_, index)| self.next.plus(index)) {
            match gaps.last_mut() {
                Some((begin, count)) if begin.plus(*count) == stat_sn => *count += 1,
                _ => gaps.push((stat_sn, 1)),
            }
        }
        gaps
    }

    /// Whether this response was sent and has not arrived.
    pub(super) fn is_missing(&self, stat_sn: StatSn) -> bool {
        self.known.get(stat_sn.distance_from(self.next) as usize) == Some(&Response::Missing)
    }

    pub(super) fn has_gaps(&self) -> bool {
        self.known.contains(&Response::Missing)
    }

    /// How many responses have arrived that are not acknowledged, and could be.
    pub(super) fn owed(&self) -> u32 {
        self.next.distance_from(self.acknowledged)
    }

    /// The ExpStatSN for a PDU that is leaving or being queued. It counts as told.
    pub(super) fn acknowledge(&mut self) -> StatSn {
        self.acknowledged = self.next;
        self.next
    }

    /// The first response that cannot be acknowledged.
    pub(super) fn next(&self) -> StatSn {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u32) -> StatSn {
        StatSn(u32::MAX).plus(number)
    }

    #[test]
    fn what_was_skipped_is_missing_until_it_comes() {
        let mut sequence = StatusSequence::new(at(0));
        assert_eq!(sequence.told(at(3)), Ok(Some((at(0), 3))));
        assert_eq!(sequence.receive(at(1), false), Ok(Arrival::New));
        assert_eq!(sequence.gaps(), [(at(0), 1), (at(2), 1)]);
        assert_eq!(sequence.acknowledge(), at(0));
        assert_eq!(sequence.receive(at(0), false), Ok(Arrival::New));
        assert_eq!(sequence.acknowledge(), at(2));
        assert_eq!(sequence.receive(at(1), false), Ok(Arrival::Repeated));
        assert_eq!(sequence.receive(at(2), false), Ok(Arrival::New));
        assert!(!sequence.has_gaps());
        assert_eq!(sequence.acknowledge(), at(3));
    }

    #[test]
    fn a_held_response_is_not_acknowledged_and_not_missing() {
        let mut sequence = StatusSequence::new(at(0));
        assert_eq!(sequence.receive(at(0), true), Ok(Arrival::New));
        assert_eq!(sequence.receive(at(0), true), Ok(Arrival::Repeated));
        assert_eq!(sequence.receive(at(1), false), Ok(Arrival::New));
        assert_eq!((sequence.gaps(), sequence.acknowledge()), (vec![], at(0)));
        sequence.release(at(0));
        assert_eq!(sequence.acknowledge(), at(2));
    }

    #[test]
    fn a_wild_number_is_refused() {
        let mut sequence = StatusSequence::new(at(0));
        assert!(sequence.receive(at(STATUSES_MAX), false).is_err());
        assert!(sequence.told(at(STATUSES_MAX + 1)).is_err());
        assert_eq!(sequence.receive(at(STATUSES_MAX - 1), false), Ok(Arrival::New));
    }
}
