//! The simulated network as a client dials it, and the tap at the client's end of a connection.

use crate::checker::Tap;
use crate::clock::Clock;
use crate::network::{ConnectionId, Instead, Network, Part, Rejected, Side, Stream};
use crate::portal::{PortalId, Portals};
use crate::shared_cell::SharedCell;
use client::{Dial, Dialed, NetworkError, Portal};
use framing::{ConnectionObserver, SocketOptions};
use futures_util::future::BoxFuture;
use pdu::{DIGEST_BYTES, Header, Reject};
use session::parameters::{ConnectionParameters, Established};
use std::io;

/// The network of one world.
pub struct SimulatedNetwork {
    pub clock: Clock,
    pub network: SharedCell<Network>,
    pub tap: SharedCell<Tap>,
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
        let entrance = (portal, self.portals.group(portal));
        self.tap.lock().initiator_dials(connection);
        let wire = Stream::new(connection, Side::Initiator, self.clock.clone(), self.network.clone());
        let (clock, network, tap) = (self.clock.clone(), self.network.clone(), self.tap.clone());
        let observe = move |established: &Established| -> Box<dyn ConnectionObserver> {
            let is_kept = |other| network.lock().is_open(other, Side::Initiator);
            tap.lock().establish(clock.now(), connection, established, entrance, is_kept);
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
    network: SharedCell<Network>,
    tap: SharedCell<Tap>,
    /// Bytes of this stream before the next PDU, login included.
    pushed_bytes: u64,
    /// The PDU that the arriving Reject names, if a path made that Reject.
    rejected: Option<Rejected>,
}

impl TappedEnd {
    /// At the first byte of full feature phase.
    #[must_use]
    pub fn new(
        connection: ConnectionId,
        side: Side,
        parameters: &ConnectionParameters,
        clock: Clock,
        network: SharedCell<Network>,
        tap: SharedCell<Tap>,
    ) -> Self {
        let pushed_bytes = {
            let mut network = network.lock();
            let parts = [(Part::Header, parameters.header_digest), (Part::Data, parameters.data_digest)];
            let covered = parts.into_iter().filter(|(_, is_covered)| *is_covered).map(|(part, _)| part);
            network.cover(connection, covered);
            network.sent_bytes(connection, side).0
        };
        Self { connection, side, parameters: *parameters, clock, network, tap, pushed_bytes, rejected: None }
    }

    fn digest_bytes(is_used: bool) -> u64 {
        if is_used { DIGEST_BYTES as u64 } else { 0 }
    }

    /// The lengths of header and data of a PDU, with their digests.
    fn lengths(&self, header: &Header) -> (u64, u64) {
        let header_bytes = (Header::BHS_BYTES + header.ahs().len()) as u64;
        let data_bytes = match header.data_segment_bytes() {
            0 => 0,
            data => u64::from(data + pdu::padding(data)) + Self::digest_bytes(self.parameters.data_digest),
        };
        (header_bytes + Self::digest_bytes(self.parameters.header_digest), data_bytes)
    }

    /// Damages the PDU of these lengths that is about to be sent, if that is wanted of one with such parts; tells which part.
    fn damage(&self, (head_bytes, data_bytes): (u64, u64)) -> Option<Part> {
        let mut network = self.network.lock();
        let (part, pdus) = network.damage(self.connection, self.side)?;
        let (first, bytes) = match part {
            Part::Header => (self.pushed_bytes, head_bytes),
            Part::Data => (self.pushed_bytes + head_bytes, data_bytes),
        };
        if bytes == 0 {
            return None;
        }
        network.corrupt(self.connection, self.side, first, bytes);
        network.damage_next(self.connection, self.side, part, pdus - 1);
        Some(part)
    }

    /// Lets something else arrive instead of the PDU of so many bytes that is about to be sent, if that is wanted. Whether it
    /// is.
    fn meddle(&self, header: &Header, bytes: u64) -> bool {
        let mut network = self.network.lock();
        let meddler = &mut network.meddler;
        let instead = match self.side {
            Side::Initiator => meddler.initiator_sends(self.connection, header),
            Side::Target => meddler.target_sends(self.connection, header),
        };
        let (bytes, with) = match instead {
            None => return false,
            Some(Instead::Nothing) => (bytes, Vec::new()),
            Some(Instead::Other(header, data)) => (bytes, self.bytes_of(&header, &data)),
            Some(Instead::Preceded(header)) => (0, self.bytes_of(&header, &[])),
        };
        network.splice(self.connection, self.side, self.pushed_bytes, bytes, with);
        true
    }

    /// A PDU, whose data needs no padding, as it is on its way.
    fn bytes_of(&self, header: &Header, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        header.write_to(&mut bytes);
        if self.parameters.header_digest {
            bytes.extend(pdu::header_digest(header));
        }
        bytes.extend(data);
        if self.parameters.data_digest && !data.is_empty() {
            bytes.extend(pdu::digest(data));
        }
        bytes
    }

    /// The PDU that a Reject names, if a path made that Reject.
    fn rejected_by(&self, header: &Header) -> Option<Rejected> {
        let reject = Reject::parse(header).ok()?;
        self.network.lock().meddler.rejected(self.connection, reject.stat_sn).cloned()
    }
}

impl ConnectionObserver for TappedEnd {
    fn header_received(&mut self, header: &Header) {
        self.tap.lock().received(self.clock.now(), self.connection, self.side, header);
        if self.side == Side::Initiator {
            self.rejected = self.rejected_by(header);
        }
    }

    fn data_received(&mut self) {
        if let Some(rejected) = self.rejected.take() {
            self.tap.lock().hear_reject(self.clock.now(), self.connection, &rejected);
        }
    }

    fn pulled(&mut self, header: &Header) {
        self.tap.lock().sent(self.clock.now(), self.connection, self.side, header);
        let (head_bytes, data_bytes) = self.lengths(header);
        let bytes = head_bytes + data_bytes;
        let is_changed = self.meddle(header, bytes);
        let damaged = if is_changed { None } else { self.damage((head_bytes, data_bytes)) };
        if self.side == Side::Target {
            self.tap.lock().is_on_its_way(self.connection, header, damaged);
        }
        self.pushed_bytes += bytes;
    }

    fn sent(&mut self, _bytes: usize, _pdus: u32) {}

    fn blocked(&mut self) {}
}
