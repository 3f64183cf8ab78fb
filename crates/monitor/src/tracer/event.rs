//! `struct event` of `bpf/tcp_trace.bpf.c`.

use observe::{CongestionState, Fields, TcpEvent, TcpEventKind, slow_start_threshold};

/// Parses an event that a program wrote; `None` if the bytes are something else.
pub(crate) fn parse(bytes: &[u8]) -> Option<TcpEvent> {
    let fields = Fields(bytes);
    // The kernel's counts of memory are signed, and are briefly negative at times.
    let size_at = |offset| Some(u32::try_from(fields.u32(offset)?.cast_signed()).unwrap_or_default());
    Some(TcpEvent {
        at_ns: fields.u64(0)?,
        cookie: fields.u64(8)?,
        unchanged_until_ns: Some(fields.u64(16)?).filter(|until_ns| *until_ns != 0),
        snd_cwnd: fields.u32(24)?,
        snd_ssthresh: slow_start_threshold(fields.u32(28)?),
        rtt_us: fields.u32(32)?,
        snd_wnd_bytes: fields.u32(36)?,
        rcv_wnd_bytes: fields.u32(40)?,
        unacked: fields.u32(44)?,
        notsent_bytes: size_at(48)?,
        wmem_queued_bytes: size_at(52)?,
        sndbuf_bytes: size_at(56)?,
        local_port: fields.u16(60)?,
        peer_port: fields.u16(62)?,
        kind: kind(fields.u8(64)?)?,
        congestion_state: CongestionState::from_number(fields.u8(65)?)?,
        writer_waits: fields.u8(66)? != 0,
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
