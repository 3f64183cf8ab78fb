//! Ready To Transfer: the target asks for one piece of a write's data (RFC 7143 §11.8).

use super::data_out::Sequence;
use super::session::Session;
use super::task::Task;
use crate::parameters::SessionParameters;
use crate::seam::Fault;
use pdu::{DataSn, LaneId, R2t};

impl Session {
    /// Queues the answer behind those to the R2Ts before it, as the standard demands. An R2T for a task that is no
    /// more is ignored: it crossed the end of its task on another lane.
    pub(super) fn receive_r2t(&mut self, lane: LaneId, pdu: &R2t) -> Result<(), Fault> {
        let parameters = self.parameters;
        let Some(task) = self.task_on(lane, pdu.itt)? else { return Ok(()) };
        task.check_r2t(pdu, &parameters)?;
        let was_idle = task.sequences.is_empty();
        task.input_pdus += 1;
        task.sequences.push_back(Sequence {
            ttt: pdu.ttt,
            offset_bytes: pdu.buffer_offset,
            rest_bytes: pdu.desired_bytes,
            data_sn: DataSn(0),
        });
        self.counters.r2ts += 1;
        if was_idle && let Some(lane) = self.lanes.get_mut(&lane) {
            lane.outgoing.push_task(pdu.itt);
        }
        Ok(())
    }
}

impl Task {
    fn check_r2t(&self, pdu: &R2t, parameters: &SessionParameters) -> Result<(), Fault> {
        let end_bytes = u64::from(pdu.buffer_offset) + u64::from(pdu.desired_bytes);
        if end_bytes > u64::from(self.command.data.out_bytes()) {
            return Err(Fault::Protocol("an R2T beyond the data of its command"));
        }
        if pdu.desired_bytes > parameters.max_burst_bytes {
            return Err(Fault::Protocol("an R2T for more than MaxBurstLength"));
        }
        if pdu.r2t_sn.0 != self.input_pdus {
            return Err(Fault::Protocol("an R2TSN out of order"));
        }
        let unsolicited = self.sequences.front().is_some_and(|sequence| sequence.ttt.is_none());
        let outstanding = self.sequences.len() - usize::from(unsolicited);
        if outstanding >= usize::from(parameters.max_outstanding_r2t) {
            return Err(Fault::Protocol("more R2Ts than MaxOutstandingR2T"));
        }
        Ok(())
    }
}
