//! Reject: the target did not take one of this side's PDUs (RFC 7143 §11.17).

use super::data_sequence::Arrival;
use super::event::Event;
use super::session::Session;
use crate::peer_fault::PeerFault;
use crate::seam::Fault;
use pdu::{Header, Instant, LaneId, Opcode, Reject, RejectReason, Residual, Snack, TaskManagementOutcome};

impl Session {
    /// Ends or repeats what the rejected PDU requested. Data-Out needs nothing: its task ends with a SCSI Response
    /// (§11.17.1).
    pub(super) fn receive_reject(
        &mut self,
        now: Instant,
        lane: LaneId,
        pdu: &Reject,
        data: &[u8],
    ) -> Result<(), Fault> {
        if self.receive_status(lane, pdu.stat_sn)? == Arrival::Repeated {
            return Ok(());
        }
        self.counters.rejects += 1;
        if pdu.reason == RejectReason::NegotiationReset {
            return Err(PeerFault::NegotiationReset.into());
        }
        let Some(rejected) = Reject::rejected_header(data) else {
            return Err(PeerFault::RejectWithoutHeader.into());
        };
        match rejected.opcode() {
            Ok(Opcode::ScsiCommand) => self.command_rejected(now, lane, pdu.reason, &rejected)?,
            Ok(Opcode::NopOut) => {
                // A Reject is a response: in a split session, it comes on another lane than the answer would have.
                let lanes = self.lanes.ids();
                let (itt, exp_cmd_sn) = (rejected.task_tag(), pdu.window.exp_cmd_sn);
                let _ = lanes.into_iter().any(|lane| self.end_ping(now, lane, itt, exp_cmd_sn));
            }
            Ok(Opcode::TaskManagementRequest) if self.reassignments.task(rejected.task_tag()).is_some() => {
                self.reassignments.rejected(now, rejected.task_tag(), pdu.reason);
            }
            Ok(Opcode::TaskManagementRequest) => {
                self.end_function(rejected.task_tag(), TaskManagementOutcome::FunctionRejected);
            }
            Ok(Opcode::TextRequest) if pdu.reason == RejectReason::DataDigestError && self.recovers() => {
                if let Some(lane) = self.lanes.get_mut(lane) {
                    lane.text_again(now);
                }
            }
            Ok(Opcode::TextRequest) => self.text_rejected(lane, rejected.task_tag(), pdu.reason),
            Ok(Opcode::Snack) if self.recovers() => {
                self.snack_rejected(lane, pdu.reason, &Snack::parse(&rejected)?);
            }
            Ok(Opcode::LogoutRequest) => self.logout_rejected(lane, rejected.task_tag()),
            _ => {}
        }
        Ok(())
    }

    /// A rejected command never became a task and gets no response, but the target still waits for its CmdSN before it
    /// serves later commands (§7.3). If only the command's data was damaged, it is sent again, except at error recovery
    /// level 0 (§7.8). Otherwise it is aborted, which counts as its arrival (§11.6.1).
    fn command_rejected(
        &mut self,
        now: Instant,
        lane: LaneId,
        reason: RejectReason,
        rejected: &Header,
    ) -> Result<(), Fault> {
        if reason == RejectReason::DataDigestError {
            let is_sent_again = self.recovers() && self.retry_rejected_command(now, rejected.task_tag());
            return if is_sent_again { Ok(()) } else { Err(Fault::DataDigest) };
        }
        // The repeated command met its first copy. Not every target silently ignores a duplicate, as §4.2.2.1 demands.
        if reason == RejectReason::TaskInProgress && self.recovers() {
            return Ok(());
        }
        let itt = rejected.task_tag();
        let Some(task) = self.task_on(lane, itt)? else { return Ok(()) };
        let (lun, allegiance) = (task.command.lun, task.allegiance);
        self.end_task(itt, |task| Event::Completed(task.completion(false, 0, Residual::None, Vec::new())));
        if let Some(home) = allegiance.filter(|home| !self.is_acknowledged(home.cmd_sn)) {
            self.plug(now, lane, itt, lun, home.cmd_sn);
        }
        Ok(())
    }
}
