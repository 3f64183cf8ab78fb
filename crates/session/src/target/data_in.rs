//! Data-In: what a read returns, cut to the lane's segments and the session's bursts (RFC 7143 §11.7).

use super::event::{Event, TaskId};
use super::scsi_response::{is_collapsible, residuals};
use super::session::Session;
use super::task::Stage;
use crate::seam::{Payload, PayloadRef, Transmit};
use pdu::{CollapsedStatus, DataSn, Instant, LaneId, Ttt};
use std::collections::VecDeque;

/// What one task sends before it is another one's turn. Reads of the usual lengths finish one after the other, each as
/// early as it can and while its data is in the processor's cache; a longer one lets the others in.
const TURN_BYTES: u32 = 1 << 20;

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
    /// DataSN, which R2Ts of a bidirectional command share (§4.2.2.4).
    next_sn: u32,
    /// Whether the task stands in its lane's queue.
    is_queued: bool,
}

impl DataIn {
    pub(super) fn new(expected_bytes: u32) -> Self {
        Self {
            expected_bytes,
            pieces: VecDeque::new(),
            piece_sent_bytes: 0,
            given_bytes: 0,
            sent_bytes: 0,
            burst_bytes: 0,
            next_sn: 0,
            is_queued: false,
        }
    }

    /// The number of the next Data-In or R2T.
    pub(super) fn take_sn(&mut self) -> u32 {
        let sn = self.next_sn;
        self.next_sn = sn.wrapping_add(1);
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

    /// Gives up what is not sent yet; the buffers that it lies in.
    pub(super) fn drop_pieces(&mut self) -> impl Iterator<Item = pdu::BufferId> {
        core::mem::take(&mut self.pieces).into_iter().filter_map(|piece| match piece {
            Payload::Buffer(payload) => Some(payload.buffer),
            Payload::Inline(_) | Payload::None => None,
        })
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

    /// The next `bytes` of the first piece, and the buffer to be given back if that was its end.
    fn take(&mut self, bytes: u32) -> (Payload, Option<pdu::BufferId>) {
        let start = self.piece_sent_bytes;
        let Some(piece) = self.pieces.front_mut() else { return (Payload::None, None) };
        let is_whole = (start + bytes) as usize == piece.bytes();
        self.piece_sent_bytes = if is_whole { 0 } else { start + bytes };
        self.sent_bytes += bytes;
        self.burst_bytes += bytes;
        let (payload, buffer) = match piece {
            Payload::Buffer(PayloadRef { buffer, offset_bytes, .. }) => {
                let payload = PayloadRef { buffer: *buffer, offset_bytes: *offset_bytes + start, bytes };
                (Payload::Buffer(payload), Some(*buffer))
            }
            Payload::Inline(data) if is_whole && start == 0 => (Payload::Inline(core::mem::take(data)), None),
            Payload::Inline(data) => {
                let (start, end) = (start as usize, (start + bytes) as usize);
                (Payload::Inline(data.get(start..end).unwrap_or_default().to_vec()), None)
            }
            Payload::None => (Payload::None, None),
        };
        if is_whole {
            self.pieces.pop_front();
        }
        (payload, buffer.filter(|_| is_whole))
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
    fn queue_data_in(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        if let Some(lane) = self.lanes.get_mut(&task.response_lane)
            && !core::mem::replace(&mut task.data_in.is_queued, true)
        {
            lane.data_in.push_back(id);
        }
    }

    /// The next Data-In of the task whose turn it is.
    pub(super) fn emit_data_in(&mut self, lane_id: LaneId, budget_bytes: u32) -> Option<Transmit> {
        loop {
            let lane = self.lanes.get_mut(&lane_id)?;
            let id = *lane.data_in.front()?;
            let Some(task) = self.tasks.get_mut(id).filter(|task| !task.data_in.is_sent()) else {
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
            let buffer_offset = data_in.sent_bytes;
            let (payload, given_back) = data_in.take(bytes);
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
            let data_sn = DataSn(data_in.take_sn());
            let itt = task.itt;
            let ends = is_last && task.response_ready;
            let collapses = ends && !lane.status.is_full() && is_collapsible(task);
            let status = match (&task.response, collapses) {
                (Some(response), true) => Some(CollapsedStatus {
                    stat_sn: lane.status.take(),
                    status: response.status,
                    residual: residuals(task).0,
                }),
                _ => None,
            };
            self.counters.data_in_bytes += u64::from(bytes);
            self.events.extend(given_back.map(Event::Release));
            if collapses {
                self.finish(id);
            } else if ends {
                self.queue_response(id);
            }
            let header = pdu::DataIn {
                lun: pdu::Lun::default(),
                itt,
                ttt: Ttt::NONE,
                final_,
                acknowledge: false,
                status,
                window: self.advertise(),
                data_sn,
                buffer_offset,
                data_segment_bytes: bytes,
            }
            .emit();
            return Some(Transmit { header, payload });
        }
    }
}
