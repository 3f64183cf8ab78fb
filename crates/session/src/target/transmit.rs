//! The PDUs that wait to be sent on a lane, and their order: first those that the initiator's data waits for, then
//! responses, then the data of reads in turns.

use super::async_message::Message;
use super::event::TaskId;
use super::immediate::Ticket;
use super::lane::{Lane, Phase};
use super::logout::Closing;
use super::sent_status::SentStatus;
use super::session::Session;
use super::text::TextPiece;
use crate::seam::Transmit;
use pdu::{Header, Instant, Itt, LaneId, LogoutOutcome, RejectReason, TaskManagementOutcome, Ttt};

/// A PDU other than a response: it carries the next StatSN without taking it (RFC 7143 §11.8.3, §11.19.2).
#[derive(Debug)]
pub(super) enum Unnumbered {
    R2t {
        task: TaskId,
        ttt: Ttt,
    },
    /// A NOP-In that wants an answer.
    Ping,
    /// A NOP-In that only tells the command window.
    Window,
}

/// A PDU that takes a StatSN.
#[derive(Debug)]
pub(super) enum Reply {
    Response(TaskId),
    /// The answer to the initiator's ping.
    Echo {
        itt: Itt,
        data: Vec<u8>,
        ticket: Ticket,
    },
    TaskManagement {
        itt: Itt,
        outcome: TaskManagementOutcome,
        ticket: Ticket,
        is_fenced: bool,
    },
    /// The answer to a TASK REASSIGN that moved a task to this lane.
    Reassigned {
        itt: Itt,
        ticket: Ticket,
        task: TaskId,
        exp_data_sn: u32,
    },
    Text(TextPiece),
    Logout {
        itt: Itt,
        outcome: LogoutOutcome,
        ticket: Ticket,
        closing: Option<Closing>,
        /// Whether tasks are kept for another connection.
        retains: bool,
    },
    Reject {
        reason: RejectReason,
        header: Box<Header>,
        /// The value for the Reject's DataSN/R2TSN field ([`pdu::Reject::next_data_or_r2t_sn`]).
        next_data_or_r2t_sn: u32,
    },
    Async(Message),
}

impl Session {
    pub(super) fn next_pdu(&mut self, now: Instant, lane: LaneId, budget_bytes: u32) -> Option<Transmit> {
        self.unblock_replies(now, lane);
        while let Some(unnumbered) = self.lanes.get_mut(lane)?.unnumbered.pop_front() {
            let pdu = match unnumbered {
                Unnumbered::R2t { task, ttt } => self.emit_r2t(now, lane, task, ttt),
                Unnumbered::Ping => self.emit_ping(lane),
                Unnumbered::Window => self.emit_window(lane),
            };
            if pdu.is_some() {
                return pdu;
            }
        }
        if let Some(pdu) = self.emit_resend(lane) {
            return Some(pdu);
        }
        while let Some(reply) = self.next_reply(lane) {
            let task = if let Reply::Response(task) = &reply { Some(*task) } else { None };
            if let Some(pdu) = self.emit_reply(now, lane, reply) {
                self.keep_response(now, lane, task, &pdu);
                return Some(pdu);
            }
        }
        self.emit_data_in(now, lane, budget_bytes)
    }

    /// Keeps a sent response at error recovery level 1 and above.
    fn keep_response(&mut self, now: Instant, lane: LaneId, task: Option<TaskId>, pdu: &Transmit) {
        if !self.retransmits() {
            return;
        }
        if let Some(lane) = self.lanes.get_mut(lane) {
            let other = || SentStatus::Other(Box::new(pdu.clone()));
            lane.sent.keep(task.map_or_else(other, SentStatus::Task));
            lane.reminder.expect(now);
        }
    }

    /// Asks the initiator for acknowledgements if replies wait because too many responses are outstanding.
    fn unblock_replies(&mut self, now: Instant, lane: LaneId) {
        if self.lanes.get(lane).is_some_and(Lane::is_blocked) {
            self.solicit_acknowledgement(now, lane);
        }
    }

    /// The next reply, if one more response may be outstanding.
    fn next_reply(&mut self, lane: LaneId) -> Option<Reply> {
        let lane = self.lanes.get_mut(lane)?;
        if lane.is_full() { None } else { lane.replies.pop_front() }
    }

    fn emit_reply(&mut self, now: Instant, lane: LaneId, reply: Reply) -> Option<Transmit> {
        match reply {
            Reply::Response(task) => self.emit_response(lane, task),
            Reply::Echo { itt, data, ticket } => self.emit_echo(lane, itt, data, ticket),
            Reply::TaskManagement { itt, outcome, ticket, is_fenced } => {
                self.emit_task_management(lane, itt, outcome, ticket, is_fenced)
            }
            Reply::Text(piece) => self.emit_text(lane, piece),
            Reply::Reassigned { itt, ticket, task, exp_data_sn } => {
                self.emit_reassigned(now, lane, itt, ticket, task, exp_data_sn)
            }
            Reply::Logout { itt, outcome, ticket, closing, retains } => {
                self.emit_logout(lane, itt, outcome, ticket, closing, retains)
            }
            Reply::Reject { reason, header, next_data_or_r2t_sn } => {
                self.emit_reject(lane, reason, &header, next_data_or_r2t_sn)
            }
            Reply::Async(message) => self.emit_async(lane, &message),
        }
    }

    /// Frees the place of a request whose reply will never be sent.
    pub(super) fn drop_reply(&mut self, reply: Reply) {
        match reply {
            Reply::Echo { data, ticket, .. } => {
                self.release_inline(data.len());
                self.redeem(ticket);
            }
            Reply::TaskManagement { ticket, .. }
            | Reply::Reassigned { ticket, .. }
            | Reply::Logout { ticket, .. } => self.redeem(ticket),
            Reply::Text(piece) => self.redeem(piece.ticket),
            Reply::Response(_) | Reply::Reject { .. } | Reply::Async(_) => {}
        }
    }

    /// Sends a NOP-In after the window has opened again, if no other PDU is about to tell it (RFC 7143 §11.19): the
    /// initiator may have nothing outstanding whose response could.
    pub(super) fn announce_window(&mut self) {
        if !self.order.has_opened() || self.is_discovery() || self.lanes.values().any(Lane::wants_transmit) {
            return;
        }
        let first = self.open_lanes().next();
        if let Some(lane) = first.and_then(|lane| self.lanes.get_mut(lane)) {
            lane.unnumbered.push_back(Unnumbered::Window);
        }
    }

    /// Queues a reply to what came on a lane, or drops it if its lane is gone or sends nothing more. The answer to a ping
    /// shows that this lane itself works.
    pub(super) fn push_reply(&mut self, came_on: LaneId, reply: Reply) {
        let lane = match reply {
            Reply::Echo { .. } => Some(came_on),
            _ => self.lanes.of_responses(came_on),
        };
        let Some(lane) = lane else { return self.drop_reply(reply) };
        match self.lanes.get_mut(lane).filter(|lane| lane.phase != Phase::LoggedOut) {
            Some(lane) => lane.replies.push_back(reply),
            None => self.drop_reply(reply),
        }
    }
}
