//! What a session's table takes of a budget that others share.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use block::Slab;
use ropewalk_framing::{BufferTable, Quota};
use session::seam::Buffers;

const BUDGET_BYTES: usize = 16 << 20;
const QUOTA_BYTES: usize = 4 << 20;
const BURST_BYTES: u32 = 64 << 10;
const MEBIBYTE: u32 = 1 << 20;

fn table(slab: &Slab, quota: &Quota) -> BufferTable {
    BufferTable::with_quota(slab.clone(), quota.clone(), BURST_BYTES)
}

#[test]
fn tables_of_one_quota_share_it_and_give_it_back() {
    let (slab, quota) = (Slab::new(BUDGET_BYTES), Quota::new(QUOTA_BYTES));
    let (mut one, mut other) = (table(&slab, &quota), table(&slab, &quota));
    let held = one.allocate(3 * MEBIBYTE, 3 * MEBIBYTE).unwrap();
    assert!(other.allocate(2 * MEBIBYTE, 2 * MEBIBYTE).is_none());
    assert!(other.take_refused());
    let mut stranger = table(&slab, &Quota::new(QUOTA_BYTES));
    assert!(stranger.allocate(2 * MEBIBYTE, 2 * MEBIBYTE).is_some());
    assert!(one.remove(held.buffer).is_some());
    assert!(other.allocate(2 * MEBIBYTE, 2 * MEBIBYTE).is_some());
    assert_eq!(quota.held_bytes(), 2 << 20);
}

#[test]
fn a_table_that_is_dropped_holds_nothing() {
    let (slab, quota) = (Slab::new(BUDGET_BYTES), Quota::new(QUOTA_BYTES));
    let mut gone = table(&slab, &quota);
    assert!(gone.allocate(MEBIBYTE, MEBIBYTE).is_some());
    drop(gone);
    assert_eq!((quota.held_bytes(), slab.in_use_bytes()), (0, 0));
}

#[test]
fn what_was_set_aside_is_there_when_the_quota_is_used_up_but_for_nothing_longer() {
    let (slab, quota) = (Slab::new(BUDGET_BYTES), Quota::new(QUOTA_BYTES));
    let _reservation = slab.reserve(128, BURST_BYTES as usize).unwrap();
    let mut table = table(&slab, &quota);
    assert!(table.allocate(4 * MEBIBYTE, 4 * MEBIBYTE).is_some());
    assert!(table.allocate(2 * BURST_BYTES, 2 * BURST_BYTES).is_none());
    let burst = table.allocate(BURST_BYTES, MEBIBYTE).unwrap();
    assert_eq!(burst.bytes, BURST_BYTES);
    assert!(!table.grow(burst.buffer, MEBIBYTE));
}

#[test]
fn parts_of_a_quota_take_from_the_whole_as_well_and_by_what_buffers_are_charged() {
    let (slab, whole) = (Slab::new(BUDGET_BYTES), Quota::new(QUOTA_BYTES));
    let parts = [whole.part(QUOTA_BYTES), whole.part(QUOTA_BYTES)];
    let [mut one, mut other] = parts.each_ref().map(|part| table(&slab, part));
    let held = one.allocate(MEBIBYTE + 1, MEBIBYTE + 1).unwrap();
    assert_eq!((parts[0].held_bytes(), whole.held_bytes()), (2 << 20, 2 << 20));
    assert!(other.allocate(3 * MEBIBYTE, 3 * MEBIBYTE).is_none());
    assert_eq!(parts[1].held_bytes(), 0);
    assert!(one.remove(held.buffer).is_some());
    assert!(other.allocate(3 * MEBIBYTE, 3 * MEBIBYTE).is_some());
}
