//! Keeps a task's Data-In and R2Ts until their numbers are acknowledged, because the initiator may ask for them again
//! (RFC 7143 §7.1.3, §11.16). Error recovery level 1 and above.

use super::event::{Event, Response, TaskId};
use super::session::Session;
use super::task::{Answer, Stage};
use crate::seam::{Payload, PayloadRef};
use pdu::{Instant, Ttt};
use std::collections::VecDeque;

/// The most R2Ts that a task remembers. The largest write in usual bursts has a few dozen, and an initiator does not
/// ask again for R2Ts that it has answered.
const R2TS_MAX: usize = 1024;

/// A PDU that took a DataSN or an R2TSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    DataIn(SentData),
    R2t(SentR2t),
}

/// A Data-In PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentData {
    pub(super) offset: u32,
    pub(super) bytes: u32,
    pub(super) final_: bool,
    /// The tag that goes with the A bit, if the PDU has it.
    pub(super) acknowledge: Option<Ttt>,
}

/// A Ready To Transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentR2t {
    pub(super) ttt: Ttt,
    pub(super) offset: u32,
    pub(super) bytes: u32,
}

/// A piece of the command's data as the driver handed it over.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) offset: u32,
    pub(super) payload: Payload,
}

impl Piece {
    pub(super) fn bytes(&self) -> u32 {
        u32::try_from(self.payload.bytes()).unwrap_or(u32::MAX)
    }

    pub(super) fn end(&self) -> u32 {
        self.offset.saturating_add(self.bytes())
    }

    /// A part of the piece, by its offset in the command's data.
    pub(super) fn part(&self, offset: u32, bytes: u32) -> Option<Payload> {
        let start = offset.checked_sub(self.offset)?;
        let end = start.checked_add(bytes)?;
        if end > self.bytes() {
            return None;
        }
        match &self.payload {
            Payload::Buffer(PayloadRef { buffer, offset_bytes, .. }) => {
                let part = PayloadRef { buffer: *buffer, offset_bytes: offset_bytes + start, bytes };
                Some(Payload::Buffer(part))
            }
            Payload::Inline(data) => Some(Payload::Inline(data.get(start as usize..end as usize)?.to_vec())),
            Payload::None => None,
        }
    }
}

/// Why a PDU cannot be sent again (§11.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotKept {
    /// The PDU was never sent, or is acknowledged.
    NoSuchPdu,
    /// The PDU's data was dropped, because the initiator did not acknowledge it in time.
    Forgotten,
}

/// The PDUs and data that one task keeps.
#[derive(Debug, Default)]
pub(super) struct Retention {
    /// The data acknowledgement reference number (§11.5.6).
    acknowledged_sn: u32,
    /// The number of the first of `sent`. PDUs between `acknowledged_sn` and this were forgotten.
    first_sn: u32,
    sent: VecDeque<Sent>,
    /// The data that was sent, in order. The number is the session's count of pieces, which orders pieces of all tasks.
    pieces: VecDeque<(u64, Piece)>,
    /// The tags of unanswered A bits, oldest first.
    asked: VecDeque<Ttt>,
    /// Whether the initiator has asked for some of it again.
    is_missed: bool,
    /// Whether the task keeps nothing, because there is no room.
    is_forgone: bool,
}

impl Retention {
    /// Records a PDU under the next number.
    pub(super) fn note(&mut self, pdu: Sent) {
        if let Sent::DataIn(SentData { acknowledge: Some(ttt), .. }) = pdu {
            self.asked.push_back(ttt);
        }
        self.sent.push_back(pdu);
        while self.sent.len() > R2TS_MAX && matches!(self.sent.front(), Some(Sent::R2t(_))) {
            self.sent.pop_front();
            self.first_sn = self.first_sn.wrapping_add(1);
            self.acknowledged_sn = self.first_sn;
        }
    }

    /// Keeps a piece that was sent whole; `number` is its place among the session's pieces.
    pub(super) fn keep(&mut self, number: u64, piece: Piece) {
        self.pieces.push_back((number, piece));
    }

    /// Notes that the initiator has asked for some of it again.
    pub(super) fn miss(&mut self) {
        self.is_missed = true;
    }

    /// Whether the initiator has asked for some of it again.
    pub(super) fn is_missed(&self) -> bool {
        self.is_missed
    }

    pub(super) fn is_forgone(&self) -> bool {
        self.is_forgone
    }

    /// The number of the oldest piece.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.pieces.front().map(|(number, _)| *number)
    }

    /// The first number that is not acknowledged.
    pub(super) fn acknowledged_sn(&self) -> u32 {
        self.acknowledged_sn
    }

    /// Whether a Data-In with this tag asked for a DataACK.
    pub(super) fn awaits(&self, ttt: Ttt) -> bool {
        self.asked.contains(&ttt)
    }

    /// The number that the next PDU will have.
    pub(super) fn next_sn(&self) -> u32 {
        self.first_sn.wrapping_add(u32::try_from(self.sent.len()).unwrap_or(u32::MAX))
    }

    /// The PDU numbers of a requested run (§11.16). A `count` of 0 means all from `begin` on; 0 for both means all that
    /// are not acknowledged.
    pub(super) fn run(&self, begin: u32, count: u32) -> Result<core::ops::Range<u32>, NotKept> {
        let begin = if begin == 0 && count == 0 { self.acknowledged_sn } else { begin };
        let next = self.next_sn();
        let end = if count == 0 { Some(next) } else { begin.checked_add(count) };
        match end {
            Some(end) if begin >= self.acknowledged_sn && begin <= end && end <= next => {
                if begin < self.first_sn { Err(NotKept::Forgotten) } else { Ok(begin..end) }
            }
            _ => Err(NotKept::NoSuchPdu),
        }
    }

    /// The PDU of a number.
    pub(super) fn pdu(&self, sn: u32) -> Option<Sent> {
        self.sent.get(sn.checked_sub(self.first_sn)? as usize).copied()
    }

    /// Data that was sent, if the piece that holds it is kept.
    pub(super) fn data(&self, offset: u32, bytes: u32) -> Option<Payload> {
        let index = self.pieces.partition_point(|(_, piece)| piece.end() <= offset);
        self.pieces.get(index)?.1.part(offset, bytes)
    }

    /// Notes that all PDUs before `next` have arrived. Returns the pieces that are no longer needed.
    pub(super) fn acknowledge(&mut self, next: u32, sent_bytes: u32) -> Vec<Piece> {
        if next <= self.acknowledged_sn || next > self.next_sn() {
            return Vec::new();
        }
        self.acknowledged_sn = next;
        while self.first_sn < next {
            if let Some(Sent::DataIn(SentData { acknowledge: Some(ttt), .. })) = self.sent.pop_front() {
                self.asked.retain(|asked| *asked != ttt);
            }
            self.first_sn += 1;
        }
        let needed_from = self.first_offset().unwrap_or(sent_bytes);
        let needless = self.pieces.partition_point(|(_, piece)| piece.end() <= needed_from);
        self.pieces.drain(..needless).map(|(_, piece)| piece).collect()
    }

    /// Drops the oldest piece, and with it the PDUs that carried it.
    pub(super) fn forget_oldest(&mut self) -> Option<Piece> {
        let (_, piece) = self.pieces.pop_front()?;
        while let Some(first) = self.sent.front() {
            if matches!(first, Sent::DataIn(data) if data.offset >= piece.end()) {
                break;
            }
            self.sent.pop_front();
            self.first_sn += 1;
        }
        Some(piece)
    }

    /// Whether some unacknowledged PDUs from `from_sn` on cannot be sent again.
    pub(super) fn has_gap(&self, from_sn: u32) -> bool {
        from_sn < self.first_sn
    }

    /// Forgets the PDUs from `sn` on, whose data will be cut anew. Returns the offset at which that data begins, if
    /// there is any, and the pieces from there on.
    pub(super) fn rewind(&mut self, sn: u32) -> (Option<u32>, Vec<Piece>) {
        let kept = sn.saturating_sub(self.first_sn) as usize;
        let dropped: Vec<Sent> = self.sent.drain(kept.min(self.sent.len())..).collect();
        self.asked.clear();
        let offset = dropped.iter().find_map(|sent| match sent {
            Sent::DataIn(data) => Some(data.offset),
            Sent::R2t(_) => None,
        });
        let Some(start) = offset else { return (None, Vec::new()) };
        let before = self.pieces.partition_point(|(_, piece)| piece.end() <= start);
        (offset, self.pieces.drain(before..).map(|(_, piece)| piece).collect())
    }

    /// Gives up everything.
    pub(super) fn clear(&mut self) -> Vec<Piece> {
        self.asked.clear();
        self.first_sn = self.next_sn();
        self.sent.clear();
        self.pieces.drain(..).map(|(_, piece)| piece).collect()
    }

    fn first_offset(&self) -> Option<u32> {
        self.sent.iter().find_map(|sent| match sent {
            Sent::DataIn(data) => Some(data.offset),
            Sent::R2t(_) => None,
        })
    }
}

impl Session {
    /// Whether this session can send anything again.
    pub(super) fn retransmits(&self) -> bool {
        self.parameters.error_recovery_level > 0
    }

    /// Notes that the initiator has all Data-In and R2Ts of a task before this number.
    pub(super) fn acknowledge_data(&mut self, id: TaskId, next_sn: u32) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let pieces = task.data_in.acknowledge(next_sn);
        self.release_retained(pieces);
    }

    /// Gives kept pieces back to the driver.
    pub(super) fn release_retained(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            self.retained_bytes = self.retained_bytes.saturating_sub(piece.bytes() as usize);
            if let Payload::Buffer(payload) = piece.payload {
                self.events.push_back(Event::Release(payload.buffer));
            }
        }
    }

    /// Keeps the retained data within its limit: asks for acknowledgements in good time, and drops the oldest data when
    /// none come.
    ///
    /// Sending does not wait for acknowledgements. The retained amount would then limit every read on a long path. A
    /// read that is sent in part may also not ask for an acknowledgement before MaxBurstLength (§11.7.2), so many reads
    /// could wait for each other. Nor is data read from the medium again: another write may have changed it, even
    /// within a block of which the initiator has half, and a PDU that is sent again must be the same (§11.16). If the
    /// initiator needs data that was dropped, its read ends with an error, and it must read all of it again (§7.8 a.1).
    pub(super) fn bound_retention(&mut self, now: Instant) {
        let bound = self.limits.retained_bytes_max as usize;
        if self.retained_bytes <= bound / 2 {
            return;
        }
        let lanes: Vec<_> = self.open_lanes().collect();
        for lane in lanes {
            self.solicit_acknowledgement(now, lane);
        }
        while self.retained_bytes > bound {
            let piece = self.least_needed().and_then(|id| self.tasks.get_mut(id)?.data_in.forget_oldest());
            let Some(piece) = piece else { return };
            self.release_retained(vec![piece]);
        }
    }

    /// Drops the retained Data-In of a task, and keeps no more of it. A driver calls this if other tasks could not go
    /// on otherwise. If the initiator needs the data again, the command ends with an error.
    pub fn forgo_retention(&mut self, task: TaskId) {
        let state = self.tasks.get_mut(task);
        if let Some(retention) = state.and_then(|state| state.data_in.retention_mut()) {
            retention.is_forgone = true;
            self.forget_sent(task);
        }
    }

    /// Drops the retained Data-In of a task.
    pub(super) fn forget_sent(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let pieces = core::iter::from_fn(|| task.data_in.forget_oldest()).collect();
        self.release_retained(pieces);
    }

    /// The task whose data is dropped first. The oldest data on a live lane has most likely arrived, with its
    /// acknowledgement on the way. Data of which the initiator has missed some goes later, and so does data of lost
    /// lanes, because the initiator will ask for it on another lane.
    fn least_needed(&self) -> Option<TaskId> {
        let kept = self.tasks.iter().filter_map(|(id, task)| {
            let retention = task.data_in.retention()?;
            let is_needed = retention.is_missed() || self.departed.has(task.route.response);
            Some((is_needed, retention.oldest()?, id))
        });
        kept.min().map(|(.., id)| id)
    }

    /// Fails a read whose data the initiator needs again after it was dropped, unless its status has been sent (§7.8
    /// a.1).
    pub(super) fn fail_read(&mut self, now: Instant, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let given_up = task.data_in.give_up();
        match task.stage {
            Stage::Responded(_) => {}
            Stage::Ended(answer) => {
                task.response = Some(Response::snack_rejected());
                if answer == Answer::Ready {
                    self.queue_response(id);
                }
            }
            Stage::Waiting | Stage::Executing => {
                if task.failure.replace(Response::snack_rejected()).is_none() {
                    self.events.push_back(Event::Aborted { task: id });
                }
            }
        }
        self.release_retained(given_up.kept);
        self.events.extend(given_up.unsent.into_iter().map(Event::Release));
        self.settle(now, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(offset: u32, bytes: u32) -> Sent {
        Sent::DataIn(SentData { offset, bytes, final_: false, acknowledge: None })
    }

    fn piece(offset: u32, bytes: usize) -> Piece {
        Piece { offset, payload: Payload::Inline(vec![7; bytes]) }
    }

    /// Two pieces of 100 bytes, sent in PDUs of 50.
    fn sent() -> Retention {
        let mut retention = Retention::default();
        for number in 0..4 {
            retention.note(data(number * 50, 50));
        }
        retention.keep(1, piece(0, 100));
        retention.keep(2, piece(100, 100));
        retention
    }

    #[test]
    fn runs_are_of_what_was_sent_and_is_not_acknowledged() {
        let mut retention = sent();
        assert_eq!(retention.run(0, 0), Ok(0..4));
        assert_eq!(retention.run(2, 0), Ok(2..4));
        assert_eq!(retention.run(1, 2), Ok(1..3));
        assert_eq!(retention.run(3, 2), Err(NotKept::NoSuchPdu));
        assert_eq!(retention.run(u32::MAX, 2), Err(NotKept::NoSuchPdu));
        assert_eq!(retention.run(5, 0), Err(NotKept::NoSuchPdu));
        retention.acknowledge(2, 200);
        assert_eq!(retention.run(1, 1), Err(NotKept::NoSuchPdu));
        assert_eq!(retention.run(0, 0), Ok(2..4));
    }

    #[test]
    fn a_piece_is_kept_until_its_last_pdu_is_acknowledged() {
        let mut retention = sent();
        assert_eq!(retention.acknowledge(1, 200).len(), 0);
        assert_eq!(retention.oldest(), Some(1));
        assert_eq!(retention.acknowledge(2, 200).len(), 1);
        assert_eq!(retention.acknowledge(4, 200).len(), 1);
        assert_eq!(retention.oldest(), None);
        assert_eq!(retention.acknowledge(9, 200).len(), 0);
    }

    #[test]
    fn what_was_forgotten_is_told_from_what_never_was() {
        let mut retention = sent();
        retention.forget_oldest();
        assert_eq!(retention.run(0, 0), Err(NotKept::Forgotten));
        assert_eq!(retention.run(1, 1), Err(NotKept::Forgotten));
        assert_eq!(retention.run(2, 1), Ok(2..3));
        assert!(retention.has_gap(1) && !retention.has_gap(2));
    }

    #[test]
    fn after_a_rewind_the_data_is_there_to_be_cut_anew() {
        let mut retention = sent();
        let (offset, pieces) = retention.rewind(1);
        assert_eq!((offset, pieces.len()), (Some(50), 2));
        assert_eq!(retention.next_sn(), 1);
        let (offset, pieces) = retention.rewind(1);
        assert_eq!((offset, pieces.len()), (None, 0));
    }
}
