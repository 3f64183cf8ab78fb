//! NOP: pings in both directions, and the liveness of lanes (RFC 7143 §11.18, §11.19).

use super::event::Event;
use super::immediate::{ImmediateKind, Ticket};
use super::lane::{Lane, Phase};
use super::request::{Content, Request};
use super::session::Session;
use super::transmit::{Reply, Unnumbered};
use crate::lanes::Roled;
use crate::liveness::{Measure, Patience};
use crate::parameters::TargetLimits;
use crate::seam::{Destination, Fault, LaneLoss, Payload, Transmit};
use pdu::{Header, Instant, Itt, LaneId, Lun, NopIn, NopOut, StatSn, Ttt};
use std::time::Duration;

/// The silence after which an unanswered ping is repeated at error recovery level 1 and above, where a PDU with a wrong
/// digest is dropped without ending its connection. An initiator that is sending is alive: every PDU tells what it has
/// received, and its answer may be behind long segments.
const REPEAT_AFTER: Duration = Duration::from_secs(1);

impl Session {
    pub(super) fn receive_nop(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        pdu: NopOut,
    ) -> Result<Destination, Fault> {
        // An answer to a ping, or an acknowledgement. It carries nothing else.
        if pdu.itt.is_none() {
            if let Some(lane) = self.lanes.get_mut(lane).filter(|_| pdu.ttt.is_some()) {
                lane.liveness.answered(now);
            }
            return Ok(self.discard_data(lane, header));
        }
        let ticket = match self.admit(lane, header, pdu.cmd_sn, ImmediateKind::Other)? {
            Ok(ticket) => ticket,
            Err(destination) => return Ok(destination),
        };
        if pdu.data_segment_bytes == 0 {
            self.accept(now, lane, pdu.cmd_sn, ticket, Request::Nop(pdu, Vec::new()));
            return Ok(Destination::None);
        }
        self.await_data(lane, header, Content::Nop(pdu, ticket));
        Ok(Destination::Inline { bytes: pdu.data_segment_bytes })
    }

    /// Takes the initiator's ping, when its data is complete.
    pub(super) fn take_nop(
        &mut self,
        now: Instant,
        lane: LaneId,
        pdu: NopOut,
        ticket: Ticket,
        data: &[u8],
    ) -> Result<(), Fault> {
        // The answer returns no more data than the initiator accepts.
        let bytes_max =
            self.lanes.get(lane).map_or(0, |lane| lane.parameters.send_segment_bytes_max as usize);
        let data = &data[..data.len().min(bytes_max)];
        if !self.hold_inline(data.len()) {
            return Err(Fault::Limit("ping data that waits to be returned"));
        }
        self.accept(now, lane, pdu.cmd_sn, ticket, Request::Nop(pdu, data.to_vec()));
        Ok(())
    }

    pub(super) fn answer_ping(&mut self, lane: LaneId, ticket: Ticket, pdu: &NopOut, data: Vec<u8>) {
        self.push_reply(lane, Reply::Echo { itt: pdu.itt, data, ticket });
    }

    pub(super) fn emit_echo(
        &mut self,
        lane: LaneId,
        itt: Itt,
        data: Vec<u8>,
        ticket: Ticket,
    ) -> Option<Transmit> {
        self.redeem(ticket);
        self.release_inline(data.len());
        // In a split session, only what goes with the responses is one of them.
        let stat_sn = match self.lanes.numbers_responses(lane) {
            true => self.lanes.get_mut(lane)?.status.take(),
            false => self.next_status(lane)?,
        };
        let header = NopIn {
            lun: Lun::default(),
            itt,
            ttt: Ttt::NONE,
            stat_sn,
            window: self.order.tell(),
            data_segment_bytes: u32::try_from(data.len()).unwrap_or(u32::MAX),
        }
        .emit();
        let payload = if data.is_empty() { Payload::None } else { Payload::Inline(data) };
        Some(Transmit { header, payload })
    }

    /// Pings the initiator to make it acknowledge responses, unless the last ping is unanswered or asking cannot help.
    pub(super) fn solicit_acknowledgement(&mut self, now: Instant, lane: LaneId) {
        let Some(state) = self.lanes.get_mut(lane) else { return };
        if state.may_be_asked() {
            state.status.note_asked();
        } else if !state.liveness.is_pinging() {
            return;
        }
        self.ping(now, lane);
    }

    /// Pings the initiator, unless the last ping is unanswered.
    fn ping(&mut self, now: Instant, lane: LaneId) {
        let repeats = self.retransmits();
        let Some(state) = self.lanes.get_mut(lane).filter(|lane| lane.phase == Phase::Open) else { return };
        let liveness = &mut state.liveness;
        match liveness.asked_at() {
            None => liveness.ask(now, now),
            Some(asked_at) if repeats && asked_at.max(liveness.heard_at()) + REPEAT_AFTER <= now => {
                liveness.ask_again(now);
            }
            Some(_) => return,
        }
        state.unnumbered.push_back(Unnumbered::Ping);
    }

    pub(super) fn emit_ping(&mut self, lane: LaneId) -> Option<Transmit> {
        let state = self.lanes.get_mut(lane)?;
        state.liveness.ping_pulled(state.pulled_pdus + 1);
        let ttt = self.transfer_tags.next();
        self.emit_unasked(lane, ttt)
    }

    pub(super) fn emit_window(&mut self, lane: LaneId) -> Option<Transmit> {
        self.emit_unasked(lane, Ttt::NONE)
    }

    /// The number of the next response to what comes on a lane. In a split session, a lane counts for itself until that of
    /// the responses joins; `None` once that is lost.
    fn next_status(&self, lane: LaneId) -> Option<StatSn> {
        let own = || Some(lane).filter(|lane| self.lanes.get(*lane).is_some_and(Lane::is_usable));
        let responses = self.lanes.of_responses(lane).or_else(own)?;
        self.lanes.get(responses).map(|lane| lane.status.next())
    }

    fn emit_unasked(&mut self, lane: LaneId, ttt: Ttt) -> Option<Transmit> {
        let stat_sn = self.next_status(lane)?;
        let window = self.order.tell();
        let header =
            NopIn { lun: Lun::default(), itt: Itt::NONE, ttt, stat_sn, window, data_segment_bytes: 0 }.emit();
        Some(Transmit { header, payload: Payload::None })
    }

    /// Sends a ping, whose StatSN tells the initiator how many responses were sent.
    pub(super) fn remind_of_responses(&mut self, now: Instant, lane: LaneId) {
        if self.lanes.get_mut(lane).is_some_and(|lane| lane.reminder.falls_due(now)) {
            self.ping(now, lane);
        }
    }

    /// Sends a NOP-In, whose ExpCmdSN tells the initiator the missing command, on all lanes: the command may have been
    /// lost on any.
    pub(super) fn remind_of_command(&mut self, now: Instant) {
        if self.order.falls_due(now) {
            for lane in self.lanes.values_mut().filter(|lane| lane.phase == Phase::Open) {
                lane.unnumbered.push_back(Unnumbered::Window);
            }
        }
    }

    /// How long the session's lanes may be silent now. An initiator with outstanding work gets more time.
    pub(super) fn patience(&self) -> Patience {
        let TargetLimits { ping_after, ping_timeout, .. } = self.limits;
        Patience { ping_after, ping_timeout, is_loaded: !self.tasks.is_empty() }
    }

    /// Pings a lane that has been silent for long, and gives it up if it stays silent. A discovery session may not be
    /// pinged (RFC 7143 §7.4.3): silence alone ends it.
    pub(super) fn lane_is_silent(&mut self, now: Instant, id: LaneId) {
        let patience = self.patience();
        let is_discovery = self.is_discovery();
        let Some(lane) = self.lanes.get_mut(id) else { return };
        match lane.liveness.measure(now, &patience) {
            Measure::Late if lane.liveness.ping_has_left() => self.ping(now, id),
            Measure::None | Measure::Late => {}
            Measure::Ping if !is_discovery => self.ping(now, id),
            Measure::Ping | Measure::GiveUp => {
                lane.phase = Phase::Failed;
                let fault = Some(Fault::Timeout("the connection is silent and a ping was not answered"));
                self.events.push_back(Event::CloseLane { lane: id, loss: LaneLoss::Broken, fault });
            }
        }
    }
}
