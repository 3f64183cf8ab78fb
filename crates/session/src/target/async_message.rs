//! Asynchronous messages: unsolicited news for the initiator (RFC 7143 §11.9).

use super::event::AsyncMessage;
use super::lane::Phase;
use super::session::Session;
use super::transmit::Reply;
use crate::seam::{Payload, Transmit};
use pdu::{AsyncEvent, Cid, Instant, LaneId, Lun, SenseSegment};
use std::collections::BTreeSet;
use std::time::Duration;

/// A message that waits to be sent.
#[derive(Debug)]
pub(super) struct Message {
    event: AsyncEvent,
    lun: Lun,
    sense: Vec<u8>,
}

/// Extra time for a logout that left within the seconds that the initiator was given.
const LOGOUT_TRAVEL: Duration = Duration::from_secs(1);

impl Session {
    /// Sends the initiator a message on an open lane; news of a lane's drop goes to that lane. A discovery session gets
    /// none (RFC 7143 §7.4.3).
    pub fn async_message(&mut self, _now: Instant, message: &AsyncMessage) {
        let first = self.open_lanes().next();
        let (lane, message) = match message {
            AsyncMessage::Scsi { lun, sense } => {
                (first, Message { event: AsyncEvent::Scsi, lun: *lun, sense: sense.clone() })
            }
            AsyncMessage::ConnectionDrop { lane, wait_seconds } => {
                let cid = self.lanes.get(*lane).map(|lane| lane.cid).unwrap_or_default();
                let wait_seconds = *wait_seconds;
                (
                    Some(*lane),
                    Message::of(AsyncEvent::ConnectionDrop { cid, wait_seconds, retain_seconds: 0 }),
                )
            }
            AsyncMessage::SessionDrop { wait_seconds } => {
                let wait_seconds = *wait_seconds;
                (first, Message::of(AsyncEvent::SessionDrop { wait_seconds, retain_seconds: 0 }))
            }
        };
        if let Some(lane) = lane.filter(|_| !self.is_discovery()) {
            self.push_reply(lane, Reply::Async(message));
        }
    }

    /// Asks the initiator to log out every lane within `seconds`, including lanes that join later. One second after
    /// that time, lanes that are left are closed, and the session with them. A discovery session is closed at once,
    /// because it may not be asked (RFC 7143 §7.4.3).
    pub fn request_logout(&mut self, now: Instant, seconds: u16) {
        if self.is_discovery() {
            return self.close(now);
        }
        // A split session is logged out as one.
        let lanes: BTreeSet<LaneId> =
            self.open_lanes().filter_map(|lane| self.lanes.of_responses(lane)).collect();
        for lane in lanes {
            self.ask_for_logout(lane, seconds);
        }
        self.logout_deadline = Some(now + Duration::from_secs(seconds.into()) + LOGOUT_TRAVEL);
    }

    /// Asks for the logout of a lane that was added after the others had been asked.
    pub(super) fn ask_late_lane_for_logout(&mut self, now: Instant, lane: LaneId) {
        let Some(deadline) = self.logout_deadline.filter(|_| !self.lanes.are_split()) else { return };
        let left = deadline.saturating_duration_since(now).saturating_sub(LOGOUT_TRAVEL);
        self.ask_for_logout(lane, u16::try_from(left.as_secs()).unwrap_or(u16::MAX));
    }

    /// Asks on the lane itself (§11.9.1).
    fn ask_for_logout(&mut self, lane: LaneId, seconds: u16) {
        let message = Message::of(AsyncEvent::LogoutRequest { seconds_max: seconds });
        self.push_reply(lane, Reply::Async(message));
    }

    /// Reports on another lane that a connection was lost (§7.1.4.3).
    pub(super) fn report_drop(&mut self, lane: LaneId, cid: Cid, retain_seconds: u16) {
        let wait_seconds = self.parameters.default_time2wait_s;
        let event = AsyncEvent::ConnectionDrop { cid, wait_seconds, retain_seconds };
        self.push_reply(lane, Reply::Async(Message::of(event)));
    }

    pub(super) fn emit_async(&mut self, lane: LaneId, message: &Message) -> Option<Transmit> {
        let stat_sn = self.lanes.get_mut(lane)?.status.take();
        let data = SenseSegment { sense: &message.sense, rest: &[] }.emit();
        let header = pdu::AsyncMessage {
            event: message.event,
            lun: message.lun,
            stat_sn,
            window: self.order.tell(),
            data_segment_bytes: u32::try_from(data.len()).unwrap_or(u32::MAX),
        }
        .emit();
        let payload = if data.is_empty() { Payload::None } else { Payload::Inline(data) };
        Some(Transmit { header, payload })
    }

    /// Lanes on which everything still works, in the order of their numbers.
    pub(super) fn open_lanes(&self) -> impl Iterator<Item = LaneId> {
        self.lanes.select(|lane| lane.phase == Phase::Open)
    }
}

impl Message {
    fn of(event: AsyncEvent) -> Self {
        Self { event, lun: Lun::default(), sense: Vec::new() }
    }
}
