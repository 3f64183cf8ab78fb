//! The packets of a capture, read back from its file.

use super::day_ns;
use crate::relay::RelayReport;
use observe::{CaptureError, Frame, Segment, read_capture};
use std::net::SocketAddr;

/// A frame with payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentFrame {
    /// On the clock of all samples.
    pub at_ns: u64,
    /// The address that it came from.
    pub from: SocketAddr,
    /// The number of packets: one, or those of a super-packet.
    pub packets: u32,
    /// Bytes of TCP payload in all its packets.
    pub payload_bytes: u32,
}

const ETHERNET_HEADER_BYTES: u32 = 14;

/// The sent frames, of hosts that cut super-packets into packets of `mtu`.
///
/// # Errors
/// If the file is not a capture.
pub(crate) fn sent_frames(
    file: &[u8],
    relay: &RelayReport,
    mtu: u32,
) -> Result<Vec<SentFrame>, CaptureError> {
    let mut frames = Vec::new();
    let begun_ns = day_ns(relay);
    read_capture(file, |frame| {
        if let Some(mut sent) = sent_frame(frame, mtu) {
            sent.at_ns = sent.at_ns.saturating_sub(begun_ns).saturating_add(relay.begun_ns);
            frames.push(sent);
        }
    })?;
    Ok(frames)
}

/// Converts a frame; the time is the capture's.
fn sent_frame(frame: &Frame<'_>, mtu: u32) -> Option<SentFrame> {
    let segment = Segment::parse(frame).filter(|segment| segment.payload_bytes > 0)?;
    let payload_bytes = segment.payload_bytes;
    // Every packet of a super-packet has the same headers.
    let headers_bytes = frame.wire_bytes.saturating_sub(ETHERNET_HEADER_BYTES + payload_bytes);
    let packet_bytes = mtu.saturating_sub(headers_bytes).max(1);
    Some(SentFrame {
        at_ns: segment.at.0,
        from: segment.from,
        packets: payload_bytes.div_ceil(packet_bytes),
        payload_bytes,
    })
}
