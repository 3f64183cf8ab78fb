//! The guided tuner finds how many connections a path needs.

use crate::bbr::with_bbr;
use crate::model::{CLEAN, LOSSY, Path, Session, guided};
use pdu::Duration;
use ropewalk_policy::Limit;
use ropewalk_policy::tuner::{Guided, Law, Reason, Terms, Tuner};

#[test]
fn under_losses_the_guided_tuner_adds_connections_until_they_fill_the_path() {
    let mut session = guided();
    session.work(&LOSSY, 20);
    assert!(
        LOSSY.moves(session.connections, session.law) >= LOSSY.bytes_per_second,
        "{:?}",
        session.decisions
    );
}

#[test]
fn the_connections_that_the_start_calls_for_log_in_at_once_and_later_ones_one_a_second() {
    let mut session = guided();
    session.work(&LOSSY, 3);
    assert_eq!((session.connections, session.tuner.login_pause(session.now)), (32, Duration::ZERO));
    session.work(&LOSSY, 9);
    assert_eq!(session.tuner.login_pause(session.now), Duration::from_secs(1));
}

#[test]
fn where_a_path_begins_to_lose_later_the_connections_log_in_one_a_second() {
    let mut session = guided();
    session.work(&CLEAN, 10);
    assert_eq!(session.connections, 16, "{:?}", session.decisions);
    session.work(&LOSSY, 4);
    assert_eq!((session.connections, session.tuner.login_pause(session.now)), (32, Duration::from_secs(1)));
}

#[test]
fn on_a_clean_path_the_guided_tuner_sets_all_but_two_aside_and_loses_nothing() {
    let mut session = guided();
    session.work(&CLEAN, 60);
    assert_eq!(session.connections, 2, "{:?}", session.decisions);
    assert!(session.efficiency(&CLEAN) > 0.99);
}

#[test]
fn the_guided_tuner_keeps_the_connections_that_a_full_path_needs() {
    let needs_eight = Path { of_each: 2e6, ..CLEAN };
    let mut session = guided();
    session.work(&needs_eight, 120);
    assert!((8..=10).contains(&session.connections), "{:?}", session.decisions);
    assert!(session.efficiency(&needs_eight) > 0.97);
}

#[test]
fn where_a_disk_is_the_limit_no_connections_are_added_and_those_that_it_does_not_need_go() {
    let mut session = guided();
    session.work(&Path { limit: Limit::Target, full: Limit::Target, ..CLEAN }, 120);
    let numbers: Vec<u32> = session.decisions.iter().map(|decision| decision.connections).collect();
    assert_eq!(numbers, [8, 4, 2, 2], "{:?}", session.decisions);
}

#[test]
fn where_more_connections_make_the_caller_the_limit_they_stay() {
    let mut session = guided();
    session.work(&Path { full: Limit::Caller, ..LOSSY }, 300);
    let last = session.decisions.last().unwrap();
    let expected = (64, Reason::LimitedElsewhere(Limit::Caller));
    assert_eq!((last.connections, last.reason), expected, "{:?}", session.decisions);
}

#[test]
fn a_target_that_does_better_with_few_connections_has_few() {
    let mut session = guided();
    for _ in 0..80 {
        session.slice(9e6 / f64::from(session.connections).sqrt(), Limit::Target);
    }
    assert_eq!(session.connections, 2, "{:?}", session.decisions);
}

#[test]
fn a_target_that_needs_its_connections_keeps_them() {
    let mut session = guided();
    session.work(&Path { limit: Limit::Target, ..LOSSY }, 120);
    let numbers: Vec<u32> = session.decisions.iter().map(|decision| decision.connections).collect();
    assert_eq!(numbers[..4], [8, 16, 12, 16], "{:?}", session.decisions);
    assert!(numbers.len() <= 8, "{:?}", session.decisions);
}

#[test]
fn of_reads_that_nothing_explains_the_guided_tuner_tries_nothing() {
    let mut session = guided();
    session.work(&Path { limit: Limit::Arrival, full: Limit::Arrival, ..LOSSY }, 60);
    assert_eq!(session.decisions, []);
}

#[test]
fn of_reads_the_guided_tuner_judges_by_what_the_receiver_sees_and_leaves_the_law_to_the_target() {
    let mut session = with_bbr();
    session.is_incoming = true;
    session.work(&LOSSY, 20);
    assert!(
        LOSSY.moves(session.connections, session.law) >= LOSSY.bytes_per_second,
        "{:?}",
        session.decisions
    );
    assert!(session.decisions.iter().all(|decision| decision.law == Law::Configured));
}

#[test]
fn trials_that_fail_become_rare() {
    let useless = Path { bytes_per_second: 1e6, of_each: 1e6, ..LOSSY };
    let mut session = guided();
    for _ in 0..1200 {
        session.slice(useless.moves(session.connections, session.law), Limit::Losses);
    }
    let trials = session
        .decisions
        .iter()
        .filter(|decision| matches!(decision.reason, Reason::EachIsLimited(_)))
        .count();
    assert!((4..=7).contains(&trials), "in ten minutes: {:?}", session.decisions);
}

#[test]
fn short_work_keeps_the_connections_that_it_began_with() {
    let mut session = guided();
    session.work(&CLEAN, 10);
    assert_eq!(session.decisions, []);
}

#[test]
fn the_shorter_the_queue_the_fewer_connections_are_set_aside_at_a_time() {
    let aside = |queue_ms| {
        let mut session = Session::begin(Guided::new(Terms { as_flows: 16, ..Terms::default() }));
        session.queue = Duration::from_millis(queue_ms);
        session.work(&CLEAN, 12);
        session.decisions.first().map(|decision| 16 - decision.connections)
    };
    assert_eq!([aside(40), aside(10), aside(1)], [Some(4), Some(2), Some(1)]);
}

#[test]
fn after_a_trial_of_fewer_that_failed_the_next_one_sets_half_as_many_aside() {
    let mut session = guided();
    session.work(&Path { of_each: 1e6, ..CLEAN }, 60);
    let numbers: Vec<u32> = session.decisions.iter().map(|decision| decision.connections).collect();
    assert_eq!(numbers[..4], [12, 16, 14, 16]);
}

#[test]
fn where_much_is_lost_the_first_connections_are_kept() {
    let mut session = guided();
    session.loss = 0.03;
    session.work(&CLEAN, 60);
    assert_eq!(session.decisions, []);
}

#[test]
fn where_connections_may_cause_the_losses_fewer_are_tried_and_no_more() {
    let mut session = guided();
    session.loss = 0.15;
    session.work(&Path { full: Limit::Losses, ..CLEAN }, 120);
    assert!(session.decisions.iter().all(|decision| decision.connections < 16), "{:?}", session.decisions);
    assert_eq!(session.connections, 2);
}

#[test]
fn where_fewer_move_less_the_losses_are_the_paths_and_connections_are_added() {
    let mut session = guided();
    session.loss = 0.15;
    session.work(&LOSSY, 60);
    let numbers: Vec<u32> = session.decisions.iter().map(|decision| decision.connections).collect();
    assert_eq!(numbers[..4], [14, 16, 32, 64], "{:?}", session.decisions);
}

#[test]
fn where_much_of_what_is_read_comes_out_of_order_the_first_connections_are_kept() {
    let mut session = guided();
    (session.is_incoming, session.out_of_order) = (true, 0.2);
    session.work(&CLEAN, 60);
    assert_eq!(session.decisions, []);
    // Of sixteen connections that fill a path, with twenty segments each.
    let mut session = guided();
    (session.is_incoming, session.out_of_order) = (true, 0.11);
    session.work(&CLEAN, 60);
    assert!(session.connections <= 8, "{:?}", session.decisions);
}

#[test]
fn connections_that_brought_nothing_are_given_up_a_few_at_a_time() {
    let useless = Path { bytes_per_second: 1e7, of_each: 1e7, full: Limit::Losses, ..LOSSY };
    let mut session = guided();
    session.work(&useless, 40);
    let numbers: Vec<u32> = session.decisions.iter().map(|decision| decision.connections).collect();
    assert_eq!(numbers[..6], [32, 32, 28, 25, 22, 20], "{:?}", session.decisions);
}

#[test]
fn where_more_connections_only_lose_more_the_guided_tuner_goes_back_at_once_and_stays() {
    let mut session = guided();
    for _ in 0..600 {
        // A thin path, of which others have a part.
        session.loss = 0.01 * f64::from(session.connections);
        let share = if session.connections < 16 { 0.96 } else { 1.0 };
        session.slice(share * 4e5, Limit::Losses);
    }
    let numbers: Vec<u32> = session.decisions.iter().map(|decision| decision.connections).collect();
    assert_eq!(numbers[..4], [14, 16, 32, 16], "{:?}", session.decisions);
    assert_eq!(numbers[4..].iter().max(), Some(&16), "{:?}", session.decisions);
}

#[test]
fn beside_another_flow_the_guided_tuner_takes_the_share_of_no_more_flows_than_it_may() {
    for as_flows in [1, 2, 4, 8] {
        let mut session = Session::begin(Guided::new(Terms { as_flows, ..Terms::default() }));
        session.work(&Path { others: 1, ..CLEAN }, 120);
        assert!((as_flows.div_ceil(2)..=as_flows).contains(&session.connections), "{:?}", session.decisions);
    }
}

#[test]
fn connections_beyond_those_flows_go_whatever_they_bring() {
    let mut session = guided();
    session.work(&Path { others: 1, ..CLEAN }, 25);
    let numbers: Vec<u32> = session.decisions.iter().map(|decision| decision.connections).collect();
    assert_eq!(numbers[..3], [12, 9, 8], "{:?}", session.decisions);
}

#[test]
fn without_a_queue_the_flows_that_it_may_count_as_do_not_bind_the_guided_tuner() {
    let mut session = Session::begin(Guided::new(Terms { as_flows: 2, ..Terms::default() }));
    session.work(&Path { of_each: 1e6, full: Limit::Losses, ..LOSSY }, 60);
    assert!(session.connections >= 16, "{:?}", session.decisions);
}

#[test]
fn when_a_path_begins_to_lose_the_guided_tuner_calls_on_spare_connections_within_ten_seconds() {
    let needs_sixteen = Path { of_each: 1e6, ..LOSSY };
    let mut session = guided();
    session.work(&CLEAN, 60).work(&needs_sixteen, 10);
    assert!(
        needs_sixteen.moves(session.connections, session.law) >= 0.9 * CLEAN.bytes_per_second,
        "{:?}",
        session.decisions
    );
}

#[test]
fn where_those_that_stay_take_up_nothing_of_what_others_leave_these_are_called_back() {
    let longer = Path { limit: Limit::Saturation, ..LOSSY };
    let mut session = guided();
    session.work(&longer, 120);
    assert_eq!(session.connections, 16, "{:?}", session.decisions);
    assert!(session.moved_bytes >= 0.95 * 120.0 * longer.moves(16, Law::Configured));
}

#[test]
fn a_path_that_moves_more_than_when_it_was_full_is_not_full() {
    let mut session = guided();
    session.work(&Path { bytes_per_second: 6e6, of_each: 1e6, ..LOSSY }, 5);
    session.work(&Path { of_each: 4.4e5, ..LOSSY }, 10);
    assert_eq!(session.decisions[0].connections, 32, "{:?}", session.decisions);
}

#[test]
fn no_more_connections_are_made_once_the_disk_is_the_limit() {
    let mut session = guided();
    session.work(&LOSSY, 3);
    assert_eq!(session.connections, 32);
    session.connections = 20;
    for _ in 0..4 {
        session.slice(5e6, Limit::Target);
    }
    let last = session.decisions.last().unwrap();
    assert_eq!((last.connections, last.reason), (20, Reason::LimitedElsewhere(Limit::Target)));
}

#[test]
fn a_session_that_is_to_behave_as_few_flows_begins_with_as_few() {
    let mut session = Session::begin(Guided::new(Terms { as_flows: 1, ..Terms::default() }));
    session.loss = 0.03;
    session.work(&Path { others: 1, ..CLEAN }, 60);
    assert_eq!((session.connections, session.decisions.len()), (1, 0));
}

#[test]
fn the_guided_tuner_does_not_ask_for_more_than_the_target_allows() {
    let mut session = guided();
    session.connections_max = 20;
    session.work(&LOSSY, 60);
    assert!(session.decisions.iter().all(|decision| decision.connections <= 20), "{:?}", session.decisions);
}

#[test]
fn a_bounded_tuner_stays_within_its_bound() {
    let mut session = Session::begin(Guided::new(Terms { connections_max: 2, ..Terms::default() }));
    session.work(&LOSSY, 30);
    assert_eq!((session.connections, session.decisions.len()), (2, 0));
}

#[test]
fn a_growth_that_falls_short_is_judged_by_the_connections_that_came() {
    let mut session = guided();
    session.work(&LOSSY, 3);
    assert_eq!(session.connections, 32);
    session.connections = 30;
    session.work(&LOSSY, 4);
    let last = session.decisions.last().unwrap();
    assert_eq!((last.connections_before, last.connections), (30, 60), "{:?}", session.decisions);
}

#[test]
fn where_no_connection_can_be_made_growth_is_not_asked_for_again_and_again() {
    let mut session = guided();
    for _ in 0..120 {
        session.connections = 16;
        session.slice(LOSSY.moves(16, Law::Configured), Limit::Losses);
    }
    let asked = session.decisions.iter().filter(|decision| decision.connections > 16).count();
    assert!(asked <= 4, "{:?}", session.decisions);
}

#[test]
fn fewer_connections_that_cannot_be_judged_in_time_are_not_kept() {
    let mut session = Session::begin(Guided::new(Terms { as_flows: 4, ..Terms::default() }));
    session.work(&CLEAN, 13);
    assert_eq!(session.decisions.last().map(|tried| tried.reason.name()), Some("fewer_may_do"));
    session.now += Duration::from_secs(90);
    session.work(&CLEAN, 3);
    let last = session.decisions.last().unwrap();
    assert_eq!((last.reason.name(), last.connections), ("too_late", 4), "{:?}", session.decisions);
}

#[test]
fn what_is_read_is_not_compared_with_what_was_written() {
    let mut session = guided();
    session.work(&LOSSY, 3);
    assert_eq!((session.connections, session.decisions.len()), (32, 1), "{:?}", session.decisions);
    session.is_incoming = true;
    session.work(&CLEAN, 4);
    let last = session.decisions.last().unwrap();
    assert_eq!((last.reason.name(), last.connections), ("too_late", 16), "{:?}", session.decisions);
}

#[test]
fn a_trial_that_came_too_late_says_nothing_of_whether_fewer_move_less() {
    let mut session = Session { loss: 0.08, ..guided() };
    session.work(&LOSSY, 13);
    let tried = session.decisions.last().unwrap();
    assert!(tried.connections < 16, "{:?}", session.decisions);
    session.now += Duration::from_secs(60);
    session.work(&LOSSY, 15);
    let last: Vec<_> = session.decisions[1..].iter().map(|decision| decision.reason.name()).collect();
    assert_eq!(last, ["too_late", "fewer_may_do"], "{:?}", session.decisions);
}
