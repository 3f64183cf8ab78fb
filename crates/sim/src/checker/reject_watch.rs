//! What an initiator does when it hears that a PDU of its own was rejected (RFC 7143 §11.17).
//!
//! A command that was rejected leaves a hole in the order of commands, for which the target waits: its initiator fills it,
//! by the command itself if it may be sent again, else by aborting it (§11.6.1). A Reject ends no connection by itself.

use super::tap::SessionKey;
use crate::network::{ConnectionId, Rejected};
use crate::reached::{Reached, Way};
use pdu::{
    CmdSn, Duration, InitiatorPdu, Instant, Itt, RejectReason, Snack, SnackKind, TaskManagementFunction,
};
use std::collections::HashMap;

/// A hole is filled before that, even if what fills it is lost, and its connection with it.
const HOLE_TIME_MAX: Duration = Duration::from_secs(60);

/// What initiators know of PDUs that were rejected.
#[derive(Debug, Default)]
pub(super) struct RejectWatch {
    commands: HashMap<(SessionKey, Itt), Command>,
    /// The CmdSN of each session's last reset of its target, which fills the places before it.
    resets: HashMap<SessionKey, CmdSn>,
    /// Connections that have just brought a Reject, and should go on.
    survivors: Vec<ConnectionId>,
    /// Whether something else has come with them that may end connections.
    is_excused: bool,
}

/// A command that was rejected.
#[derive(Debug)]
struct Command {
    cmd_sn: CmdSn,
    reason: RejectReason,
    heard_at: Instant,
    is_filled: bool,
    is_sent_again: bool,
}

impl Command {
    /// Whether it may be sent again as it is (§11.17.1).
    fn may_return(&self) -> bool {
        use RejectReason::{DataDigestError, ImmediateCommandReject, LongOperationReject, TaskInProgress};
        matches!(self.reason, DataDigestError | ImmediateCommandReject | LongOperationReject | TaskInProgress)
    }
}

impl RejectWatch {
    /// The initiator of a session hears of a PDU that was rejected.
    pub fn hear(
        &mut self,
        now: Instant,
        (session, connection): (SessionKey, ConnectionId),
        rejected: &Rejected,
        reached: &mut Reached,
    ) {
        let Ok(pdu) = InitiatorPdu::parse(&rejected.header) else { return };
        let reason = rejected.reason;
        let (way, goes_on) = match &pdu {
            InitiatorPdu::ScsiCommand(command) => {
                let cmd_sn = command.cmd_sn;
                // Then it cannot be sent again, and whether it is a task nobody knows.
                let is_passed = self.resets.get(&session).is_some_and(|reset| cmd_sn.precedes(*reset));
                let is_filled = command.immediate || is_passed;
                let known = Command { cmd_sn, reason, heard_at: now, is_filled, is_sent_again: false };
                let way = if known.may_return() { Way::CommandDataRejected } else { Way::CommandRejected };
                self.commands.insert((session, command.itt), known);
                (way, !is_passed)
            }
            InitiatorPdu::DataOut(_) => (Way::DataOutRejected, true),
            InitiatorPdu::NopOut(_) => (Way::PingRejected, true),
            // A client that cannot even abort what is not answered gives its session up.
            InitiatorPdu::TaskManagementRequest(pdu) => {
                (Way::FunctionRejected, pdu.function != TaskManagementFunction::AbortTask)
            }
            // A response that is not to be had again is lost with its connection (§7.8).
            InitiatorPdu::Snack(Snack { kind: SnackKind::Status { .. }, .. }) => {
                (Way::SnackRejected, reason != RejectReason::SnackReject)
            }
            InitiatorPdu::Snack(_) => (Way::SnackRejected, true),
            InitiatorPdu::LogoutRequest(_) => (Way::LogoutRejected, false),
            InitiatorPdu::TextRequest(_) | InitiatorPdu::LoginRequest(_) => return,
        };
        reached.count(way);
        if goes_on {
            self.survivors.push(connection);
        } else {
            self.excuse();
        }
    }

    /// Whether this aborts a command that was rejected, which the initiator knows to be no task.
    pub fn is_abort_of_rejected(&self, session: SessionKey, pdu: &InitiatorPdu) -> bool {
        let InitiatorPdu::TaskManagementRequest(pdu) = pdu else { return false };
        let known = self.commands.get(&(session, pdu.referenced_task));
        pdu.function == TaskManagementFunction::AbortTask && known.is_some_and(|known| !known.is_sent_again)
    }

    /// The initiator of a session sends this.
    ///
    /// # Errors
    /// It is a command that was rejected for good, or the place of one is still empty.
    pub fn initiator_sends(
        &mut self,
        now: Instant,
        session: SessionKey,
        pdu: &InitiatorPdu,
    ) -> Result<(), String> {
        match pdu {
            InitiatorPdu::ScsiCommand(pdu) => {
                let known = self.commands.get_mut(&(session, pdu.itt));
                if let Some(known) = known.filter(|known| known.cmd_sn == pdu.cmd_sn) {
                    if !known.may_return() {
                        let (itt, reason) = (pdu.itt.0, known.reason);
                        return Err(format!("command {itt:#x} again, which was rejected: {reason:?}"));
                    }
                    known.is_filled = true;
                    known.is_sent_again = true;
                }
            }
            InitiatorPdu::TaskManagementRequest(pdu) => {
                let is_reset = matches!(
                    pdu.function,
                    TaskManagementFunction::TargetWarmReset | TaskManagementFunction::TargetColdReset
                );
                if is_reset {
                    self.resets.insert(session, pdu.cmd_sn);
                }
                let of_session = self.commands.iter_mut().filter(|((key, _), _)| *key == session);
                let filled = of_session.filter(|((_, itt), _)| is_reset || *itt == pdu.referenced_task);
                filled.for_each(|(_, command)| command.is_filled = true);
            }
            _ => {}
        }
        let is_empty = |command: &&Command| {
            !command.is_filled && now.saturating_duration_since(command.heard_at) > HOLE_TIME_MAX
        };
        let of_session = self.commands.iter().filter(|((key, _), _)| *key == session);
        match of_session.map(|(_, command)| command).find(is_empty) {
            Some(Command { cmd_sn, .. }) => Err(format!(
                "CmdSN {} is missing, {HOLE_TIME_MAX:?} after its command was rejected",
                cmd_sn.0
            )),
            None => Ok(()),
        }
    }

    /// Something else has come that may end connections.
    pub fn excuse(&mut self) {
        self.is_excused = true;
    }

    /// A session is over.
    pub fn end(&mut self, session: SessionKey) {
        self.commands.retain(|(key, _), _| *key != session);
        self.resets.remove(&session);
    }

    /// Connections that have brought Rejects since the last call, and should go on.
    pub fn take_survivors(&mut self) -> Vec<ConnectionId> {
        let survivors = std::mem::take(&mut self.survivors);
        if std::mem::take(&mut self.is_excused) { Vec::new() } else { survivors }
    }
}
