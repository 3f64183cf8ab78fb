//! One task on the wire: its data both ways, and its one status (RFC 7143 §4.2.5, §11.7, §11.8).

use pdu::{DataIn, DataOut, DataSn, R2t, R2tSn, Residual, ScsiCommand, ScsiResponse, Ttt};
use session::parameters::SessionParameters;

/// An R2T, and how much of its data was sent.
#[derive(Debug)]
struct Solicited {
    ttt: Ttt,
    offset_bytes: u32,
    sent_bytes: u32,
    bytes: u32,
    data_sn: DataSn,
    /// Its last Data-Out has reached the target.
    is_answered: bool,
}

/// What was seen of one task.
#[derive(Debug)]
pub(super) struct TaskWatch {
    expected_bytes: u32,
    write: bool,
    /// Unsolicited bytes so far; immediate data among them.
    unsolicited_bytes: u32,
    unsolicited_sn: DataSn,
    /// F was set: no more unsolicited data.
    unsolicited_done: bool,
    solicited: Vec<Solicited>,
    /// Data-Out asked for by R2T ends here.
    asked_bytes: u32,
    next_r2t_sn: R2tSn,
    next_data_sn: DataSn,
    data_in_bytes: u32,
    burst_bytes: u32,
    status_sent: bool,
    over: bool,
}

impl TaskWatch {
    pub(super) fn begin(pdu: &ScsiCommand, parameters: &SessionParameters) -> Result<Self, String> {
        let immediate_bytes = pdu.data_segment_bytes;
        if immediate_bytes > 0 && !parameters.immediate_data {
            return Err("immediate data although that is not agreed".into());
        }
        if immediate_bytes > parameters.first_burst_bytes.min(pdu.expected_data_bytes) {
            return Err(format!("{immediate_bytes} bytes of immediate data"));
        }
        if !pdu.final_ && parameters.initial_r2t {
            return Err("unsolicited data announced although InitialR2T=Yes".into());
        }
        Ok(Self {
            expected_bytes: pdu.expected_data_bytes,
            write: pdu.write,
            unsolicited_bytes: immediate_bytes,
            unsolicited_sn: DataSn(0),
            unsolicited_done: pdu.final_,
            solicited: Vec::new(),
            asked_bytes: 0,
            next_r2t_sn: R2tSn(0),
            next_data_sn: DataSn(0),
            data_in_bytes: 0,
            burst_bytes: 0,
            status_sent: false,
            over: false,
        })
    }

    /// Beyond error recovery level 0, whatever was sent may be sent again; it still must belong to the command.
    fn repeatable(&self, offset_bytes: u32, bytes: u32) -> Result<(), String> {
        match offset_bytes.checked_add(bytes) {
            Some(end) if end <= self.expected_bytes => Ok(()),
            _ => Err(format!("{bytes} bytes at {offset_bytes} of a command of {}", self.expected_bytes)),
        }
    }

    /// Its status has reached the initiator, or it was aborted.
    pub(super) fn end(&mut self) {
        self.over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn send_data_out(
        &mut self,
        pdu: &DataOut,
        parameters: &SessionParameters,
    ) -> Result<(), String> {
        let bytes = pdu.data_segment_bytes;
        if parameters.error_recovery_level > 0 {
            return self.repeatable(pdu.buffer_offset, bytes);
        }
        if pdu.ttt == Ttt::NONE {
            self.unsolicited_bytes += bytes;
            if self.unsolicited_done || self.unsolicited_bytes > parameters.first_burst_bytes {
                return Err(format!("{} bytes of unsolicited data", self.unsolicited_bytes));
            }
            if pdu.buffer_offset + bytes != self.unsolicited_bytes || pdu.data_sn != self.unsolicited_sn {
                return Err("unsolicited data out of order".into());
            }
            self.unsolicited_sn = pdu.data_sn.next();
            self.unsolicited_done = pdu.final_;
            return Ok(());
        }
        let Some(solicited) = self.solicited.iter_mut().find(|solicited| solicited.ttt == pdu.ttt) else {
            return Err("Data-Out for no R2T".into());
        };
        if pdu.buffer_offset != solicited.offset_bytes + solicited.sent_bytes
            || pdu.data_sn != solicited.data_sn
        {
            return Err("solicited data out of order".into());
        }
        solicited.sent_bytes += bytes;
        solicited.data_sn = pdu.data_sn.next();
        if solicited.sent_bytes > solicited.bytes || pdu.final_ != (solicited.sent_bytes == solicited.bytes) {
            return Err(format!("{} bytes for an R2T of {}", solicited.sent_bytes, solicited.bytes));
        }
        Ok(())
    }

    pub(super) fn receive_data_out(&mut self, pdu: &DataOut) {
        if pdu.final_ && pdu.ttt != Ttt::NONE {
            let answered = self.solicited.iter_mut().filter(|solicited| solicited.ttt == pdu.ttt);
            answered.for_each(|solicited| solicited.is_answered = true);
        }
    }

    pub(super) fn send_r2t(&mut self, pdu: &R2t, parameters: &SessionParameters) -> Result<(), String> {
        if pdu.desired_bytes > parameters.max_burst_bytes {
            return Err(format!("an R2T for {} bytes", pdu.desired_bytes));
        }
        if parameters.error_recovery_level > 0 {
            return self.repeatable(pdu.buffer_offset, pdu.desired_bytes);
        }
        if pdu.r2t_sn != self.next_r2t_sn {
            return Err(format!("R2TSN {} where {} is due", pdu.r2t_sn.0, self.next_r2t_sn.0));
        }
        self.next_r2t_sn = pdu.r2t_sn.next();
        let end = pdu.buffer_offset.saturating_add(pdu.desired_bytes);
        if !self.write || end > self.expected_bytes || pdu.buffer_offset < self.asked_bytes {
            return Err(format!("an R2T for bytes {}..{end}", pdu.buffer_offset));
        }
        let outstanding = self.solicited.iter().filter(|solicited| !solicited.is_answered).count();
        if outstanding >= usize::from(parameters.max_outstanding_r2t) {
            return Err(format!("{} R2Ts outstanding", outstanding + 1));
        }
        self.asked_bytes = end;
        self.solicited.retain(|solicited| !solicited.is_answered);
        self.solicited.push(Solicited {
            ttt: pdu.ttt,
            offset_bytes: pdu.buffer_offset,
            sent_bytes: 0,
            bytes: pdu.desired_bytes,
            data_sn: DataSn(0),
            is_answered: false,
        });
        Ok(())
    }

    pub(super) fn send_data_in(
        &mut self,
        pdu: &DataIn,
        parameters: &SessionParameters,
    ) -> Result<(), String> {
        if parameters.error_recovery_level > 0 {
            return self.repeatable(pdu.buffer_offset, pdu.data_segment_bytes);
        }
        if pdu.data_sn != self.next_data_sn || pdu.buffer_offset != self.data_in_bytes {
            return Err(format!(
                "DataSN {} at byte {} where {} at byte {} is due",
                pdu.data_sn.0, pdu.buffer_offset, self.next_data_sn.0, self.data_in_bytes
            ));
        }
        self.next_data_sn = pdu.data_sn.next();
        self.data_in_bytes += pdu.data_segment_bytes;
        self.burst_bytes += pdu.data_segment_bytes;
        if self.data_in_bytes > self.expected_bytes || self.burst_bytes > parameters.max_burst_bytes {
            return Err(format!("{} bytes of Data-In", self.data_in_bytes));
        }
        if pdu.final_ {
            self.burst_bytes = 0;
        }
        match pdu.status {
            Some(status) => self.send_status(status.status, status.residual),
            None => Ok(()),
        }
    }

    pub(super) fn send_response(
        &mut self,
        pdu: &ScsiResponse,
        parameters: &SessionParameters,
    ) -> Result<(), String> {
        let sent = self.next_data_sn.0 + self.next_r2t_sn.0;
        if parameters.error_recovery_level > 0 {
            return Ok(());
        }
        if pdu.exp_data_sn.0 != sent {
            return Err(format!("ExpDataSN {} after {sent} PDUs", pdu.exp_data_sn.0));
        }
        self.send_status(pdu.status, pdu.residual)
    }

    fn send_status(&mut self, status: u8, residual: Residual) -> Result<(), String> {
        if std::mem::replace(&mut self.status_sent, true) {
            return Err("a second status of one task".into());
        }
        let left = match residual {
            Residual::Underflow(bytes) => bytes,
            _ => 0,
        };
        const GOOD: u8 = 0;
        if status == GOOD && !self.write && left != self.expected_bytes - self.data_in_bytes {
            return Err(format!(
                "a residual count of {left} after {} of {} bytes",
                self.data_in_bytes, self.expected_bytes
            ));
        }
        Ok(())
    }
}
