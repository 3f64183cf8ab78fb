//! A session's state of one lane: its sequence numbers, the arriving PDU, and the queues of PDUs to send.

use super::event::TaskId;
use super::immediate::ImmediateCommands;
use super::reminder::Reminder;
use super::request::Incoming;
use super::sent_status::SentStatuses;
use super::snack::Resend;
use super::status::StatusNumbers;
use super::text::Exchange;
use super::transmit::{Reply, Unnumbered};
use crate::inflow::Inflow;
use crate::lanes::{Lanes, Roled};
use crate::liveness::Liveness;
use crate::parameters::{ConnectionParameters, Established, LaneRole};
use pdu::{Cid, Instant, LaneId, StatSn};
use std::collections::VecDeque;

/// The phase of a lane's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The lane receives and sends.
    Open,
    /// The lane's logout is being answered: nothing more is taken from it.
    LoggingOut,
    /// The driver has been told to close it.
    LoggedOut,
    /// The lane is unusable; queued PDUs may still be sent.
    Failed,
}

/// One connection of the session.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) cid: Cid,
    pub(super) parameters: ConnectionParameters,
    pub(super) role: LaneRole,
    pub(super) phase: Phase,
    pub(super) status: StatusNumbers,
    /// Responses that may have to be sent again.
    pub(super) sent: SentStatuses,
    /// Runs of PDUs that the initiator has requested again.
    pub(super) resends: VecDeque<Resend>,
    /// When to remind the initiator of responses that it has not acknowledged.
    pub(super) reminder: Reminder,
    /// The lane's tasks are about to move to another: nothing of them is sent here any more.
    pub(super) is_quiesced: bool,
    /// The PDU whose data segment is arriving.
    pub(super) incoming: Option<Incoming>,
    /// PDUs other than responses. They go first, because the initiator's data waits for them.
    pub(super) unnumbered: VecDeque<Unnumbered>,
    /// Responses, in their order.
    pub(super) replies: VecDeque<Reply>,
    /// Tasks with Data-In to send. They take turns, so that a long read does not delay a short one.
    pub(super) data_in: VecDeque<TaskId>,
    /// Bytes that the first of them has sent in its turn.
    pub(super) turn_bytes: u32,
    pub(super) text: Option<Exchange>,
    pub(super) liveness: Liveness,
    pub(super) inflow: Inflow,
    /// PDUs that were pulled, and how many of them have left.
    pub(super) pulled_pdus: u64,
    pub(super) left_pdus: u64,
    pub(super) immediate: ImmediateCommands,
    /// Rejects among the replies.
    pub(super) rejects_waiting: u32,
}

impl Lane {
    pub(super) fn new(now: Instant, established: &Established, unacknowledged_max: u32) -> Self {
        Self {
            cid: established.cid,
            parameters: established.connection,
            role: established.role,
            phase: Phase::Open,
            status: StatusNumbers::new(established.stat_sn, unacknowledged_max),
            sent: SentStatuses::default(),
            resends: VecDeque::new(),
            reminder: Reminder::default(),
            is_quiesced: false,
            incoming: None,
            unnumbered: VecDeque::new(),
            replies: VecDeque::new(),
            data_in: VecDeque::new(),
            turn_bytes: 0,
            text: None,
            liveness: Liveness::new(now),
            inflow: Inflow::new(now),
            pulled_pdus: 0,
            left_pdus: 0,
            immediate: ImmediateCommands::default(),
            rejects_waiting: 0,
        }
    }

    /// The StatSN after all responses sent so far. A fence waits for its acknowledgement (RFC 7143 §4.2.2.3.3).
    pub(super) fn mark(&self) -> StatSn {
        self.status.next()
    }

    /// Whether a queued PDU may be sent now.
    pub(super) fn wants_transmit(&self) -> bool {
        !self.unnumbered.is_empty()
            || !self.data_in.is_empty()
            || !self.resends.is_empty()
            || (!self.replies.is_empty() && !self.is_full())
            || (self.is_blocked() && self.may_be_asked())
    }

    /// Whether asking the initiator for acknowledgements may help now.
    pub(super) fn may_be_asked(&self) -> bool {
        !self.liveness.is_pinging() && self.status.may_ask()
    }

    /// Whether replies wait because too many responses are not acknowledged.
    pub(super) fn is_blocked(&self) -> bool {
        !self.replies.is_empty() && self.is_full()
    }

    /// Whether no further response may be sent before one is acknowledged.
    pub(super) fn is_full(&self) -> bool {
        self.status.is_full() || self.sent.is_full()
    }

    /// Empties the queues of PDUs to send, except for replies.
    pub(super) fn clear_transfers(&mut self) {
        self.unnumbered.clear();
        self.data_in.clear();
        self.resends.clear();
        self.turn_bytes = 0;
    }
}

impl Roled for Lane {
    fn role(&self) -> LaneRole {
        self.role
    }

    fn is_usable(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::LoggingOut)
    }
}

/// The lane, if it exists and may still send PDUs of tasks.
pub(super) fn outlet(lanes: &mut Lanes<Lane>, id: LaneId) -> Option<&mut Lane> {
    lanes.get_mut(id).filter(|lane| lane.phase != Phase::LoggedOut && !lane.is_quiesced)
}
