//! Data-In: a read's data, cut to the lane's segments and the session's bursts (RFC 7143 §11.7).

use super::event::{Event, TaskId};
use super::lane::outlet;
use super::retention::{Piece, Retention, Sent, SentData};
use super::scsi_response::{is_collapsible, residuals};
use super::session::Session;
use super::task::{Stage, Task, Tasks};
use crate::lanes::TURN_BYTES;
use crate::seam::{Payload, PayloadRef, Transmit};
use pdu::{BufferId, CollapsedStatus, DataSn, Header, Instant, Itt, LaneId, Lun, Ttt, Window};
use std::collections::VecDeque;

/// The least that a task sends before it asks for a DataACK. Bursts may be shorter, but an acknowledgement costs a PDU
/// in each direction. The standard allows at most one per MaxBurstLength (RFC 7143 §11.7.2).
const ACKNOWLEDGED_BYTES_MIN: u32 = 256 << 10;

/// A task's Data-In.
#[derive(Debug)]
pub(super) struct DataIn {
    /// Bytes that the command announced.
    pub(super) expected_bytes: u32,
    /// Pieces that the driver handed over and that are not sent. The first may be sent in part.
    pieces: VecDeque<Payload>,
    /// Bytes of the first piece that have been sent.
    piece_sent_bytes: u32,
    /// Bytes that the driver has handed over.
    given_bytes: u32,
    /// Bytes that have been sent.
    sent_bytes: u32,
    /// Bytes that were sent since the last F bit.
    burst_bytes: u32,
    /// Bytes that were sent since the last A bit.
    unacknowledged_bytes: u32,
    /// The next DataSN. R2Ts of a bidirectional command share this numbering (§4.2.2.4).
    next_sn: u32,
    /// Whether the task is in its lane's queue.
    is_queued: bool,
    /// The record of what was sent, at error recovery level 1 and above.
    retention: Option<Box<Retention>>,
}

/// The payload that a task gives up.
#[derive(Debug, Default)]
pub(super) struct GivenUp {
    /// The buffers of pieces that were not sent.
    pub(super) unsent: Vec<BufferId>,
    /// The pieces that were kept to be sent again.
    pub(super) kept: Vec<Piece>,
}

impl DataIn {
    /// `retains` says that sent data is kept to be sent again.
    pub(super) fn new(expected_bytes: u32, retains: bool) -> Self {
        Self {
            expected_bytes,
            pieces: VecDeque::new(),
            piece_sent_bytes: 0,
            given_bytes: 0,
            sent_bytes: 0,
            burst_bytes: 0,
            unacknowledged_bytes: 0,
            next_sn: 0,
            is_queued: false,
            retention: retains.then(Box::default),
        }
    }

    /// Numbers a Data-In or R2T.
    pub(super) fn take_sn(&mut self, pdu: Sent) -> u32 {
        let sn = self.next_sn;
        self.next_sn = sn.wrapping_add(1);
        if let Some(retention) = &mut self.retention {
            retention.note(pdu);
        }
        sn
    }

    /// How many Data-In and R2T PDUs were sent.
    pub(super) fn sent_pdus(&self) -> u32 {
        self.next_sn
    }

    /// Whether everything handed over has been sent.
    pub(super) fn is_sent(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Notes that the task is in no lane's queue.
    pub(super) fn leave_queue(&mut self) {
        self.is_queued = false;
    }

    /// The record of what was sent, if it is kept.
    pub(super) fn retention(&self) -> Option<&Retention> {
        self.retention.as_deref()
    }

    pub(super) fn retention_mut(&mut self) -> Option<&mut Retention> {
        self.retention.as_deref_mut()
    }

    /// Notes that all PDUs before `next_sn` have arrived. Returns the pieces that need not be kept any more.
    pub(super) fn acknowledge(&mut self, next_sn: u32) -> Vec<Piece> {
        let sent_bytes = self.sent_bytes;
        self.retention.as_mut().map_or(Vec::new(), |retention| retention.acknowledge(next_sn, sent_bytes))
    }

    pub(super) fn forget_oldest(&mut self) -> Option<Piece> {
        self.retention.as_mut()?.forget_oldest()
    }

    /// Data that was sent, if it is still kept.
    pub(super) fn sent_data(&self, offset: u32, bytes: u32) -> Option<Payload> {
        let retained = self.retention.as_ref()?.data(offset, bytes);
        retained.or_else(|| {
            let payload = self.pieces.front()?.clone();
            Piece { offset: self.sent_bytes - self.piece_sent_bytes, payload }.part(offset, bytes)
        })
    }

    /// Takes back the PDUs from `sn` on, to cut and number their data anew. Returns how many kept bytes are to be sent
    /// again.
    pub(super) fn rewind(&mut self, sn: u32) -> u32 {
        let Some(retention) = &mut self.retention else { return 0 };
        let (offset, pieces) = retention.rewind(sn);
        let bytes = pieces.iter().map(Piece::bytes).fold(0, u32::saturating_add);
        self.next_sn = retention.next_sn();
        if let Some(offset) = offset {
            // The data begins in a piece that was sent whole, or in the first that was not.
            let first = self.sent_bytes - self.piece_sent_bytes;
            self.piece_sent_bytes = offset - pieces.first().map_or(first, |piece| piece.offset);
            self.sent_bytes = offset;
            for piece in pieces.into_iter().rev() {
                self.pieces.push_front(piece.payload);
            }
        }
        self.burst_bytes = 0;
        self.unacknowledged_bytes = 0;
        bytes
    }

    /// Gives up both the pieces that are not sent and those that are kept.
    pub(super) fn give_up(&mut self) -> GivenUp {
        let buffer = |piece| match piece {
            Payload::Buffer(payload) => Some(payload.buffer),
            Payload::Inline(_) | Payload::None => None,
        };
        self.piece_sent_bytes = 0;
        GivenUp {
            unsent: core::mem::take(&mut self.pieces).into_iter().filter_map(buffer).collect(),
            kept: self.retention.as_mut().map_or(Vec::new(), |retention| retention.clear()),
        }
    }

    /// The longest data segment that may come next.
    fn segment_bytes(&self, segment_bytes_max: u32, burst_bytes_max: u32, budget_bytes: u32) -> u32 {
        let left = self.pieces.front().map_or(0, Payload::bytes) - self.piece_sent_bytes as usize;
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let burst_left = burst_bytes_max.saturating_sub(self.burst_bytes);
        let bytes = left.min(segment_bytes_max).min(burst_left).min(budget_bytes);
        // A segment that is not the last is a multiple of four bytes (§11.7.7).
        if bytes < left && bytes >= 4 { bytes & !3 } else { bytes }
    }

    /// Takes the next `bytes` of the first piece. Returns the piece too if this was its end.
    fn take(&mut self, bytes: u32) -> (Payload, Option<Piece>) {
        let start = self.piece_sent_bytes;
        let piece_offset = self.sent_bytes - start;
        let Some(piece) = self.pieces.front_mut() else { return (Payload::None, None) };
        let is_whole = (start + bytes) as usize == piece.bytes();
        self.piece_sent_bytes = if is_whole { 0 } else { start + bytes };
        self.sent_bytes += bytes;
        self.burst_bytes += bytes;
        let payload = match piece {
            Payload::Buffer(PayloadRef { buffer, offset_bytes, .. }) => {
                Payload::Buffer(PayloadRef { buffer: *buffer, offset_bytes: *offset_bytes + start, bytes })
            }
            Payload::Inline(data) if is_whole && start == 0 && self.retention.is_none() => {
                Payload::Inline(core::mem::take(data))
            }
            Payload::Inline(data) => {
                let (start, end) = (start as usize, (start + bytes) as usize);
                Payload::Inline(data.get(start..end).unwrap_or_default().to_vec())
            }
            Payload::None => Payload::None,
        };
        let done = if is_whole { self.pieces.pop_front() } else { None };
        (payload, done.map(|payload| Piece { offset: piece_offset, payload }))
    }

    /// Whether the PDU that is being cut, of `bytes`, asks for a DataACK.
    fn wants_acknowledgement(&mut self, bytes: u32, max_burst_bytes: u32) -> bool {
        self.unacknowledged_bytes = self.unacknowledged_bytes.saturating_add(bytes);
        let is_due = self.retention.is_some()
            && self.unacknowledged_bytes >= max_burst_bytes.max(ACKNOWLEDGED_BYTES_MIN);
        if is_due {
            self.unacknowledged_bytes = 0;
        }
        is_due
    }
}

/// The first `bytes_max` of a piece.
fn cut(payload: Payload, bytes_max: u32) -> Payload {
    match payload {
        Payload::Buffer(PayloadRef { buffer, offset_bytes, bytes }) => {
            Payload::Buffer(PayloadRef { buffer, offset_bytes, bytes: bytes.min(bytes_max) })
        }
        Payload::Inline(mut data) => {
            data.truncate(bytes_max as usize);
            Payload::Inline(data)
        }
        Payload::None => Payload::None,
    }
}

/// Puts a task at the end of a queue. A long read takes the place of the next later one, which takes that of the one
/// after it, and so on: the long reads have as many turns, and use them in the order of their commands.
fn enqueue(queue: &mut VecDeque<TaskId>, tasks: &Tasks, mut id: TaskId) {
    if is_long(tasks, id) {
        for queued in queue.iter_mut() {
            if is_earlier_long_read(tasks, id, *queued) {
                core::mem::swap(&mut id, queued);
            }
        }
    }
    queue.push_back(id);
}

/// Whether a task sends more than a turn. A long read lets short reads pass, but not later long reads: side by side, they
/// would all end late.
fn is_long(tasks: &Tasks, id: TaskId) -> bool {
    tasks.get(id).is_some_and(|task| task.data_in.expected_bytes > TURN_BYTES)
}

/// Whether both tasks send more than a turn, and the command of `id` is the earlier one.
fn is_earlier_long_read(tasks: &Tasks, id: TaskId, other: TaskId) -> bool {
    let long = |id| tasks.get(id).filter(|task| task.data_in.expected_bytes > TURN_BYTES);
    long(id).zip(long(other)).is_some_and(|(task, other)| task.cmd_sn.precedes(other.cmd_sn))
}

impl Session {
    /// Hands over the next piece of a command's Data-In, in order. Bytes beyond the announced length are not sent.
    /// [`Event::Release`] gives the buffer back, once for each piece.
    pub fn data_in(&mut self, _now: Instant, task: TaskId, payload: Payload) {
        let id = task;
        let given_back = match &payload {
            Payload::Buffer(payload) => Some(payload.buffer),
            Payload::Inline(_) | Payload::None => None,
        };
        let wanted = self.tasks.get_mut(id).filter(|task| !task.silent && task.stage == Stage::Executing);
        let Some(task) = wanted else {
            self.events.extend(given_back.map(Event::Release));
            return;
        };
        let data_in = &mut task.data_in;
        let piece = cut(payload, data_in.expected_bytes - data_in.given_bytes);
        match u32::try_from(piece.bytes()) {
            Ok(bytes) if bytes > 0 => {
                data_in.given_bytes += bytes;
                data_in.pieces.push_back(piece);
                self.queue_data_in(id);
            }
            _ => self.events.extend(given_back.map(Event::Release)),
        }
    }

    /// The lane of a task's Data-In, until the task is reassigned.
    #[must_use]
    pub fn data_in_lane(&self, task: TaskId) -> Option<LaneId> {
        self.tasks.get(task).map(|task| task.route.data_in)
    }

    /// Puts a task into its lane's queue, unless it is there.
    pub(super) fn queue_data_in(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id).filter(|task| !task.is_moving()) else { return };
        if let Some(lane) = outlet(&mut self.lanes, task.route.data_in)
            && !core::mem::replace(&mut task.data_in.is_queued, true)
        {
            enqueue(&mut lane.data_in, &self.tasks, id);
        }
    }

    /// The first task of the lane's queue has sent enough for now.
    fn end_turn(&mut self, lane_id: LaneId) {
        let Some(lane) = self.lanes.get_mut(lane_id) else { return };
        lane.turn_bytes = 0;
        if let Some(id) = lane.data_in.pop_front() {
            enqueue(&mut lane.data_in, &self.tasks, id);
        }
    }

    /// The next Data-In PDU of a task, when its turn has come.
    pub(super) fn emit_data_in(
        &mut self,
        now: Instant,
        lane_id: LaneId,
        budget_bytes: u32,
    ) -> Option<Transmit> {
        loop {
            let lane = self.lanes.get_mut(lane_id)?;
            let id = *lane.data_in.front()?;
            // A task that has moved to another lane is in that lane's queue.
            let is_here = |task: &&mut Task| task.route.data_in == lane_id && !task.data_in.is_sent();
            let Some(task) = self.tasks.get_mut(id).filter(is_here) else {
                lane.data_in.pop_front();
                lane.turn_bytes = 0;
                continue;
            };
            let max_burst = self.parameters.max_burst_bytes.max(1);
            let data_in = &mut task.data_in;
            let bytes =
                data_in.segment_bytes(lane.parameters.send_segment_bytes_max, max_burst, budget_bytes);
            if bytes == 0 {
                return None;
            }
            let offset = data_in.sent_bytes;
            let (payload, done) = data_in.take(bytes);
            let is_last = data_in.is_sent();
            lane.turn_bytes = lane.turn_bytes.saturating_add(bytes);
            if is_last {
                data_in.is_queued = false;
                lane.data_in.pop_front();
                lane.turn_bytes = 0;
            }
            let ends_turn = lane.turn_bytes >= TURN_BYTES;
            // The driver may hand over more or not, so the end of the data at hand ends a sequence.
            let final_ = is_last || data_in.burst_bytes >= max_burst;
            if final_ {
                data_in.burst_bytes = 0;
            }
            let wants_acknowledgement = data_in.wants_acknowledgement(bytes, max_burst);
            let acknowledge = wants_acknowledgement.then(|| self.transfer_tags.next());
            let data = SentData { offset, bytes, final_, acknowledge };
            let data_sn = DataSn(data_in.take_sn(Sent::DataIn(data)));
            let ends = is_last && task.stage.may_respond();
            // A status that may have to be sent again, or that a fence waits for, is not combined with data.
            let is_awaited = task.data_in.retention.is_some() || task.is_fenced;
            let may_collapse = !is_awaited && !task.route.parts_status_from_data();
            let collapses = ends && may_collapse && !lane.is_full() && is_collapsible(task);
            let status = match (&task.response, collapses) {
                (Some(response), true) => Some(CollapsedStatus {
                    stat_sn: lane.status.take(),
                    status: response.status,
                    residual: residuals(task).0,
                }),
                _ => None,
            };
            let (itt, lun) = (task.itt, task.lun);
            self.counters.data_in_bytes += u64::from(bytes);
            if ends_turn {
                self.end_turn(lane_id);
            }
            self.put_away(now, id, done);
            if collapses {
                self.finish(id);
            } else if ends {
                self.queue_response(id);
            }
            let header = data_in_header(itt, lun, data_sn, &data, status, self.order.tell());
            return Some(Transmit { header, payload });
        }
    }

    /// Gives a piece that was sent whole back to the driver, or keeps it.
    fn put_away(&mut self, now: Instant, id: TaskId, done: Option<Piece>) {
        let Some(piece) = done else { return };
        match self.tasks.get_mut(id).and_then(|task| task.data_in.retention.as_mut()) {
            Some(retention) => {
                self.retained_bytes += piece.bytes() as usize;
                self.kept_pieces += 1;
                retention.keep(self.kept_pieces, piece);
                if retention.is_forgone() {
                    self.forget_sent(id);
                } else {
                    self.bound_retention(now);
                }
            }
            None => {
                if let Payload::Buffer(payload) = piece.payload {
                    self.events.push_back(Event::Release(payload.buffer));
                }
            }
        }
    }
}

/// The header of a Data-In PDU.
pub(super) fn data_in_header(
    itt: Itt,
    lun: Lun,
    data_sn: DataSn,
    data: &SentData,
    status: Option<CollapsedStatus>,
    window: Window,
) -> Header {
    pdu::DataIn {
        lun: if data.acknowledge.is_some() { lun } else { Lun::default() },
        itt,
        ttt: data.acknowledge.unwrap_or(Ttt::NONE),
        final_: data.final_,
        acknowledge: data.acknowledge.is_some(),
        status,
        window,
        data_sn,
        buffer_offset: data.offset,
        data_segment_bytes: data.bytes,
    }
    .emit()
}
