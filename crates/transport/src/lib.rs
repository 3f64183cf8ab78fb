//! Sockets, and the connection driver that both ends of a session use.
//!
//! A [`Connection`] moves bytes between one TCP socket and one lane of a [`session::seam::Endpoint`]. Payload is
//! read straight into a command's buffer and written by gather; only headers and small segments pass through
//! a scratch area that all connections of a thread share.

mod clock;
mod connection;
mod login_pdu;
mod observer;
mod readable_fd;
mod send_queue;
mod socket_buffer;
mod socket_options;
mod tcp_info;

pub use clock::Clock;
pub use connection::{Connection, ConnectionError, Counters};
pub use login_pdu::{read_pdu, write_pdu};
pub use observer::{ConnectionObserver, Observer};
pub use readable_fd::ReadableFd;
pub use socket_buffer::SocketBuffer;
pub use socket_options::{SocketOptions, SocketOptionsError};
pub use tcp_info::TcpInfo;
