//! Reads captures: pcap, with micro- or nanoseconds, and pcapng, of either byte order.

use crate::frame::{Frame, LinkType};
use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock, OptionCode};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{IDB_MAGIC, PcapBlockOwned, PcapError, create_reader};
use pdu::Instant;
use serde::Serialize;
use std::io::Read;

/// The bytes of one read.
const BUFFER_BYTES: usize = 1 << 17;
/// The longest block that is read: far more than any frame is long.
const BLOCK_BYTES_MAX: usize = 64 << 20;
/// More interfaces than any machine has; further ones are not followed.
const INTERFACES_MAX: usize = 65_536;
const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_US: u64 = 1000;

/// The reason why a capture cannot be read, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The file is of another kind, or empty.
    #[error("neither a pcap nor a pcapng file")]
    NotACapture,
    /// A block breaks the format. The frames before it have been read.
    #[error("the capture is damaged after {after_bytes} bytes: {what}")]
    Damaged {
        /// The length of the part that was read.
        after_bytes: usize,
        /// The parser's finding.
        what: String,
    },
}

/// The result of reading a capture, besides its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadSummary {
    /// Frames that were read and have a time.
    pub frames: u64,
    /// Packets of pcapng that have no time or no interface.
    pub frames_without_time: u64,
    /// Whether the file ends within a block, as after a killed capture.
    pub cut_short: bool,
}

/// Reads a capture to its end and delivers every frame with a time, in the order of the file.
///
/// # Errors
/// [`CaptureError`]; the frames before the fault have been delivered.
pub fn read_capture(
    from: impl Read + Send,
    mut tell: impl FnMut(&Frame<'_>),
) -> Result<ReadSummary, CaptureError> {
    let mut reader = create_reader(BUFFER_BYTES, from).map_err(|_| CaptureError::NotACapture)?;
    let mut capture = Capture::default();
    let mut buffer_bytes = BUFFER_BYTES;
    loop {
        let damaged = |reader: &(dyn PcapReaderIterator + Send), what: &str| CaptureError::Damaged {
            after_bytes: reader.consumed(),
            what: what.to_owned(),
        };
        match reader.next() {
            Ok((bytes, block)) => {
                capture.block(&block, &mut tell);
                reader.consume(bytes);
            }
            Err(PcapError::Eof) => return Ok(capture.summary),
            Err(PcapError::UnexpectedEof) => {
                return Ok(ReadSummary { cut_short: true, ..capture.summary });
            }
            Err(PcapError::Incomplete(_) | PcapError::BufferTooSmall) => {
                read_more(&mut *reader, &mut buffer_bytes).map_err(|what| damaged(&*reader, what))?;
            }
            Err(_) => return Err(damaged(&*reader, "a block breaks the format")),
        }
    }
}

/// Reads more of the file, into a longer buffer if this one is full.
fn read_more(
    reader: &mut (dyn PcapReaderIterator + Send),
    buffer_bytes: &mut usize,
) -> Result<(), &'static str> {
    let had_bytes = reader.data().len();
    reader.refill().map_err(|_| "it cannot be read further")?;
    if reader.data().len() > had_bytes || reader.reader_exhausted() {
        return Ok(());
    }
    *buffer_bytes *= 2;
    if *buffer_bytes <= BLOCK_BYTES_MAX && reader.grow(*buffer_bytes) {
        Ok(())
    } else {
        Err("a block is too long")
    }
}

/// The declarations of earlier blocks for later ones.
#[derive(Default)]
struct Capture {
    /// The interfaces of the current section, by number; the only one of a pcap file.
    interfaces: Vec<Interface>,
    summary: ReadSummary,
}

#[derive(Clone, Copy)]
struct Interface {
    link: LinkType,
    units_per_s: u64,
    offset_s: i64,
}

impl Capture {
    fn block(&mut self, block: &PcapBlockOwned<'_>, tell: &mut impl FnMut(&Frame<'_>)) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let units_per_s =
                    if header.is_nanosecond_precision() { NS_PER_S } else { NS_PER_S / NS_PER_US };
                self.interfaces = vec![Interface { link: link(header.network.0), units_per_s, offset_s: 0 }];
            }
            PcapBlockOwned::Legacy(packet) => {
                let interface = self.interfaces.first().copied();
                let time = interface.map(|interface| {
                    let fraction = u64::from(packet.ts_usec) * (NS_PER_S / interface.units_per_s);
                    Instant(u64::from(packet.ts_sec) * NS_PER_S + fraction)
                });
                self.frame(interface, time, packet.data, packet.caplen, packet.origlen, tell);
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                if self.interfaces.len() < INTERFACES_MAX {
                    self.interfaces.push(Interface::parse(description));
                }
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = self.interfaces.get(packet.if_id as usize).copied();
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let time = interface.and_then(|interface| interface.time(units));
                self.frame(interface, time, packet.data, packet.caplen, packet.origlen, tell);
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => self.summary.frames_without_time += 1,
            PcapBlockOwned::NG(_) => {}
        }
    }

    fn frame(
        &mut self,
        interface: Option<Interface>,
        at: Option<Instant>,
        padded: &[u8],
        kept_bytes: u32,
        wire_bytes: u32,
        tell: &mut impl FnMut(&Frame<'_>),
    ) {
        let (Some(interface), Some(at)) = (interface, at) else {
            self.summary.frames_without_time += 1;
            return;
        };
        self.summary.frames += 1;
        let bytes = padded.get(..kept_bytes as usize).unwrap_or(padded);
        tell(&Frame { at, link: interface.link, bytes, wire_bytes });
    }
}

impl Interface {
    fn parse(description: &InterfaceDescriptionBlock<'_>) -> Self {
        let offset = description.options.iter().find(|option| option.code == OptionCode::IfTsoffset);
        let offset: Option<[u8; 8]> = offset.and_then(|option| option.value.get(..8)?.try_into().ok());
        // The parser reads block types as if all were little-endian, and leaves values unconverted.
        let is_little_endian = description.block_type == IDB_MAGIC;
        let from_bytes = if is_little_endian { i64::from_le_bytes } else { i64::from_be_bytes };
        Self {
            link: link(description.linktype.0),
            units_per_s: units_per_s(description.if_tsresol),
            offset_s: offset.map_or(0, from_bytes),
        }
    }

    /// The time after this many of the interface's units, if nanoseconds can express it.
    fn time(self, units: u64) -> Option<Instant> {
        let per_s = u128::from(self.units_per_s);
        let nanoseconds = i128::try_from(u128::from(units) * u128::from(NS_PER_S) / per_s).ok()?;
        let offset = i128::from(self.offset_s) * i128::from(NS_PER_S);
        u64::try_from(nanoseconds + offset).ok().map(Instant)
    }
}

/// `if_tsresol`: a power of ten, or of two with the highest bit set. Meaningless beyond 64 bits.
fn units_per_s(resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(exponent).unwrap_or(NS_PER_S / NS_PER_US)
}

/// The upper half of pcap's field describes frame check sequences.
fn link(code: i32) -> LinkType {
    let [_, _, high, low] = code.to_be_bytes();
    LinkType::from_wire(u16::from_be_bytes([high, low]))
}
