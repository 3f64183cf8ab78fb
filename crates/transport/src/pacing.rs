//! Pacing by the kernel (`SO_MAX_PACING_RATE`, socket(7)).

use crate::raw_option;
use std::io;
use std::os::fd::AsFd;

/// A rate that no path reaches. Setting any rate below the greatest number lets TCP pace by itself, at twice the window
/// per round trip in slow start and 1.2 times the window afterwards (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
const UNBOUNDED: u64 = u64::MAX - 1;

/// Lets the kernel pace what this socket sends.
///
/// # Errors
/// The system's own.
pub(crate) fn pace(socket: &impl AsFd) -> io::Result<()> {
    raw_option::set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &UNBOUNDED.to_ne_bytes())
}

/// Whether the kernel has been asked to pace this socket.
#[cfg(test)]
pub(crate) fn is_paced(socket: &impl AsFd) -> io::Result<bool> {
    let rate = raw_option::get(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE)?;
    Ok(u64::from_ne_bytes(rate) != u64::MAX)
}
