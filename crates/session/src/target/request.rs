//! Requests of an initiator, from the arrival of their data segment to their turn.

use super::command_order::{Arrival, Delivery};
use super::data_out::Arriving;
use super::event::TaskId;
use super::immediate::{ImmediateKind, Ticket};
use super::session::Session;
use super::task::Task;
use crate::seam::{Destination, Fault};
use pdu::{
    CmdSn, Header, Instant, LaneId, LogoutRequest, NopOut, RejectReason, TaskManagementRequest, TextRequest,
};

/// A PDU whose data segment is arriving.
#[derive(Debug)]
pub(super) struct Incoming {
    /// The header, for a Reject if the data's digest is wrong.
    pub(super) header: Header,
    pub(super) content: Content,
}

/// The PDU's content, which is served when the data segment is complete.
#[derive(Debug)]
pub(super) enum Content {
    /// A command with immediate data.
    Command(Box<Task>),
    DataOut(Arriving),
    Text(TextRequest, Ticket),
    Nop(NopOut, Ticket),
    /// Nothing: the data was not wanted.
    Discarded,
}

/// A request that takes its turn in the command order, or is immediate.
#[derive(Debug)]
pub(super) enum Request {
    Command(TaskId),
    TaskManagement(TaskManagementRequest),
    Text(TextRequest, Vec<u8>),
    Logout(LogoutRequest),
    Nop(NopOut, Vec<u8>),
}

/// A request that waits in the command window.
#[derive(Debug)]
pub(super) struct Numbered {
    pub(super) lane: LaneId,
    pub(super) request: Request,
}

/// The most inline data (text, ping data), in bytes, that a session holds for waiting requests and unsent answers.
/// Without this limit, an attacker could fill the memory with a window of early pings, each as long as a segment may
/// be.
pub(super) const INLINE_BYTES_MAX: usize = 1 << 20;

/// The destination of a data segment that nobody wants.
pub(super) fn discard(header: &Header) -> Destination {
    match header.data_segment_bytes() {
        0 => Destination::None,
        bytes => Destination::Discard { bytes },
    }
}

impl Session {
    /// Remembers a PDU while its data segment is arriving.
    pub(super) fn await_data(&mut self, lane: LaneId, header: &Header, content: Content) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.incoming = Some(Incoming { header: header.clone(), content });
        }
    }

    /// Discards a PDU with its data segment.
    pub(super) fn discard_data(&mut self, lane: LaneId, header: &Header) -> Destination {
        if header.data_segment_bytes() > 0 {
            self.await_data(lane, header, Content::Discarded);
        }
        discard(header)
    }

    /// Admits a request by its I bit and its CmdSN. The error is the destination of a refused request's data.
    pub(super) fn admit(
        &mut self,
        lane: LaneId,
        header: &Header,
        cmd_sn: CmdSn,
        kind: ImmediateKind,
    ) -> Result<Result<Ticket, Destination>, Fault> {
        if header.is_immediate() {
            return match self.admit_immediate(lane, kind) {
                Some(ticket) => Ok(Ok(ticket)),
                // Initiators send many of these at once, and repeat them, so the Reject may be omitted if too many
                // wait.
                None if kind == ImmediateKind::TaskReassign => {
                    if let Some(state) = self.lanes.get_mut(lane) {
                        state.queue_reject(header, RejectReason::ImmediateCommandReject, 0);
                    }
                    Ok(Err(self.discard_data(lane, header)))
                }
                None => self.refuse(lane, header, RejectReason::ImmediateCommandReject).map(Err),
            };
        }
        let expected = self.is_expected(cmd_sn);
        Ok(if expected { Ok(Ticket::Numbered) } else { Err(self.discard_data(lane, header)) })
    }

    /// Whether a numbered request is to be taken. Counts an ignored one.
    pub(super) fn is_expected(&mut self, cmd_sn: CmdSn) -> bool {
        let expected = self.order.classify(cmd_sn) != Arrival::Ignored;
        if !expected {
            self.counters.ignored_commands += 1;
        }
        expected
    }

    /// Takes a complete request. An immediate one is served at once, a numbered one in its turn.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        lane: LaneId,
        cmd_sn: CmdSn,
        ticket: Ticket,
        request: Request,
    ) {
        match ticket {
            Ticket::Immediate(..) => self.serve(now, lane, ticket, request),
            Ticket::Numbered => {
                if let Err(ignored) = self.order.arrive(cmd_sn, Numbered { lane, request }) {
                    self.counters.ignored_commands += 1;
                    self.drop_request(ignored.request);
                }
            }
        }
        self.advance(now);
    }

    /// Serves all requests whose turn has come.
    pub(super) fn advance(&mut self, now: Instant) {
        let mut has_moved = false;
        while !self.awaits_rest()
            && !self.starts_function(now)
            && let Some(delivery) = self.order.deliver()
        {
            has_moved = true;
            match delivery {
                Delivery::Plugged => self.redeem(Ticket::Numbered),
                Delivery::Command(numbered) => {
                    self.serve(now, numbered.lane, Ticket::Numbered, numbered.request);
                }
            }
        }
        if self.retransmits() {
            self.order.note_progress(now, has_moved);
        }
    }

    /// Serves a request now.
    pub(super) fn serve(&mut self, now: Instant, lane: LaneId, ticket: Ticket, request: Request) {
        match request {
            Request::Command(task) => self.hand_out(now, task),
            Request::TaskManagement(pdu) => self.manage_tasks(now, lane, ticket, &pdu),
            Request::Text(pdu, text) => self.serve_text(lane, ticket, &pdu, &text),
            Request::Logout(pdu) => self.log_out(now, lane, ticket, &pdu),
            Request::Nop(pdu, data) => self.answer_ping(lane, ticket, &pdu, data),
        }
    }

    /// Forgets a request that was never served.
    pub(super) fn drop_request(&mut self, request: Request) {
        match request {
            Request::Command(id) => {
                if let Some(task) = self.tasks.remove(id) {
                    self.release_buffers(task);
                }
            }
            Request::Text(_, data) | Request::Nop(_, data) => self.release_inline(data.len()),
            Request::TaskManagement(_) | Request::Logout(_) => {}
        }
    }

    /// Counts inline data to be held. `false` if there is no room for it.
    pub(super) fn hold_inline(&mut self, bytes: usize) -> bool {
        // A single segment is always accepted: this side declared its maximum length.
        if self.inline_bytes > 0 && self.inline_bytes + bytes > INLINE_BYTES_MAX {
            return false;
        }
        self.inline_bytes += bytes;
        true
    }

    pub(super) fn release_inline(&mut self, bytes: usize) {
        self.inline_bytes = self.inline_bytes.saturating_sub(bytes);
    }
}
