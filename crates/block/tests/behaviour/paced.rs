//! A slow disk: its rate, its latency, its jitter.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::device::scripted::Scripted;
use crate::device::virtual_time::VirtualTime;
use crate::device::{Device, MIB, done};
use ropewalk_block::{Operation, Pace, Paced};

const STILL: Pace = Pace { bytes_per_second: None, latency: Duration::ZERO, jitter: Duration::ZERO, seed: 1 };

struct Slow {
    disk: Device,
    inner: Scripted,
    time: VirtualTime,
}

fn slow(pace: Pace) -> Slow {
    let (inner, time) = (Scripted::new(16 * MIB as u64), VirtualTime::default());
    let disk = Device::new(Paced::new(Arc::new(inner.clone()), Arc::new(time.clone()), pace));
    Slow { disk, inner, time }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn without_limits_nothing_waits() {
    let slow = slow(STILL);
    assert!(done(slow.disk.start_write(0, &[1; 512])).result.is_ok());
}

#[test]
fn transfers_share_the_rate_one_after_another() {
    let slow = slow(Pace { bytes_per_second: NonZeroU64::new(MIB as u64), ..STILL });
    let first = slow.disk.start_write(0, &vec![1; MIB]);
    let second = slow.disk.start_read(0, MIB);
    slow.time.advance_to(seconds(1));
    assert!(done(first).result.is_ok());
    let second = second.try_take().unwrap_err();
    slow.time.advance_to(seconds(2));
    assert_eq!(*done(second).into_buffer().unwrap(), vec![1; MIB]);
}

#[test]
fn idle_time_is_not_saved_up() {
    let slow = slow(Pace { bytes_per_second: NonZeroU64::new(MIB as u64), ..STILL });
    slow.time.advance_to(seconds(10));
    let write = slow.disk.start_write(0, &vec![1; MIB]);
    assert!(write.try_take().is_err());
}

#[test]
fn latency_is_added_to_every_operation_at_the_same_time() {
    let slow = slow(Pace { latency: seconds(1), ..STILL });
    let operations = [slow.disk.start_write(0, &[1; 512]), slow.disk.start(Operation::Flush)];
    slow.time.advance_to(seconds(1));
    assert!(operations.into_iter().all(|operation| done(operation).result.is_ok()));
}

#[test]
fn an_operation_that_nobody_waits_for_runs_all_the_same() {
    let slow = slow(Pace { latency: seconds(1), ..STILL });
    drop(slow.disk.start_write(0, &[7; 512]));
    slow.time.advance_to(seconds(1));
    assert_eq!(slow.inner.contents(0, 512), [7; 512]);
}

#[test]
fn the_same_seed_gives_the_same_jitter_and_another_seed_another() {
    let order = |seed| {
        let slow = slow(Pace { jitter: seconds(1), seed, ..STILL });
        let writes = (0..32).map(|index| slow.disk.start_write(index * 512, &[1; 512]));
        let writes = writes.collect::<Vec<_>>();
        while slow.time.advance() {}
        drop(writes);
        slow.inner.log()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}
