//! Measurements of a path by the kernel (TCP_INFO, tcp(7)).

use policy::{PathCounters, PathMeasurement};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// The states of `tcpi_ca_state` in which a connection repairs losses: `TCP_CA_Recovery` and `TCP_CA_Loss`.
const RECOVERING: std::ops::RangeInclusive<u8> = 3..=TIMED_OUT;

/// `TCP_CA_Loss`: the retransmission timeout has expired.
const TIMED_OUT: u8 = 4;

/// Queries the kernel.
///
/// # Errors
/// The system's own.
pub(crate) fn measure(socket: &impl AsFd) -> io::Result<PathMeasurement> {
    let mut info = empty();
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
    Ok(of(&info))
}

fn empty() -> libc::tcp_info {
    // SAFETY: `tcp_info` is plain integers, for which all-zero bytes are a value.
    unsafe { std::mem::zeroed() }
}

fn of(info: &libc::tcp_info) -> PathMeasurement {
    let bytes = |segments: u32| u64::from(segments) * u64::from(info.tcpi_snd_mss);
    let sent_segments = info.tcpi_unacked + info.tcpi_retrans;
    PathMeasurement {
        rtt: Duration::from_micros(info.tcpi_rtt.into()),
        rtt_min: Duration::from_micros(info.tcpi_min_rtt.min(info.tcpi_rtt).into()),
        delivery_bytes_per_second: info.tcpi_delivery_rate,
        congestion_window_bytes: bytes(info.tcpi_snd_cwnd),
        in_flight_bytes: bytes(sent_segments.saturating_sub(info.tcpi_sacked + info.tcpi_lost)),
        unsent_bytes: info.tcpi_notsent_bytes.into(),
        waiting_bytes: 0,
        is_recovering: RECOVERING.contains(&info.tcpi_ca_state),
        is_timed_out: info.tcpi_ca_state == TIMED_OUT,
        is_in_slow_start: info.tcpi_snd_cwnd < info.tcpi_snd_ssthresh,
        out_silence: milliseconds(info.tcpi_last_data_sent.min(info.tcpi_last_ack_recv)),
        in_silence: milliseconds(info.tcpi_last_data_recv),
        receive_rtt: Duration::from_micros(info.tcpi_rcv_rtt.into()),
        counters: PathCounters {
            sent_bytes: info.tcpi_bytes_sent,
            repeated_bytes: info.tcpi_bytes_retrans,
            repeated_segments: info.tcpi_total_retrans,
            timeouts: info.tcpi_total_rto.into(),
            busy: Duration::from_micros(info.tcpi_busy_time),
            receive_window_limited: Duration::from_micros(info.tcpi_rwnd_limited),
            received_segments: info.tcpi_data_segs_in,
            out_of_order_segments: info.tcpi_rcv_ooopack,
        },
    }
}

fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(count.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_told_in_bytes() {
        let mut info = empty();
        (info.tcpi_snd_cwnd, info.tcpi_unacked, info.tcpi_snd_mss) = (10, 7, 1448);
        let path = of(&info);
        assert_eq!((path.congestion_window_bytes, path.in_flight_bytes), (14_480, 10_136));
    }
}
