//! The end of a command: its status, in a SCSI Response or with its last Data-In (RFC 7143 §11.4).

use super::event::{Event, Response, TaskId};
use super::lane::outlet;
use super::response_fence::Handed;
use super::session::Session;
use super::snack::Resend;
use super::task::{Answer, Stage, Task};
use super::transmit::Reply;
use crate::seam::{Payload, Transmit};
use pdu::{DataSn, Instant, LaneId, Residual, ScsiResponse, SenseSegment, ServiceResponse, StatSn, Window};

/// The statuses of success, which may travel with the last Data-In (§11.7.3): GOOD, CONDITION MET, INTERMEDIATE,
/// INTERMEDIATE-CONDITION MET (SAM-5 §5.3.1).
const COLLAPSIBLE: [u8; 4] = [0x00, 0x04, 0x10, 0x14];

/// Whether a task's status may travel with its last Data-In.
pub(super) fn is_collapsible(task: &Task) -> bool {
    !task.is_bidirectional()
        && task
            .response
            .as_ref()
            .is_some_and(|response| response.sense.is_empty() && COLLAPSIBLE.contains(&response.status))
}

/// The residual of the command (of the write, if both directions move data) and of a bidirectional command's read.
pub(super) fn residuals(task: &Task) -> (Residual, Residual) {
    let wanted = task.response.as_ref().map_or(0, |response| response.wanted_bytes);
    let (out_bytes, in_bytes) = (task.data_out.expected_bytes, task.data_in.expected_bytes);
    if task.is_bidirectional() {
        let out_wanted = wanted.min(out_bytes);
        let in_wanted = u64::from(wanted - out_wanted);
        (Residual::between(out_bytes, out_wanted.into()), Residual::between(in_bytes, in_wanted))
    } else {
        (Residual::between(out_bytes + in_bytes, wanted.into()), Residual::None)
    }
}

impl Response {
    /// CHECK CONDITION, ABORTED COMMAND, PROTOCOL SERVICE CRC ERROR (RFC 7143 §11.4.7.2).
    pub(super) fn data_lost() -> Self {
        Self::aborted(0x47, 0x05)
    }

    /// CHECK CONDITION, ABORTED COMMAND, "SNACK rejected" (RFC 7143 §11.4.7.2).
    pub(super) fn snack_rejected() -> Self {
        Self::aborted(0x11, 0x13)
    }

    /// CHECK CONDITION and ABORTED COMMAND with an additional sense code and its qualifier, in fixed format.
    fn aborted(code: u8, qualifier: u8) -> Self {
        const CHECK_CONDITION: u8 = 0x02;
        let sense = vec![0x70, 0, 0x0b, 0, 0, 0, 0, 10, 0, 0, 0, 0, code, qualifier, 0, 0, 0, 0];
        Self { status: CHECK_CONDITION, sense, wanted_bytes: 0 }
    }
}

impl Session {
    /// Ends a task with a response. An aborted task gets none.
    ///
    /// The response waits until the initiator has sent all data that it announced or was asked for (RFC 7143 §11.4.2).
    pub fn respond(&mut self, now: Instant, task: TaskId, response: Response) {
        let id = task;
        let Some(task) = self.tasks.get_mut(id).filter(|task| task.stage == Stage::Executing) else { return };
        task.stage = Stage::Ended(Answer::Settling);
        task.data_out.withdraw_unsent();
        if !task.silent {
            let failure = task.failure.take();
            task.response = Some(match failure {
                _ if task.data_out.is_damaged => Response::data_lost(),
                Some(failure) => failure,
                None => response,
            });
        }
        self.settle(now, id);
        self.conclude(now);
    }

    /// Goes on with an ended task once none of its Data-Out is on its way any more.
    pub(super) fn settle(&mut self, now: Instant, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let waits_for_data = task.data_out.arriving > 0 || task.data_out.is_owed();
        if task.stage != Stage::Ended(Answer::Settling) || waits_for_data {
            return;
        }
        if let Some(allocation) = task.data_out.buffer.take() {
            self.events.push_back(Event::Release(allocation.buffer));
        }
        if task.silent {
            self.finish(id);
            self.announce_window();
            self.conclude(now);
        } else {
            self.hand_over(Handed::Command(id));
        }
    }

    pub(super) fn queue_response(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(id).filter(|task| !task.is_moving()) else { return };
        let Some(lane) = outlet(&mut self.lanes, task.route.response) else { return };
        match task.stage {
            // If the queue of PDUs to send again is full, the initiator will ask once more.
            Stage::Responded(stat_sn) => {
                lane.send_again(Resend::Status { next: stat_sn, end: stat_sn.next() });
            }
            Stage::Waiting | Stage::Executing | Stage::Ended(_) => {
                lane.replies.push_back(Reply::Response(id));
            }
        }
    }

    /// Forgets a task, and frees its tag and its place in the window.
    pub(super) fn finish(&mut self, id: TaskId) {
        if let Some(task) = self.tasks.remove(id) {
            if !task.is_retired {
                self.redeem(task.ticket());
            }
            self.release_buffers(task);
        }
    }

    /// Gives back the buffers that an ended task still names.
    pub(super) fn release_buffers(&mut self, mut task: Task) {
        let buffer = task.data_out.buffer.map(|allocation| allocation.buffer);
        let given_up = task.data_in.give_up();
        self.events.extend(buffer.into_iter().chain(given_up.unsent).map(Event::Release));
        self.release_retained(given_up.kept);
    }

    /// The response, unless its task is gone or has data to send before it.
    pub(super) fn emit_response(&mut self, lane: LaneId, id: TaskId) -> Option<Transmit> {
        let is_due =
            |task: &&mut Task| task.stage.is_ended() && task.route.response == lane && task.data_in.is_sent();
        let retransmits = self.retransmits();
        let task = self.tasks.get_mut(id).filter(|task| !task.silent).filter(is_due)?;
        let stat_sn = self.lanes.get_mut(lane)?.status.take();
        let ticket = (!core::mem::replace(&mut task.is_retired, true)).then(|| task.ticket());
        task.stage = Stage::Responded(stat_sn);
        if task.is_fenced {
            self.fences.confirm(|response| response == Handed::Command(id), lane, stat_sn.next());
        }
        if let Some(ticket) = ticket {
            self.redeem(ticket);
        }
        let window = self.order.tell();
        let transmit = self.tasks.get(id)?.scsi_response(stat_sn, window);
        if !retransmits {
            self.finish(id);
        }
        transmit
    }
}

impl Task {
    /// The ExpDataSN of the response: the number of PDUs that share the numbering of Data-In; 0 if the command has no
    /// Data-In (RFC 7143 §11.4.8).
    fn exp_data_sn(&self) -> DataSn {
        let reads = self.data_in.expected_bytes > 0;
        DataSn(if reads { self.data_in.sent_pdus() } else { 0 })
    }

    /// The SCSI Response of a task that has ended.
    pub(super) fn scsi_response(&self, stat_sn: StatSn, window: Window) -> Option<Transmit> {
        let (residual, bidirectional_read_residual) = residuals(self);
        let Response { status, sense, .. } = self.response.as_ref()?;
        let data = SenseSegment { sense, rest: &[] }.emit();
        let header = ScsiResponse {
            itt: self.itt,
            response: ServiceResponse::CompletedAtTarget,
            status: *status,
            residual,
            bidirectional_read_residual,
            snack_tag: self.snack_tag,
            stat_sn,
            window,
            exp_data_sn: self.exp_data_sn(),
            data_segment_bytes: u32::try_from(data.len()).unwrap_or(u32::MAX),
        }
        .emit();
        let payload = if data.is_empty() { Payload::None } else { Payload::Inline(data) };
        Some(Transmit { header, payload })
    }
}
