//! SNACK: what the initiator asks for again is sent again, what it acknowledges is given up (RFC 7143 §11.16).

use super::data_in::data_in_header;
use super::event::TaskId;
use super::lane::Lane;
use super::retention::{NotKept, Retention, Sent};
use super::sent_status::{self, SentStatus, replica};
use super::session::Session;
use super::task::Stage;
use super::transmit::Reply;
use crate::seam::{Destination, Fault, Payload, Transmit};
use pdu::{DataSn, Header, Instant, Itt, LaneId, R2t, R2tSn, RejectReason, Snack, SnackKind, StatSn, Ttt};

/// Runs that wait to be sent again on one lane. What exceeds them is rejected and may be asked for later: an initiator
/// that asks without end takes nothing but the time of its own lane.
const RUNS_MAX: usize = 64;

/// A run that was asked for and is not sent to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    /// Data-In and R2Ts of a task, by their numbers.
    Data { task: TaskId, next: u32, end: u32 },
    /// Responses.
    Status { next: StatSn, end: StatSn },
}

impl Session {
    pub(super) fn receive_snack(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        pdu: &Snack,
    ) -> Result<Destination, Fault> {
        if !self.retransmits() {
            // Nothing is kept for sending it again: error recovery level 0.
            return self.refuse(lane, header, RejectReason::SnackReject);
        }
        self.counters.snacks += 1;
        match pdu.kind {
            SnackKind::DataOrR2t { itt, begin, count } => {
                self.resend_data(now, lane, header, itt, begin, count)
            }
            SnackKind::Status { begin, count } => self.resend_statuses(lane, header, begin, count),
            SnackKind::DataAck { ttt, next } => self.take_data_ack(lane, header, ttt, next),
            SnackKind::ResegmentedData { itt, tag } => self.resegment(now, lane, header, itt, tag),
        }
    }

    /// The task that a SNACK on this lane speaks of.
    fn allegiant(&self, lane: LaneId, itt: Itt) -> Option<TaskId> {
        let id = self.tasks.find(itt)?;
        self.tasks.get(id).filter(|task| task.response_lane == lane && !task.silent).map(|_| id)
    }

    fn resend_data(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        itt: Itt,
        begin: u32,
        count: u32,
    ) -> Result<Destination, Fault> {
        let Some(id) = self.allegiant(lane, itt) else { return self.refuse_run(lane, header, 0) };
        let Some(retention) = self.tasks.get(id).and_then(|task| task.data_in.retention()) else {
            return self.refuse_run(lane, header, 0);
        };
        match retention.run(begin, count) {
            Ok(run) => {
                self.queue_resend(lane, header, Resend::Data { task: id, next: run.start, end: run.end })
            }
            Err(NotKept::NoSuchPdu) => {
                let next_sn = retention.next_sn();
                self.refuse_run(lane, header, next_sn)
            }
            Err(NotKept::Forgotten) => {
                let refused = self.refuse(lane, header, RejectReason::SnackReject);
                self.fail_read(now, id);
                refused
            }
        }
    }

    fn resend_statuses(
        &mut self,
        lane: LaneId,
        header: &Header,
        begin: StatSn,
        count: u32,
    ) -> Result<Destination, Fault> {
        let Some(state) = self.lanes.get(&lane) else { return Ok(Destination::None) };
        match sent_status::run(state.status.acknowledged(), state.status.next(), begin, count) {
            Some((next, end)) => self.queue_resend(lane, header, Resend::Status { next, end }),
            None => self.refuse_run(lane, header, 0),
        }
    }

    /// Queues a run, unless one that waits already has it.
    fn queue_resend(&mut self, lane: LaneId, header: &Header, run: Resend) -> Result<Destination, Fault> {
        let has_room = self.lanes.get_mut(&lane).is_none_or(|state| state.send_again(run));
        if has_room { Ok(Destination::None) } else { self.refuse(lane, header, RejectReason::SnackReject) }
    }

    fn take_data_ack(
        &mut self,
        lane: LaneId,
        header: &Header,
        ttt: Ttt,
        next: DataSn,
    ) -> Result<Destination, Fault> {
        let asked = self.tasks.iter().find(|(_, task)| {
            let asked = task.data_in.retention().filter(|retention| retention.awaits(ttt));
            asked.is_some_and(|retention| next.0 <= retention.next_sn())
        });
        match asked.map(|(id, task)| (id, task.response_lane)) {
            Some((id, response_lane)) if response_lane == lane => {
                self.acknowledge_data(id, next.0);
                Ok(Destination::None)
            }
            _ => self.refuse(lane, header, RejectReason::InvalidDataAck),
        }
    }

    /// The initiator takes other lengths now: all data that it has not acknowledged is cut anew (§11.16.3).
    fn resegment(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        itt: Itt,
        tag: u32,
    ) -> Result<Destination, Fault> {
        let Some(id) = self.allegiant(lane, itt) else { return self.refuse_run(lane, header, 0) };
        let Some(task) = self.tasks.get_mut(id).filter(|task| task.data_in.expected_bytes > 0) else {
            return self.refuse_run(lane, header, 0);
        };
        // The R2Ts of a bidirectional command stand between its data; they could not be numbered anew.
        let is_possible = !task.is_bidirectional();
        task.snack_tag = tag;
        let acknowledged = task.data_in.retention().map_or(0, Retention::acknowledged_sn);
        if !is_possible || !self.rewind(id, acknowledged) {
            let refused = self.refuse(lane, header, RejectReason::SnackReject);
            self.fail_read(now, id);
            return refused;
        }
        Ok(Destination::None)
    }

    /// Sends a task's data from this number on once more, on the task's lane, and its status after it if that had been
    /// sent. `false` if the data is not there any more.
    pub(super) fn rewind(&mut self, id: TaskId, from_sn: u32) -> bool {
        let Some(task) = self.tasks.get_mut(id) else { return false };
        if task.data_in.retention().is_some_and(|retention| retention.has_gap(from_sn)) {
            return false;
        }
        let taken_back = task.data_in.rewind(from_sn);
        self.retained_bytes = self.retained_bytes.saturating_sub(taken_back as usize);
        let is_sent = task.data_in.is_sent();
        let has_ended = task.response_ready;
        if !is_sent {
            self.queue_data_in(id);
        } else if has_ended {
            self.queue_response(id);
        }
        true
    }

    /// Rejects a run of what was never sent, or is acknowledged.
    fn refuse_run(&mut self, lane: LaneId, header: &Header, next_sn: u32) -> Result<Destination, Fault> {
        let refused = self.refuse(lane, header, RejectReason::ProtocolError)?;
        if let Some(Reply::Reject { next_data_or_r2t_sn, .. }) =
            self.lanes.get_mut(&lane).and_then(|lane| lane.replies.back_mut())
        {
            *next_data_or_r2t_sn = next_sn;
        }
        Ok(refused)
    }

    /// The next PDU that is sent again.
    pub(super) fn emit_resend(&mut self, lane: LaneId) -> Option<Transmit> {
        loop {
            let run = self.lanes.get_mut(&lane)?.resends.front_mut()?;
            let wanted = *run;
            if !run.advance() {
                self.lanes.get_mut(&lane)?.resends.pop_front();
                continue;
            }
            let pdu = match wanted {
                Resend::Data { task, next, .. } => self.data_again(lane, task, next),
                Resend::Status { next, .. } => self.status_again(lane, next),
            };
            if pdu.is_some() {
                self.counters.retransmitted_pdus += 1;
                return pdu;
            }
        }
    }

    /// A Data-In or R2T as it was, if it still matters.
    fn data_again(&mut self, lane: LaneId, id: TaskId, sn: u32) -> Option<Transmit> {
        let window = self.advertise();
        let stat_sn = self.lanes.get(&lane)?.status.next();
        let task = self.tasks.get(id).filter(|task| task.response_lane == lane && !task.silent)?;
        let (itt, lun) = (task.itt, task.lun);
        match task.data_in.retention()?.pdu(sn)? {
            Sent::DataIn(data) => {
                let payload = task.data_in.sent_data(data.offset, data.bytes)?;
                let header = data_in_header(itt, lun, DataSn(sn), &data, None, window);
                Some(Transmit { header, payload })
            }
            Sent::R2t(r2t) => {
                let (ttt, buffer_offset, desired_bytes) = (r2t.ttt, r2t.offset, r2t.bytes);
                let r2t_sn = R2tSn(sn);
                let header =
                    R2t { lun, itt, ttt, stat_sn, window, r2t_sn, buffer_offset, desired_bytes }.emit();
                Some(Transmit { header, payload: Payload::None })
            }
        }
    }

    /// A response as it was, if it is not acknowledged meanwhile.
    fn status_again(&mut self, lane: LaneId, stat_sn: StatSn) -> Option<Transmit> {
        let window = self.advertise();
        let state = self.lanes.get(&lane)?;
        let index = stat_sn.distance_from(state.status.acknowledged());
        match state.sent.get(index)? {
            SentStatus::Other(transmit) => Some(replica(transmit, window)),
            SentStatus::Task(id) => {
                // Data that is being cut anew goes first; the response follows it by itself (§11.16.3).
                let task = self.tasks.get(*id).filter(|task| task.data_in.is_sent())?;
                debug_assert_eq!(task.stage, Stage::Responded);
                task.scsi_response(stat_sn, window)
            }
        }
    }
}

impl Lane {
    /// Queues a run, unless one that waits already has it. `false` if too many wait.
    pub(super) fn send_again(&mut self, run: Resend) -> bool {
        if self.resends.iter().any(|waiting| waiting.covers(run)) {
            return true;
        }
        let has_room = self.resends.len() < RUNS_MAX;
        if has_room {
            self.resends.push_back(run);
        }
        has_room
    }
}

impl Resend {
    /// Goes on to the next PDU; `false` if there was none left.
    fn advance(&mut self) -> bool {
        match self {
            Self::Data { next, end, .. } => {
                let is_left = *next < *end;
                *next += u32::from(is_left);
                is_left
            }
            Self::Status { next, end } => {
                let is_left = next.precedes(*end);
                if is_left {
                    *next = next.next();
                }
                is_left
            }
        }
    }

    /// Whether this run, as far as it is still to be sent, has all of another.
    fn covers(self, other: Self) -> bool {
        match (self, other) {
            (Self::Data { task, next, end }, Self::Data { task: other, next: begin, end: until }) => {
                task == other && next <= begin && until <= end
            }
            (Self::Status { next, end }, Self::Status { next: begin, end: until }) => {
                !begin.precedes(next) && !end.precedes(until)
            }
            _ => false,
        }
    }
}
