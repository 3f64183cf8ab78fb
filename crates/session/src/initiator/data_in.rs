//! Data-In: a read's data goes straight into the command's buffer (RFC 7143 §11.7).

use super::data_sequence::Arrival;
use super::event::Data;
use super::lane::Lane;
use super::scsi_response::Ending;
use super::session::Session;
use super::snack::DataAck;
use super::task::Task;
use crate::peer_fault::PeerFault;
use crate::seam::{Destination, Fault, PayloadRef};
use pdu::{DataIn, Instant, Itt, LaneId, TargetPdu};

impl Session {
    /// Says where the data belongs. Data of an ended task is discarded, because it may cross the task's end on another
    /// lane. Data that has arrived before is discarded too.
    pub(super) fn place_data_in(&mut self, lane: LaneId, pdu: &DataIn) -> Result<Destination, Fault> {
        let bytes = pdu.data_segment_bytes;
        let recovers = self.recovers();
        let mut again = None;
        let place = match self.task_on(lane, pdu.itt)? {
            Some(task) => {
                if task.allegiance.is_some_and(|home| home.route.data_in != lane) {
                    return Err(PeerFault::LaneMisused.into());
                }
                if task.resumes && pdu.data_sn.0 == 0 {
                    // A target that could not resume where it was interrupted starts over (§7.2.2).
                    again = task.allegiance.map(|home| (home.route, task.restart_input()));
                }
                task.place(pdu, recovers)?
            }
            None => None,
        };
        if let Some((route, again)) = again {
            self.lanes.charge_bytes(route, again);
        }
        let Some(place) = place else {
            self.counters.discarded_bytes += u64::from(bytes);
            return Ok(Destination::Discard { bytes });
        };
        Ok(Destination::Buffer(place))
    }

    /// Takes data that is in place. If it brought the status and nothing is missing, the command is complete.
    pub(super) fn receive_data_in(&mut self, now: Instant, lane: LaneId, pdu: &DataIn) -> Result<(), Fault> {
        self.take_data_in(now, lane, pdu)?;
        if let Some(status) = &pdu.status {
            let ending = Ending {
                stat_sn: status.stat_sn,
                delivered: true,
                status: status.status,
                residual: status.residual,
                sense: Vec::new(),
                input_pdus: pdu.data_sn.next().0,
            };
            return self.receive_ending(lane, pdu.itt, ending);
        }
        self.data_arrived(pdu.itt);
        Ok(())
    }

    /// Counts the data, and asks for PDUs that are missing before it.
    fn take_data_in(&mut self, now: Instant, lane: LaneId, pdu: &DataIn) -> Result<(), Fault> {
        let recovers = self.recovers();
        let bytes = pdu.data_segment_bytes;
        let Some(task) = self.task_on(lane, pdu.itt)? else { return Ok(()) };
        if pdu.acknowledge && recovers {
            task.data_ack =
                Some(DataAck { lun: pdu.lun, ttt: pdu.ttt, next: pdu.data_sn.next(), sent: false });
        }
        let number = pdu.data_sn.0;
        if task.input.fit(number, pdu.buffer_offset, bytes)? == Arrival::Repeated {
            return Ok(());
        }
        task.note_data_in(now);
        let hole = task.input.receive(number, pdu.buffer_offset, bytes);
        let (home, moved) = (task.allegiance, task.moved(bytes));
        self.counters.data_in_bytes += u64::from(bytes);
        if let Some(home) = home {
            self.lanes.release_bytes(home.route, moved);
        }
        self.ask_for_hole(lane, pdu.itt, hole);
        Ok(())
    }
}

impl Task {
    /// The data's place in the buffer; `None` if the data has arrived before. At error recovery level 0 nothing is ever
    /// sent again, so data must come without gaps; a gap could not be told from data (§7.9, §11.7.5).
    fn place(&self, pdu: &DataIn, recovers: bool) -> Result<Option<PayloadRef>, Fault> {
        let Data::In(whole) = self.command.data else {
            return Err(PeerFault::DataInForbidden.into());
        };
        if !recovers && pdu.data_sn.0 != self.input.next() {
            return Err(PeerFault::DataSnOutOfOrder.into());
        }
        let arrival = self.input.fit(pdu.data_sn.0, pdu.buffer_offset, pdu.data_segment_bytes)?;
        if arrival == Arrival::Repeated {
            return Ok(None);
        }
        let end_bytes = u64::from(pdu.buffer_offset) + u64::from(pdu.data_segment_bytes);
        if end_bytes > u64::from(whole.bytes) {
            return Err(PeerFault::DataInBeyondData.into());
        }
        Ok(Some(PayloadRef {
            buffer: whole.buffer,
            offset_bytes: whole.offset_bytes.saturating_add(pdu.buffer_offset),
            bytes: pdu.data_segment_bytes,
        }))
    }
}

impl Lane {
    pub(super) fn is_receiving_data_of(&self, itt: Itt) -> bool {
        matches!(&self.incoming, Some(TargetPdu::DataIn(pdu)) if pdu.itt == itt)
    }
}
