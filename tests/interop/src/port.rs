//! Ports of this machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// A port that nobody listens on at this moment, for programs that cannot choose one themselves.
///
/// # Errors
/// If there is none.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Waits until somebody listens there.
///
/// # Errors
/// If nobody does within `limit`.
pub fn wait_until_open(address: SocketAddr, limit: Duration) -> io::Result<()> {
    let deadline = Instant::now() + limit;
    loop {
        match TcpStream::connect(address) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                return Err(io::Error::new(error.kind(), format!("nobody listens on {address}: {error}")));
            }
            // A refusal comes at once: do not keep a core busy with asking.
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}
