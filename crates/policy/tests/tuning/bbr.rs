//! The guided tuner gives connections to BBR where that moves more.

use crate::model::{CLEAN, LOSSY, Path, Session, guided};
use pdu::Duration;
use ropewalk_policy::Limit;
use ropewalk_policy::tuner::{Guided, Law};

/// A session whose tuner may use BBR.
pub fn with_bbr() -> Session<Guided> {
    Session { may_use_bbr: true, ..guided() }
}

#[test]
fn under_losses_bbr_on_two_connections_is_tried_first() {
    let mut session = with_bbr();
    session.work(&LOSSY, 30);
    let reasons: Vec<_> = session.decisions.iter().map(|decision| decision.reason.name()).collect();
    assert_eq!(reasons, ["bbr_may_do", "bbr_better"]);
    assert_eq!((session.connections, session.law), (2, Law::Bbr));
}

#[test]
fn where_bbr_is_no_better_connections_are_added_instead() {
    let mut session = with_bbr();
    session.work(&Path { of_bbr: 6e6, ..LOSSY }, 30);
    assert_eq!(session.law, Law::Configured);
    assert!(LOSSY.moves(session.connections, session.law) > 12e6, "{:?}", session.decisions);
}

#[test]
fn where_bbr_moves_the_same_the_path_is_full_and_no_connections_are_added() {
    let mut session = with_bbr();
    session.work(&Path { of_each: 1e6, of_bbr: 16e6, full: Limit::Losses, ..LOSSY }, 15);
    let reasons: Vec<_> = session.decisions.iter().map(|decision| decision.reason.name()).collect();
    assert_eq!(reasons, ["bbr_may_do", "bbr_not_better"]);
}

#[test]
fn where_the_path_was_full_at_the_same_rate_nothing_more_is_tried() {
    let mut session = with_bbr();
    session.work(&Path { of_each: 1e6, ..CLEAN }, 5);
    session.work(&Path { of_each: 1e6, full: Limit::Losses, ..CLEAN }, 60);
    assert_eq!(session.decisions, []);
}

#[test]
fn a_clean_path_is_never_given_to_bbr() {
    let mut session = with_bbr();
    session.work(&CLEAN, 60);
    assert!(session.decisions.iter().all(|decision| decision.law == Law::Configured));
}

#[test]
fn when_the_path_under_bbr_changes_the_search_begins_again() {
    let mut session = with_bbr();
    session.work(&LOSSY, 30).work(&Path { bytes_per_second: 8e6, of_bbr: 8e6, ..LOSSY }, 4);
    let last = session.decisions.last().unwrap();
    assert_eq!((last.reason.name(), last.connections, last.law), ("path_changed", 16, Law::Configured));
}

#[test]
fn a_slow_disk_is_not_taken_for_another_path() {
    let mut session = with_bbr();
    let slow = Path { of_bbr: 7e6, limit: Limit::Target, full: Limit::Target, ..LOSSY };
    session.work(&LOSSY, 30).work(&slow, 30).work(&LOSSY, 30);
    assert_eq!((session.connections, session.law), (2, Law::Bbr), "{:?}", session.decisions);
}

#[test]
fn what_is_read_does_not_show_another_path_than_what_is_written() {
    let mut session = with_bbr();
    session.work(&LOSSY, 30);
    session.is_incoming = true;
    session.work(&Path { of_bbr: 7e6, ..LOSSY }, 30);
    assert_eq!((session.connections, session.law), (2, Law::Bbr), "{:?}", session.decisions);
}

#[test]
fn a_trial_of_bbr_that_nothing_is_said_of_is_given_up() {
    let mut session = with_bbr();
    session.work(&LOSSY, 3);
    assert_eq!(session.law, Law::Bbr, "{:?}", session.decisions);
    session.work(&Path { limit: Limit::Depth, ..LOSSY }, 100);
    let last = session.decisions.last().unwrap();
    assert_eq!((last.reason.name(), last.connections, last.law), ("too_late", 16, Law::Configured));
}

#[test]
fn when_the_path_under_bbr_declines_little_by_little_the_search_begins_again() {
    let mut session = with_bbr();
    session.work(&LOSSY, 30);
    for percent in (60..100).rev() {
        let left = f64::from(percent) / 100.0;
        let path =
            Path { bytes_per_second: LOSSY.bytes_per_second * left, of_bbr: LOSSY.of_bbr * left, ..LOSSY };
        session.work(&path, 4);
    }
    assert!(
        session.decisions.iter().any(|decision| decision.reason.name() == "path_changed"),
        "{:?}",
        session.decisions
    );
}

#[test]
fn bbr_that_cannot_be_judged_is_given_up() {
    let mut session = with_bbr();
    session.work(&LOSSY, 3);
    assert_eq!(session.law, Law::Bbr);
    session.slice(LOSSY.of_bbr, Limit::Losses);
    session.now += Duration::from_secs(90);
    session.work(&LOSSY, 4);
    assert_eq!(session.law, Law::Configured, "{:?}", session.decisions);
}
