//! Data-In: a read's data, straight into the command's buffer (RFC 7143 §11.7).

use super::event::{Completion, Data, Event};
use super::lane::Lane;
use super::session::Session;
use super::task::Task;
use crate::seam::{Destination, Fault, PayloadRef};
use pdu::{CollapsedStatus, DataIn, Itt, LaneId, TargetPdu};

impl Session {
    /// Where the data belongs. That of a task that is no more is forgotten: it crossed the end of its task on
    /// another lane.
    pub(super) fn place_data_in(&mut self, lane: LaneId, pdu: &DataIn) -> Result<Destination, Fault> {
        let bytes = pdu.data_segment_bytes;
        let Some(task) = self.task_on(lane, pdu.itt)? else {
            self.counters.discarded_bytes += u64::from(bytes);
            return Ok(Destination::Discard { bytes });
        };
        let place = task.place(pdu)?;
        task.input_pdus += 1;
        task.data_in_bytes += bytes;
        let moved = task.moved(bytes);
        self.counters.data_in_bytes += u64::from(bytes);
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.outstanding_bytes -= u64::from(moved);
        }
        Ok(Destination::Buffer(place))
    }

    /// The data is in place; if the status came with it, the command is complete.
    pub(super) fn receive_data_in(&mut self, lane: LaneId, pdu: &DataIn) -> Result<(), Fault> {
        let Some(status) = pdu.status else { return Ok(()) };
        self.receive_status(lane, status.stat_sn)?;
        self.end_task(pdu.itt, |task| Event::Completed(task.collapsed(&status)));
        Ok(())
    }
}

impl Task {
    /// Data must come without gaps and in order: at error recovery level 0 nothing is ever sent again, and a gap in a
    /// read could not be told from data (§7.9, §11.7.5).
    fn place(&self, pdu: &DataIn) -> Result<PayloadRef, Fault> {
        let Data::In(whole) = self.command.data else {
            return Err(Fault::Protocol("Data-In for a command that reads nothing"));
        };
        if pdu.data_sn.0 != self.input_pdus {
            return Err(Fault::Protocol("a DataSN out of order"));
        }
        if pdu.buffer_offset != self.data_in_bytes {
            return Err(Fault::Protocol("Data-In out of order"));
        }
        if pdu.data_segment_bytes > whole.bytes - self.data_in_bytes {
            return Err(Fault::Protocol("Data-In beyond the data of its command"));
        }
        Ok(PayloadRef {
            buffer: whole.buffer,
            offset_bytes: whole.offset_bytes.saturating_add(pdu.buffer_offset),
            bytes: pdu.data_segment_bytes,
        })
    }

    fn collapsed(&self, status: &CollapsedStatus) -> Completion {
        self.completion(true, status.status, status.residual, Vec::new())
    }
}

impl Lane {
    pub(super) fn is_receiving_data_of(&self, itt: Itt) -> bool {
        matches!(&self.incoming, Some(TargetPdu::DataIn(pdu)) if pdu.itt == itt)
    }
}
