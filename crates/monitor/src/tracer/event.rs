//! `struct event` of `bpf/tcp_trace.bpf.c`.

use observe::{CongestionState, TcpEvent, TcpEventKind, slow_start_threshold};

/// Reads what a program wrote; `None` if that is something else.
pub(crate) fn parse(bytes: &[u8]) -> Option<TcpEvent> {
    let u16_at = |offset| field(bytes, offset).map(u16::from_ne_bytes);
    let u32_at = |offset| field(bytes, offset).map(u32::from_ne_bytes);
    let u64_at = |offset| field(bytes, offset).map(u64::from_ne_bytes);
    // The kernel's counts of memory are signed, and for moments below zero.
    let size_at = |offset| Some(u32::try_from(u32_at(offset)?.cast_signed()).unwrap_or_default());
    Some(TcpEvent {
        at_ns: u64_at(0)?,
        cookie: u64_at(8)?,
        unchanged_until_ns: Some(u64_at(16)?).filter(|until_ns| *until_ns != 0),
        snd_cwnd: u32_at(24)?,
        snd_ssthresh: slow_start_threshold(u32_at(28)?),
        rtt_us: u32_at(32)?,
        snd_wnd_bytes: u32_at(36)?,
        rcv_wnd_bytes: u32_at(40)?,
        unacked: u32_at(44)?,
        notsent_bytes: size_at(48)?,
        wmem_queued_bytes: size_at(52)?,
        sndbuf_bytes: size_at(56)?,
        local_port: u16_at(60)?,
        peer_port: u16_at(62)?,
        kind: kind(*bytes.get(64)?)?,
        congestion_state: CongestionState::from_number(*bytes.get(65)?)?,
        writer_waits: *bytes.get(66)? != 0,
    })
}

fn kind(number: u8) -> Option<TcpEventKind> {
    Some(match number {
        0 => TcpEventKind::Arrived,
        1 => TcpEventKind::Retransmitted,
        2 => TcpEventKind::CongestionState,
        3 => TcpEventKind::Written,
        _ => return None,
    })
}

fn field<const BYTES: usize>(bytes: &[u8], offset: usize) -> Option<[u8; BYTES]> {
    bytes.get(offset..)?.first_chunk().copied()
}
