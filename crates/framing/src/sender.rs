//! From PDUs to a socket's bytes, by gather.

use pdu::{Crc32c, DIGEST_BYTES, DigestBytes, Header};
use session::parameters::ConnectionParameters;
use session::seam::{Payload, Transmit};
use std::collections::VecDeque;
use std::io::IoSlice;

use crate::BufferTable;

/// PDUs that were pulled and have not left completely.
#[derive(Debug)]
pub struct Sender {
    header_digest: bool,
    data_digest: bool,
    queue: VecDeque<Outgoing>,
    /// Bytes of the first PDU that have left.
    sent_bytes: usize,
    queued_bytes: usize,
    pdus: u64,
}

#[derive(Debug)]
struct Outgoing {
    header: Header,
    header_digest: DigestBytes,
    header_digest_bytes: usize,
    data: Data,
    /// Padding and data digest.
    tail: [u8; TAIL_BYTES_MAX],
    tail_bytes: usize,
}

/// Three bytes of padding, and a digest.
const TAIL_BYTES_MAX: usize = 3 + DIGEST_BYTES;

#[derive(Debug)]
enum Data {
    Inline(Vec<u8>),
    Buffer(block::Payload),
}

impl Data {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Buffer(bytes) => bytes,
        }
    }
}

impl Outgoing {
    /// The PDU's parts in the order in which they leave.
    fn parts(&self) -> [&[u8]; 5] {
        [
            self.header.bhs(),
            self.header.ahs(),
            &self.header_digest[..self.header_digest_bytes],
            self.data.bytes(),
            &self.tail[..self.tail_bytes],
        ]
    }

    fn bytes(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }
}

impl Sender {
    /// Starts at the first byte of full feature phase.
    #[must_use]
    pub fn new(parameters: &ConnectionParameters) -> Self {
        Self {
            header_digest: parameters.header_digest,
            data_digest: parameters.data_digest,
            queue: VecDeque::new(),
            sent_bytes: 0,
            queued_bytes: 0,
            pdus: 0,
        }
    }

    /// PDUs that left completely.
    #[must_use]
    pub fn pdus(&self) -> u64 {
        self.pdus
    }

    /// Bytes that were pulled and have not left.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Whether every pulled PDU has left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues a PDU with digests over its present bytes. `false` if its buffer lacks these bytes.
    pub fn push(&mut self, transmit: Transmit, buffers: &BufferTable) -> bool {
        let Some(data) = data(transmit.payload, buffers) else { return false };
        let (tail, tail_bytes) = self.tail(data.bytes());
        let digest = self.header_digest.then(|| pdu::header_digest(&transmit.header));
        let header_digest_bytes = if digest.is_some() { DIGEST_BYTES } else { 0 };
        let header_digest = digest.unwrap_or_default();
        let pdu =
            Outgoing { header: transmit.header, header_digest, header_digest_bytes, data, tail, tail_bytes };
        self.queued_bytes += pdu.bytes();
        self.queue.push_back(pdu);
        true
    }

    /// Padding and digest of a data segment, and their length in bytes.
    fn tail(&self, data: &[u8]) -> ([u8; TAIL_BYTES_MAX], usize) {
        let mut tail = [0; TAIL_BYTES_MAX];
        let padding = pdu::padding(u32::try_from(data.len()).unwrap_or(u32::MAX)) as usize;
        if !self.data_digest || data.is_empty() {
            return (tail, padding);
        }
        let mut crc = Crc32c::new();
        crc.update(data);
        crc.update(&tail[..padding]);
        tail[padding..padding + DIGEST_BYTES].copy_from_slice(&crc.finish());
        (tail, padding + DIGEST_BYTES)
    }

    /// Fills `slices` with the next bytes to send; returns the number of slices filled.
    pub fn gather<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut skip = self.sent_bytes;
        let mut filled = 0;
        for part in self.queue.iter().flat_map(Outgoing::parts) {
            if skip >= part.len() {
                skip -= part.len();
                continue;
            }
            let Some(slice) = slices.get_mut(filled) else { break };
            *slice = IoSlice::new(&part[skip..]);
            skip = 0;
            filled += 1;
        }
        filled
    }

    /// Records that `bytes` more have left; returns the number of PDUs completed by them.
    pub fn advance(&mut self, bytes: usize) -> u32 {
        self.queued_bytes -= bytes;
        self.sent_bytes += bytes;
        let mut pdus = 0;
        while let Some(first) = self.queue.front() {
            let first_bytes = first.bytes();
            if self.sent_bytes < first_bytes {
                break;
            }
            self.sent_bytes -= first_bytes;
            self.queue.pop_front();
            pdus += 1;
        }
        self.pdus += u64::from(pdus);
        pdus
    }
}

fn data(payload: Payload, buffers: &BufferTable) -> Option<Data> {
    match payload {
        Payload::None => Some(Data::Inline(Vec::new())),
        Payload::Inline(bytes) => Some(Data::Inline(bytes)),
        Payload::Buffer(range) => {
            let start = range.offset_bytes as usize;
            let bytes = buffers.get(range.buffer)?.slice(start..start + range.bytes as usize)?;
            Some(Data::Buffer(bytes))
        }
    }
}
