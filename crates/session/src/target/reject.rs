//! Reject: the target returns a PDU that it cannot accept, and ends the connection or session if it must (RFC 7143
//! §11.17).

use super::immediate::Ticket;
use super::lane::{Lane, Phase};
use super::request::{Content, discard};
use super::session::Session;
use super::transmit::Reply;
use crate::peer_fault::{Offender, PeerFault, Recovery};
use crate::seam::{Destination, Fault, Payload, Transmit};
use pdu::{Header, Instant, LaneId, Reject, RejectReason};
use std::collections::VecDeque;

/// The most Rejects that wait to be sent on one lane. Only an initiator that does not read them causes more.
const REJECTS_WAITING_MAX: u32 = 16;

impl Lane {
    /// Queues a Reject. `false` if too many wait.
    pub(super) fn queue_reject(
        &mut self,
        header: &Header,
        reason: RejectReason,
        next_data_or_r2t_sn: u32,
    ) -> bool {
        let has_room = self.rejects_waiting < REJECTS_WAITING_MAX;
        if has_room {
            self.rejects_waiting += 1;
            let header = Box::new(header.clone());
            self.replies.push_back(Reply::Reject { reason, header, next_data_or_r2t_sn });
        }
        has_room
    }
}

impl Session {
    /// Rejects a PDU; the connection goes on.
    pub(super) fn refuse(
        &mut self,
        lane: LaneId,
        header: &Header,
        reason: RejectReason,
    ) -> Result<Destination, Fault> {
        if !self.lanes.has(lane) {
            return Ok(discard(header));
        }
        let outlet = self.lanes.of_responses(lane);
        // A split session that is not complete, or not any more, has none.
        let Some(state) = outlet.and_then(|outlet| self.lanes.get_mut(outlet)) else {
            return Ok(self.discard_data(lane, header));
        };
        if !state.queue_reject(header, reason, 0) {
            if let Some(state) = self.lanes.get_mut(lane) {
                state.phase = Phase::Failed;
            }
            return Err(Fault::Limit("rejected PDUs whose Rejects wait to be sent"));
        }
        Ok(self.discard_data(lane, header))
    }

    /// Rejects a PDU whose data segment has a wrong digest, at error recovery level 1 and above. The PDU counts as lost
    /// (RFC 7143 §7.8): a command's CmdSN is still missing, and a write's data is requested again.
    pub(super) fn reject_data(&mut self, now: Instant, lane: LaneId, header: &Header, content: Content) {
        self.counters.data_digest_errors += 1;
        if let Some(state) = self.lanes.get_mut(lane) {
            // The Reject only speeds up the recovery, so it may be omitted if too many wait.
            state.queue_reject(header, RejectReason::DataDigestError, 0);
        }
        match content {
            Content::Command(task) => {
                if task.immediate {
                    self.redeem(task.ticket());
                }
                self.release_buffers(*task);
            }
            Content::DataOut(arriving) => self.lose_arriving(now, &arriving),
            Content::Text(_, ticket) | Content::Nop(_, ticket) => {
                if ticket != Ticket::Numbered {
                    self.redeem(ticket);
                }
            }
            Content::Discarded => {}
        }
    }

    /// Rejects a PDU and gives up its connection.
    pub(super) fn fail(
        &mut self,
        lane: LaneId,
        header: &Header,
        reason: RejectReason,
        fault: Fault,
    ) -> Fault {
        // Only Rejects, which explain the end, are still sent.
        if let Some(state) = self.lanes.get_mut(lane) {
            state.clear_transfers();
            let is_reject = |reply: &Reply| matches!(reply, Reply::Reject { .. });
            let (rejects, others): (VecDeque<_>, VecDeque<_>) =
                core::mem::take(&mut state.replies).into_iter().partition(is_reject);
            state.replies = rejects;
            // The dropped replies free their places in the window, because the session may go on without this lane.
            others.into_iter().for_each(|reply| self.drop_reply(reply));
        }
        let result = self.refuse(lane, header, reason);
        if let Some(state) = self.lanes.get_mut(lane) {
            state.phase = Phase::Failed;
            state.incoming = None;
        }
        result.err().unwrap_or(fault)
    }

    /// Answers a PDU that breaks the protocol.
    pub(super) fn refuse_fault(
        &mut self,
        lane: LaneId,
        header: &Header,
        fault: PeerFault,
    ) -> Result<Destination, Fault> {
        let reason = fault.reject_reason().unwrap_or(RejectReason::ProtocolError);
        match fault.recovery(Offender::Initiator) {
            Recovery::Pdu => self.refuse(lane, header, reason),
            Recovery::Connection | Recovery::Session => {
                Err(self.fail(lane, header, reason, Fault::Peer(fault)))
            }
        }
    }

    pub(super) fn emit_reject(
        &mut self,
        lane: LaneId,
        reason: RejectReason,
        rejected: &Header,
        next_data_or_r2t_sn: u32,
    ) -> Option<Transmit> {
        let state = self.lanes.get_mut(lane)?;
        state.rejects_waiting = state.rejects_waiting.saturating_sub(1);
        let stat_sn = state.status.take();
        // A header with many AHSs can be longer than the data segment that the initiator accepts.
        let bytes_max = state.parameters.send_segment_bytes_max as usize;
        let mut data = Vec::with_capacity(Header::BHS_BYTES);
        rejected.write_to(&mut data);
        data.truncate(bytes_max);
        self.counters.rejects += 1;
        let header = Reject {
            reason,
            stat_sn,
            window: self.order.tell(),
            next_data_or_r2t_sn,
            data_segment_bytes: u32::try_from(data.len()).unwrap_or(u32::MAX),
        }
        .emit();
        Some(Transmit { header, payload: Payload::Inline(data) })
    }
}
