//! The simulated network as a client dials it, and the tap at the client's end of a connection.

use crate::checker::Tap;
use crate::clock::Clock;
use crate::common::Common;
use crate::network::{ConnectionId, Network, Part, Side, Stream};
use crate::portal::{PortalId, Portals};
use client::{Dial, Dialed, NetworkError, Portal};
use framing::{ConnectionObserver, SocketOptions};
use futures_util::future::BoxFuture;
use pdu::{DIGEST_BYTES, Header};
use session::parameters::{ConnectionParameters, Established};
use std::io;

/// The network of one world.
pub struct SimulatedNetwork {
    pub clock: Clock,
    pub network: Common<Network>,
    pub tap: Common<Tap>,
    /// Where the target listens.
    pub portals: Portals,
}

impl SimulatedNetwork {
    /// A connection to a portal, to which nobody listens at this end.
    pub fn stream(&self, portal: PortalId) -> Stream {
        let connection = self.network.lock().connect(self.clock.now(), portal);
        Stream::new(connection, Side::Initiator, self.clock.clone(), self.network.clone())
    }
}

impl Dial for SimulatedNetwork {
    fn dial<'a>(
        &'a self,
        to: &'a Portal,
        _options: &'a SocketOptions,
    ) -> BoxFuture<'a, Result<Dialed, NetworkError>> {
        let Some(portal) = PortalId::at(&to.host) else {
            let source = io::ErrorKind::HostUnreachable.into();
            let error = NetworkError::Connect { portal: to.clone(), source };
            return Box::pin(async move { Err(error) });
        };
        let connection = self.network.lock().connect(self.clock.now(), portal);
        let group = self.portals.group(portal);
        self.tap.lock().initiator_dials(connection);
        let wire = Stream::new(connection, Side::Initiator, self.clock.clone(), self.network.clone());
        let (clock, network, tap) = (self.clock.clone(), self.network.clone(), self.tap.clone());
        let observe = move |established: &Established| -> Box<dyn ConnectionObserver> {
            let is_kept = |other| network.lock().is_open(other, Side::Initiator);
            tap.lock().establish(clock.now(), connection, established, group, is_kept);
            Box::new(TappedEnd::new(
                connection,
                Side::Initiator,
                &established.connection,
                clock,
                network,
                tap,
            ))
        };
        Box::pin(async move {
            Ok(Dialed { wire: Box::new(wire), peer: portal.address(), observe: Some(Box::new(observe)) })
        })
    }
}

/// One end of a connection in full feature phase: tells the tap of its PDUs, and the network where to damage them.
#[derive(Debug)]
pub struct TappedEnd {
    connection: ConnectionId,
    side: Side,
    parameters: ConnectionParameters,
    clock: Clock,
    network: Common<Network>,
    tap: Common<Tap>,
    /// Bytes of this stream before the next PDU, login included.
    pushed_bytes: u64,
}

impl TappedEnd {
    /// At the first byte of full feature phase.
    #[must_use]
    pub fn new(
        connection: ConnectionId,
        side: Side,
        parameters: &ConnectionParameters,
        clock: Clock,
        network: Common<Network>,
        tap: Common<Tap>,
    ) -> Self {
        let pushed_bytes = {
            let mut network = network.lock();
            let parts = [(Part::Header, parameters.header_digest), (Part::Data, parameters.data_digest)];
            let covered = parts.into_iter().filter(|(_, is_covered)| *is_covered).map(|(part, _)| part);
            network.cover(connection, covered);
            network.sent_bytes(connection, side).0
        };
        Self { connection, side, parameters: *parameters, clock, network, tap, pushed_bytes }
    }

    /// Damages the PDU that is about to be sent, if that is wanted of one with such parts.
    fn damage(&mut self, header: &Header) {
        let digest_bytes = |is_used: bool| if is_used { DIGEST_BYTES as u64 } else { 0 };
        let header_bytes = (Header::BHS_BYTES + header.ahs().len()) as u64;
        let head_bytes = header_bytes + digest_bytes(self.parameters.header_digest);
        let data = header.data_segment_bytes();
        let data_bytes = match data {
            0 => 0,
            _ => u64::from(data + pdu::padding(data)) + digest_bytes(self.parameters.data_digest),
        };
        let mut network = self.network.lock();
        let damage = network.damage(self.connection, self.side);
        let offset = match damage {
            Some((Part::Header, _)) => Some(self.pushed_bytes + header_bytes / 2),
            Some((Part::Data, _)) if data_bytes > 0 => Some(self.pushed_bytes + head_bytes + data_bytes / 2),
            _ => None,
        };
        if let (Some(offset), Some((part, pdus))) = (offset, damage) {
            network.corrupt(self.connection, self.side, offset);
            network.damage_next(self.connection, self.side, part, pdus - 1);
        }
        self.pushed_bytes += head_bytes + data_bytes;
    }
}

impl ConnectionObserver for TappedEnd {
    fn header_received(&mut self, header: &Header) {
        self.tap.lock().received(self.clock.now(), self.connection, self.side, header);
    }

    fn data_received(&mut self) {}

    fn pulled(&mut self, header: &Header) {
        self.tap.lock().sent(self.clock.now(), self.connection, self.side, header);
        self.damage(header);
    }

    fn sent(&mut self, _bytes: usize, _pdus: u32) {}

    fn blocked(&mut self) {}
}
