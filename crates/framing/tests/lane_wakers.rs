//! Who is woken to send.

mod listener;

use listener::Listener;
use pdu::LaneId;
use ropewalk_framing::LaneWakers;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn wakes_of_a_lane(is_blocked: bool) -> u32 {
    let talker = Listener { is_eager: true, ..Listener::default() };
    let (count, mut wakers) = (Arc::new(Count::default()), LaneWakers::default());
    wakers.register(LaneId(1), &Waker::from(Arc::clone(&count)), is_blocked);
    wakers.wake_senders(&talker, Some(LaneId(0)));
    wakers.wake_senders(&talker, Some(LaneId(0)));
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
