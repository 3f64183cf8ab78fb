//! PDUs of one task that are numbered (DataSN, R2TSN), each with what it said when it was sent first.
//!
//! "The target MUST be able to retransmit" them (RFC 7143 §7.1.3), which means: the same again, under the same number
//! (§11.16.1).

use pdu::Ttt;

/// What is the same whenever the PDU is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    pub offset_bytes: u32,
    pub bytes: u32,
    pub final_: bool,
    pub tag: Ttt,
}

impl Numbered {
    pub fn end_bytes(&self) -> u32 {
        self.offset_bytes.saturating_add(self.bytes)
    }
}

/// What sending a PDU was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    First,
    Again,
}

/// All that one task has sent.
#[derive(Debug, Default)]
pub(super) struct NumberedPdus {
    sent: Vec<Numbered>,
    /// After a reassignment, which of them is to be sent next.
    resumes_at: Option<u32>,
}

impl NumberedPdus {
    /// The number of the next that is sent for the first time.
    pub fn next(&self) -> u32 {
        u32::try_from(self.sent.len()).unwrap_or(u32::MAX)
    }

    /// Where the data of the last ends.
    pub fn end_bytes(&self) -> u32 {
        self.sent.last().map_or(0, Numbered::end_bytes)
    }

    /// Where the data of the last begins, if it follows on what was sent before.
    pub fn before_last_bytes(&self) -> u32 {
        let before = self.sent.len().checked_sub(2).and_then(|before| self.sent.get(before));
        before.map_or(0, Numbered::end_bytes)
    }

    /// The task goes on elsewhere, from number `at` on; how its data is cut there is open.
    pub fn resume(&mut self, at: u32) {
        self.resumes_at = Some(at.min(self.next()));
    }

    /// Notes a PDU.
    ///
    /// # Errors
    /// A number was left out, or what is sent again is not what was sent before.
    pub fn send(&mut self, number: u32, pdu: Numbered) -> Result<Sending, String> {
        if let Some(at) = self.resumes_at.take() {
            if number != at {
                return Err(format!("number {number} where a reassigned task goes on at {at}"));
            }
            self.sent.truncate(usize::try_from(at).unwrap_or(usize::MAX));
        }
        let known = usize::try_from(number).ok().and_then(|number| self.sent.get(number));
        match known {
            Some(known) if *known == pdu => Ok(Sending::Again),
            Some(known) => Err(format!("number {number} is {pdu:?} and was {known:?}")),
            None if number == self.next() => {
                self.sent.push(pdu);
                Ok(Sending::First)
            }
            None => Err(format!("number {number} where {} is due", self.next())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset_bytes: u32) -> Numbered {
        Numbered { offset_bytes, bytes: 8, final_: false, tag: Ttt::NONE }
    }

    fn sent(numbers: u32) -> NumberedPdus {
        let mut pdus = NumberedPdus::default();
        for number in 0..numbers {
            assert_eq!(pdus.send(number, piece(number * 8)), Ok(Sending::First));
        }
        pdus
    }

    #[test]
    fn what_is_sent_again_is_the_same_again() {
        let mut pdus = sent(3);
        assert_eq!(pdus.send(1, piece(8)), Ok(Sending::Again));
        assert!(pdus.send(1, piece(16)).is_err());
        assert!(pdus.send(4, piece(32)).is_err(), "a number was left out");
    }

    #[test]
    fn a_reassigned_task_goes_on_where_its_initiator_says() {
        let mut pdus = sent(3);
        pdus.resume(1);
        assert!(pdus.send(2, piece(16)).is_err());
        let mut pdus = sent(3);
        pdus.resume(1);
        assert_eq!(pdus.send(1, Numbered { bytes: 4, ..piece(8) }), Ok(Sending::First));
        assert_eq!(pdus.end_bytes(), 12);
    }
}
