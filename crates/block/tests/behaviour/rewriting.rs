//! A device that loses what it has acknowledged, and the memory that makes up for it.

use std::sync::Arc;

use crate::device::forgetful::Forgetful;
use crate::device::scripted::Scripted;
use crate::device::{Device, KIB, MIB, done, kind};
use ropewalk_block::{BlockErrorKind, Operation, Rewriting};

struct Kept {
    disk: Device,
    inner: Forgetful,
}

fn kept() -> Kept {
    let inner = Forgetful::new(MIB);
    let disk = Device::new(Rewriting::new(Arc::new(inner.clone()), MIB));
    Kept { disk, inner }
}

#[test]
fn what_the_device_has_lost_is_written_again_and_nobody_hears_of_it() {
    let Kept { disk, inner } = kept();
    disk.write(4096, &[1; 1024]);
    disk.write(4608, &[2; 512]);
    disk.write_zeroes(0, 512, false);
    inner.lose();
    disk.flush();
    assert_eq!(inner.durable()[4096..5120], [[1; 512], [2; 512]].concat());
}

#[test]
fn a_read_finds_what_was_written_although_the_device_has_lost_it() {
    let Kept { disk, inner } = kept();
    disk.write(0, &[1; 4096]);
    disk.flush();
    disk.write(512, &[2; 512]);
    disk.unmap(1024, 512);
    inner.lose();
    assert_eq!(disk.read(0, 2048), [[1; 512], [2; 512], [0; 512], [1; 512]].concat());
}

#[test]
fn zeroes_that_are_made_again_do_not_cover_a_later_forced_write() {
    let Kept { disk, inner } = kept();
    disk.write_zeroes(0, 8192, true);
    disk.write_fua(4096, &[3; 512]);
    inner.lose();
    disk.flush();
    assert_eq!(inner.durable()[4096..4608], [3; 512]);
    assert_eq!(disk.read(4096, 512), [3; 512]);
}

#[test]
fn a_device_that_loses_its_cache_again_while_it_is_written_anew_is_written_once_more() {
    let Kept { disk, inner } = kept();
    disk.write(0, &[1; 512]);
    inner.lose_at_flushes(3);
    disk.flush();
    assert_eq!((inner.durable()[0], inner.flushes()), (1, 4));
    disk.write(0, &[2; 512]);
    inner.lose_at_flushes(u32::MAX);
    assert_eq!(kind(disk.run(Operation::Flush)), BlockErrorKind::WritesLost);
}

#[test]
fn a_loss_of_which_only_a_forced_write_hears_is_made_up_for_too() {
    let Kept { disk, inner } = kept();
    disk.write(0, &[1; 512]);
    inner.lose();
    disk.write_fua(4096, &[2; 512]);
    disk.flush();
    assert_eq!((inner.durable()[0], inner.durable()[4096]), (1, 2));
}

#[test]
fn after_a_flush_that_has_failed_the_next_one_writes_everything_again() {
    let Kept { disk, inner } = kept();
    disk.write(0, &[1; 512]);
    inner.fail_at_flushes(1);
    assert_eq!(kind(disk.run(Operation::Flush)), BlockErrorKind::Medium);
    disk.flush();
    assert_eq!(inner.durable()[0], 1);
}

#[test]
fn more_than_fits_into_the_memory_is_flushed_first() {
    let Kept { disk, inner } = kept();
    for chunk in 0..16 {
        disk.write(chunk * 64 * KIB as u64, &vec![5; 64 * KIB]);
    }
    assert!(inner.flushes() > 0);
    disk.flush();
    assert!(inner.durable().iter().all(|byte| *byte == 5));
}

#[test]
fn a_write_longer_than_half_of_the_memory_is_refused() {
    let inner = Forgetful::new(MIB);
    let disk = Device::new(Rewriting::new(Arc::new(inner), 64 * KIB));
    disk.write(0, &vec![1; 32 * KIB]);
    disk.write(0, &vec![1; 32 * KIB]);
    assert_eq!(kind(disk.try_write(0, &vec![1; 128 * KIB])), BlockErrorKind::NoSpace);
}

#[test]
fn flushes_that_wait_for_one_another_are_one() {
    let inner = Scripted::new(MIB as u64);
    let disk = Device::new(Rewriting::new(Arc::new(inner.clone()), MIB));
    disk.write(0, &[1; 512]);
    inner.hold();
    let flushes: Vec<_> = (0..4).map(|_| disk.start(Operation::Flush)).collect();
    inner.release_all();
    assert!(flushes.into_iter().all(|flush| done(flush).result.is_ok()));
    // The first had begun before the others were asked for, and covers less.
    assert_eq!(inner.log().iter().filter(|line| *line == "flush").count(), 2);
}

#[test]
fn an_error_other_than_a_loss_is_told_as_it_is() {
    let inner = Scripted::new(MIB as u64);
    let disk = Device::new(Rewriting::new(Arc::new(inner.clone()), MIB));
    disk.write(0, &[1; 512]);
    inner.set_failing(true);
    assert_eq!(kind(disk.run(Operation::Flush)), BlockErrorKind::Medium);
    assert_eq!(kind(disk.try_write(0, &[1; 512])), BlockErrorKind::Medium);
}
