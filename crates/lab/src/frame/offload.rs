//! The work that a sender leaves to its interface, as the kernel reports it with each frame (`struct virtio_net_hdr`,
//! Virtual I/O Device 1.2 §5.1.6).

/// The checksum is to be completed.
const NEEDS_CHECKSUM: u8 = 1;

/// TCP below IPv4, UDP in segments of datagrams, TCP below IPv6.
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP: u8 = 5;
/// Combined with one of the others: CWR belongs to the first segment only (RFC 3168 §6.1.2).
const GSO_ECN: u8 = 0x80;

/// The bytes of this header before each frame. Numbers are in the machine's order.
pub(crate) const OFFLOAD_BYTES: usize = 10;

/// The remaining work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offload {
    gso_kind: u8,
    header_bytes: u16,
    segment_bytes: u16,
    /// The start of the checksummed bytes, and the checksum's offset in them. It already holds the pseudo-header's sum.
    pub checksum: Option<(usize, usize)>,
}

impl Offload {
    pub fn parse(bytes: &[u8; OFFLOAD_BYTES]) -> Self {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let needs_checksum = bytes[0] & NEEDS_CHECKSUM != 0;
        Self {
            gso_kind: bytes[1],
            header_bytes: number(2),
            segment_bytes: number(4),
            checksum: needs_checksum.then(|| (number(6).into(), number(8).into())),
        }
    }

    pub fn emit(self) -> [u8; OFFLOAD_BYTES] {
        let number = |value: usize| u16::try_from(value).unwrap_or(u16::MAX).to_ne_bytes();
        let (start, offset) = self.checksum.unwrap_or_default();
        let mut bytes = [0; OFFLOAD_BYTES];
        bytes[0] = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        bytes[1] = self.gso_kind;
        bytes[2..4].copy_from_slice(&self.header_bytes.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.segment_bytes.to_ne_bytes());
        bytes[6..8].copy_from_slice(&number(start));
        bytes[8..10].copy_from_slice(&number(offset));
        bytes
    }

    /// Payload bytes of each segment but the last; `None` if there is nothing to cut, or only in an unknown way.
    pub fn segment_payload_bytes(self) -> Option<usize> {
        let is_known = matches!(self.gso_kind & !GSO_ECN, GSO_TCP_V4 | GSO_TCP_V6 | GSO_UDP);
        (is_known && self.segment_bytes > 0).then_some(self.segment_bytes.into())
    }

    pub fn only_first_reports_congestion(self) -> bool {
        self.gso_kind & GSO_ECN != 0
    }

    /// Records that nothing is left to cut.
    pub fn is_one_segment(&mut self) {
        *self = Self { checksum: self.checksum, ..Self::default() };
    }
}
