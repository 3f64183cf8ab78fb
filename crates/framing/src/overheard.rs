//! An endpoint with a listener to the PDUs that arrive for it.

use pdu::{Header, Instant, LaneId};
use session::seam::{Buffers, Destination, Digest, Endpoint, Fault, LaneLoss, Transmit};

/// Receives each event before the endpoint does, and must not affect it.
pub trait Listener {
    /// The header of a PDU has arrived, with a good digest if it has one.
    fn header_received(&mut self, now: Instant, header: &Header);

    /// The data segment of the last such PDU has arrived too. PDUs without data are complete with their header.
    fn data_received(&mut self) {}
}

/// `endpoint`, with `listener` in front of it.
#[derive(Debug)]
pub struct Overheard<'a, E, L: ?Sized> {
    /// The receiver of the PDUs.
    pub endpoint: &'a mut E,
    /// Hears of each PDU before the endpoint.
    pub listener: &'a mut L,
}

impl<E: Endpoint, L: Listener + ?Sized> Endpoint for Overheard<'_, E, L> {
    type Event = E::Event;

    fn receive_header(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        digest: Digest,
        buffers: &mut dyn Buffers,
    ) -> Result<Destination, Fault> {
        if digest == Digest::Good {
            self.listener.header_received(now, header);
        }
        self.endpoint.receive_header(now, lane, header, digest, buffers)
    }

    fn receive_data(
        &mut self,
        now: Instant,
        lane: LaneId,
        inline: &[u8],
        digest: Digest,
    ) -> Result<(), Fault> {
        self.listener.data_received();
        self.endpoint.receive_data(now, lane, inline, digest)
    }

    fn poll_transmit(&mut self, now: Instant, lane: LaneId, budget_bytes: u32) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, lane, budget_bytes)
    }

    fn wants_transmit(&self, lane: LaneId) -> bool {
        self.endpoint.wants_transmit(lane)
    }

    fn transmitted(&mut self, now: Instant, lane: LaneId, pdus: u32) {
        self.endpoint.transmitted(now, lane, pdus);
    }

    fn heard(&mut self, now: Instant, lane: LaneId) {
        self.endpoint.heard(now, lane);
    }

    fn doubts(&self, lane: LaneId) -> bool {
        self.endpoint.doubts(lane)
    }

    fn delivered(&mut self, now: Instant, lane: LaneId, bytes: u64) {
        self.endpoint.delivered(now, lane, bytes);
    }

    fn lane_lost(&mut self, now: Instant, lane: LaneId, loss: LaneLoss) {
        self.endpoint.lane_lost(now, lane, loss);
    }

    fn poll_event(&mut self) -> Option<E::Event> {
        self.endpoint.poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }
}
