//! The least that a byte stream can be driven for.

#![allow(dead_code, reason = "each test file uses its part")]

use pdu::{Header, Instant, LaneId};
use session::seam::{Buffers, Destination, Digest, Endpoint, Fault, LaneLoss, Payload, Transmit};

/// Takes pings, and says nothing; the rest is the test's choice.
#[derive(Default)]
pub struct Listener {
    pub tolerates_holes: bool,
    pub heard: Vec<u32>,
    pub holes: u32,
    pub segments: Vec<Vec<u8>>,
    /// Reads of the stream that were a sign of life.
    pub signs_of_life: u32,
    /// Has something to send on every lane, always, though nobody ever gets it.
    pub is_eager: bool,
    /// What it sends, as long as it is asked: this PDU with as much data as it is allowed.
    pub sends: Option<Header>,
}

impl Endpoint for Listener {
    type Event = ();

    fn receive_header(
        &mut self,
        _: Instant,
        _: LaneId,
        header: &Header,
        digest: Digest,
        _: &mut dyn Buffers,
    ) -> Result<Destination, Fault> {
        let bytes = header.data_segment_bytes();
        if digest == Digest::Bad {
            self.holes += 1;
            return if self.tolerates_holes {
                Ok(Destination::Discard { bytes })
            } else {
                Err(Fault::HeaderDigest)
            };
        }
        self.heard.push(header.task_tag().0);
        Ok(if bytes > 0 { Destination::Inline { bytes } } else { Destination::None })
    }

    fn receive_data(&mut self, _: Instant, _: LaneId, inline: &[u8], digest: Digest) -> Result<(), Fault> {
        assert_eq!(digest, Digest::Good);
        self.segments.push(inline.to_vec());
        Ok(())
    }

    fn poll_transmit(&mut self, _: Instant, _: LaneId, budget_bytes: u32) -> Option<Transmit> {
        let header = self.sends.clone()?;
        Some(Transmit { header, payload: Payload::Inline(vec![0; budget_bytes as usize]) })
    }

    fn wants_transmit(&self, _: LaneId) -> bool {
        self.is_eager
    }

    fn transmitted(&mut self, _: Instant, _: LaneId, _: u32) {}

    fn heard(&mut self, _: Instant, _: LaneId) {
        self.signs_of_life += 1;
    }

    fn doubts(&self, _: LaneId) -> bool {
        false
    }

    fn delivered(&mut self, _: Instant, _: LaneId, _: u64) {}

    fn lane_lost(&mut self, _: Instant, _: LaneId, _: LaneLoss) {}

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}
}
