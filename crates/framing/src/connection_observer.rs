//! An observer of one connection. It only receives events, and must not affect the connection.

use crate::Listener;
use pdu::{Header, Instant};
use std::fmt::Debug;

/// Receives the events of one connection, at once, on the thread that drives it. It should be quick.
pub trait ConnectionObserver: Debug + Send {
    /// The header of a PDU has arrived, with a good digest if it has one.
    fn header_received(&mut self, header: &Header);

    /// The data segment of the last such PDU has arrived too. PDUs without data are complete with their header.
    fn data_received(&mut self);

    /// A PDU was made and waits for the stream. It belongs to this connection from now on.
    fn pulled(&mut self, header: &Header);

    /// The stream accepted `bytes`, and with them the end of the first `pdus` pulled PDUs.
    fn sent(&mut self, bytes: usize, pdus: u32);

    /// The stream accepts no more for now, although there is more to send. The next [`Self::sent`] ends this state.
    fn blocked(&mut self);
}

impl Listener for dyn ConnectionObserver {
    fn header_received(&mut self, _: Instant, header: &Header) {
        ConnectionObserver::header_received(self, header);
    }

    fn data_received(&mut self) {
        ConnectionObserver::data_received(self);
    }
}
