//! The guided tuner begins with what an earlier session has found.

use crate::bbr::with_bbr;
use crate::model::{CLEAN, LOSSY, Path, SLICE, Session, guided};
use pdu::Instant;
use ropewalk_policy::tuner::{Experience, Guided, Law, Reason, Terms};
use ropewalk_policy::{Limit, Tuner as _};

#[test]
fn a_session_that_is_to_behave_as_few_flows_does_not_begin_with_the_many_that_were_found() {
    let experience = found(guided(), &LOSSY);
    assert!(experience.to_target.is_some_and(|found| found.connections > 16));
    let tuner = Guided::new(Terms { as_flows: 2, experience, ..Terms::default() });
    assert_eq!(tuner.connections_at_first(), 2);
}

/// What a session over this path finds.
fn found(mut session: Session<Guided>, path: &Path) -> Experience {
    session.work(path, 60).tuner.experience().expect("this tuner has some")
}

/// A later session over a path on which this was found.
fn later(experience: Experience) -> Session<Guided> {
    let tuner = Guided::new(Terms { experience, ..Terms::default() });
    Session { may_use_bbr: true, ..Session::begin(tuner) }
}

#[test]
fn a_later_session_begins_with_as_many_connections_as_were_found() {
    let experience = found(guided(), &LOSSY);
    let found = experience.to_target.unwrap();
    assert!(LOSSY.moves(found.connections, found.law) >= LOSSY.bytes_per_second, "{found:?}");
    assert_eq!(later(experience).connections, found.connections);
}

#[test]
fn a_later_session_does_not_begin_with_fewer_connections() {
    let experience = found(guided(), &CLEAN);
    assert_eq!(experience.to_target.map(|found| found.connections), Some(2));
    assert_eq!(later(experience).connections, 16);
}

#[test]
fn where_bbr_was_better_a_later_session_uses_it_as_soon_as_losses_show() {
    let mut session = later(found(with_bbr(), &LOSSY));
    session.work(&LOSSY, 60);
    assert_eq!(session.decisions.len(), 1, "{:?}", session.decisions);
    let decision = session.decisions[0];
    assert_eq!(decision.reason, Reason::BbrKnown(Limit::Losses));
    assert!(decision.at <= Instant::ZERO + SLICE);
}

#[test]
fn a_later_session_verifies_what_was_found() {
    let slower = Path { of_bbr: 6e6, ..LOSSY };
    let mut session = later(found(with_bbr(), &LOSSY));
    session.work(&slower, 60);
    let reasons: Vec<_> = session.decisions.iter().map(|decision| decision.reason.name()).collect();
    assert_eq!(reasons[..2], ["bbr_known", "path_changed"]);
    assert_eq!(session.law, Law::Configured);
    assert!(slower.moves(session.connections, session.law) > 12e6, "{:?}", session.decisions);
}

#[test]
fn one_flow_under_bbr_verifies_what_two_had_found() {
    let slower = Path { of_bbr: 6e6, ..LOSSY };
    let experience = found(with_bbr(), &LOSSY);
    let tuner = Guided::new(Terms { experience, as_flows: 1, ..Terms::default() });
    let mut session = Session { may_use_bbr: true, ..Session::begin(tuner) };
    session.work(&slower, 10);
    let reasons: Vec<_> = session.decisions.iter().map(|decision| decision.reason.name()).collect();
    assert_eq!(reasons[..2], ["bbr_known", "path_changed"]);
}

#[test]
fn connections_that_brought_nothing_are_not_begun_with_again() {
    let useless = Path { bytes_per_second: 1e7, of_each: 1e7, full: Limit::Losses, ..LOSSY };
    let mut session = guided();
    session.work(&useless, 10);
    assert_eq!(session.connections, 32, "{:?}", session.decisions);
    assert_eq!(later(session.tuner.experience().unwrap()).connections, 16);
}

#[test]
fn a_session_that_finds_nothing_keeps_what_was_found_before() {
    let experience = found(guided(), &LOSSY);
    let mut session = later(experience);
    session.work(&Path { of_each: 1e5, limit: Limit::Target, full: Limit::Target, ..LOSSY }, 60);
    assert_eq!(session.tuner.experience(), Some(experience));
}
