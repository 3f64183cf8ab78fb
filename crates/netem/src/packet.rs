//! The packets that a link carries, reduced to the properties that it acts on.

use crate::counters::Traffic;

/// The load of a [`Link`](crate::Link): one packet, or a super-packet of several segments that a host hands over at
/// once (generic segmentation offload) and that are single packets on the wire.
///
/// All lengths are of IP packets, headers included, each segment with headers of its own. What the link layer adds is
/// [`LinkModel::framing`](crate::LinkModel::framing).
pub trait Packet: Sized {
    /// The number of segments and their length.
    fn size(&self) -> Size;

    /// The same for all packets of a flow, and for other flows most likely another: for example a hash of addresses,
    /// protocol and ports.
    fn flow(&self) -> u64;

    /// Takes the first `segments` off and leaves the rest, both whole packets with headers of their own.
    /// `segments` is at least one and less than [`Size::segments`].
    fn split_first(&mut self, segments: u32) -> Self;

    /// A copy, for the duplicate that a faulty network makes. Only called with one segment.
    #[must_use]
    fn duplicate(&self) -> Self;

    /// Flips a bit. Only called with one segment; `bit` counts from the IP header's first and is less than eight times
    /// the segment's length.
    fn corrupt(&mut self, bit: u64);

    /// Marks congestion instead of a loss (ECN, RFC 3168 §5). `false` if the packet's sender does not support that.
    fn mark_congestion(&mut self) -> bool {
        false
    }
}

/// The segments of a packet: all but the last have the same length, and the last is not longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    segments: u32,
    segment_bytes: u32,
    last_segment_bytes: u32,
}

impl Size {
    /// A packet of one segment with this length.
    #[must_use]
    pub fn single(bytes: u32) -> Self {
        Self { segments: 1, segment_bytes: bytes, last_segment_bytes: bytes }
    }

    /// `segments` (at least one), of which the last may be shorter.
    #[must_use]
    pub fn super_packet(segments: u32, segment_bytes: u32, last_segment_bytes: u32) -> Self {
        let last_segment_bytes = last_segment_bytes.min(segment_bytes);
        match segments {
            0 | 1 => Self::single(last_segment_bytes),
            _ => Self { segments, segment_bytes, last_segment_bytes },
        }
    }

    /// The number of segments.
    #[must_use]
    pub fn segments(self) -> u32 {
        self.segments
    }

    /// The length of the longest segment in bytes.
    #[must_use]
    pub fn segment_bytes(self) -> u32 {
        self.segment_bytes
    }

    /// The length of all segments in bytes, without framing.
    #[must_use]
    pub fn bytes(self) -> u64 {
        u64::from(self.segments - 1) * u64::from(self.segment_bytes) + u64::from(self.last_segment_bytes)
    }

    /// The size of the first `segments` alone, at least one.
    pub(crate) fn first(self, segments: u32) -> Self {
        match segments < self.segments {
            true => Self::super_packet(segments, self.segment_bytes, self.segment_bytes),
            false => self,
        }
    }

    /// All segments on the wire, where each has `framing` bytes more.
    pub(crate) fn traffic(self, framing: u32) -> Traffic {
        let segments = u64::from(self.segments);
        Traffic { segments, bytes: self.bytes() + segments * u64::from(framing) }
    }

    /// How many of the first segments fit into `room` bytes of the wire.
    pub(crate) fn fitting(self, framing: u32, room: u64) -> u32 {
        if self.traffic(framing).bytes <= room {
            return self.segments;
        }
        let each = u64::from(self.segment_bytes) + u64::from(framing);
        u32::try_from(room / each).unwrap_or(u32::MAX)
    }
}

/// Takes the first `segments` off `rest`, all that is left if there are no more; nothing if `segments` is 0.
pub(crate) fn take_first<P: Packet>(rest: &mut Option<P>, segments: u32) -> Option<P> {
    let packet = rest.as_mut()?;
    match segments {
        0 => None,
        _ if segments < packet.size().segments => Some(packet.split_first(segments)),
        _ => rest.take(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_segment_has_its_own_framing() {
        let size = Size::super_packet(3, 1500, 700);
        assert_eq!(size.bytes(), 3700);
        assert_eq!(size.traffic(18), Traffic { segments: 3, bytes: 3754 });
        assert_eq!(Size::super_packet(1, 1500, 700), Size::single(700));
    }

    #[test]
    fn a_short_last_segment_fits_only_behind_all_others() {
        let size = Size::super_packet(3, 1500, 700);
        assert_eq!(size.fitting(18, 3754), 3);
        assert_eq!(size.fitting(18, 3753), 2);
        assert_eq!(size.fitting(18, 3035), 1);
        assert_eq!(size.fitting(18, 1517), 0);
    }
}
