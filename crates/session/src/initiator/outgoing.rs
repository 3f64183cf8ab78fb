//! The PDUs that wait to be sent on one lane, and their order.

use crate::lanes::TURN_BYTES;
use crate::seam::{Payload, Transmit};
use pdu::{
    Header, Itt, LogoutReason, LogoutRequest, NopOut, Snack, SnackKind, StatSn, TaskManagementRequest,
    TextRequest,
};
use std::collections::VecDeque;

/// A PDU that is not Data-Out. Its CmdSN was fixed when it was queued; ExpStatSN is filled in when it is pulled.
#[derive(Debug)]
pub(super) enum Request {
    /// A task's command, perhaps with immediate data.
    Command(Itt),
    Nop(NopOut),
    TaskManagement(TaskManagementRequest),
    Text(TextRequest, Vec<u8>),
    Logout(LogoutRequest),
    /// A SNACK, for this task if for one.
    Snack(Snack, Option<Itt>),
}

/// The next thing to send.
#[derive(Debug)]
pub(super) enum Turn {
    Request(Request),
    /// One Data-Out PDU of this task.
    Data(Itt),
}

/// Two queues that alternate PDU by PDU: requests in the order of their CmdSNs, and tasks with data to send, each of which
/// sends until its turn ends. No command waits behind a write of 16 MiB, a small write waits for at most a turn of each
/// write before it, and a flood of commands does not delay the data of earlier commands.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    requests: VecDeque<Request>,
    tasks: VecDeque<Itt>,
    /// The task that had the last turn, and what it has sent in it.
    turn: Option<(Itt, u32)>,
    data_is_next: bool,
}

impl Outgoing {
    pub(super) fn push_request(&mut self, request: Request) {
        self.requests.push_back(request);
    }

    /// Queues a task that has data to send; it must not be queued yet.
    pub(super) fn push_task(&mut self, itt: Itt) {
        self.tasks.push_back(itt);
    }

    pub(super) fn extend(&mut self, requests: impl IntoIterator<Item = Request>) {
        self.requests.extend(requests);
    }

    /// Removes a task's command and its data from both queues.
    pub(super) fn forget(&mut self, itt: Itt) {
        self.requests.retain(|request| !matches!(request, Request::Command(of) if *of == itt));
        self.forget_task(itt);
    }

    /// A task whose turn it was has sent so much, and has more. Its turn goes on unless it has been long.
    pub(super) fn requeue_task(&mut self, itt: Itt, sent_bytes: u32) {
        let before = self.turn.filter(|(task, _)| *task == itt).map_or(0, |(_, bytes)| bytes);
        let bytes = before.saturating_add(sent_bytes);
        if bytes < TURN_BYTES {
            self.turn = Some((itt, bytes));
            self.tasks.push_front(itt);
        } else {
            self.turn = None;
            self.tasks.push_back(itt);
        }
    }

    /// Removes a task from the queue of those with data to send.
    pub(super) fn forget_task(&mut self, itt: Itt) {
        self.tasks.retain(|task| *task != itt);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.tasks.is_empty()
    }

    /// Takes the next turn. Without `data`, only requests get turns.
    pub(super) fn take(&mut self, data: bool) -> Option<Turn> {
        let data_is_due = data && !self.tasks.is_empty() && (self.data_is_next || self.requests.is_empty());
        self.data_is_next = !data_is_due;
        if data_is_due {
            return self.tasks.pop_front().map(Turn::Data);
        }
        self.requests.pop_front().map(Turn::Request)
    }
}

impl Request {
    /// Whether the request asks the target to send something again.
    pub(super) fn asks_for_lost_pdus(&self) -> bool {
        matches!(self, Self::Snack(snack, _) if !matches!(snack.kind, SnackKind::DataAck { .. }))
    }

    /// The PDU, which acknowledges all responses before `exp_stat_sn`. `None` for a command, which needs its task.
    pub(super) fn emit(self, exp_stat_sn: StatSn) -> Option<Transmit> {
        Some(match self {
            Self::Command(_) => return None,
            Self::Nop(pdu) => transmit(NopOut { exp_stat_sn, ..pdu }.emit(), Vec::new()),
            Self::TaskManagement(pdu) => {
                transmit(TaskManagementRequest { exp_stat_sn, ..pdu }.emit(), Vec::new())
            }
            Self::Text(pdu, text) => transmit(TextRequest { exp_stat_sn, ..pdu }.emit(), text),
            Self::Snack(pdu, _) => transmit(Snack { exp_stat_sn, ..pdu }.emit(), Vec::new()),
            // This Logout carries the last ExpStatSN of another connection (§11.14.4).
            Self::Logout(pdu) if pdu.reason == LogoutReason::RemoveConnectionForRecovery => {
                transmit(pdu.emit(), Vec::new())
            }
            Self::Logout(pdu) => transmit(LogoutRequest { exp_stat_sn, ..pdu }.emit(), Vec::new()),
        })
    }
}

fn transmit(header: Header, data: Vec<u8>) -> Transmit {
    let payload = if data.is_empty() { Payload::None } else { Payload::Inline(data) };
    Transmit { header, payload }
}
