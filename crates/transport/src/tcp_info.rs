//! What the kernel knows of a connection (TCP_INFO), as far as it is asked here.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// A sample of TCP_INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window.
    pub congestion_window_segments: u32,
    /// Segments retransmitted since the connection began.
    pub retransmitted_segments: u32,
}

impl TcpInfo {
    /// Asks the kernel.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        // SAFETY: `tcp_info` is plain integers, for which all-zero bytes are a value.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut bytes = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).map_err(io::Error::other)?;
        // SAFETY: the kernel writes at most `bytes` bytes into `info`, which has that size and outlives the call;
        // the descriptor is borrowed, so it stays open.
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut bytes,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            rtt: Duration::from_micros(info.tcpi_rtt.into()),
            congestion_window_segments: info.tcpi_snd_cwnd,
            retransmitted_segments: info.tcpi_total_retrans,
        })
    }
}
