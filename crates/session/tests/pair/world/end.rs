//! What a connection's driver does, for either role: PDUs to bytes, bytes to PDUs, data segments to where they belong.

use pdu::{BufferId, Crc32c, Header, Instant, LaneId, padding};
use ropewalk_session::parameters::ConnectionParameters;
use ropewalk_session::seam::{Allocation, Buffers, Destination, Digest, Endpoint, Fault, Payload, Transmit};
use std::collections::BTreeMap;

/// Buffers by name; each is given back once.
#[derive(Debug, Default)]
pub struct Memory {
    buffers: BTreeMap<BufferId, Vec<u8>>,
    last: u32,
}

impl Memory {
    pub fn add(&mut self, bytes: Vec<u8>) -> BufferId {
        self.last += 1;
        self.buffers.insert(BufferId(self.last), bytes);
        BufferId(self.last)
    }

    pub fn get(&self, buffer: BufferId) -> &[u8] {
        self.buffers.get(&buffer).expect("a buffer that is named is there")
    }

    pub fn release(&mut self, buffer: BufferId) -> Vec<u8> {
        self.buffers.remove(&buffer).expect("a buffer is given back once")
    }

    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }
}

impl Buffers for Memory {
    fn allocate(&mut self, _least_bytes: u32, preferred_bytes: u32) -> Option<Allocation> {
        let buffer = self.add(vec![0; preferred_bytes as usize]);
        Some(Allocation { buffer, bytes: preferred_bytes })
    }

    fn grow(&mut self, buffer: BufferId, bytes: u32) -> bool {
        let buffer = self.buffers.get_mut(&buffer).expect("a buffer that grows is there");
        buffer.resize(buffer.len().max(bytes as usize), 0);
        true
    }
}

/// Bytes of one lane that have not made a PDU yet.
#[derive(Debug)]
struct Receiver {
    parameters: ConnectionParameters,
    bytes: Vec<u8>,
    /// The destination of a data segment of this length, which is being received; none if its header was damaged.
    segment: Option<(Option<Destination>, u32)>,
}

/// One end of a session with its memory.
#[derive(Debug)]
pub struct End<S> {
    pub session: S,
    pub memory: Memory,
    receivers: BTreeMap<LaneId, Receiver>,
}

impl<S: Endpoint> End<S> {
    pub fn new(session: S) -> Self {
        Self { session, memory: Memory::default(), receivers: BTreeMap::new() }
    }

    pub fn open(&mut self, lane: LaneId, parameters: ConnectionParameters) {
        self.receivers.insert(lane, Receiver { parameters, bytes: Vec::new(), segment: None });
    }

    pub fn is_open(&self, lane: LaneId) -> bool {
        self.receivers.contains_key(&lane)
    }

    /// Forgets a lane; whether it was there.
    pub fn close(&mut self, lane: LaneId) -> bool {
        self.receivers.remove(&lane).is_some()
    }

    /// The bytes of the next PDU to send.
    pub fn pull(&mut self, now: Instant, lane: LaneId, budget_bytes: u32) -> Option<Vec<u8>> {
        let parameters = self.receivers.get(&lane)?.parameters;
        let transmit = self.session.poll_transmit(now, lane, budget_bytes);
        assert!(
            transmit.is_none()
                || transmit.as_ref().is_some_and(|pdu| pdu.payload.bytes() <= budget_bytes as usize),
            "{transmit:?} exceeds {budget_bytes}"
        );
        let bytes = self.encode(&transmit?, &parameters);
        self.session.transmitted(now, lane, 1);
        Some(bytes)
    }

    fn encode(&self, transmit: &Transmit, parameters: &ConnectionParameters) -> Vec<u8> {
        let data: &[u8] = match &transmit.payload {
            Payload::None => &[],
            Payload::Inline(data) => data,
            Payload::Buffer(place) => {
                &self.memory.get(place.buffer)[place.offset_bytes as usize..][..place.bytes as usize]
            }
        };
        assert_eq!(data.len(), transmit.header.data_segment_bytes() as usize);
        assert!(data.len() <= parameters.send_segment_bytes_max as usize);
        let mut bytes = Vec::new();
        transmit.header.write_to(&mut bytes);
        if parameters.header_digest {
            bytes.extend(pdu::header_digest(&transmit.header));
        }
        let segment_starts = bytes.len();
        bytes.extend(data);
        bytes.resize(bytes.len() + padding(transmit.header.data_segment_bytes()) as usize, 0);
        if parameters.data_digest && !data.is_empty() {
            let mut crc = Crc32c::new();
            crc.update(&bytes[segment_starts..]);
            bytes.extend(crc.finish());
        }
        bytes
    }

    /// Takes bytes that arrived.
    pub fn receive(&mut self, now: Instant, lane: LaneId, bytes: &[u8]) -> Result<(), Fault> {
        let Some(receiver) = self.receivers.get_mut(&lane) else { return Ok(()) };
        receiver.bytes.extend(bytes);
        self.session.heard(now, lane);
        while self.receive_header(now, lane)? || self.receive_segment(now, lane)? {}
        Ok(())
    }

    fn receive_header(&mut self, now: Instant, lane: LaneId) -> Result<bool, Fault> {
        let Some(receiver) = self.receivers.get_mut(&lane) else { return Ok(false) };
        let Some(bhs) = receiver.bytes.first_chunk().filter(|_| receiver.segment.is_none()) else {
            return Ok(false);
        };
        let mut header = Header::new(*bhs);
        let header_bytes = Header::BHS_BYTES + header.ahs_bytes();
        let digest_bytes = if receiver.parameters.header_digest { 4 } else { 0 };
        if receiver.bytes.len() < header_bytes + digest_bytes {
            return Ok(false);
        }
        let rest = receiver.bytes.split_off(header_bytes + digest_bytes);
        let head = std::mem::replace(&mut receiver.bytes, rest);
        header.set_ahs(head[Header::BHS_BYTES..header_bytes].to_vec())?;
        let is_good = digest_bytes == 0 || head[header_bytes..] == pdu::header_digest(&header);
        let digest = if is_good { Digest::Good } else { Digest::Bad };
        let bytes = header.data_segment_bytes();
        let destination = self.session.receive_header(now, lane, &header, digest, &mut self.memory)?;
        receiver.segment = (bytes > 0).then_some((is_good.then_some(destination), bytes));
        Ok(true)
    }

    fn receive_segment(&mut self, now: Instant, lane: LaneId) -> Result<bool, Fault> {
        let Some(receiver) = self.receivers.get_mut(&lane) else { return Ok(false) };
        let Some((destination, bytes)) = receiver.segment else { return Ok(false) };
        let padded_bytes = (bytes + padding(bytes)) as usize;
        let digest_bytes = if receiver.parameters.data_digest { 4 } else { 0 };
        if receiver.bytes.len() < padded_bytes + digest_bytes {
            return Ok(false);
        }
        let rest = receiver.bytes.split_off(padded_bytes + digest_bytes);
        let segment = std::mem::replace(&mut receiver.bytes, rest);
        receiver.segment = None;
        let is_good = digest_bytes == 0 || segment[padded_bytes..] == pdu::digest(&segment[..padded_bytes]);
        let data = &segment[..bytes as usize];
        let Some(destination) = destination else { return Ok(true) };
        let inline = match destination {
            Destination::Inline { .. } => data,
            Destination::Buffer(place) => {
                let buffer = self.memory.buffers.get_mut(&place.buffer).expect("data goes to a live buffer");
                buffer[place.offset_bytes as usize..][..data.len()].copy_from_slice(data);
                &[]
            }
            Destination::Discard { .. } => &[],
            Destination::None => panic!("data without a destination"),
        };
        let digest = if is_good { Digest::Good } else { Digest::Bad };
        self.session.receive_data(now, lane, inline, digest)?;
        Ok(true)
    }
}
