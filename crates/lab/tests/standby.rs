//! A processor that is taken away does not hold the relay up. Its own program, with one lab: the threads are found by
//! their names.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod threads;
#[path = "behaviour/world/mod.rs"]
#[allow(dead_code, reason = "the other programs use the rest")]
mod world;

use requirement::{Need, skip};
use ropewalk_lab::ping;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use world::{in_lab, lab, link};

/// Longer than an answer takes, and shorter than the kernel lets a thread have a processor for itself.
const THEFT_MAX: Duration = Duration::from_millis(500);

/// Above the relay's.
const PRIORITY: i32 = 20;

#[test]
fn another_thread_stands_in_for_a_relay_without_a_processor() {
    in_lab(|| {
        let processors = sched_getaffinity(None).unwrap();
        let Some((taken, others)) = taken_and_others(&processors) else {
            return skip(Need::Processors, "it takes two");
        };
        let lab = lab(link(100, Duration::from_millis(2)));
        let round_trips = || ping(&lab.client.namespace, lab.server.addresses[0], 1).unwrap();
        sched_setaffinity(None, &others).unwrap();
        sched_setaffinity(Some(threads::named("relay")[0]), &taken).unwrap();
        // After this the relay has worked there.
        assert_eq!(round_trips().len(), 1);
        let (has_begun, is_answered) = (AtomicBool::new(false), AtomicBool::new(false));
        let is_answered_in_time = std::thread::scope(|scope| {
            let thief = scope.spawn(|| take_away(&taken, &has_begun, &is_answered));
            while !has_begun.load(SeqCst) {
                assert!(!thief.is_finished(), "it has the right to");
                std::thread::yield_now();
            }
            assert_eq!(round_trips().len(), 1);
            is_answered.store(true, SeqCst);
            thief.join().unwrap()
        });
        assert!(is_answered_in_time || !lab.relay.report().has_priority);
    });
}

/// The first processor, and all but that.
fn taken_and_others(processors: &CpuSet) -> Option<(CpuSet, CpuSet)> {
    let first = (0..CpuSet::MAX_CPU).find(|processor| processors.is_set(*processor))?;
    let (mut taken, mut others) = (CpuSet::new(), *processors);
    taken.set(first);
    others.unset(first);
    (others.count() > 0).then_some((taken, others))
}

/// Works on a processor until there is an answer. Whether there was one in time.
fn take_away(processor: &CpuSet, has_begun: &AtomicBool, is_answered: &AtomicBool) -> bool {
    sched_setaffinity(None, processor).expect("the program may use it");
    // SAFETY: plain integers, for which all-zero bytes are a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = PRIORITY;
    // Refused, as in a user namespace, it takes nothing away. SAFETY: the kernel reads `parameters`, which outlives the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    has_begun.store(true, SeqCst);
    let begun = Instant::now();
    while !is_answered.load(SeqCst) && begun.elapsed() < THEFT_MAX {
        std::hint::spin_loop();
    }
    is_answered.load(SeqCst)
}
