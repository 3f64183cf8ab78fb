//! Whoever watches connections, and must do nothing about what it sees.

use pdu::{Header, Instant, LaneId};
use session::parameters::Established;
use session::seam::{Buffers, Destination, Digest, Endpoint, Fault, LaneLoss, Transmit};
use std::fmt::Debug;
use std::os::fd::BorrowedFd;

/// Is told of every connection whose login is done.
pub trait Observer: Debug + Send + Sync {
    /// A connection begins, on `socket`, which may be asked for what the kernel knows of it, and duplicated for later
    /// questions. What is returned is told of the connection, and dropped with it.
    fn connected(&self, socket: BorrowedFd<'_>, established: &Established) -> Box<dyn ConnectionObserver>;
}

/// Is told what happens on one connection, at once, on the thread that drives it: it should be quick.
pub trait ConnectionObserver: Debug + Send {
    /// The header of a PDU has arrived, and its digest, if it has one, is good.
    fn header_received(&mut self, header: &Header);

    /// The data segment of the last of those has arrived, too. PDUs without one are complete with their header.
    fn data_received(&mut self);

    /// A PDU was made, and waits for the socket: from now on it belongs to this connection.
    fn pulled(&mut self, header: &Header);

    /// The socket took some bytes, and with them the last ones of the first `pdus` of those that were pulled.
    fn sent(&mut self, bytes: usize, pdus: u32);

    /// The socket takes no more for now, although there is more to send. The next [`Self::sent`] ends that.
    fn blocked(&mut self);
}

/// An endpoint that tells what arrives for it.
pub(crate) struct Watched<'a, E> {
    pub endpoint: &'a mut E,
    pub observer: &'a mut dyn ConnectionObserver,
}

impl<E: Endpoint> Endpoint for Watched<'_, E> {
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
            self.observer.header_received(header);
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
        self.observer.data_received();
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
