//! Ready To Transfer: requests the part of a write's data that does not come unsolicited (RFC 7143 §11.8).

use super::data_out::Sequence;
use super::event::TaskId;
use super::lane::outlet;
use super::retention::{Sent, SentR2t};
use super::session::Session;
use super::task::Stage;
use super::transmit::Unnumbered;
use crate::seam::{Buffers, Payload, Transmit};
use pdu::{Instant, LaneId, R2t, R2tSn, Ttt};

impl Session {
    /// Requests the first `bytes` of a command's Data-Out, limited to the length that the command announced. Some may
    /// have arrived already. [`super::Event::DataOut`] follows when all have; then this may be called again for more.
    ///
    /// The session makes the buffer long enough before it sends an R2T. If there is no room now, the task waits for
    /// [`Self::buffers_available`].
    pub fn solicit(&mut self, now: Instant, task: TaskId, bytes: u32, buffers: &mut dyn Buffers) {
        let id = task;
        let Some(task) = self.tasks.get_mut(id).filter(|task| task.stage == Stage::Executing) else { return };
        if task.silent {
            return;
        }
        let wanted = bytes.min(task.data_out.expected_bytes);
        task.data_out.wanted = Some(wanted);
        let has_room = task.data_out.buffer.map_or(0, |buffer| buffer.bytes) >= wanted;
        // Tasks that already wait for room go first.
        if has_room || (self.starved.is_empty() && self.reserve(id, buffers)) {
            self.go_on_with_data_out(now, id);
        } else {
            self.starved.push_back(id);
        }
    }

    /// Says that buffers have become free, after [`Buffers::grow`] or [`Buffers::allocate`] had none.
    pub fn buffers_available(&mut self, now: Instant, buffers: &mut dyn Buffers) {
        while let Some(&id) = self.starved.front() {
            if !self.reserve(id, buffers) {
                return;
            }
            self.starved.pop_front();
            self.go_on_with_data_out(now, id);
        }
    }

    /// Makes a task's buffer long enough for the wanted data. `false` if there is no room; an ended task needs none.
    fn reserve(&mut self, id: TaskId, buffers: &mut dyn Buffers) -> bool {
        let Some(task) = self.tasks.get_mut(id).filter(|task| !task.silent) else { return true };
        let data_out = &mut task.data_out;
        let wanted = data_out.wanted.unwrap_or_default();
        match &mut data_out.buffer {
            Some(buffer) if buffer.bytes >= wanted => true,
            Some(buffer) => {
                let grown = buffers.grow(buffer.buffer, wanted);
                if grown {
                    buffer.bytes = wanted;
                }
                grown
            }
            None if wanted == 0 => true,
            None => {
                data_out.buffer = buffers.allocate(wanted, wanted);
                data_out.buffer.is_some()
            }
        }
    }

    /// Queues as many R2Ts as are wanted and allowed: MaxOutstandingR2T at a time, MaxBurstLength each. Lost data comes
    /// first.
    pub(super) fn ask_for_data(&mut self, now: Instant, id: TaskId) {
        while let Some((sequence, is_recovery)) = self.next_sequence(id) {
            if is_recovery {
                self.ask_again(now, id, sequence);
            } else {
                self.ask(id, sequence);
            }
        }
    }

    /// The next sequence to request, if one may be, and whether it is for lost data.
    fn next_sequence(&mut self, id: TaskId) -> Option<(Sequence, bool)> {
        let task = self.tasks.get_mut(id)?;
        // Data is requested only if it has a buffer and a lane.
        let is_wanted = !task.silent
            && !task.data_out.is_damaged
            && task.failure.is_none()
            && task.stage == Stage::Executing
            && !task.is_moving();
        let data_out = &mut task.data_out;
        let wanted = data_out.wanted?;
        if !is_wanted
            || data_out.buffer.is_none_or(|buffer| buffer.bytes < wanted)
            || data_out.r2ts_outstanding() >= self.parameters.max_outstanding_r2t.max(1).into()
            || outlet(&mut self.lanes, task.route.response).is_none()
        {
            return None;
        }
        let max_burst = self.parameters.max_burst_bytes.max(1);
        if let Some(hole) = data_out.take_hole(wanted, max_burst) {
            return Some((Sequence::solicited(hole.offset, hole.bytes), true));
        }
        let bytes = wanted.saturating_sub(data_out.asked_bytes).min(max_burst);
        let sequence = Sequence::solicited(data_out.asked_bytes, bytes);
        data_out.asked_bytes += bytes;
        (bytes > 0).then_some((sequence, false))
    }

    /// Requests data that was lost.
    pub(super) fn ask_again(&mut self, now: Instant, id: TaskId, sequence: Sequence) {
        if self.count_recovery(now, id) {
            self.ask(id, sequence);
        }
    }

    /// Gives a sequence its tag and queues its R2T.
    fn ask(&mut self, id: TaskId, sequence: Sequence) {
        let ttt = self.transfer_tags.next();
        let Some(task) = self.tasks.get_mut(id) else { return };
        task.data_out.sequences.push_back(sequence.named(ttt));
        if let Some(lane) = outlet(&mut self.lanes, task.route.response) {
            lane.unnumbered.push_back(Unnumbered::R2t { task: id, ttt });
        }
    }

    /// The R2T, unless its task has ended.
    pub(super) fn emit_r2t(&mut self, now: Instant, lane: LaneId, id: TaskId, ttt: Ttt) -> Option<Transmit> {
        self.watch_sequences_from(now);
        let window = self.order.tell();
        let stat_sn = self.lanes.get(lane)?.status.next();
        let task = self.tasks.get_mut(id)?;
        let sequence = task.data_out.sequences.iter_mut().find(|sequence| sequence.ttt == ttt)?;
        sequence.is_open = true;
        let header = R2t {
            lun: task.lun,
            itt: task.itt,
            ttt,
            stat_sn,
            window,
            r2t_sn: R2tSn(task.data_in.take_sn(Sent::R2t(SentR2t {
                ttt,
                offset: sequence.offset,
                bytes: sequence.bytes,
            }))),
            buffer_offset: sequence.offset,
            desired_bytes: sequence.bytes,
        }
        .emit();
        task.data_out.wait_from(now);
        Some(Transmit { header, payload: Payload::None })
    }
}

/// Target Transfer Tags, one for each R2T, ping and text exchange. A tag is not reused before almost 2³² others.
#[derive(Debug, Default)]
pub(super) struct TransferTags {
    last: u32,
}

impl TransferTags {
    pub(super) fn next(&mut self) -> Ttt {
        self.last = self.last.wrapping_add(1);
        if Ttt(self.last).is_none() {
            self.last = 0;
        }
        Ttt(self.last)
    }
}
