//! A frame between two hosts, as the path model sees it: one packet, or a super-packet of several.

pub(crate) mod checksum;
mod headers;
mod offload;

use crate::relay::buffers::Buffer;
use checksum::Sum;
use headers::{ETHERNET_BYTES, Headers, Kind};
use netem::{Packet, Size};
use std::time::Duration;

pub(crate) use offload::{OFFLOAD_BYTES, Offload};

/// An Ethernet frame, and the work that its sender left to the interface: segmentation and checksum.
#[derive(Debug)]
pub(crate) struct Frame {
    pub offload: Offload,
    buffer: Buffer,
    headers: Headers,
    /// The delay of the relay's notice beyond the time that the model could still account for.
    pub noticed_late: Duration,
}

impl Frame {
    pub fn new(offload: Offload, buffer: Buffer) -> Self {
        let headers = Headers::parse(&buffer);
        Self { offload, buffer, headers, noticed_late: Duration::ZERO }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The last byte of its sender's address, if it is a packet of IP.
    pub fn source_number(&self) -> Option<u8> {
        let addresses = self.addresses();
        addresses[..addresses.len() / 2].last().copied()
    }

    /// The last byte of its receiver's address.
    pub fn destination_number(&self) -> Option<u8> {
        self.addresses().last().copied()
    }

    /// The addresses of its sender and of its receiver; nothing if it is no packet of IP.
    fn addresses(&self) -> &[u8] {
        self.buffer.get(self.headers.network.addresses()).unwrap_or_default()
    }

    /// Payload bytes of each segment but the last, and the offset of the first; `None` for a single segment, or a frame
    /// that cannot be cut.
    fn cut(&self) -> Option<(usize, usize)> {
        let start = self.headers.payload?;
        let each = self.offload.segment_payload_bytes()?;
        (self.buffer.len() > start + each).then_some((start, each))
    }

    /// Adapts the headers to the remaining segments, after `segments_before` were removed from the front of a
    /// super-packet.
    fn rewrite_headers(&mut self, segments_before: usize, payload_before: usize) {
        let is_one_segment = self.cut().is_none();
        let Some(transport) = self.headers.transport else { return };
        let transport_bytes = self.buffer.len() - transport.start;
        self.headers.network.set_length(&mut self.buffer, transport_bytes);
        self.headers.network.advance_identification(&mut self.buffer, segments_before);
        transport.rewrite(&mut self.buffer, payload_before);
        let sum = self.headers.network.pseudo_header_sum(&self.buffer, transport.kind, transport_bytes);
        transport.set_checksum(&mut self.buffer, sum.folded());
        self.offload.checksum = Some((transport.start, transport.kind.checksum_offset()));
        if is_one_segment {
            self.offload.is_one_segment();
        }
    }

    /// Completes the sender's checksum, so that a later change is an error to the receiver.
    fn complete_checksum(&mut self) {
        let Some((start, offset)) = self.offload.checksum.take() else { return };
        let Some(covered) = self.buffer.get(start..) else { return };
        let sum = Sum::of(covered).checksum();
        let is_udp = self.headers.transport.is_some_and(|transport| transport.kind == Kind::Udp);
        // Zero means "no checksum" (RFC 768).
        let sum = if is_udp && sum == 0 { u16::MAX } else { sum };
        if let Some(field) = self.buffer.get_mut(start + offset..start + offset + 2) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }
}

impl Packet for Frame {
    fn size(&self) -> Size {
        let bytes = |frame_bytes: usize| {
            u32::try_from(frame_bytes.saturating_sub(ETHERNET_BYTES)).unwrap_or(u32::MAX)
        };
        let Some((start, each)) = self.cut() else { return Size::single(bytes(self.buffer.len())) };
        let payload = self.buffer.len() - start;
        let segments = payload.div_ceil(each);
        let last = payload - (segments - 1) * each;
        Size::super_packet(
            u32::try_from(segments).unwrap_or(u32::MAX),
            bytes(start + each),
            bytes(start + last),
        )
    }

    fn flow(&self) -> u64 {
        self.headers.flow
    }

    fn split_first(&mut self, segments: u32) -> Self {
        let (start, each) = self.cut().expect("only what has several segments is split");
        let taken = segments as usize * each;
        let mut first = Self {
            offload: self.offload,
            buffer: self.buffer.copy_of(..start + taken),
            headers: self.headers,
            noticed_late: self.noticed_late,
        };
        self.buffer.remove_behind_headers(start, taken);
        if let Some(transport) = self.headers.transport {
            transport.clear_flags_of_last(&mut first.buffer);
            if self.offload.only_first_reports_congestion() {
                transport.clear_congestion_reported(&mut self.buffer);
            }
        }
        first.rewrite_headers(0, 0);
        self.rewrite_headers(segments as usize, taken);
        first
    }

    fn duplicate(&self) -> Self {
        Self {
            offload: self.offload,
            buffer: self.buffer.copy_of(..),
            headers: self.headers,
            noticed_late: self.noticed_late,
        }
    }

    fn corrupt(&mut self, bit: u64) {
        self.complete_checksum();
        let byte = ETHERNET_BYTES + usize::try_from(bit / 8).unwrap_or(usize::MAX - ETHERNET_BYTES);
        if let Some(byte) = self.buffer.get_mut(byte) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }

    fn mark_congestion(&mut self) -> bool {
        self.headers.network.mark_congestion(&mut self.buffer)
    }
}

#[cfg(test)]
mod tests;
