//! Buffers: their budget, their reuse, their shape.

use ropewalk_block::{BUFFER_ALIGNMENT_BYTES, BUFFER_BYTES_MAX, Payload, Slab};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

#[test]
fn a_buffer_is_as_long_as_asked_for_and_aligned_to_a_page() {
    let slab = Slab::new(64 * MIB);
    for bytes in [0, 1, 512, 4096, 4097, 100_000, BUFFER_BYTES_MAX - 1, BUFFER_BYTES_MAX] {
        let buffer = slab.allocate(bytes).unwrap();
        assert_eq!(buffer.len(), bytes);
        assert_eq!(buffer.as_ptr().addr() % BUFFER_ALIGNMENT_BYTES, 0);
    }
}

#[test]
fn a_buffer_longer_than_the_longest_is_refused() {
    assert!(Slab::new(64 * MIB).allocate(BUFFER_BYTES_MAX + 1).is_none());
    assert!(Slab::new(64 * MIB).allocate(usize::MAX).is_none());
}

#[test]
fn the_first_use_of_a_buffer_shows_zeroes() {
    assert!(Slab::new(MIB).allocate(MIB).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn when_the_budget_is_used_up_there_are_no_more_until_one_is_dropped() {
    let slab = Slab::new(2 * MIB);
    let first = slab.allocate(MIB).unwrap();
    let _second = slab.allocate(MIB).unwrap();
    assert!(slab.allocate(1).is_none());
    drop(first);
    assert!(slab.allocate(MIB).is_some());
}

#[test]
fn a_buffer_is_charged_as_the_next_power_of_two() {
    let slab = Slab::new(MIB);
    let _short = slab.allocate(1).unwrap();
    let _odd = slab.allocate(5 * KIB).unwrap();
    assert_eq!(slab.in_use_bytes(), 4 * KIB + 8 * KIB);
}

#[test]
fn a_dropped_buffer_is_reused_without_new_memory() {
    let slab = Slab::new(4 * MIB);
    let buffer = slab.allocate(MIB).unwrap();
    let address = buffer.as_ptr();
    drop(buffer);
    assert_eq!(slab.allocate(MIB - 100).unwrap().as_ptr(), address);
}

#[test]
fn idle_buffers_of_one_size_make_room_for_another_size() {
    let slab = Slab::new(MIB);
    let small: Vec<_> = (0..256).map(|_| slab.allocate(4 * KIB).unwrap()).collect();
    drop(small);
    assert_eq!(slab.idle_bytes(), MIB);
    let _large = slab.allocate(512 * KIB).unwrap();
    assert!(slab.in_use_bytes() + slab.idle_bytes() <= MIB);
}

#[test]
fn trimming_returns_all_idle_memory() {
    let slab = Slab::new(4 * MIB);
    drop(slab.allocate(MIB));
    assert_eq!(slab.idle_bytes(), MIB);
    slab.trim();
    assert_eq!(slab.idle_bytes(), 0);
    assert!(slab.allocate(MIB).is_some());
}

#[test]
fn a_buffer_may_outlive_its_slab_and_go_to_another_thread() {
    let mut buffer = Slab::new(MIB).allocate(4 * KIB).unwrap();
    let filled = std::thread::spawn(move || {
        buffer.fill(7);
        buffer
    });
    assert!(filled.join().unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn a_shared_buffer_returns_to_the_slab_with_its_last_reader() {
    let slab = Slab::new(MIB);
    let payload = slab.allocate(4 * KIB).unwrap().share();
    let part = payload.slice(100..200).unwrap();
    drop(payload);
    assert_eq!(slab.in_use_bytes(), 4 * KIB);
    drop(part);
    assert_eq!(slab.in_use_bytes(), 0);
}

#[test]
fn a_slice_of_a_slice_counts_from_its_start() {
    let mut buffer = Slab::new(MIB).allocate(256).unwrap();
    for (value, byte) in (0..=255).zip(buffer.iter_mut()) {
        *byte = value;
    }
    let payload = buffer.share();
    let inner = payload.slice(100..200).and_then(|outer| outer.slice(10..13)).unwrap();
    assert_eq!(*inner, [110, 111, 112]);
}

#[test]
// A backwards range is what this is about.
#[expect(clippy::reversed_empty_ranges)]
fn a_slice_beyond_its_payload_is_refused() {
    let payload: Payload = Slab::new(MIB).allocate(100).unwrap().share();
    assert!(payload.slice(50..101).is_none());
    assert!(payload.slice(60..50).is_none());
    assert!(payload.slice(10..20).unwrap().slice(0..11).is_none());
}

#[test]
fn only_the_last_reader_gets_the_buffer_back() {
    let payload = Slab::new(MIB).allocate(100).unwrap().share();
    let other = payload.clone();
    let payload = payload.try_into_buffer().unwrap_err();
    drop(other);
    assert_eq!(payload.try_into_buffer().unwrap().len(), 100);
}
