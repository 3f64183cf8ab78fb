//! An observer of one connection: it is told, and must do nothing about it.

use crate::Listener;
use pdu::{Header, Instant};
use std::fmt::Debug;

/// Is told what happens on one connection, at once, on the thread that drives it: it should be quick.
pub trait ConnectionObserver: Debug + Send {
    /// The header of a PDU has arrived, and its digest, if it has one, is good.
    fn header_received(&mut self, header: &Header);

    /// The data segment of the last of those has arrived, too. PDUs without one are complete with their header.
    fn data_received(&mut self);

    /// A PDU was made, and waits for the stream: from now on it belongs to this connection.
    fn pulled(&mut self, header: &Header);

    /// The stream took some bytes, and with them the last ones of the first `pdus` of those that were pulled.
    fn sent(&mut self, bytes: usize, pdus: u32);

    /// The stream takes no more for now, although there is more to send. The next [`Self::sent`] ends that.
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
