//! Ports of this machine.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// A port that nobody listens on at this moment, for programs that cannot choose one themselves.
///
/// # Errors
/// If there is none.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
