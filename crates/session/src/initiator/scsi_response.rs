//! SCSI Response: the end of a command (RFC 7143 §11.4).

use super::event::{Completion, Event, TaskId};
use super::session::Session;
use super::task::Task;
use crate::seam::{Destination, Fault};
use pdu::{LaneId, Opcode, Residual, ScsiResponse, SenseSegment, ServiceResponse};

impl Session {
    /// Where the sense data belongs, if it belongs to a task that is still known.
    pub(super) fn place_response(&mut self, lane: LaneId, pdu: &ScsiResponse) -> Result<Destination, Fault> {
        let bytes = pdu.data_segment_bytes;
        let Some(task) = self.task_on(lane, pdu.itt)? else {
            self.counters.discarded_bytes += u64::from(bytes);
            return Ok(Destination::Discard { bytes });
        };
        let completed = pdu.response == ServiceResponse::CompletedAtTarget;
        if completed && task.input_pdus.wrapping_sub(pdu.exp_data_sn.0).cast_signed() < 0 {
            return Err(Fault::Protocol("a response that counts more data than came"));
        }
        Ok(Destination::Inline { bytes })
    }

    /// The command is complete. What it was still asked to send is not sent: the target has said that it wants no
    /// more of it.
    pub(super) fn receive_response(
        &mut self,
        lane: LaneId,
        pdu: &ScsiResponse,
        data: &[u8],
    ) -> Result<(), Fault> {
        self.receive_status(lane, pdu.stat_sn)?;
        let segment = SenseSegment::parse(Opcode::ScsiResponse, data)?;
        let delivered = pdu.response == ServiceResponse::CompletedAtTarget;
        self.end_task(pdu.itt, |task| {
            Event::Completed(task.completion(delivered, pdu.status, pdu.residual, segment.sense.to_vec()))
        });
        Ok(())
    }
}

impl Task {
    /// How it ended, with the data that came until then.
    pub(super) fn completion(
        &self,
        delivered: bool,
        status: u8,
        residual: Residual,
        sense: Vec<u8>,
    ) -> Completion {
        let (underflow_bytes, overflow_bytes) = match residual {
            Residual::None => (0, 0),
            Residual::Underflow(bytes) => (bytes, 0),
            Residual::Overflow(bytes) => (0, bytes),
        };
        Completion {
            task: TaskId(self.itt.0),
            delivered,
            status,
            sense,
            underflow_bytes,
            overflow_bytes,
            data_in_bytes: self.data_in_bytes,
            data_out_bytes: self.command.data.out_bytes().saturating_sub(self.unmoved_bytes),
        }
    }
}
