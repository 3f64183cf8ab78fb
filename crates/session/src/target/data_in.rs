//! Data-In: what a read returns, cut to the lane's segments and the session's bursts (RFC 7143 §11.7).

use super::event::{Event, TaskId};
use super::lane::outlet;
use super::retention::{Piece, Retention, Sent, SentData};
use super::scsi_response::{is_collapsible, residuals};
use super::session::Session;
use super::task::{Stage, Task};
use crate::seam::{Payload, PayloadRef, Transmit};
use pdu::{BufferId, CollapsedStatus, DataSn, Header, Instant, Itt, LaneId, Lun, Ttt, Window};
use std::collections::VecDeque;

/// What one task sends before it is another one's turn. Reads of the usual lengths finish one after the other, each as
/// early as it can and while its data is in the processor's cache; a longer one lets the others in.
const TURN_BYTES: u32 = 1 << 20;

/// How much a task sends before it asks for a DataACK, at least: bursts may be shorter, but an acknowledgement costs a
/// PDU in each direction. The standard wants no more than one in MaxBurstLength (RFC 7143 §11.7.2).
const ACKNOWLEDGED_BYTES_MIN: u32 = 256 << 10;

/// A task's Data-In.
#[derive(Debug)]
pub(super) struct DataIn {
    /// Announced by the command.
    pub(super) expected_bytes: u32,
    /// What the driver handed over and is not sent yet. The first may be sent in part.
    pieces: VecDeque<Payload>,
    /// How much of the first piece has been sent.
    piece_sent_bytes: u32,
    /// How much the driver handed over.
    given_bytes: u32,
    /// How much has been sent.
    sent_bytes: u32,
    /// How much of that belongs to the sequence that has no F bit yet.
    burst_bytes: u32,
    /// How much has been sent since an acknowledgement was asked for.
    unacknowledged_bytes: u32,
    /// DataSN, which R2Ts of a bidirectional command share (§4.2.2.4).
    next_sn: u32,
    /// Whether the task stands in its lane's queue.
    is_queued: bool,
    /// What was sent, where it may have to be sent again.
    retention: Option<Box<Retention>>,
}

/// What a task gives up of its Data-In.
#[derive(Debug, Default)]
pub(super) struct GivenUp {
    /// Buffers of what was not sent.
    pub(super) unsent: Vec<BufferId>,
    /// What was kept to be sent again.
    pub(super) kept: Vec<Piece>,
}

impl DataIn {
    /// `retains`: what is sent may have to be sent again.
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

    /// The task stands in no lane's queue any more.
    pub(super) fn leave_queue(&mut self) {
        self.is_queued = false;
    }

    /// What was sent and may have to be sent again.
    pub(super) fn retention(&self) -> Option<&Retention> {
        self.retention.as_deref()
    }

    pub(super) fn retention_mut(&mut self) -> Option<&mut Retention> {
        self.retention.as_deref_mut()
    }

    /// All PDUs before `next_sn` have arrived; what need not be kept any more.
    pub(super) fn acknowledge(&mut self, next_sn: u32) -> Vec<Piece> {
        let sent_bytes = self.sent_bytes;
        self.retention.as_mut().map_or(Vec::new(), |retention| retention.acknowledge(next_sn, sent_bytes))
    }

    pub(super) fn forget_oldest(&mut self) -> Option<Piece> {
        self.retention.as_mut()?.forget_oldest()
    }

    /// Data that was sent, as long as it is kept.
    pub(super) fn sent_data(&self, offset: u32, bytes: u32) -> Option<Payload> {
        let retained = self.retention.as_ref()?.data(offset, bytes);
        retained.or_else(|| {
            let payload = self.pieces.front()?.clone();
            Piece { offset: self.sent_bytes - self.piece_sent_bytes, payload }.part(offset, bytes)
        })
    }

    /// Takes back what was sent from `sn` on, to cut and number it anew. Returns how many bytes of what was kept are
    /// to be sent again.
    pub(super) fn rewind(&mut self, sn: u32) -> u32 {
        let Some(retention) = &mut self.retention else { return 0 };
        let (offset, pieces) = retention.rewind(sn);
        let bytes = pieces.iter().map(Piece::bytes).fold(0, u32::saturating_add);
        self.next_sn = retention.next_sn();
        if let Some(offset) = offset {
            // The piece in which it begins was sent whole, or is the first of those that were not.
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

    /// Gives up what is not sent yet, and what is kept.
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
        // Whole words, where the data goes on after this (§11.7.7).
        if bytes < left && bytes >= 4 { bytes & !3 } else { bytes }
    }

    /// The next `bytes` of the first piece, and the piece itself if that was its end.
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

    /// Whether the PDU that is being cut, of `bytes`, asks for an acknowledgement.
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

/// A piece cut to `bytes_max`.
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

impl Session {
    /// Hands over the next piece of a command's Data-In, in order. What goes beyond the announced length is left
    /// out. A buffer is given back by [`Event::Release`], once for each piece.
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

    /// Puts a task into its lane's queue, once.
    pub(super) fn queue_data_in(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id).filter(|task| !task.is_moving()) else { return };
        if let Some(lane) = outlet(&mut self.lanes, task.route.response)
            && !core::mem::replace(&mut task.data_in.is_queued, true)
        {
            lane.data_in.push_back(id);
        }
    }

    /// The next Data-In of the task whose turn it is.
    pub(super) fn emit_data_in(
        &mut self,
        now: Instant,
        lane_id: LaneId,
        budget_bytes: u32,
    ) -> Option<Transmit> {
        loop {
            let lane = self.lanes.get_mut(lane_id)?;
            let id = *lane.data_in.front()?;
            // A task that has moved to another lane meanwhile stands in that one's queue.
            let is_here = |task: &&mut Task| task.route.response == lane_id && !task.data_in.is_sent();
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
            } else if lane.turn_bytes >= TURN_BYTES {
                lane.data_in.rotate_left(1);
                lane.turn_bytes = 0;
            }
            // Whether more will come is not known, so what is at hand ends a sequence.
            let final_ = is_last || data_in.burst_bytes >= max_burst;
            if final_ {
                data_in.burst_bytes = 0;
            }
            let wants_acknowledgement = data_in.wants_acknowledgement(bytes, max_burst);
            let acknowledge = wants_acknowledgement.then(|| self.transfer_tags.next());
            let data = SentData { offset, bytes, final_, acknowledge };
            let data_sn = DataSn(data_in.take_sn(Sent::DataIn(data)));
            let ends = is_last && task.stage.may_respond();
            // A status that may have to be sent again travels alone, and so does one whose acknowledgement is awaited.
            let is_awaited = task.data_in.retention.is_some() || task.is_fenced;
            let collapses = ends && !is_awaited && !lane.is_full() && is_collapsible(task);
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

    /// A piece has been sent to its end: it goes back to the driver, or is kept.
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
