//! Data-Out: the data of a write that may be sent now, and how it is cut into PDUs (RFC 7143 §4.2.5.2, §11.7).

use super::event::Data;
use super::task::Task;
use crate::parameters::SessionParameters;
use crate::seam::{Payload, PayloadRef, Transmit};
use pdu::{DataOut, DataSn, Lun, StatSn, Ttt};

/// Data that may be sent: the rest of the unsolicited data, or of one R2T's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequence {
    /// [`Ttt::NONE`] for unsolicited data.
    pub(super) ttt: Ttt,
    /// Where the next piece starts, from the start of the command's data.
    pub(super) offset_bytes: u32,
    pub(super) rest_bytes: u32,
    pub(super) data_sn: DataSn,
}

/// Every segment except the last of a sequence is a multiple of this (§11.7.7).
const WORD_BYTES: u32 = 4;

/// The least budget with which data can be cut at a word boundary.
pub(super) const BUDGET_BYTES_MIN: u32 = WORD_BYTES;

/// How much of `rest_bytes` fits one PDU: all of it, or as many whole words as both the peer and the driver accept.
pub(super) fn segment_bytes(rest_bytes: u32, segment_bytes_max: u32, budget_bytes: u32) -> u32 {
    let limit = segment_bytes_max.min(budget_bytes);
    if rest_bytes <= limit { rest_bytes } else { limit - limit % WORD_BYTES }
}

/// How a write's unsolicited data is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsolicited {
    /// Bytes in the command PDU.
    pub(super) immediate_bytes: u32,
    /// Bytes in Data-Out PDUs right after it.
    pub(super) data_out_bytes: u32,
}

impl Unsolicited {
    /// The division for a write of `bytes`. Unsolicited Data-Out, where it is allowed, extends to FirstBurstLength
    /// exactly: less would be an error (§11.4.7.2).
    pub(super) fn of(
        bytes: u32,
        parameters: &SessionParameters,
        segment_bytes_max: u32,
        budget: u32,
    ) -> Self {
        let first_bytes = bytes.min(parameters.first_burst_bytes);
        let immediate_bytes = if parameters.immediate_data && budget >= BUDGET_BYTES_MIN {
            segment_bytes(first_bytes, segment_bytes_max, budget)
        } else {
            0
        };
        let data_out_bytes = if parameters.initial_r2t { 0 } else { first_bytes - immediate_bytes };
        Self { immediate_bytes, data_out_bytes }
    }
}

impl Task {
    /// A part of the buffer that the command's data comes from.
    pub(super) fn data_out_payload(&self, offset_bytes: u32, bytes: u32) -> Payload {
        match self.command.data {
            Data::Out(whole) if bytes > 0 => Payload::Buffer(PayloadRef {
                buffer: whole.buffer,
                offset_bytes: whole.offset_bytes.saturating_add(offset_bytes),
                bytes,
            }),
            _ => Payload::None,
        }
    }

    /// The next Data-Out PDU, if the task has data to send, and how many of its bytes are sent for the first time.
    pub(super) fn next_data_out(
        &mut self,
        segment_bytes_max: u32,
        budget_bytes: u32,
        exp_stat_sn: StatSn,
    ) -> Option<(Transmit, u32)> {
        let sequence = self.sequences.front_mut()?;
        let bytes = segment_bytes(sequence.rest_bytes, segment_bytes_max, budget_bytes);
        let this = *sequence;
        sequence.offset_bytes += bytes;
        sequence.rest_bytes -= bytes;
        sequence.data_sn = this.data_sn.next();
        let final_ = sequence.rest_bytes == 0;
        if final_ {
            self.sequences.pop_front();
        }
        let pdu = DataOut {
            // The LUN field is reserved in unsolicited data (§11.7.4).
            lun: if this.ttt.is_some() { self.command.lun } else { Lun::default() },
            itt: self.itt,
            ttt: this.ttt,
            final_,
            exp_stat_sn,
            data_sn: this.data_sn,
            buffer_offset: this.offset_bytes,
            data_segment_bytes: bytes,
        };
        let payload = self.data_out_payload(this.offset_bytes, bytes);
        Some((Transmit { header: pdu.emit(), payload }, self.sent.add(this.offset_bytes, bytes)))
    }
}
