//! Ready To Transfer: the target asks for one piece of a write's data (RFC 7143 §11.8).

use super::data_out::Sequence;
use super::data_sequence::Arrival;
use super::session::Session;
use super::task::Task;
use crate::parameters::SessionParameters;
use crate::peer_fault::PeerFault;
use crate::seam::Fault;
use pdu::{DataSn, LaneId, R2t};

/// Recovery R2Ts that may wait in addition to MaxOutstandingR2T. A target asks for a damaged piece again as soon as it
/// finds the damage, while the rest of the sequence is still being sent.
const RECOVERY_R2TS_MAX: usize = 64;

impl Session {
    /// Queues the answer behind those to earlier R2Ts, as the standard demands. An R2T for an ended task is ignored,
    /// because it may cross the task's end on another lane.
    pub(super) fn receive_r2t(&mut self, lane: LaneId, pdu: &R2t) -> Result<(), Fault> {
        self.told_next_status(lane, pdu.stat_sn)?;
        let parameters = self.parameters;
        let Some(task) = self.task_on(lane, pdu.itt)? else { return Ok(()) };
        if std::mem::take(&mut task.resumes) {
            // The target may continue the numbering where it was interrupted, or not (§7.2.2).
            task.input.go_on_from(pdu.r2t_sn.0);
        }
        if task.check_r2t(pdu, &parameters)? == Arrival::Repeated {
            return Ok(());
        }
        let was_idle = task.sequences.is_empty();
        let requests = task.allegiance.map_or(lane, |home| home.route.request);
        let hole = task.input.receive(pdu.r2t_sn.0, 0, 0);
        task.sequences.push_back(Sequence {
            ttt: pdu.ttt,
            offset_bytes: pdu.buffer_offset,
            rest_bytes: pdu.desired_bytes,
            data_sn: DataSn(0),
        });
        self.counters.r2ts += 1;
        if was_idle && let Some(lane) = self.lanes.get_mut(requests) {
            lane.outgoing.push_task(pdu.itt);
        }
        self.ask_for_hole(lane, pdu.itt, hole);
        Ok(())
    }
}

impl Task {
    fn check_r2t(&self, pdu: &R2t, parameters: &SessionParameters) -> Result<Arrival, Fault> {
        let end_bytes = u64::from(pdu.buffer_offset) + u64::from(pdu.desired_bytes);
        if end_bytes > u64::from(self.command.data.out_bytes()) {
            return Err(PeerFault::R2tBeyondData.into());
        }
        if pdu.desired_bytes > parameters.max_burst_bytes {
            return Err(PeerFault::R2tTooLong.into());
        }
        let recovers = parameters.error_recovery_level > 0;
        if !recovers && pdu.r2t_sn.0 != self.input.next() {
            return Err(PeerFault::R2tOutOfOrder.into());
        }
        let arrival = self.input.fit(pdu.r2t_sn.0, 0, 0)?;
        let unsolicited = self.sequences.front().is_some_and(|sequence| sequence.ttt.is_none());
        let outstanding = self.sequences.len() - usize::from(unsolicited);
        let repairs = if recovers { RECOVERY_R2TS_MAX } else { 0 };
        if outstanding >= usize::from(parameters.max_outstanding_r2t) + repairs {
            return Err(PeerFault::TooManyR2ts.into());
        }
        Ok(arrival)
    }
}
