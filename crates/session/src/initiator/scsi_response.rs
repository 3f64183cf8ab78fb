//! SCSI Response: the end of a command (RFC 7143 §11.4).

use super::data_sequence::Arrival;
use super::event::{Completion, Data, Event, TaskId};
use super::session::Session;
use super::task::Task;
use crate::peer_fault::PeerFault;
use crate::seam::{Destination, Fault};
use pdu::{Itt, LaneId, Opcode, Residual, ScsiResponse, SenseSegment, ServiceResponse, StatSn};

/// The status of a command, from a SCSI Response or from its last Data-In.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) stat_sn: StatSn,
    pub(super) delivered: bool,
    pub(super) status: u8,
    pub(super) residual: Residual,
    pub(super) sense: Vec<u8>,
    /// Data-In PDUs and R2Ts that the target has sent for the command.
    pub(super) input_pdus: u32,
}

/// CHECK CONDITION (SAM-5 §5.3.1).
const CHECK_CONDITION: u8 = 0x02;
/// Fixed format sense data (SPC-4 §4.5.3): ABORTED COMMAND, PROTOCOL SERVICE CRC ERROR (47h/05h).
const PROTOCOL_SERVICE_CRC_ERROR: [u8; 18] =
    [0x70, 0, 0x0b, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x47, 0x05, 0, 0, 0, 0];

impl Session {
    /// Says where the sense data belongs, if its task is still known.
    pub(super) fn place_response(&mut self, lane: LaneId, pdu: &ScsiResponse) -> Result<Destination, Fault> {
        let bytes = pdu.data_segment_bytes;
        let recovers = self.recovers();
        let Some(task) = self.task_on(lane, pdu.itt)? else {
            self.counters.discarded_bytes += u64::from(bytes);
            return Ok(Destination::Discard { bytes });
        };
        let completed = pdu.response == ServiceResponse::CompletedAtTarget;
        // Data that was sent before may come later on another lane.
        let is_behind_data = !task.parts_status_from_data();
        if !recovers
            && is_behind_data
            && completed
            && task.input.next().wrapping_sub(pdu.exp_data_sn.0).cast_signed() < 0
        {
            return Err(PeerFault::DataMissing.into());
        }
        Ok(Destination::Inline { bytes })
    }

    /// Takes a SCSI Response. The command is complete unless Data-In is missing. Data-Out that was solicited and not
    /// sent stays unsent, because the target no longer wants it.
    pub(super) fn receive_response(
        &mut self,
        lane: LaneId,
        pdu: &ScsiResponse,
        data: &[u8],
    ) -> Result<(), Fault> {
        let segment = SenseSegment::parse(Opcode::ScsiResponse, data)?;
        let delivered = pdu.response == ServiceResponse::CompletedAtTarget;
        let ending = Ending {
            stat_sn: pdu.stat_sn,
            delivered,
            status: pdu.status,
            residual: pdu.residual,
            sense: segment.sense.to_vec(),
            input_pdus: if delivered { pdu.exp_data_sn.0 } else { 0 },
        };
        self.receive_ending(lane, pdu.itt, ending)
    }

    /// Takes a command's status. The command is complete once all data sent before the status has arrived; only then is
    /// the status acknowledged (§7.9).
    pub(super) fn receive_ending(&mut self, lane: LaneId, itt: Itt, ending: Ending) -> Result<(), Fault> {
        let recovers = self.recovers();
        let task = self.task_on(lane, itt)?;
        let waits =
            task.is_some_and(|task| (recovers || task.parts_status_from_data()) && task.misses_data(&ending));
        if self.take_status(lane, ending.stat_sn, waits)? == Arrival::Repeated {
            return Ok(());
        }
        if self.owes_too_much(lane) {
            self.acknowledge(lane);
        }
        match self.tasks.get_mut(itt).filter(|_| waits) {
            None => self.complete(itt, lane, ending),
            Some(task) => {
                let hole = task.input.told(ending.input_pdus).filter(|_| recovers);
                task.ending = Some(ending);
                self.ask_for_hole(lane, itt, hole);
            }
        }
        Ok(())
    }

    /// Completes a command if its status waited only for data that has now arrived, or never will.
    pub(super) fn data_arrived(&mut self, itt: Itt) {
        let Some(task) = self.tasks.get_mut(itt) else { return };
        let Some(ending) =
            task.ending.take_if(|ending| task.data_refused || task.input.next() >= ending.input_pdus)
        else {
            return self.data_progressed(itt);
        };
        let Some(allegiance) = task.allegiance else { return };
        if let Some(lane) = self.lanes.get_mut(allegiance.route.response) {
            lane.statuses.release(ending.stat_sn);
        }
        self.complete(itt, allegiance.route.response, ending);
    }

    fn complete(&mut self, itt: Itt, lane: LaneId, ending: Ending) {
        let wants_acknowledgement =
            self.tasks.get(itt).and_then(|task| task.data_ack).is_some_and(|ack| !ack.sent);
        self.end_task(itt, |task| {
            let lacks_data = task.misses(&ending) && task.data_refused;
            if lacks_data && ending.delivered && ending.status != CHECK_CONDITION {
                // The target's status does not describe the incomplete data that is here (§7.8 a.2).
                let sense = PROTOCOL_SERVICE_CRC_ERROR.to_vec();
                return Event::Completed(task.completion(true, CHECK_CONDITION, Residual::None, sense));
            }
            let Ending { delivered, status, residual, sense, .. } = ending;
            Event::Completed(task.completion(delivered, status, residual, sense))
        });
        if wants_acknowledgement {
            self.acknowledge(lane);
        }
    }
}

impl Task {
    /// Whether its status may arrive before data that was sent earlier.
    fn parts_status_from_data(&self) -> bool {
        self.allegiance.is_some_and(|home| home.route.parts_status_from_data())
    }

    /// Whether Data-In that was sent before the status is missing. A write's R2Ts no longer matter.
    fn misses(&self, ending: &Ending) -> bool {
        matches!(self.command.data, Data::In(_)) && self.input.next() < ending.input_pdus
    }

    /// Whether the missing data can still come.
    fn misses_data(&self, ending: &Ending) -> bool {
        !self.data_refused && self.misses(ending)
    }

    /// The completion to report, with the count of data that has arrived.
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
        let out_bytes = self.command.data.out_bytes();
        // Of a command that was sent twice, the target may have taken either copy's data.
        let unsent_bytes = if self.is_repeated() { 0 } else { self.unmoved_bytes };
        Completion {
            task: TaskId(self.itt.0),
            delivered,
            status,
            sense,
            underflow_bytes,
            overflow_bytes,
            data_in_bytes: self.input.received_bytes(),
            data_out_bytes: out_bytes.saturating_sub(unsent_bytes),
        }
    }
}
