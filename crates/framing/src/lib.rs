//! Between the protocol and a byte stream: PDUs to bytes and back, with digests, into buffers.
//!
//! Nothing here knows what the bytes travel by: sockets and simulated streams share it. A [`Receiver`] cuts a stream
//! into PDUs for one lane of a [`session::seam::Endpoint`] and puts data segments where the endpoint says; a
//! [`Sender`] gathers the bytes of the PDUs that were pulled from it.

#![forbid(unsafe_code)]

mod buffer_table;
mod lane_wakers;
mod overheard;
mod quota;
mod receiver;
mod sender;

pub use buffer_table::BufferTable;
pub use lane_wakers::LaneWakers;
pub use overheard::{Listener, Overheard};
pub use quota::Quota;
pub use receiver::{Receiver, Scratch};
pub use sender::Sender;
