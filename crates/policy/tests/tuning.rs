//! What tuners make of paths, told by a model: what a number of connections moves, and what is said to limit it.

use pdu::{Duration, Instant};
use ropewalk_policy::tuner::{
    Apt2010, Decision, Experience, Guided, Law, Reason, Slice, TUNED_CONNECTIONS_MAX, Terms,
};
use ropewalk_policy::{Diagnosis, Limit, PathEvidence, Tuner};

const SLICE: Duration = Duration::from_millis(500);
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// A path that carries this much, of which each connection alone gets a part.
#[derive(Clone, Copy)]
struct Path {
    bytes_per_second: f64,
    of_each: f64,
    /// What BBR moves, over however many connections.
    of_bbr: f64,
    /// What is said of connections that do not fill it.
    limit: Limit,
    /// What is said once it is full.
    full: Limit,
    /// Flows of others, which fill it and get equal shares.
    others: u32,
}

const CLEAN: Path = Path {
    bytes_per_second: 16e6,
    of_each: 15e6,
    of_bbr: 15e6,
    limit: Limit::Losses,
    full: Limit::Saturation,
    others: 0,
};
const LOSSY: Path = Path { of_each: 4e5, ..CLEAN };

impl Path {
    fn moves(&self, connections: u32, law: Law) -> f64 {
        match law {
            Law::Configured if self.others > 0 => {
                self.bytes_per_second * f64::from(connections) / f64::from(connections + self.others)
            }
            Law::Configured => self.bytes_per_second.min(self.of_each * f64::from(connections)),
            Law::Bbr => self.of_bbr,
        }
    }

    fn limit(&self, connections: u32, law: Law) -> Limit {
        let is_full = self.others > 0 || self.moves(connections, law) >= self.bytes_per_second;
        if is_full { self.full } else { self.limit }
    }
}

/// A session with a tuner.
struct Session<T> {
    tuner: T,
    now: Instant,
    connections: u32,
    law: Law,
    connections_max: u32,
    may_use_bbr: bool,
    moved_bytes: f64,
    decisions: Vec<Decision>,
    /// What a full path's queue adds to the round trip.
    queue: Duration,
    /// What is said to be sent again.
    loss: f64,
    is_incoming: bool,
    /// The part of the segments that the receiver sees out of order.
    out_of_order: f64,
}

impl<T: Tuner> Session<T> {
    fn begin(tuner: T) -> Self {
        Self {
            connections: tuner.connections_at_first(),
            tuner,
            law: Law::Configured,
            now: Instant::ZERO,
            connections_max: TUNED_CONNECTIONS_MAX,
            may_use_bbr: false,
            moved_bytes: 0.0,
            decisions: Vec::new(),
            queue: ROUND_TRIP,
            loss: 0.0,
            is_incoming: false,
            out_of_order: 0.0,
        }
    }

    /// Works over this path for some seconds.
    fn work(&mut self, path: &Path, seconds: u64) -> &mut Self {
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end {
            self.slice(path.moves(self.connections, self.law), path.limit(self.connections, self.law));
        }
        self
    }

    fn slice(&mut self, bytes_per_second: f64, limit: Limit) {
        self.now += SLICE;
        let moved = bytes_per_second * SLICE.as_secs_f64();
        self.moved_bytes += moved;
        let slice = Slice {
            end: self.now,
            length: SLICE,
            connections: self.connections,
            law: self.law,
            connections_max: self.connections_max,
            may_use_bbr: self.may_use_bbr,
            moved_bytes: whole(moved),
            diagnosis: Some(self.diagnosis(limit)),
        };
        if let Some(decision) = self.tuner.decide(&slice) {
            assert_eq!(decision.connections_before, self.connections);
            assert!((1..=TUNED_CONNECTIONS_MAX).contains(&decision.connections));
            (self.connections, self.law) = (decision.connections, decision.law);
            self.decisions.push(decision);
        }
    }

    fn diagnosis(&self, limit: Limit) -> Diagnosis {
        let said = diagnosis(limit, self.queue, self.loss);
        let path = PathEvidence { out_of_order: self.out_of_order, ..said.path };
        Diagnosis { is_incoming: self.is_incoming, path, ..said }
    }

    /// The share of what could have been moved.
    fn efficiency(&self, path: &Path) -> f64 {
        self.moved_bytes
            / (path.bytes_per_second * (self.now.saturating_duration_since(Instant::ZERO)).as_secs_f64())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of bytes")]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

fn diagnosis(limit: Limit, queue: Duration, loss: f64) -> Diagnosis {
    let rtt_min = ROUND_TRIP;
    let rtt = if limit == Limit::Saturation { rtt_min + queue } else { rtt_min };
    let path = PathEvidence { rtt, receive_rtt: rtt, rtt_min, loss, ..PathEvidence::default() };
    Diagnosis { limit, share: 1.0, remedy: None, network_share: 1.0, is_incoming: false, path }
}

fn guided() -> Session<Guided> {
    Session::begin(Guided::new(Terms::default()))
}

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
fn a_session_that_is_to_behave_as_few_flows_does_not_begin_with_the_many_that_were_found() {
    let experience = found(guided(), &LOSSY);
    assert!(experience.to_target.is_some_and(|found| found.connections > 16));
    let tuner = Guided::new(Terms { as_flows: 2, experience, ..Terms::default() });
    assert_eq!(tuner.connections_at_first(), 2);
}

#[test]
fn the_guided_tuner_does_not_ask_for_more_than_the_target_allows() {
    let mut session = guided();
    session.connections_max = 20;
    session.work(&LOSSY, 60);
    assert!(session.decisions.iter().all(|decision| decision.connections <= 20), "{:?}", session.decisions);
}

/// A session whose tuner may use BBR.
fn with_bbr() -> Session<Guided> {
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
    session.work(&Path { limit: Limit::Target, full: Limit::Target, ..LOSSY }, 60);
    assert_eq!(session.tuner.experience(), Some(experience));
}

#[test]
fn a_bounded_tuner_stays_within_its_bound() {
    let mut session = Session::begin(Guided::new(Terms { connections_max: 2, ..Terms::default() }));
    session.work(&LOSSY, 30);
    assert_eq!((session.connections, session.decisions.len()), (2, 0));
}

#[test]
fn apt2010_doubles_and_then_searches_by_golden_sections() {
    // The most at 24: each moves 700 kB/s, and each beyond that number costs something.
    let moves = |connections: u32| {
        let excess = connections.saturating_sub(24);
        7e5 * f64::from(connections.min(24)) - 1e5 * f64::from(excess)
    };
    let mut session = Session::begin(Apt2010::new(Terms::default()));
    for _ in 0..240 {
        session.slice(moves(session.connections), Limit::Losses);
    }
    let tried: Vec<u32> = session.decisions.iter().map(|decision| decision.connections).collect();
    assert_eq!(tried[..5], [2, 4, 8, 16, 32]);
    let end = session.decisions.last().unwrap();
    assert_eq!(end.reason, Reason::Found);
    assert!((23..=25).contains(&end.connections), "{tried:?}");
}

#[test]
fn apt2010_passes_over_what_was_moved_while_connections_were_broken() {
    let mut session = Session::begin(Apt2010::new(Terms::default()));
    for slice in 0..240 {
        let asked = session.connections;
        // For more than a chunk.
        session.connections = if slice % 40 >= 32 { 1 } else { asked };
        session.slice(7e5 * f64::from(session.connections.min(12)), Limit::Losses);
        session.connections = session.decisions.last().map_or(1, |decision| decision.connections);
    }
    assert!((6..=24).contains(&session.connections), "{:?}", session.decisions);
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
fn bbr_that_cannot_be_judged_is_given_up() {
    let mut session = with_bbr();
    session.work(&LOSSY, 3);
    assert_eq!(session.law, Law::Bbr);
    session.slice(LOSSY.of_bbr, Limit::Losses);
    session.now += Duration::from_secs(90);
    session.work(&LOSSY, 4);
    assert_eq!(session.law, Law::Configured, "{:?}", session.decisions);
}

#[test]
fn apt2010_ends_at_the_ceiling_if_the_most_is_there() {
    let mut session = Session::begin(Apt2010::new(Terms::default()));
    session.work(&Path { of_each: 1e5, ..LOSSY }, 120);
    assert_eq!(session.connections, TUNED_CONNECTIONS_MAX, "{:?}", session.decisions);
}
