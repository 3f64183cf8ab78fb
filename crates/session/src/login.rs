//! Login: a connection before it belongs to a session (RFC 7143 §6.3).
//!
//! A login exchanges whole PDUs. Until it is done, the driver reads and writes one PDU at a time, without digests and
//! with at most [`DATA_SEGMENT_BYTES_MAX`] of data, and bounds the login's time.

mod exchange;
pub mod initiator;
pub mod target;

use crate::negotiation::rule::SIMPLE_VALUE_BYTES_MAX;
use crate::seam::{Payload, Transmit};

/// The longest data segment of a login PDU in either direction, since nothing else has been declared (§6.3). A driver
/// hangs up on a longer one without reading it.
pub const DATA_SEGMENT_BYTES_MAX: u32 = crate::negotiation::rule::DEFAULT_SEGMENT_BYTES;

/// The most text that one login may send: the 8192 bytes that every end must take (§6.1), in each of the two stages.
pub const TEXT_BYTES_MAX: usize = 2 * 8192;

/// The most PDUs that one login may send. §6.2 asks for at least six exchanges in each stage; this is twice that, with
/// some for continued texts. It ends a login that makes no progress.
pub const PDUS_MAX: u32 = 32;

/// Whether `address` can be a TargetAddress (§13.8): one printable word. The caller that connects to it parses it
/// further.
pub(crate) fn is_target_address(address: &str) -> bool {
    (1..=SIMPLE_VALUE_BYTES_MAX).contains(&address.len())
        && address.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A PDU with a piece of text. `header` makes the header from the length of that text.
fn transmit_text(piece: Vec<u8>, header: impl FnOnce(u32) -> pdu::Header) -> Transmit {
    let header = header(u32::try_from(piece.len()).unwrap_or(DATA_SEGMENT_BYTES_MAX));
    let payload = if piece.is_empty() { Payload::None } else { Payload::Inline(piece) };
    Transmit { header, payload }
}
