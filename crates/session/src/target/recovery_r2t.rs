//! Recovery R2T: requests lost data of a write again, while the rest of the write goes on (RFC 7143 §7.8, §7.9, §11.8).
//! Error recovery level 1 and above.

use super::data_out::{Arriving, DataOut, Hole, Sequence};
use super::event::{Event, Response, TaskId};
use super::session::Session;
use super::task::{Stage, Task};
use crate::inflow::Turn;
use pdu::{Instant, LaneId, Ttt};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a task's data may be absent before it is late. Late data counts as lost if its lane is silent for as long,
/// or has brought all data that may have been before it ([`crate::inflow`]): "large enough to allow the data sequence
/// transfer to be complete" (§7.1.4.1). Data that was only slow is still taken, so a wrong guess only costs bandwidth.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often a task's data is requested in vain before the task fails. The timeout doubles each time. A busy lane has
/// each time brought twice the data that it owed, so an initiator that serves this task in its turn has sent the data.
/// An initiator that never does must not keep the task forever.
const TIMEOUTS_MAX: u32 = 4;

/// The most recovery R2Ts for one task: four for every thousand segments of the longest write. A lane that loses more
/// is not worth the repetition.
const RECOVERIES_MAX: u32 = 256;

/// How often the session looks for late data.
const WATCH_EVERY: Duration = Duration::from_secs(1);

impl DataOut {
    /// Notes that a part of the data must be requested again.
    pub(super) fn lose(&mut self, offset: u32, bytes: u32) {
        if bytes == 0 {
            return;
        }
        match self.holes.back_mut() {
            Some(last) if last.offset + last.bytes == offset => last.bytes += bytes,
            _ => self.holes.push_back(Hole { offset, bytes }),
        }
    }

    /// Data of this sequence has come. An initiator answers the R2Ts of a task in order, so data that is missing of
    /// earlier ones is lost (§11.8).
    fn lose_earlier(&mut self, ttt: Ttt) {
        let Some(index) = self.sequences.iter().position(|sequence| sequence.ttt == ttt) else { return };
        let is_replaced =
            |sequence: &Sequence| self.sequences.iter().any(|other| other.replaces == Some(sequence.ttt));
        let earlier = self.sequences.iter().take(index);
        let lost: Vec<Ttt> = earlier
            .filter(|sequence| sequence.ttt.is_some() && sequence.is_open && !is_replaced(sequence))
            .map(|sequence| sequence.ttt)
            .collect();
        for ttt in lost {
            self.lose_rest(ttt);
        }
    }

    /// Notes that the rest of a sequence is lost.
    fn lose_rest(&mut self, ttt: Ttt) {
        let Some(index) = self.sequences.iter().position(|sequence| sequence.ttt == ttt) else { return };
        if let Some(sequence) = self.sequences.remove(index) {
            let (offset, bytes) = sequence.rest();
            self.lose(offset, bytes);
        }
    }

    /// Notes that every sequence is lost, because the lane on which it was requested is lost.
    pub(super) fn lose_all(&mut self) {
        let replaced: Vec<Ttt> = self.sequences.iter().filter_map(|sequence| sequence.replaces).collect();
        self.sequences.retain(|sequence| !replaced.contains(&sequence.ttt));
        while let Some(sequence) = self.sequences.pop_front() {
            let (offset, bytes) = sequence.rest();
            self.lose(offset, bytes);
        }
    }

    /// Takes the next hole to request, or as much of it as one R2T may ask for.
    pub(super) fn take_hole(&mut self, wanted: u32, max_burst_bytes: u32) -> Option<Hole> {
        let index = self.holes.iter().position(|hole| hole.offset < wanted)?;
        let hole = self.holes.get_mut(index)?;
        let bytes = hole.bytes.min(wanted - hole.offset).min(max_burst_bytes);
        let taken = Hole { offset: hole.offset, bytes };
        hole.offset += bytes;
        hole.bytes -= bytes;
        if hole.bytes == 0 {
            self.holes.remove(index);
        }
        Some(taken)
    }

    /// Notes that some of the data has come.
    pub(super) fn hear(&mut self, now: Instant) {
        self.wait_from(now);
        self.timeouts = 0;
    }

    /// Starts the timeout of the owed data anew.
    pub(super) fn wait_from(&mut self, now: Instant) {
        (self.heard, self.turn) = (now, Turn::default());
    }

    fn is_late(&self, now: Instant) -> bool {
        !self.sequences.is_empty() && self.heard + PATIENCE * (1 << self.timeouts) <= now
    }
}

impl Session {
    /// A Data-Out PDU skipped data of its sequence: notes that this data was lost. `false` if the PDU itself came
    /// before.
    pub(super) fn skip_lost(&mut self, now: Instant, id: TaskId, pdu: &pdu::DataOut) -> bool {
        let Some(task) = self.tasks.get_mut(id) else { return false };
        let wants = task.wants_data_out();
        let Some(sequence) = task.data_out.find(pdu.ttt) else { return false };
        if pdu.data_sn.precedes(sequence.next_data_sn) {
            return false;
        }
        let (offset, left) = sequence.rest();
        let skipped = pdu.buffer_offset.saturating_sub(offset).min(left);
        sequence.skip(skipped, pdu.data_sn);
        if wants {
            task.data_out.lose(offset, skipped);
        }
        self.ask_for_data(now, id);
        true
    }

    /// Data of a sequence has arrived: requests missing data of earlier ones, which will not come.
    pub(super) fn miss_earlier(&mut self, now: Instant, id: TaskId, ttt: Ttt) {
        let Some(task) = self.tasks.get_mut(id).filter(|task| task.wants_data_out()) else { return };
        if ttt.is_some() && task.data_out.sequences.len() > 1 {
            task.data_out.lose_earlier(ttt);
            self.ask_for_data(now, id);
        }
    }

    /// The data of a PDU arrived with a wrong digest: its place is a hole, and the sequence continues after it (§7.3).
    pub(super) fn lose_arriving(&mut self, now: Instant, arriving: &Arriving) {
        self.abandon_data_out(arriving);
        let Some(task) = self.tasks.get_mut(arriving.task) else { return };
        if task.wants_data_out() {
            task.data_out.lose(arriving.offset, arriving.bytes);
        }
        self.pass_data_out(now, arriving);
    }

    /// Starts the watch over open sequences.
    pub(super) fn watch_sequences_from(&mut self, now: Instant) {
        if self.retransmits() {
            self.sequence_watch.get_or_insert(now + WATCH_EVERY);
        }
    }

    /// Looks for late data, and requests it again.
    pub(super) fn watch_sequences(&mut self, now: Instant) {
        let is_awaited = self.tasks.iter().any(|(_, task)| task.data_out.is_owed());
        self.sequence_watch = is_awaited.then(|| now + WATCH_EVERY);
        for lane in self.lanes.values_mut().filter(|lane| lane.incoming.is_some()) {
            lane.inflow.go_on(now);
        }
        let late = self.tasks.select(|task| task.data_out.is_late(now) && task.stage != Stage::Waiting);
        if late.is_empty() {
            return;
        }
        let owed_bytes = self.owed_bytes();
        for id in late {
            if !self.may_still_come(now, id, &owed_bytes) {
                self.recover_late(now, id);
            }
        }
    }

    /// The Data-Out that each lane owes to all tasks, in bytes.
    fn owed_bytes(&self) -> BTreeMap<LaneId, u64> {
        let mut owed_bytes = BTreeMap::new();
        for (_, task) in self.tasks.iter() {
            *owed_bytes.entry(task.route.request).or_default() += task.data_out.owed_bytes();
        }
        owed_bytes
    }

    /// Whether late data of a task may still be behind other data of its lane.
    fn may_still_come(&mut self, now: Instant, id: TaskId, owed_bytes: &BTreeMap<LaneId, u64>) -> bool {
        let Some(task) = self.tasks.get_mut(id) else { return false };
        let Some(lane) = self.lanes.get(task.route.request) else { return false };
        let owed_bytes = owed_bytes.get(&task.route.request).copied().unwrap_or_default();
        !lane.inflow.is_silent(now, PATIENCE) && lane.inflow.is_behind(&mut task.data_out.turn, owed_bytes)
    }

    fn recover_late(&mut self, now: Instant, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        if !task.wants_data_out() {
            // Nobody wants the data: the session stops waiting for it to pass.
            if task.silent || task.stage.is_ended() {
                task.data_out.sequences.clear();
                self.settle(now, id);
            }
            return;
        }
        if task.data_out.wanted.is_none() {
            return;
        }
        task.data_out.timeouts += 1;
        task.data_out.wait_from(now);
        if task.data_out.timeouts > TIMEOUTS_MAX {
            return self.fail_write(now, id);
        }
        // The oldest repetition is cancelled for a new one. The last one stays, for data that was only slow.
        let replaced: Vec<Ttt> =
            task.data_out.sequences.iter().filter_map(|sequence| sequence.replaces).collect();
        task.data_out.sequences.retain(|sequence| !replaced.contains(&sequence.ttt));
        let late: Vec<Sequence> = task
            .data_out
            .sequences
            .iter_mut()
            .filter(|sequence| sequence.is_open)
            .map(|sequence| {
                sequence.replaces = None;
                sequence.again()
            })
            .collect();
        for sequence in late {
            self.ask_again(now, id, sequence);
        }
    }

    /// Counts a recovery R2T. `false` if the task has had too many and was failed.
    pub(super) fn count_recovery(&mut self, now: Instant, id: TaskId) -> bool {
        let Some(task) = self.tasks.get_mut(id) else { return false };
        task.data_out.recoveries += 1;
        if task.data_out.recoveries > RECOVERIES_MAX {
            self.fail_write(now, id);
            return false;
        }
        self.counters.recovery_r2ts += 1;
        true
    }

    /// Ends a write whose data does not come with PROTOCOL SERVICE CRC ERROR (§7.8).
    fn fail_write(&mut self, now: Instant, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        task.data_out.sequences.clear();
        task.data_out.holes.clear();
        task.data_out.wanted = None;
        if task.failure.replace(Response::data_lost()).is_none() && task.stage == Stage::Executing {
            self.events.push_back(Event::Aborted { task: id });
        }
        self.settle(now, id);
    }
}

impl Task {
    /// Whether missing data must be requested again.
    fn wants_data_out(&self) -> bool {
        !self.silent && self.failure.is_none() && matches!(self.stage, Stage::Waiting | Stage::Executing)
    }
}
