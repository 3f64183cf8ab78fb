//! TCP sockets: their options, the kernel's measurements, and TCP as a [`framing::Wire`].

mod acknowledgement;
mod clock;
mod observer;
mod pacing;
mod path_measurement;
mod raw_option;
mod readable_fd;
mod retransmission_timeout;
mod send_queue;
mod socket;
mod socket_buffer;
mod socket_options;
mod threaded_socket;

pub use clock::Clock;
pub use observer::Observer;
pub use readable_fd::ReadableFd;
pub use socket::Socket;
pub use socket_buffer::SocketBuffer;
pub use socket_options::{apply, choose, congestion_of, in_force};
pub use threaded_socket::SENDING_THREAD;

use framing::{Threads, Wire};
use std::io;
use threaded_socket::ThreadedSocket;
use tokio::net::TcpStream;

/// A connected socket, worked by these threads.
///
/// # Errors
/// The system has no descriptor or no thread left.
pub fn wire(stream: TcpStream, threads: Threads) -> io::Result<Box<dyn Wire + Send>> {
    Ok(match threads {
        Threads::Shared => Box::new(Socket::from(stream)),
        Threads::PerLane => Box::new(ThreadedSocket::new(stream.into_std()?)?),
    })
}
