//! One end of a connection in full feature phase: what a driver with sockets does, over a [`Network`].

use super::{ConnectionId, Network, Side};
use crate::checker::{Tap, Tapped};
use framing::{BufferTable, Overheard, Receiver, Sender};
use pdu::{DIGEST_BYTES, Header, Instant, LaneId};
use session::parameters::ConnectionParameters;
use session::seam::{Endpoint, Fault};
use std::io::IoSlice;

/// Bytes that may be pulled and unsent: few, so that commands are placed late.
const QUEUED_BYTES_MAX: usize = 64 << 10;

/// The longest piece of payload pulled at once.
const PULL_BYTES_MAX: u32 = 64 << 10;

/// Slices of one gather.
const GATHER_SLICES: usize = 32;

/// A part of a PDU that a digest covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Header and header digest.
    Header,
    /// Data segment and data digest.
    Data,
}

/// A lane's bytes, both ways, at one end.
#[derive(Debug)]
pub struct Wire {
    /// Whose bytes these are.
    pub connection: ConnectionId,
    /// Which lane of its session that is at this end.
    pub lane: LaneId,
    /// What its login agreed on.
    pub parameters: ConnectionParameters,
    side: Side,
    receiver: Receiver,
    sender: Sender,
    /// Bytes of this stream before those that the sender was given, login included.
    pushed_bytes: u64,
}

impl Wire {
    /// At the first byte of full feature phase; `sent_bytes` were sent during login.
    #[must_use]
    pub fn new(
        connection: ConnectionId,
        side: Side,
        lane: LaneId,
        parameters: &ConnectionParameters,
        sent_bytes: u64,
    ) -> Self {
        Self {
            connection,
            lane,
            parameters: *parameters,
            side,
            receiver: Receiver::new(lane, parameters),
            sender: Sender::new(parameters),
            pushed_bytes: sent_bytes,
        }
    }

    /// Hands arrived bytes to the session, long segments straight into their buffers as a socket would be read.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn receive<E: Endpoint>(
        &mut self,
        now: Instant,
        mut bytes: &[u8],
        endpoint: &mut E,
        buffers: &mut BufferTable,
        tap: &mut Tap,
    ) -> Result<(), Fault> {
        if let Some(direct) = self.receiver.direct(buffers) {
            let taken = direct.len().min(bytes.len());
            let (head, rest) = bytes.split_at(taken);
            direct[..taken].copy_from_slice(head);
            self.receiver.filled(taken, buffers)?;
            bytes = rest;
        }
        let mut tapped = Tapped { tap, connection: self.connection, side: self.side };
        let mut overheard = Overheard { endpoint, listener: &mut tapped };
        self.receiver.feed(bytes, now, &mut overheard, buffers)
    }

    /// Pulls from the session and sends until nothing is left, or there is no room (`false`).
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn send<E: Endpoint>(
        &mut self,
        now: Instant,
        endpoint: &mut E,
        buffers: &BufferTable,
        network: &mut Network,
        tap: &mut Tap,
    ) -> Result<bool, Fault> {
        if endpoint.doubts(self.lane) {
            endpoint.delivered(now, self.lane, network.delivered_bytes(self.connection, self.side));
        }
        loop {
            while self.sender.queued_bytes() < QUEUED_BYTES_MAX {
                let Some(transmit) = endpoint.poll_transmit(now, self.lane, PULL_BYTES_MAX) else { break };
                tap.sent(now, self.connection, self.side, &transmit.header);
                let before = self.sender.queued_bytes();
                let header_bytes = Header::BHS_BYTES + transmit.header.ahs().len();
                if !self.sender.push(transmit, buffers) {
                    return Err(Fault::Limit("the buffer of a transfer is gone"));
                }
                self.note_pushed(header_bytes, self.sender.queued_bytes() - before, network);
            }
            if self.sender.is_empty() {
                return Ok(true);
            }
            let mut slices = [IoSlice::new(&[]); GATHER_SLICES];
            let filled = self.sender.gather(&mut slices);
            let mut bytes = Vec::new();
            slices[..filled].iter().for_each(|slice| bytes.extend_from_slice(slice));
            let sent = network.send(now, self.connection, self.side, &bytes);
            let pdus = self.sender.advance(sent);
            if pdus > 0 {
                endpoint.transmitted(now, self.lane, pdus);
            }
            if sent < bytes.len() {
                return Ok(false);
            }
        }
    }

    /// Whether a digest covers such a part, so that damage is noticed.
    #[must_use]
    pub fn covers(&self, part: Part) -> bool {
        match part {
            Part::Header => self.parameters.header_digest,
            // A data digest alone leaves the headers unprotected, but damage in the data does not reach them.
            Part::Data => self.parameters.data_digest,
        }
    }

    fn note_pushed(&mut self, header_bytes: usize, bytes: usize, network: &mut Network) {
        let digest_bytes = if self.parameters.header_digest { DIGEST_BYTES } else { 0 };
        let head_bytes = header_bytes + digest_bytes;
        let damage = network.damage(self.connection, self.side);
        let offset = match damage {
            Some((Part::Header, _)) => Some(self.pushed_bytes + header_bytes as u64 / 2),
            Some((Part::Data, _)) if bytes > head_bytes => {
                Some(self.pushed_bytes + head_bytes as u64 + (bytes - head_bytes) as u64 / 2)
            }
            _ => None,
        };
        if let (Some(offset), Some((part, pdus))) = (offset, damage) {
            network.corrupt(self.connection, self.side, offset);
            network.damage_next(self.connection, self.side, part, pdus - 1);
        }
        self.pushed_bytes += bytes as u64;
    }
}
