//! Login: a connection before it belongs to a session (RFC 7143 §6.3).
//!
//! A login takes and makes whole PDUs. Until it is done, the driver reads and writes one PDU at a time, without
//! digests, with at most [`DATA_SEGMENT_BYTES_MAX`] of data, and bounds the time that it takes.

mod exchange;
pub mod initiator;
pub mod target;

use crate::negotiation::rule::SIMPLE_VALUE_BYTES_MAX;
use crate::seam::{Payload, Transmit};

/// The longest data segment of a login PDU, in either direction: nothing else has been declared yet (§6.3). A driver
/// that is announced more hangs up instead of reading.
pub const DATA_SEGMENT_BYTES_MAX: u32 = crate::negotiation::rule::DEFAULT_SEGMENT_BYTES;

/// The most text that one login may send: the 8192 bytes that every end must take (§6.1), in each of the two stages.
pub const TEXT_BYTES_MAX: usize = 2 * 8192;

/// The most PDUs that one login may send. Six exchanges in each stage should be allowed (§6.2); this is twice that,
/// and some for continued texts. It ends a login that never comes to its point.
pub const PDUS_MAX: u32 = 32;

/// That `address` can be a TargetAddress (§13.8): one printable word. Who connects to it reads it more closely.
pub(crate) fn is_target_address(address: &str) -> bool {
    (1..=SIMPLE_VALUE_BYTES_MAX).contains(&address.len())
        && address.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A PDU with a piece of text; `header` is given its length.
fn transmit_text(piece: Vec<u8>, header: impl FnOnce(u32) -> pdu::Header) -> Transmit {
    let header = header(u32::try_from(piece.len()).unwrap_or(DATA_SEGMENT_BYTES_MAX));
    let payload = if piece.is_empty() { Payload::None } else { Payload::Inline(piece) };
    Transmit { header, payload }
}
