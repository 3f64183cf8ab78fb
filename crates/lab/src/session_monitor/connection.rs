//! The samples of one end of a connection.

use super::intervals::Intervals;
use super::samples::{ConnectionSample, End};
use session::parameters::Established;
use socket2::SockRef;
use std::os::fd::BorrowedFd;

/// The most connections of a run at each end. A run whose connections break that often has no useful results.
const CONNECTIONS_MAX: usize = 1 << 16;

/// Connections in the order of their logins.
#[derive(Debug, Default)]
pub(super) struct Connections(Vec<ConnectionSample>);

impl Connections {
    /// The index of a connection after its login; an unused one if there are too many.
    pub fn add(&mut self, end: End, socket: BorrowedFd<'_>, established: &Established) -> usize {
        if self.0.len() == CONNECTIONS_MAX {
            return usize::MAX;
        }
        let option = SockRef::from(&socket);
        let bytes = |bytes: usize| bytes as u64;
        self.0.push(ConnectionSample {
            end,
            session: established.tsih.0,
            connection: established.cid.0,
            local: option.local_addr().ok().and_then(|address| address.as_socket()),
            congestion_control: transport::congestion_of(&socket).ok(),
            send_buffer_bytes: option.send_buffer_size().ok().map(bytes),
            receive_buffer_bytes: option.recv_buffer_size().ok().map(bytes),
            sent_bytes: 0,
            sent_pdus: 0,
            received_pdus: 0,
            blocked: Intervals::default(),
        });
        self.0.len() - 1
    }

    pub fn received(&mut self, place: usize) {
        if let Some(connection) = self.0.get_mut(place) {
            connection.received_pdus += 1;
        }
    }

    pub fn sent(&mut self, place: usize, now_ns: u64, bytes: usize, pdus: u32) {
        if let Some(connection) = self.0.get_mut(place) {
            connection.sent_bytes += bytes as u64;
            connection.sent_pdus += u64::from(pdus);
            connection.blocked.note(now_ns, false);
        }
    }

    pub fn blocked(&mut self, place: usize, now_ns: u64) {
        if let Some(connection) = self.0.get_mut(place) {
            connection.blocked.note(now_ns, true);
        }
    }

    pub fn samples(&self) -> impl Iterator<Item = ConnectionSample> + '_ {
        self.0.iter().cloned()
    }
}
