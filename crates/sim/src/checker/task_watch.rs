//! One task on the wire: its data both ways, and its one status (RFC 7143 §4.2.5, §11.7, §11.8).
//!
//! Beyond error recovery level 0 what was sent may be sent again, but only as it was; and a task that was reassigned
//! goes on where its initiator said.

use super::asked_again::AskedAgain;
use super::numbered::{Numbered, NumberedPdus, Sending};
use super::transfer_length::TransferLength;
use crate::network::ConnectionId;
use crate::reached::{Reached, Way};
use pdu::{
    CmdSn, DataIn, DataOut, DataSn, Duration, Instant, Lun, R2t, Residual, ScsiCommand, ScsiResponse, StatSn,
    Ttt,
};
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
    /// It asks for what was asked for before.
    is_recovery: bool,
}

/// A status, and where it was sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SentStatus {
    connection: ConnectionId,
    stat_sn: StatSn,
    status: u8,
}

/// What was seen of one task.
#[derive(Debug)]
pub(super) struct TaskWatch {
    cmd_sn: CmdSn,
    /// The unit that it is for.
    lun: Lun,
    expected_bytes: u32,
    /// If it reads or writes blocks.
    transfer_length: Option<TransferLength>,
    write: bool,
    /// Unsolicited bytes so far; immediate data among them.
    unsolicited_bytes: u32,
    unsolicited_sn: DataSn,
    /// F was set: no more unsolicited data.
    unsolicited_done: bool,
    solicited: Vec<Solicited>,
    /// Data-Out asked for by R2T ends here.
    asked_bytes: u32,
    r2ts: NumberedPdus,
    data_in: NumberedPdus,
    asked_again: AskedAgain,
    /// The first Data-In that the initiator has not acknowledged.
    acknowledged_sn: u32,
    burst_bytes: u32,
    status: Option<SentStatus>,
    /// When its status was sent for the first time.
    answered_at: Option<Instant>,
    /// The connection over which it has come to the target.
    home: Option<ConnectionId>,
    /// The connection to which it was reassigned last.
    reassigned_to: Option<ConnectionId>,
    /// The connection over which it was asked to be aborted last.
    aborted_over: Option<ConnectionId>,
    over: bool,
    /// The target has said that it is aborted.
    aborted: bool,
    forgotten: bool,
}

impl TaskWatch {
    /// A command to a unit whose blocks have this length, if there is such a unit.
    pub(super) fn begin(
        pdu: &ScsiCommand,
        parameters: &SessionParameters,
        block_bytes: Option<u32>,
    ) -> Result<Self, String> {
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
            cmd_sn: pdu.cmd_sn,
            lun: pdu.lun,
            expected_bytes: pdu.expected_data_bytes,
            transfer_length: block_bytes.and_then(|bytes| TransferLength::of(pdu, bytes)),
            write: pdu.write,
            unsolicited_bytes: immediate_bytes,
            unsolicited_sn: DataSn(0),
            unsolicited_done: pdu.final_,
            solicited: Vec::new(),
            asked_bytes: 0,
            r2ts: NumberedPdus::default(),
            data_in: NumberedPdus::default(),
            asked_again: AskedAgain::default(),
            acknowledged_sn: 0,
            burst_bytes: 0,
            status: None,
            answered_at: None,
            home: None,
            reassigned_to: None,
            aborted_over: None,
            over: false,
            aborted: false,
            forgotten: false,
        })
    }

    /// The same command once more, as a retry: `false` if it is another, and this one has not ended.
    pub(super) fn is_same_again(&mut self, pdu: &ScsiCommand, parameters: &SessionParameters) -> bool {
        let same = parameters.error_recovery_level > 0
            && self.cmd_sn == pdu.cmd_sn
            && self.lun == pdu.lun
            && self.expected_bytes == pdu.expected_data_bytes;
        if same {
            self.unsolicited_bytes = pdu.data_segment_bytes;
            self.unsolicited_sn = DataSn(0);
            self.unsolicited_done = pdu.final_;
        }
        same
    }

    /// Its status has reached the initiator, or it was aborted.
    pub(super) fn end(&mut self) {
        self.over = true;
    }

    /// Its status leaves.
    pub(super) fn answer(&mut self, now: Instant) {
        self.answered_at.get_or_insert(now);
    }

    /// For how long its status is on its way.
    pub(super) fn answered_for(&self, now: Instant) -> Option<Duration> {
        self.answered_at.map(|at| now.saturating_duration_since(at))
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// The target says that it knows it no more.
    pub(super) fn note_forgotten(&mut self) {
        self.forgotten = true;
    }

    pub(super) fn is_forgotten(&self) -> bool {
        self.forgotten
    }

    /// The target says that it is aborted: unless it was answered before, nothing more may be said of it
    /// (RFC 7143 §4.2.3.3).
    pub(super) fn note_aborted(&mut self) {
        self.aborted = self.status.is_none();
    }

    /// Its place in the order of commands, if it has reached the target.
    pub(super) fn arrived_as(&self) -> Option<CmdSn> {
        self.home.map(|_| self.cmd_sn)
    }

    /// Whether it comes before a function of this place in the order of commands.
    pub(super) fn is_before(&self, cmd_sn: CmdSn) -> bool {
        self.cmd_sn.precedes(cmd_sn)
    }

    /// The unit that it is for.
    pub(super) fn lun(&self) -> Lun {
        self.lun
    }

    /// Where its status was sent, and under which number.
    pub(super) fn status_place(&self) -> Option<(ConnectionId, StatSn)> {
        self.status.map(|status| (status.connection, status.stat_sn))
    }

    /// It reaches the target on this connection. If that is not the first, it begins anew, though it may have been aborted
    /// before: its initiator has not heard of that if it sends it again.
    pub(super) fn come_over(&mut self, connection: ConnectionId) {
        let before = self.home.replace(connection);
        if !self.over && before.is_some_and(|before| before != connection) {
            self.aborted = false;
        }
    }

    /// Numbers of R2Ts or Data-In that have been sent.
    fn sent(&self) -> u32 {
        if self.write { self.r2ts.next() } else { self.data_in.next() }
    }

    /// The initiator asks for Data-In or R2Ts again.
    pub(super) fn check_request(&self, begin: u32, count: u32) -> Result<(), String> {
        self.asked_again.check_request(begin, count, self.sent())
    }

    /// The target is asked for Data-In or R2Ts again.
    pub(super) fn ask_again(&mut self, begin: u32, count: u32) {
        self.asked_again.ask(begin, count, self.sent());
    }

    /// A Data-In or an R2T has arrived at the initiator.
    pub(super) fn arrive(&mut self, number: u32, is_whole: bool) {
        self.asked_again.arrive(number, is_whole);
    }

    /// Whether not all of so many Data-In have arrived, as if none had been lost.
    pub(super) fn misses(&self, end: u32) -> bool {
        !self.write && self.asked_again.arrivals() < end
    }

    /// The initiator is told how many Data-In and R2Ts there were.
    pub(super) fn learn_end(&mut self, end: u32) {
        self.asked_again.learn_end(end);
    }

    /// The initiator wants the task to go on at another connection.
    pub(super) fn move_on(&mut self) {
        self.asked_again.void();
    }

    fn check_alive(&self) -> Result<(), String> {
        if self.aborted { Err("a PDU of a task that is aborted".into()) } else { Ok(()) }
    }

    /// The target has heard that all Data-In before `next` has arrived.
    pub(super) fn acknowledge(&mut self, next: DataSn) {
        self.acknowledged_sn = self.acknowledged_sn.max(next.0);
    }

    /// The target says that the task goes on at a connection.
    pub(super) fn reassign(&mut self, connection: ConnectionId, exp_data_sn: DataSn) {
        // The answer to the same request may be given twice.
        if self.reassigned_to.replace(connection) == Some(connection) {
            return;
        }
        self.status = None;
        if self.write {
            // No number of an R2T was acknowledged: they begin anew.
            self.r2ts.resume(0);
            self.asked_bytes = 0;
            self.solicited.iter_mut().for_each(|solicited| solicited.is_answered = true);
            return;
        }
        if exp_data_sn.0 <= self.data_in.next() {
            self.acknowledge(exp_data_sn);
        }
        self.data_in.resume(self.acknowledged_sn);
        self.burst_bytes = 0;
    }

    /// The target has heard that the task is to be aborted. If its connection is gone, its status is brought over this
    /// one, if it was sent and not acknowledged (RFC 7143 §11.5.1).
    pub(super) fn abort(&mut self, connection: ConnectionId) {
        self.aborted_over = Some(connection);
    }

    pub(super) fn send_data_out(
        &mut self,
        pdu: &DataOut,
        parameters: &SessionParameters,
    ) -> Result<(), String> {
        let bytes = pdu.data_segment_bytes;
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
        let mut solicited = self.solicited.iter_mut().rev();
        let Some(solicited) = solicited.find(|solicited| solicited.ttt == pdu.ttt) else {
            return Err("Data-Out for no R2T".into());
        };
        if parameters.error_recovery_level > 0 && pdu.data_sn == DataSn(0) {
            // An R2T that was sent again is answered again.
            solicited.sent_bytes = 0;
            solicited.data_sn = DataSn(0);
        }
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

    /// An R2T has its last data. So have those before it whose end this was once more.
    pub(super) fn receive_data_out(&mut self, pdu: &DataOut) {
        let answered = self.solicited.iter().find(|solicited| solicited.ttt == pdu.ttt);
        let Some(answered) = answered.filter(|_| pdu.final_ && pdu.ttt != Ttt::NONE) else { return };
        let range = answered.offset_bytes + 1..=answered.offset_bytes + answered.bytes;
        let ended = |solicited: &&mut Solicited| range.contains(&(solicited.offset_bytes + solicited.bytes));
        self.solicited.iter_mut().filter(ended).for_each(|solicited| solicited.is_answered = true);
    }

    pub(super) fn send_r2t(
        &mut self,
        pdu: &R2t,
        parameters: &SessionParameters,
        reached: &mut Reached,
    ) -> Result<(), String> {
        self.check_alive()?;
        if pdu.desired_bytes > parameters.max_burst_bytes {
            return Err(format!("an R2T for {} bytes", pdu.desired_bytes));
        }
        let end = pdu.buffer_offset.saturating_add(pdu.desired_bytes);
        if !self.write || end > self.expected_bytes {
            return Err(format!("an R2T for bytes {}..{end}", pdu.buffer_offset));
        }
        let (offset_bytes, bytes, tag) = (pdu.buffer_offset, pdu.desired_bytes, pdu.ttt);
        let sending = self.r2ts.send(pdu.r2t_sn.0, Numbered { offset_bytes, bytes, final_: true, tag })?;
        let recovers = parameters.error_recovery_level > 0;
        if sending == Sending::Again {
            reached.count(Way::R2tAgain);
            return if recovers { Ok(()) } else { Err("an R2T again".into()) };
        }
        let is_recovery = offset_bytes < self.asked_bytes;
        if is_recovery {
            reached.count(Way::RecoveryR2t);
            if !recovers {
                return Err(format!("an R2T for bytes {offset_bytes}..{end} again"));
            }
        }
        // One that asks for lost data may take the place of the one that asked first, or follow it.
        let is_outstanding = |solicited: &&Solicited| !solicited.is_answered && !solicited.is_recovery;
        let outstanding = self.solicited.iter().filter(is_outstanding).count();
        if !is_recovery && outstanding >= usize::from(parameters.max_outstanding_r2t) {
            return Err(format!("{} R2Ts outstanding", outstanding + 1));
        }
        self.asked_bytes = self.asked_bytes.max(end);
        self.solicited.retain(|solicited| recovers || !solicited.is_answered);
        self.solicited.push(Solicited {
            ttt: pdu.ttt,
            offset_bytes,
            sent_bytes: 0,
            bytes,
            data_sn: DataSn(0),
            is_answered: false,
            is_recovery,
        });
        Ok(())
    }

    pub(super) fn send_data_in(
        &mut self,
        connection: ConnectionId,
        pdu: &DataIn,
        parameters: &SessionParameters,
        reached: &mut Reached,
    ) -> Result<(), String> {
        self.check_alive()?;
        let (offset_bytes, bytes) = (pdu.buffer_offset, pdu.data_segment_bytes);
        let tag = if pdu.acknowledge { pdu.ttt } else { Ttt::NONE };
        let numbered = Numbered { offset_bytes, bytes, final_: pdu.final_, tag };
        match self.data_in.send(pdu.data_sn.0, numbered)? {
            Sending::Again if parameters.error_recovery_level == 0 => {
                return Err(format!("DataSN {} again", pdu.data_sn.0));
            }
            Sending::Again => {
                self.asked_again.send_again(pdu.data_sn.0)?;
                reached.count(Way::DataInAgain);
            }
            Sending::First => self.first_data_in(pdu, parameters)?,
        }
        match pdu.status {
            Some(status) => {
                let sent = SentStatus { connection, stat_sn: status.stat_sn, status: status.status };
                self.send_status(sent, status.residual, parameters, reached)
            }
            None => Ok(()),
        }
    }

    fn first_data_in(&mut self, pdu: &DataIn, parameters: &SessionParameters) -> Result<(), String> {
        let before_bytes = self.data_in.before_last_bytes();
        if pdu.buffer_offset != before_bytes {
            return Err(format!("Data-In at byte {} where {before_bytes} is due", pdu.buffer_offset));
        }
        self.burst_bytes += pdu.data_segment_bytes;
        if self.data_in.end_bytes() > self.expected_bytes || self.burst_bytes > parameters.max_burst_bytes {
            return Err(format!("{} bytes of Data-In", self.data_in.end_bytes()));
        }
        if pdu.final_ {
            self.burst_bytes = 0;
        }
        Ok(())
    }

    pub(super) fn send_response(
        &mut self,
        connection: ConnectionId,
        pdu: &ScsiResponse,
        parameters: &SessionParameters,
        reached: &mut Reached,
    ) -> Result<(), String> {
        self.check_alive()?;
        let sent = self.data_in.next();
        if pdu.exp_data_sn.0 != sent {
            return Err(format!("ExpDataSN {} after {sent} PDUs", pdu.exp_data_sn.0));
        }
        let status = SentStatus { connection, stat_sn: pdu.stat_sn, status: pdu.status };
        self.send_status(status, pdu.residual, parameters, reached)
    }

    /// Whether a status leaves once more because the connection over which it left before is gone, and its task is to be
    /// aborted.
    fn is_brought(&self, before: SentStatus, sent: SentStatus, parameters: &SessionParameters) -> bool {
        parameters.error_recovery_level > 1
            && before.status == sent.status
            && before.connection != sent.connection
            && self.aborted_over == Some(sent.connection)
    }

    fn send_status(
        &mut self,
        sent: SentStatus,
        residual: Residual,
        parameters: &SessionParameters,
        reached: &mut Reached,
    ) -> Result<(), String> {
        const GOOD: u8 = 0;
        if let Some(before) = self.status.replace(sent)
            && (parameters.error_recovery_level == 0 || before != sent)
            && !self.is_brought(before, sent, parameters)
        {
            return Err(format!("a second status of one task: {sent:?} after {before:?}"));
        }
        if sent.status == GOOD { self.check_residual(residual, reached) } else { Ok(()) }
    }

    fn check_residual(&self, residual: Residual, reached: &mut Reached) -> Result<(), String> {
        let moved_bytes = self.data_in.end_bytes();
        if let Some(length) = self.transfer_length {
            return length.judge(residual, moved_bytes, reached);
        }
        let left = match residual {
            Residual::Underflow(bytes) => bytes,
            _ => 0,
        };
        if !self.write && left != self.expected_bytes - moved_bytes {
            return Err(format!(
                "a residual count of {left} after {moved_bytes} of {} bytes",
                self.expected_bytes
            ));
        }
        Ok(())
    }
}
