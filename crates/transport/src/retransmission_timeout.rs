//! The least retransmission timeout (RFC 6298 §2.4).

use crate::raw_option;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// The option's number in Linux (`linux/tcp.h`), which has it since 6.15.
const TCP_RTO_MIN_US: libc::c_int = 45;

/// Bounds from below the time beyond the round trip after which the kernel sends again what is not acknowledged. A
/// kernel without the option keeps its own bound.
///
/// # Errors
/// The system's own: it wants no less than some milliseconds, and no more than 200.
pub(crate) fn set_min(socket: &impl AsFd, min: Duration) -> io::Result<()> {
    let us = i32::try_from(min.as_micros()).unwrap_or(i32::MAX);
    match raw_option::set(socket, libc::IPPROTO_TCP, TCP_RTO_MIN_US, &us.to_ne_bytes()) {
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        result => result,
    }
}

/// The bound in force; `None` if the kernel lacks the option.
#[cfg(test)]
pub(crate) fn min(socket: &impl AsFd) -> io::Result<Option<Duration>> {
    match raw_option::get(socket, libc::IPPROTO_TCP, TCP_RTO_MIN_US) {
        Ok(us) => Ok(u64::try_from(i32::from_ne_bytes(us)).ok().map(Duration::from_micros)),
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(None),
        Err(error) => Err(error),
    }
}
