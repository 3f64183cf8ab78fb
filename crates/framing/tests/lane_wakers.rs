//! Who is woken to send.

use pdu::{Header, Instant, LaneId};
use ropewalk_framing::LaneWakers;
use session::seam::{Buffers, Destination, Digest, Endpoint, Fault, LaneLoss, Transmit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};

/// Has something to send on every lane, always.
struct Talker;

impl Endpoint for Talker {
    type Event = ();

    fn receive_header(
        &mut self,
        _: Instant,
        _: LaneId,
        _: &Header,
        _: Digest,
        _: &mut dyn Buffers,
    ) -> Result<Destination, Fault> {
        Ok(Destination::None)
    }

    fn receive_data(&mut self, _: Instant, _: LaneId, _: &[u8], _: Digest) -> Result<(), Fault> {
        Ok(())
    }

    fn poll_transmit(&mut self, _: Instant, _: LaneId, _: u32) -> Option<Transmit> {
        None
    }

    fn wants_transmit(&self, _: LaneId) -> bool {
        true
    }

    fn transmitted(&mut self, _: Instant, _: LaneId, _: u32) {}

    fn heard(&mut self, _: Instant, _: LaneId) {}

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

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn wakes_of_a_lane(is_blocked: bool) -> u32 {
    let (count, mut wakers) = (Arc::new(Count::default()), LaneWakers::default());
    wakers.register(LaneId(1), &Waker::from(Arc::clone(&count)), is_blocked);
    wakers.wake_senders(&Talker, Some(LaneId(0)));
    wakers.wake_senders(&Talker, Some(LaneId(0)));
    count.0.load(Ordering::Relaxed)
}

#[test]
fn a_lane_with_something_to_send_is_woken_once() {
    assert_eq!(wakes_of_a_lane(false), 1);
}

#[test]
fn a_lane_whose_stream_has_no_room_is_left_to_its_stream() {
    assert_eq!(wakes_of_a_lane(true), 0);
}
