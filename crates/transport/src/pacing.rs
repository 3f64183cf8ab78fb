//! Pacing by the kernel (`SO_MAX_PACING_RATE`, socket(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A rate that no path reaches. Setting any rate below the greatest number lets TCP pace by itself, at twice the window
/// per round trip in slow start and 1.2 times the window afterwards (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
static UNBOUNDED: u64 = u64::MAX - 1;

/// Lets the kernel pace what this socket sends.
///
/// # Errors
/// The system's own.
pub(crate) fn pace(socket: &impl AsFd) -> io::Result<()> {
    let bytes = libc::socklen_t::try_from(size_of_val(&UNBOUNDED)).map_err(io::Error::other)?;
    // SAFETY: the kernel reads `bytes` bytes of a static that has that size; the descriptor is borrowed, so it stays
    // open.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const UNBOUNDED).cast(),
            bytes,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the kernel has been asked to pace this socket.
#[cfg(test)]
pub(crate) fn is_paced(socket: &impl AsFd) -> io::Result<bool> {
    let mut rate: u64 = 0;
    let mut bytes = libc::socklen_t::try_from(size_of_val(&rate)).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `bytes` bytes into `rate`, which has that size and outlives the call; the
    // descriptor is borrowed, so it stays open.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw mut rate).cast(),
            &raw mut bytes,
        )
    };
    if result == 0 { Ok(rate != u64::MAX) } else { Err(io::Error::last_os_error()) }
}
