//! What the kernel holds of what was written to a socket (SIOCOUTQ, tcp(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Bytes that were written and that the peer's kernel has not acknowledged, sent or not.
///
/// # Errors
/// What the kernel said.
pub(crate) fn unacknowledged_bytes(socket: &impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one integer, which outlives the call; the descriptor is borrowed, so it stays open.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), SIOCOUTQ, &raw mut bytes) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// For a socket that is what TIOCOUTQ is for a terminal, and Linux gives both one number.
const SIOCOUTQ: libc::Ioctl = libc::TIOCOUTQ;
