//! The volatile cache: what is lost, what is durable, and in which order.

use std::sync::Arc;

use crate::device::scripted::Scripted;
use crate::device::{Device, KIB, MIB, done, kind};
use ropewalk_block::{BlockErrorKind, Operation, Volatile};

struct Cached {
    disk: Device,
    inner: Scripted,
}

fn cached(cache_bytes: usize) -> Cached {
    let inner = Scripted::new(64 * MIB as u64);
    let disk = Device::new(Volatile::new(Arc::new(inner.clone()), cache_bytes));
    Cached { disk, inner }
}

#[test]
fn a_write_is_seen_at_once_and_is_on_the_device_only_after_a_flush() {
    let Cached { disk, inner } = cached(MIB);
    disk.write(4096, &[1; 4096]);
    assert_eq!(disk.read(0, 12288), [[0; 4096], [1; 4096], [0; 4096]].concat());
    assert_eq!(inner.contents(4096, 4096), [0; 4096]);
    disk.flush();
    assert_eq!(inner.contents(4096, 4096), [1; 4096]);
}

#[test]
fn what_was_not_flushed_is_lost_with_the_cache() {
    let Cached { disk, inner } = cached(MIB);
    disk.write(0, &[1; 512]);
    disk.flush();
    disk.write(512, &[2; 512]);
    drop(disk);
    assert_eq!(inner.contents(0, 1024), [[1; 512], [0; 512]].concat());
}

#[test]
fn the_device_is_flushed_after_the_last_write_back_has_completed() {
    let Cached { disk, inner } = cached(MIB);
    disk.write(0, &[1; 512]);
    disk.write(4096, &[1; 512]);
    inner.hold();
    let flush = disk.start(Operation::Flush);
    inner.release_one();
    assert_eq!(inner.log(), ["write 0+512", "write 4096+512"]);
    inner.release_one();
    assert_eq!(inner.log().last().unwrap(), "flush");
    let flush = flush.try_take().unwrap_err();
    inner.release_one();
    assert!(done(flush).result.is_ok());
}

#[test]
fn a_flush_covers_what_had_completed_and_not_what_comes_after() {
    let Cached { disk, inner } = cached(MIB);
    disk.write(0, &[1; 512]);
    inner.hold();
    let flush = disk.start(Operation::Flush);
    disk.write(4096, &[2; 512]);
    inner.release_all();
    assert!(done(flush).result.is_ok());
    assert_eq!(inner.contents(0, 512), [1; 512]);
    assert_eq!(inner.contents(4096, 512), [0; 512]);
}

#[test]
fn a_second_flush_waits_for_the_first_and_then_covers_more() {
    let Cached { disk, inner } = cached(MIB);
    disk.write(0, &[1; 512]);
    inner.hold();
    let first = disk.start(Operation::Flush);
    disk.write(0, &[2; 512]);
    let second = disk.start(Operation::Flush);
    inner.release_all();
    assert!(done(first).result.is_ok());
    assert!(done(second).result.is_ok());
    assert_eq!(inner.log(), ["write 0+512", "flush", "write 0+512", "flush"]);
    assert_eq!(inner.contents(0, 512), [2; 512]);
}

#[test]
fn a_flush_that_nobody_waits_for_runs_all_the_same() {
    let Cached { disk, inner } = cached(MIB);
    disk.write(0, &[1; 512]);
    inner.hold();
    drop(disk.start(Operation::Flush));
    inner.release_all();
    assert_eq!(inner.log(), ["write 0+512", "flush"]);
}

#[test]
fn many_flushes_in_a_row_do_not_pile_up_on_the_stack() {
    let Cached { disk, inner } = cached(MIB);
    inner.hold();
    let flushes = (0..100_000).map(|_| disk.start(Operation::Flush)).collect::<Vec<_>>();
    inner.release_all();
    assert!(flushes.into_iter().all(|flush| done(flush).result.is_ok()));
}

#[test]
fn a_read_during_the_write_back_sees_the_data() {
    let Cached { disk, inner } = cached(MIB);
    disk.write(0, &[1; 512]);
    inner.hold();
    let _flush = disk.start(Operation::Flush);
    inner.stop_holding();
    assert_eq!(disk.read(0, 512), [1; 512]);
    inner.release_all();
    assert_eq!(disk.read(0, 512), [1; 512]);
}

#[test]
fn a_read_that_the_write_back_overtakes_sees_the_data() {
    let Cached { disk, inner } = cached(MIB);
    disk.write(0, &[1; 512]);
    inner.hold();
    let read = disk.start_read(0, 1024);
    inner.stop_holding();
    disk.flush();
    inner.release_all();
    assert_eq!(*done(read).into_buffer().unwrap(), [[1; 512], [0; 512]].concat());
}

#[test]
fn later_writes_lie_over_earlier_ones_piece_by_piece() {
    let Cached { disk, inner } = cached(MIB);
    disk.write(0, &[1; 4096]);
    disk.write(1024, &[2; 512]);
    disk.write(512, &[3; 512]);
    disk.write(3584, &[4; 1024]);
    let expected = [vec![1; 512], vec![3; 512], vec![2; 512], vec![1; 2048], vec![4; 1024]].concat();
    assert_eq!(disk.read(0, 4608), expected);
    disk.flush();
    assert_eq!(inner.contents(0, 4608), expected);
}

#[test]
fn a_fua_write_is_on_the_device_when_it_completes_and_others_are_not() {
    let Cached { disk, inner } = cached(MIB);
    disk.write(0, &[1; 1024]);
    disk.write(8192, &[1; 512]);
    disk.write_fua(512, &[2; 512]);
    assert_eq!(inner.contents(512, 512), [2; 512]);
    assert_eq!(inner.contents(8192, 512), [0; 512]);
    assert_eq!(disk.read(0, 1024), [[1; 512], [2; 512]].concat());
    assert_eq!(inner.log()[..2], ["write 512+512", "write fua 512+512"]);
}

#[test]
fn zeroes_and_unmaps_win_over_cached_writes() {
    let Cached { disk, .. } = cached(MIB);
    disk.write(0, &[1; 8192]);
    disk.unmap(512, 512);
    disk.write_zeroes(4096, 512, true);
    disk.flush();
    let contents = disk.read(0, 8192);
    let zero = |index: usize| (512..1024).contains(&index) || (4096..4608).contains(&index);
    assert!(contents.iter().enumerate().all(|(index, byte)| (*byte == 0) == zero(index)));
}

#[test]
fn extents_count_what_is_still_cached() {
    let Cached { disk, .. } = cached(MIB);
    disk.write(0, &[1; 512]);
    assert_eq!(disk.extents(0, 512), [(0, 512, ropewalk_block::ExtentState::Data)]);
}

#[test]
fn a_full_cache_writes_back_its_oldest_and_keeps_the_rest() {
    let Cached { disk, inner } = cached(16 * KIB);
    for index in (0..4).rev() {
        disk.write(index * 4096, &[1; 4096]);
    }
    assert!(inner.log().is_empty());
    disk.write(5 * 4096, &[2; 4096]);
    assert_eq!(inner.log(), ["write 12288+4096"]);
    assert_eq!(disk.read(0, 16384), [1; 16384]);
}

#[test]
fn a_write_longer_than_the_cache_goes_past_it() {
    let Cached { disk, inner } = cached(16 * KIB);
    disk.write(0, &[1; 4096]);
    disk.write(0, &[2; 32768]);
    assert_eq!(inner.contents(0, 32768), [2; 32768]);
    assert_eq!(disk.read(0, 32768), [2; 32768]);
}

#[test]
fn a_full_cache_makes_writes_wait_for_the_device() {
    let Cached { disk, inner } = cached(4 * KIB);
    disk.write(0, &[1; 4096]);
    inner.hold();
    let writes = [4096, 8192, 0].map(|offset| disk.start_write(offset, &[2; 4096]));
    let writes = writes.map(|write| write.try_take().unwrap_err());
    inner.release_all();
    assert!(writes.into_iter().all(|write| done(write).result.is_ok()));
    assert_eq!(disk.read(0, 12288), [2; 12288]);
}

#[test]
fn when_writing_back_fails_the_flush_fails_and_the_data_stays() {
    let Cached { disk, inner } = cached(MIB);
    disk.write(0, &[1; 1024]);
    inner.hold();
    let flush = disk.start(Operation::Flush);
    inner.set_failing(true);
    disk.write(512, &[2; 512]);
    inner.release_all();
    assert_eq!(kind(done(flush).result), BlockErrorKind::Medium);
    inner.set_failing(false);
    assert_eq!(disk.read(0, 1024), [[1; 512], [2; 512]].concat());
    disk.flush();
    assert_eq!(inner.contents(0, 1024), [[1; 512], [2; 512]].concat());
}
