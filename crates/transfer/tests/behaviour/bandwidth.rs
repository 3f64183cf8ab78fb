//! The limit on bandwidth holds for copying and for reading back.

use crate::world::{Copy, Disk, MIB, copy, destination, noise, options, source};
use block::Timer;
use ropewalk_transfer::{Options, Verify};
use std::time::Duration;

fn limited(limit: &str, verify: Verify) -> Copy {
    let (from, to) = (Disk::new(8 * MIB), Disk::new(8 * MIB));
    from.fill(0, &noise(8 * MIB));
    let options = Options { limit: Some(limit.parse().unwrap()), verify, ..options() };
    copy(source(&from), destination(&to), options)
}

fn seconds(copy: Copy) -> f64 {
    copy.outcome.unwrap();
    copy.clock.now().as_secs_f64()
}

#[test]
fn a_copy_takes_as_long_as_its_limit_says() {
    assert!((seconds(limited("1M", Verify::Off)) - 8.0).abs() < 0.2);
}

#[test]
fn reading_back_counts_as_well() {
    assert!((seconds(limited("1M", Verify::Full)) - 16.0).abs() < 0.3);
}

#[test]
fn a_schedule_lifts_the_limit_when_its_time_comes() {
    let clock = limited("00:00,4K 00:01,off", Verify::Off).clock;
    assert!(clock.now().abs_diff(Duration::from_secs(60)) < Duration::from_secs(20), "{:?}", clock.now());
}
