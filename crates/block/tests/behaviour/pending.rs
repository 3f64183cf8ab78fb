//! Operations under way: how their ends are learnt.

use crate::device::{KIB, done, kind, wait};
use ropewalk_block::{BlockErrorKind, Completion, Pending, Slab};

#[test]
fn what_is_ready_is_there_at_once() {
    assert!(done(Pending::ready(Completion::complete())).result.is_ok());
}

#[test]
fn what_is_under_way_stays_so_until_it_is_completed() {
    let (completer, pending) = Pending::channel();
    let pending = pending.try_take().unwrap_err();
    completer.complete(Completion::complete());
    assert!(done(pending).result.is_ok());
}

#[test]
fn a_completion_from_another_thread_wakes_whoever_waits() {
    let (completer, pending) = Pending::channel();
    let worker = std::thread::spawn(move || completer.complete(Completion::complete()));
    assert!(wait(pending).result.is_ok());
    worker.join().unwrap();
}

#[test]
fn a_completer_that_is_dropped_reports_a_disconnected_device() {
    let (completer, pending) = Pending::channel();
    drop(completer);
    assert_eq!(kind(wait(pending).result), BlockErrorKind::Disconnected);
}

#[test]
fn a_completion_that_nobody_waits_for_is_dropped() {
    let slab = Slab::new(64 * KIB);
    let (completer, pending) = Pending::channel();
    drop(pending);
    completer.complete(Completion::read(slab.allocate(KIB).unwrap()));
    assert_eq!(slab.in_use_bytes(), 0, "its buffer is free again");
}

#[test]
fn asking_again_for_a_completion_reports_that_it_is_gone() {
    let mut pending = Pending::ready(Completion::complete());
    assert!(wait(&mut pending).result.is_ok());
    assert_eq!(kind(wait(&mut pending).result), BlockErrorKind::Disconnected);
}
