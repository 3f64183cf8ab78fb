//! The kernel's send queue of a socket (SIOCOUTQ, tcp(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Written bytes that the peer's kernel has not acknowledged, sent or not.
///
/// # Errors
/// The kernel's own.
pub(crate) fn unacknowledged_bytes(socket: &impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one integer, which outlives the call; the descriptor is borrowed, so it stays open.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), SIOCOUTQ, &raw mut bytes) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// SIOCOUTQ is for a socket what TIOCOUTQ is for a terminal; Linux gives both the same number.
const SIOCOUTQ: libc::Ioctl = libc::TIOCOUTQ;
