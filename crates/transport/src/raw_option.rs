//! Socket options that no library names.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option whose value has these bytes.
///
/// # Errors
/// The system's own.
pub(crate) fn set(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &[u8],
) -> io::Result<()> {
    let bytes = libc::socklen_t::try_from(value.len()).map_err(io::Error::other)?;
    // SAFETY: the kernel reads `bytes` bytes of `value`, which has that length; the descriptor is borrowed, so it stays
    // open.
    let result =
        unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, value.as_ptr().cast(), bytes) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The bytes of an option's value.
///
/// # Errors
/// The system's own.
#[cfg(test)]
pub(crate) fn get<const N: usize>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<[u8; N]> {
    let mut value = [0; N];
    let mut bytes = libc::socklen_t::try_from(N).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `bytes` bytes into `value`, which has that length and outlives the call; the
    // descriptor is borrowed, so it stays open.
    let result = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, value.as_mut_ptr().cast(), &raw mut bytes)
    };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}
