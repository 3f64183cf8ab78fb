//! Data-Out: a write's data, unsolicited or solicited, goes straight into its buffer (RFC 7143 §11.7).

use super::event::{DataOut as Complete, Event, Response, TaskId};
use super::request::Content;
use super::session::Session;
use super::task::{Stage, Task};
use crate::inflow::Turn;
use crate::peer_fault::PeerFault;
use crate::seam::{Allocation, Destination, Fault, PayloadRef};
use pdu::{DataSn, Header, Instant, LaneId, Ttt};
use std::collections::VecDeque;

/// Data PDUs that belong together: the unsolicited ones, or the answer to one R2T.
#[derive(Debug)]
pub(super) struct Sequence {
    /// The R2T's tag; [`Ttt::NONE`] for unsolicited data.
    pub(super) ttt: Ttt,
    /// The sequence's offset in the command's data.
    pub(super) offset: u32,
    /// The sequence's length in bytes.
    pub(super) bytes: u32,
    /// Bytes of the sequence that have passed.
    received: u32,
    pub(super) next_data_sn: DataSn,
    /// Whether the R2T has been pulled, so that the initiator can know of the sequence.
    pub(super) is_open: bool,
    /// The late sequence whose rest this one requests again. The first of the two to complete cancels the other.
    pub(super) replaces: Option<Ttt>,
}

/// Data that was lost and has not been requested again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) offset: u32,
    pub(super) bytes: u32,
}

impl Sequence {
    pub(super) fn unsolicited(offset: u32, bytes: u32) -> Self {
        Self { is_open: true, ..Self::solicited(offset, bytes) }
    }

    /// The answer to an R2T that has no tag yet.
    pub(super) fn solicited(offset: u32, bytes: u32) -> Self {
        Self {
            ttt: Ttt::NONE,
            offset,
            bytes,
            received: 0,
            next_data_sn: DataSn(0),
            is_open: false,
            replaces: None,
        }
    }

    pub(super) fn named(self, ttt: Ttt) -> Self {
        Self { ttt, ..self }
    }

    /// A new sequence that requests the rest of this one again.
    pub(super) fn again(&self) -> Self {
        let (offset, bytes) = self.rest();
        Self { replaces: Some(self.ttt), ..Self::solicited(offset, bytes) }
    }

    /// Offset and length of the data that has not come.
    pub(super) fn rest(&self) -> (u32, u32) {
        (self.offset + self.received, self.bytes - self.received)
    }

    /// Skips lost data; the next PDU has this number.
    pub(super) fn skip(&mut self, bytes: u32, data_sn: DataSn) {
        self.received += bytes;
        self.next_data_sn = data_sn;
    }

    /// Checks that a PDU is the next of its sequence. DataPDUInOrder is always Yes, because this target insists on it
    /// (§13.18).
    fn check(&self, pdu: &pdu::DataOut) -> Result<(), PeerFault> {
        let left = self.bytes - self.received;
        if pdu.buffer_offset != self.offset + self.received {
            Err(PeerFault::DataOutOffset)
        } else if pdu.data_segment_bytes > left {
            Err(PeerFault::DataOutTooLong)
        } else if pdu.final_ && pdu.data_segment_bytes < left {
            Err(PeerFault::DataOutTooShort)
        } else {
            Ok(())
        }
    }
}

/// A task's Data-Out.
#[derive(Debug)]
pub(super) struct DataOut {
    /// Announced by the command.
    pub(super) expected_bytes: u32,
    pub(super) buffer: Option<Allocation>,
    /// The sequences that the initiator owes: unsolicited data first, then one for each R2T.
    pub(super) sequences: VecDeque<Sequence>,
    /// Bytes that the driver wants, counted from the start of the data.
    pub(super) wanted: Option<u32>,
    /// Bytes that were requested or come unsolicited, counted from the start of the data.
    pub(super) asked_bytes: u32,
    /// The number of data segments that are arriving in the buffer now.
    pub(super) arriving: u32,
    /// The DataSN of a later PDU revealed a lost one: the task cannot succeed. Only at error recovery level 0.
    pub(super) is_damaged: bool,
    /// The lost ranges that must be requested again.
    pub(super) holes: VecDeque<Hole>,
    /// When data last came or was last requested.
    pub(super) heard: Instant,
    /// How much data its lane must have brought before it counts as lost.
    pub(super) turn: Turn,
    /// How often it has timed out since.
    pub(super) timeouts: u32,
    /// How many recovery R2Ts were sent.
    pub(super) recoveries: u32,
}

/// A Data-Out PDU whose data segment is arriving.
#[derive(Debug)]
pub(super) struct Arriving {
    pub(super) task: TaskId,
    ttt: Ttt,
    pub(super) offset: u32,
    pub(super) bytes: u32,
    is_final: bool,
    /// Whether the data goes into the buffer.
    is_placed: bool,
}

impl DataOut {
    pub(super) fn new(now: Instant, expected_bytes: u32, unsolicited_end: u32) -> Self {
        Self {
            expected_bytes,
            buffer: None,
            sequences: VecDeque::new(),
            wanted: None,
            asked_bytes: unsolicited_end,
            arriving: 0,
            is_damaged: false,
            holes: VecDeque::new(),
            heard: now,
            turn: Turn::default(),
            timeouts: 0,
            recoveries: 0,
        }
    }

    /// Whether the initiator still owes data.
    pub(super) fn is_owed(&self) -> bool {
        !self.sequences.is_empty()
    }

    /// Bytes that the initiator has been asked for and has not sent.
    pub(super) fn owed_bytes(&self) -> u64 {
        let open = self.sequences.iter().filter(|sequence| sequence.is_open);
        open.map(|sequence| u64::from(sequence.rest().1)).sum()
    }

    /// R2Ts that have not been answered in full.
    pub(super) fn r2ts_outstanding(&self) -> usize {
        let is_counted = |sequence: &&Sequence| sequence.ttt.is_some() && sequence.replaces.is_none();
        self.sequences.iter().filter(is_counted).count()
    }

    /// Drops the R2Ts that have not been pulled: the initiator owes nothing for them.
    pub(super) fn withdraw_unsent(&mut self) {
        self.sequences.retain(|sequence| sequence.is_open);
        self.holes.clear();
    }

    /// Whether the buffer holds all bytes that the driver wants.
    fn has_all_wanted(&self) -> bool {
        let Some(wanted) = self.wanted else { return false };
        self.asked_bytes >= wanted
            && self.sequences.iter().all(|sequence| sequence.offset + sequence.received >= wanted)
            && self.holes.iter().all(|hole| hole.offset >= wanted)
    }

    pub(super) fn find(&mut self, ttt: Ttt) -> Option<&mut Sequence> {
        self.sequences.iter_mut().find(|sequence| sequence.ttt == ttt && sequence.is_open)
    }

    /// Ends a complete sequence, and with it the one that it replaces or that replaces it.
    fn complete(&mut self, ttt: Ttt) {
        let replaced = self.find(ttt).and_then(|sequence| sequence.replaces);
        self.sequences.retain(|sequence| {
            sequence.ttt != ttt && Some(sequence.ttt) != replaced && sequence.replaces != Some(ttt)
        });
    }
}

impl Session {
    pub(super) fn receive_data_out(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        pdu: &pdu::DataOut,
    ) -> Result<Destination, Fault> {
        // Data of a command that was ignored, rejected or aborted may still arrive. It is discarded.
        let Some((id, task)) = self.tasks.find(pdu.itt).and_then(|id| Some((id, self.tasks.get_mut(id)?)))
        else {
            return Ok(self.discard_data(lane, header));
        };
        // The task has lost the other lane of its route.
        if self.departed.has(task.route.request) {
            return Ok(self.discard_data(lane, header));
        }
        if task.route.request != lane {
            return self.refuse_fault(lane, header, PeerFault::DataOutElsewhere);
        }
        task.data_out.hear(now);
        let is_damaged = task.data_out.is_damaged;
        let is_other_lun = pdu.ttt.is_some() && pdu.lun != task.lun;
        let Some(sequence) = task.data_out.find(pdu.ttt).filter(|_| !is_other_lun) else {
            // Late data of a sequence that was requested again is no fault.
            if self.retransmits() && !is_other_lun {
                return Ok(self.discard_data(lane, header));
            }
            return self.refuse_fault(lane, header, PeerFault::DataOutUnasked);
        };
        let is_lost = pdu.data_sn != sequence.next_data_sn;
        if self.retransmits() {
            self.miss_earlier(now, id, pdu.ttt);
            if is_lost && !self.skip_lost(now, id, pdu) {
                return Ok(self.discard_data(lane, header));
            }
        } else if is_lost || is_damaged {
            self.lose_data_out(now, id, pdu);
            return Ok(self.discard_data(lane, header));
        }
        let Some(task) = self.tasks.get_mut(id) else { return Ok(self.discard_data(lane, header)) };
        let Some(sequence) = task.data_out.find(pdu.ttt) else { return Ok(self.discard_data(lane, header)) };
        if let Err(fault) = sequence.check(pdu) {
            return self.refuse_fault(lane, header, fault);
        }
        let arriving = place(task, id, pdu);
        let buffer = task.data_out.buffer;
        let bytes = pdu.data_segment_bytes;
        if bytes == 0 {
            self.take_data_out(now, &arriving);
            return Ok(Destination::None);
        }
        let is_placed = arriving.is_placed;
        self.await_data(lane, header, Content::DataOut(arriving));
        Ok(match buffer {
            Some(Allocation { buffer, .. }) if is_placed => {
                Destination::Buffer(PayloadRef { buffer, offset_bytes: pdu.buffer_offset, bytes })
            }
            _ => Destination::Discard { bytes },
        })
    }

    /// Notes, at error recovery level 0, that data before this PDU was lost. The task ends with PROTOCOL SERVICE CRC
    /// ERROR once the initiator has sent everything that it owes (RFC 7143 §7.8, §7.9).
    fn lose_data_out(&mut self, now: Instant, id: TaskId, pdu: &pdu::DataOut) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        if pdu.final_ {
            task.data_out.sequences.retain(|sequence| sequence.ttt != pdu.ttt);
        }
        if !core::mem::replace(&mut task.data_out.is_damaged, true) && !task.silent {
            match task.stage {
                Stage::Waiting => task.response = Some(Response::data_lost()),
                Stage::Executing => self.events.push_back(Event::Aborted { task: id }),
                Stage::Ended(_) | Stage::Responded(_) => {}
            }
        }
        self.settle(now, id);
    }

    /// Takes a PDU whose data is in place.
    pub(super) fn take_data_out(&mut self, now: Instant, arriving: &Arriving) {
        let Some(task) = self.tasks.get_mut(arriving.task) else { return };
        let data_out = &mut task.data_out;
        if arriving.is_placed {
            data_out.arriving -= 1;
            self.counters.data_out_bytes += u64::from(arriving.bytes);
        } else {
            self.counters.discarded_bytes += u64::from(arriving.bytes);
        }
        self.pass_data_out(now, arriving);
    }

    /// Counts a PDU of a sequence, whether its data was good or lost.
    pub(super) fn pass_data_out(&mut self, now: Instant, arriving: &Arriving) {
        let Some(task) = self.tasks.get_mut(arriving.task) else { return };
        let data_out = &mut task.data_out;
        // The sequence is gone if the task was aborted in the meantime.
        if let Some(sequence) = data_out.find(arriving.ttt) {
            sequence.received += arriving.bytes;
            sequence.next_data_sn = sequence.next_data_sn.next();
        }
        if arriving.is_final {
            data_out.complete(arriving.ttt);
        }
        self.go_on_with_data_out(now, arriving.task);
    }

    /// Forgets a PDU whose lane was lost while its data was arriving.
    pub(super) fn abandon_data_out(&mut self, arriving: &Arriving) {
        if let Some(task) = self.tasks.get_mut(arriving.task)
            && arriving.is_placed
        {
            task.data_out.arriving -= 1;
        }
    }

    /// Requests more data, reports that all data is there, or ends a task that only waited for its last data to pass.
    pub(super) fn go_on_with_data_out(&mut self, now: Instant, id: TaskId) {
        self.ask_for_data(now, id);
        let Some(task) = self.tasks.get_mut(id) else { return };
        let is_sound = !task.silent && !task.data_out.is_damaged && task.failure.is_none();
        if task.stage == Stage::Executing && is_sound && task.data_out.has_all_wanted() {
            let bytes = task.data_out.wanted.take().unwrap_or_default();
            let buffer = task.data_out.buffer.map(|allocation| allocation.buffer).filter(|_| bytes > 0);
            self.events.push_back(Event::DataOut(Complete { task: id, buffer, bytes }));
        }
        self.settle(now, id);
    }
}

/// The destination of a PDU's data: the buffer, unless nobody can want the data any more.
fn place(task: &mut Task, id: TaskId, pdu: &pdu::DataOut) -> Arriving {
    let end = pdu.buffer_offset.saturating_add(pdu.data_segment_bytes);
    let fits = task.data_out.buffer.is_some_and(|buffer| end <= buffer.bytes);
    let is_placed = fits && !task.silent && !task.stage.is_ended() && pdu.data_segment_bytes > 0;
    if is_placed {
        task.data_out.arriving += 1;
    }
    Arriving {
        task: id,
        ttt: pdu.ttt,
        offset: pdu.buffer_offset,
        bytes: pdu.data_segment_bytes,
        is_final: pdu.final_,
        is_placed,
    }
}
