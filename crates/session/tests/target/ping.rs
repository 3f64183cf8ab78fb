//! Pings both ways, and what silence leads to.

use crate::world::*;
use pdu::{Itt, LaneId, TargetPdu, Ttt};
use ropewalk_session::parameters::{LaneRole, SessionParameters, SessionType, SplitLanes};
use ropewalk_session::seam::{Endpoint, Fault, LaneLoss};
use ropewalk_session::target::Event;
use std::time::Duration;

#[test]
fn a_ping_comes_back_with_its_data() {
    let mut world = World::with_connections(1);
    world.nop(0, Itt(5), Ttt::NONE, 7, true, b"echo");
    let (echo, data) = world.pull_only(0);
    assert_eq!((nop_in(&(echo, vec![])).itt, data.as_slice()), (Itt(5), b"echo".as_slice()));
}

#[test]
fn no_more_ping_data_comes_back_than_the_initiator_takes() {
    let mut world = World::with_connections(1);
    world.nop(0, Itt(5), Ttt::NONE, 7, true, &pattern(2000));
    assert_eq!(world.pull_only(0).1, pattern(1024));
}

#[test]
fn a_ping_is_not_answered_once_the_connection_of_the_responses_is_lost() {
    let settings = Settings::default();
    let session = SessionParameters { split: SplitLanes::Two, ..settings.session };
    let mut world = World::with_settings(0, Settings { session, ..settings });
    for (cid, role) in [(0, LaneRole::Requests), (1, LaneRole::Responses)] {
        world.join_as(cid, |established| established.role = role);
    }
    world.nop(0, Itt(5), Ttt::NONE, 7, true, b"echo");
    // Nothing can say which number the next response would have had.
    world.session.lane_lost(world.now, LaneId(1), LaneLoss::Broken);
    assert!(world.pull(0).is_empty());
}

#[test]
fn a_nop_that_wants_no_answer_gets_none() {
    let mut world = World::with_connections(1);
    world.nop(0, Itt::NONE, Ttt::NONE, 7, true, b"anything");
    world.expect_nothing_sent();
}

#[test]
fn a_silent_connection_is_pinged_and_lives_if_it_answers() {
    let mut world = World::with_connections(1);
    world.wait();
    assert_eq!(world.now.0, u64::try_from(PING_AFTER.as_nanos()).unwrap());
    let ping = nop_in(&world.pull_only(0));
    assert!(ping.ttt.is_some() && ping.itt.is_none());
    world.nop(0, Itt::NONE, ping.ttt, 7, true, &[]);
    world.wait();
    assert!(nop_in(&world.pull_only(0)).ttt.is_some());
    assert_eq!(world.events(), []);
}

#[test]
fn a_connection_that_answers_no_ping_is_given_up() {
    let mut world = World::with_connections(1);
    world.wait();
    world.pull_only(0);
    world.wait();
    let events = world.events();
    assert!(matches!(
        events.as_slice(),
        [Event::CloseLane { lane: LaneId(0), loss: LaneLoss::Broken, fault: Some(Fault::Timeout(_)) }]
    ));
    world.lose(0, LaneLoss::Broken);
    assert_eq!(world.events(), [Event::NexusLost, Event::Ended { orderly: false }]);
}

#[test]
fn a_ping_that_may_have_been_lost_is_repeated_where_pdus_can_be() {
    for (level, repeats) in [(0, false), (1, true), (2, true)] {
        let mut world = World::of_level(level, 1);
        world.wait();
        world.pull_only(0);
        world.now += PING_TIMEOUT / 2;
        world.session_timeout();
        let again = world.pull(0);
        assert_eq!(again.len(), usize::from(repeats), "at level {level}");
        if let [ping] = &again[..] {
            world.nop(0, Itt::NONE, nop_in(ping).ttt, 7, true, &[]);
            world.wait();
            assert_eq!(world.events(), []);
        }
    }
}

#[test]
fn a_ping_is_not_repeated_while_the_initiator_is_sending() {
    let mut world = World::of_level(1, 1);
    world.wait();
    world.pull_only(0);
    for _ in 0..100 {
        world.now += PING_TIMEOUT / 2;
        world.session.heard(world.now, LaneId(0));
        world.session_timeout();
        world.expect_nothing_sent();
    }
    world.now += PING_TIMEOUT / 2;
    world.session_timeout();
    assert!(nop_in(&world.pull_only(0)).ttt.is_some());
}

#[test]
fn traffic_keeps_a_connection_alive_without_pings() {
    let mut world = World::with_connections(1);
    for _ in 0..10 {
        world.now += PING_AFTER - Duration::from_secs(1);
        world.session_timeout();
        world.nop(0, Itt::NONE, Ttt::NONE, 7, true, &[]);
    }
    world.expect_nothing_sent();
}

#[test]
fn a_ping_behind_data_that_still_leaves_is_not_overdue() {
    let mut world = World::with_connections(1);
    world.read(0, 7, 1 << 20);
    let task = world.task();
    world.data_in(task, &pattern(1 << 20));
    world.wait();
    for _ in 0..20 {
        world.now += PING_TIMEOUT - Duration::from_secs(1);
        world.session_timeout();
        assert!(world.pull_one(0, 1024).is_some());
    }
    assert_eq!(world.events(), []);
}

#[test]
fn a_silent_discovery_session_is_closed_without_a_word() {
    let mut settings = Settings::default();
    settings.session.session_type = SessionType::Discovery;
    let mut world = World::with_settings(1, settings);
    world.wait();
    world.expect_nothing_sent();
    assert!(matches!(world.events().as_slice(), [Event::CloseLane { .. }]));
}

#[test]
fn a_lane_that_waits_for_acknowledgements_in_vain_wants_nothing() {
    let mut world = World::of_level(1, 1);
    world.acknowledges = false;
    let mut pings = 0;
    let mut answers = 1;
    let mut tag = 0;
    while core::mem::take(&mut answers) > 0 {
        tag += 1;
        world.nop(0, Itt(tag), Ttt::NONE, 7, true, &[]);
        while let Some((TargetPdu::NopIn(pdu), _)) = world.pull_one(0, u32::MAX) {
            answers += 1;
            if pdu.itt == Itt::NONE {
                pings += 1;
                world.nop(0, Itt::NONE, pdu.ttt, 7, true, &[]);
            }
        }
    }
    assert_eq!(pings, 4);
    assert!(!world.session.wants_transmit(LaneId(0)));
}
