//! SNACK: sends PDUs again that the initiator requests, and drops data that it acknowledges (RFC 7143 §11.16).

use super::data_in::data_in_header;
use super::event::TaskId;
use super::lane::Lane;
use super::retention::{NotKept, Retention, Sent};
use super::sent_status::{self, SentStatus, replica};
use super::session::Session;
use super::task::{Stage, Task};
use crate::seam::{Destination, Fault, Payload, Transmit};
use pdu::{DataSn, Header, Instant, Itt, LaneId, R2t, R2tSn, RejectReason, Snack, SnackKind, StatSn, Ttt};

/// The most runs that wait to be sent again on one lane. Further runs are dropped, and the initiator may request them
/// later: endless requests only cost the time of the initiator's own lane.
const RUNS_MAX: usize = 64;

/// A requested run of PDUs that is not sent completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    /// Data-In and R2Ts of a task, from `next` up to `end`.
    Data { task: TaskId, next: u32, end: u32 },
    /// Responses, from `next` up to `end`.
    Status { next: StatSn, end: StatSn },
}

/// Why a SNACK is not served (§11.16, §11.17.1).
struct Refusal {
    reason: RejectReason,
    /// The value for the Reject's DataSN/R2TSN field ([`pdu::Reject::next_data_or_r2t_sn`]).
    next_sn: u32,
}

impl Refusal {
    fn because(reason: RejectReason) -> Self {
        Self { reason, next_sn: 0 }
    }

    /// The refusal of a run that was never sent or is acknowledged.
    fn no_such_run(next_sn: u32) -> Self {
        Self { reason: RejectReason::ProtocolError, next_sn }
    }
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
            // Error recovery level 0 keeps nothing to send again.
            return self.refuse(lane, header, RejectReason::SnackReject);
        }
        self.counters.snacks += 1;
        let served = match pdu.kind {
            SnackKind::DataOrR2t { itt, begin, count } => self.resend_data(now, lane, itt, begin, count),
            SnackKind::Status { begin, count } => self.resend_statuses(lane, begin, count),
            SnackKind::DataAck { ttt, next } => self.take_data_ack(lane, ttt, next),
            SnackKind::ResegmentedData { itt, tag } => self.resegment(now, lane, itt, tag),
        };
        if let Err(Refusal { reason, next_sn }) = served
            && let Some(state) = self.lanes.get_mut(lane)
        {
            // Many SNACKs cross the PDUs that they request, so the Reject may be omitted if too many wait.
            state.queue_reject(header, reason, next_sn);
        }
        Ok(self.discard_data(lane, header))
    }

    /// The task that a SNACK on this lane names.
    fn allegiant(&self, lane: LaneId, itt: Itt) -> Result<TaskId, Refusal> {
        let speaks_of =
            |task: &&Task| task.route.response == lane && !task.silent && task.stage != Stage::Waiting;
        let found = self.tasks.find(itt).filter(|id| self.tasks.get(*id).filter(speaks_of).is_some());
        found.ok_or(Refusal::no_such_run(0))
    }

    fn resend_data(
        &mut self,
        now: Instant,
        lane: LaneId,
        itt: Itt,
        begin: u32,
        count: u32,
    ) -> Result<(), Refusal> {
        let id = self.allegiant(lane, itt)?;
        let retention = self.tasks.get_mut(id).and_then(|task| task.data_in.retention_mut());
        let retention = retention.ok_or(Refusal::no_such_run(0))?;
        match retention.run(begin, count) {
            Ok(run) => {
                retention.miss();
                self.queue_resend(lane, Resend::Data { task: id, next: run.start, end: run.end });
                Ok(())
            }
            Err(NotKept::NoSuchPdu) => Err(Refusal::no_such_run(retention.next_sn())),
            Err(NotKept::Forgotten) => {
                self.fail_read(now, id);
                Err(Refusal::because(RejectReason::SnackReject))
            }
        }
    }

    fn resend_statuses(&mut self, lane: LaneId, begin: StatSn, count: u32) -> Result<(), Refusal> {
        let Some(state) = self.lanes.get(lane) else { return Ok(()) };
        let run = sent_status::run(state.status.acknowledged(), state.status.next(), begin, count);
        let (next, end) = run.ok_or(Refusal::no_such_run(0))?;
        self.queue_resend(lane, Resend::Status { next, end });
        Ok(())
    }

    /// Queues a run. A run that finds no room is dropped; an initiator that still misses PDUs asks again.
    fn queue_resend(&mut self, lane: LaneId, run: Resend) {
        if let Some(state) = self.lanes.get_mut(lane) {
            state.send_again(run);
        }
    }

    fn take_data_ack(&mut self, lane: LaneId, ttt: Ttt, next: DataSn) -> Result<(), Refusal> {
        let asked = self.tasks.iter().find(|(_, task)| {
            let asked = task.data_in.retention().filter(|retention| retention.awaits(ttt));
            asked.is_some_and(|retention| next.0 <= retention.next_sn())
        });
        let here = asked.filter(|(_, task)| task.route.response == lane).map(|(id, _)| id);
        let id = here.ok_or(Refusal::because(RejectReason::InvalidDataAck))?;
        self.acknowledge_data(id, next.0);
        Ok(())
    }

    /// Cuts all unacknowledged data anew, because the initiator accepts other lengths now (§11.16.3).
    fn resegment(&mut self, now: Instant, lane: LaneId, itt: Itt, tag: u32) -> Result<(), Refusal> {
        let id = self.allegiant(lane, itt)?;
        let reads = self.tasks.get_mut(id).filter(|task| task.data_in.expected_bytes > 0);
        let task = reads.ok_or(Refusal::no_such_run(0))?;
        // The R2Ts of a bidirectional command are numbered among its data and could not be numbered anew.
        let is_possible = !task.is_bidirectional();
        task.snack_tag = tag;
        let acknowledged = task.data_in.retention().map_or(0, Retention::acknowledged_sn);
        if !is_possible || !self.rewind(id, acknowledged) {
            self.fail_read(now, id);
            return Err(Refusal::because(RejectReason::SnackReject));
        }
        Ok(())
    }

    /// Sends a task's data from this number on once more, on the task's lane, followed by its status if that had been
    /// sent. `false` if the data is no longer kept.
    pub(super) fn rewind(&mut self, id: TaskId, from_sn: u32) -> bool {
        let Some(task) = self.tasks.get_mut(id) else { return false };
        if task.data_in.retention().is_some_and(|retention| retention.has_gap(from_sn)) {
            return false;
        }
        let taken_back = task.data_in.rewind(from_sn);
        self.retained_bytes = self.retained_bytes.saturating_sub(taken_back as usize);
        let is_sent = task.data_in.is_sent();
        let has_ended = task.stage.may_respond();
        if !is_sent {
            self.queue_data_in(id);
        } else if has_ended {
            self.queue_response(id);
        }
        true
    }

    /// The next PDU to send again.
    pub(super) fn emit_resend(&mut self, lane: LaneId) -> Option<Transmit> {
        loop {
            let run = self.lanes.get_mut(lane)?.resends.front_mut()?;
            let wanted = *run;
            if !run.advance() {
                self.lanes.get_mut(lane)?.resends.pop_front();
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

    /// A Data-In or R2T as it was sent, if it is still needed.
    fn data_again(&mut self, lane: LaneId, id: TaskId, sn: u32) -> Option<Transmit> {
        let window = self.order.tell();
        let stat_sn = self.lanes.get(lane)?.status.next();
        let task = self.tasks.get(id).filter(|task| task.route.response == lane && !task.silent)?;
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

    /// A response as it was sent, unless it has been acknowledged meanwhile.
    fn status_again(&mut self, lane: LaneId, stat_sn: StatSn) -> Option<Transmit> {
        let window = self.order.tell();
        let state = self.lanes.get(lane)?;
        let index = stat_sn.distance_from(state.status.acknowledged());
        match state.sent.get(index)? {
            SentStatus::Other(transmit) => Some(replica(transmit, window)),
            SentStatus::Task(id) => {
                // Data that is being cut anew goes first, and its response follows it anyway (§11.16.3).
                let is_here = |task: &&Task| task.route.response == lane && task.data_in.is_sent();
                let task = self.tasks.get(*id).filter(is_here)?;
                debug_assert!(task.stage.is_responded());
                task.scsi_response(stat_sn, window)
            }
        }
    }
}

impl Lane {
    /// Queues a run, unless a waiting run covers it or too many wait.
    pub(super) fn send_again(&mut self, run: Resend) {
        if self.resends.len() < RUNS_MAX && !self.resends.iter().any(|waiting| waiting.covers(run)) {
            self.resends.push_back(run);
        }
    }
}

impl Resend {
    /// Advances to the next PDU; `false` if there is none left.
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

    /// Whether the rest of this run includes all of another.
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
