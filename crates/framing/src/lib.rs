//! The layer between the protocol and a byte stream: PDUs to bytes and back, with digests, into buffers.
//!
//! A [`Connection`] moves the bytes of one lane between a [`Wire`] (a socket, or a pipe of the simulator) and a
//! [`session::seam::Endpoint`]. Its [`Receiver`] cuts the stream into PDUs and puts data segments where the endpoint
//! says; its [`Sender`] gathers the bytes of the PDUs that it pulls from the endpoint. Payload is read directly into a
//! command's buffer and written by gather. Headers and small segments pass through a [`Scratch`] area that all
//! connections of a thread share.

#![forbid(unsafe_code)]

mod buffer_table;
mod congestion;
mod connection;
mod connection_observer;
mod lane_wakers;
mod login_pdu;
mod overheard;
mod quota;
mod receiver;
mod sender;
mod threads;
mod wire;

pub use buffer_table::BufferTable;
pub use congestion::{Congestion, group_of};
pub use connection::{Connection, ConnectionError, Counters};
pub use connection_observer::ConnectionObserver;
pub use lane_wakers::LaneWakers;
pub use login_pdu::{read_pdu, write_pdu};
pub use overheard::{Listener, Overheard};
pub use quota::Quota;
pub use receiver::{Receiver, Scratch};
pub use sender::Sender;
pub use threads::{Threads, UnknownThreads};
pub use wire::{InForce, SocketOptions, SocketOptionsError, UnsentLimit, Wire};
