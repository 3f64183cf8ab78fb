//! Asynchronous Messages: unsolicited news from the target (RFC 7143 §11.9).

use super::data_sequence::Arrival;
use super::event::{AsyncEvent, Event};
use super::session::Session;
use crate::seam::{Fault, LaneLoss};
use pdu::{AsyncEvent as Code, AsyncMessage, Duration, Instant, LaneId, Opcode, SenseSegment};

impl Session {
    pub(super) fn receive_async(
        &mut self,
        now: Instant,
        lane: LaneId,
        pdu: &AsyncMessage,
        data: &[u8],
    ) -> Result<(), Fault> {
        if self.receive_status(lane, pdu.stat_sn)? == Arrival::Repeated {
            return Ok(());
        }
        let segment = SenseSegment::parse(Opcode::AsyncMessage, data)?;
        let sense = segment.sense.to_vec();
        self.events.push_back(Event::Async(AsyncEvent { code: pdu.event, lun: pdu.lun, sense, lane }));
        match pdu.event {
            Code::LogoutRequest { seconds_max } => {
                if let Some(lane) = self.lanes.get_mut(lane) {
                    let by = now + Duration::from_secs(seconds_max.into());
                    // A later request does not take back an earlier one.
                    lane.logout_by = Some(lane.logout_by.map_or(by, |earlier| earlier.min(by)));
                }
                self.logout_lane(now, lane);
            }
            // Treats the connection as if this side had found it broken (§7.1.4.3).
            Code::ConnectionDrop { cid, wait_seconds, retain_seconds } if self.recovers_connections() => {
                let seconds = |seconds: u16| Duration::from_secs(seconds.into());
                let dropped: Vec<LaneId> = self.lanes.select(|lane| lane.cid == cid).collect();
                for id in dropped {
                    if let Some(lane) = self.lanes.get_mut(id) {
                        lane.drop_told = Some((seconds(wait_seconds), seconds(retain_seconds)));
                    }
                    self.close_lane(id, LaneLoss::Broken, None);
                }
            }
            // The target will not answer anything on this connection; without connection recovery the session ends.
            Code::ConnectionDrop { cid, .. } if self.lanes.values().any(|lane| lane.cid == cid) => {
                self.fail();
            }
            Code::SessionDrop { .. } => self.fail(),
            Code::NegotiationRequest { .. } => self.offer_negotiation(now, lane),
            // Task termination applies only with FastAbort, which this side does not offer.
            Code::Scsi | Code::ConnectionDrop { .. } | Code::TaskTermination | Code::Other { .. } => {}
        }
        Ok(())
    }
}
