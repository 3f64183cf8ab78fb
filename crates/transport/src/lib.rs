//! TCP sockets: their options, the kernel's measurements, and TCP as a [`framing::Wire`].

mod clock;
mod observer;
mod pacing;
mod path_sample;
mod raw_option;
mod readable_fd;
mod retransmission_timeout;
mod send_queue;
mod socket;
mod socket_buffer;
mod socket_options;

pub use clock::Clock;
pub use observer::Observer;
pub use readable_fd::ReadableFd;
pub use socket::Socket;
pub use socket_buffer::SocketBuffer;
pub use socket_options::{apply, choose, congestion_of};
