//! Writes captures as pcapng (draft-ietf-opsawg-pcapng): a section, its interfaces, and packets with nanoseconds.

use crate::frame::LinkType;
use pdu::Instant;
use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const SECTION_LENGTH_UNKNOWN: u64 = u64::MAX;

const OPTION_END: u16 = 0;
const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_TIME_RESOLUTION: u16 = 9;
/// Timestamps count 10⁻⁹ seconds.
const NANOSECONDS: u8 = 9;

/// An interface of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Writes a capture. Its output is complete after every call, except for bytes that `W` itself buffers.
#[derive(Debug)]
pub struct CaptureWriter<W> {
    out: W,
    /// The most bytes kept of each frame, by interface.
    kept_bytes_max: Vec<u32>,
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        let mut body = Vec::new();
        body.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
        body.extend_from_slice(&1_u16.to_le_bytes());
        body.extend_from_slice(&0_u16.to_le_bytes());
        body.extend_from_slice(&SECTION_LENGTH_UNKNOWN.to_le_bytes());
        write_block(&mut out, SECTION_HEADER, &body)?;
        Ok(Self { out, kept_bytes_max: Vec::new() })
    }

    /// Declares an interface: one side or direction of the path. At most `kept_bytes_max` of each frame are written, or
    /// all if it is 0.
    ///
    /// # Errors
    /// If it cannot be written, or the name is too long for the format (65,535 bytes).
    pub fn interface(&mut self, name: &str, link: LinkType, kept_bytes_max: u32) -> io::Result<InterfaceId> {
        let mut body = Vec::new();
        body.extend_from_slice(&link.wire().to_le_bytes());
        body.extend_from_slice(&0_u16.to_le_bytes());
        body.extend_from_slice(&kept_bytes_max.to_le_bytes());
        push_option(&mut body, OPTION_INTERFACE_NAME, name.as_bytes())?;
        push_option(&mut body, OPTION_TIME_RESOLUTION, &[NANOSECONDS])?;
        push_option(&mut body, OPTION_END, &[])?;
        write_block(&mut self.out, INTERFACE_DESCRIPTION, &body)?;
        let id = InterfaceId(length(self.kept_bytes_max.len())?);
        self.kept_bytes_max.push(if kept_bytes_max == 0 { u32::MAX } else { kept_bytes_max });
        Ok(id)
    }

    /// Writes one frame: its available `bytes`, and its original length, `wire_bytes`.
    ///
    /// # Errors
    /// If it cannot be written, or the interface is another capture's.
    pub fn frame(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        bytes: &[u8],
        wire_bytes: u32,
    ) -> io::Result<()> {
        let limit = self.kept_bytes_max.get(interface.0 as usize);
        let limit = *limit.ok_or_else(|| io::Error::other("the interface is not one of this capture"))?;
        let kept = &bytes[..bytes.len().min(limit as usize)];
        let mut body = Vec::with_capacity(kept.len() + 24);
        body.extend_from_slice(&interface.0.to_le_bytes());
        // The upper half of the time comes first.
        let time = at.0.to_le_bytes();
        let (low, high) = time.split_at(4);
        body.extend_from_slice(high);
        body.extend_from_slice(low);
        body.extend_from_slice(&length(kept.len())?.to_le_bytes());
        body.extend_from_slice(&wire_bytes.to_le_bytes());
        push_padded(&mut body, kept);
        write_block(&mut self.out, ENHANCED_PACKET, &body)
    }

    /// The underlying writer.
    #[must_use]
    pub fn into_inner(self) -> W {
        self.out
    }
}

fn push_option(body: &mut Vec<u8>, code: u16, value: &[u8]) -> io::Result<()> {
    let bytes = u16::try_from(value.len()).map_err(|_| io::Error::other("an option is too long"))?;
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(&bytes.to_le_bytes());
    push_padded(body, value);
    Ok(())
}

fn push_padded(body: &mut Vec<u8>, value: &[u8]) {
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// A block has its type, its length before and after, and its body.
fn write_block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let bytes = length(body.len() + 12)?.to_le_bytes();
    for part in [&kind.to_le_bytes(), &bytes, body, &bytes] {
        out.write_all(part)?;
    }
    Ok(())
}

fn length(count: usize) -> io::Result<u32> {
    u32::try_from(count).map_err(|_| io::Error::other("too long for a capture"))
}
