//! One end of a connection as a [`Wire`].

use super::{Arrival, ConnectionId, Network, Side};
use crate::clock::Clock;
use crate::shared_cell::SharedCell;
use framing::{InForce, SocketOptions, SocketOptionsError, Wire};
use policy::PathMeasurement;
use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll};

/// A byte stream of the simulated network, closed when it is dropped.
#[derive(Debug)]
pub struct Stream {
    connection: ConnectionId,
    side: Side,
    clock: Clock,
    network: SharedCell<Network>,
}

impl Stream {
    /// This end of a connection.
    #[must_use]
    pub fn new(connection: ConnectionId, side: Side, clock: Clock, network: SharedCell<Network>) -> Self {
        Self { connection, side, clock, network }
    }

    /// The connection that this is one end of.
    #[must_use]
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }
}

impl Wire for Stream {
    fn poll_read(&mut self, cx: &mut Context<'_>, to: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        let mut network = self.network.lock();
        loop {
            let read = network.read(self.connection, self.side, to);
            if read > 0 {
                return Poll::Ready(Ok(read));
            }
            match network.receive(self.clock.now(), self.connection, self.side) {
                Some(Arrival::Bytes(_)) => {}
                Some(Arrival::Closed) => return Poll::Ready(Ok(0)),
                Some(Arrival::Reset) => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                None => {
                    network.wait(self.connection, self.side, cx.waker());
                    return Poll::Pending;
                }
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut network = self.network.lock();
        let sent = network.send(self.clock.now(), self.connection, self.side, from);
        if sent == 0 && from.iter().any(|slice| !slice.is_empty()) {
            network.wait(self.connection, self.side, cx.waker());
            return Poll::Pending;
        }
        Poll::Ready(Ok(sent))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.network.lock().close(self.clock.now(), self.connection, self.side);
        Poll::Ready(Ok(()))
    }

    fn unacknowledged_bytes(&self) -> io::Result<u64> {
        Ok(self.network.lock().sent_bytes(self.connection, self.side).1)
    }

    fn measure(&self) -> Option<PathMeasurement> {
        self.network.lock().measure(self.clock.now(), self.connection, self.side)
    }

    /// A simulated stream has no options.
    fn apply(&self, _: &SocketOptions) -> Result<InForce, SocketOptionsError> {
        Ok(InForce::default())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.network.lock().close(self.clock.now(), self.connection, self.side);
    }
}
