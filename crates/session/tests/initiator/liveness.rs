//! When a lane is pinged, and when it is given up.

use crate::world::World;
use pdu::{Duration, InitiatorPdu, LaneId, NopIn, Ttt};
use ropewalk_session::initiator::Event;
use ropewalk_session::seam::{Endpoint, Fault, LaneLoss};

const LANE: LaneId = LaneId(0);
/// Less than a ping may stay unanswered.
const A_WHILE: Duration = Duration::from_secs(4);

/// Lets time pass, and the timer fire if it is due.
fn pass(world: &mut World, time: Duration) {
    world.now += time;
    if world.session.poll_timeout().is_some_and(|at| at <= world.now) {
        world.session.handle_timeout(world.now);
    }
}

fn is_given_up(world: &mut World) -> bool {
    let fault = Some(Fault::Timeout("a ping"));
    world.events().contains(&Event::CloseLane { lane: LANE, loss: LaneLoss::Broken, fault })
}

/// Pulls a PDU that does not leave.
fn pull_unsent(world: &mut World) {
    assert!(world.session.poll_transmit(world.now, LANE, 1 << 20).is_some());
}

#[test]
fn a_silent_lane_is_pinged_and_given_up_if_it_stays_silent() {
    let mut world = World::with_connections(1);
    pass(&mut world, Duration::from_secs(9));
    assert_eq!(world.pull(0), None);
    pass(&mut world, Duration::from_secs(1));
    assert!(matches!(world.pull(0), Some((InitiatorPdu::NopOut(_), _))));
    pass(&mut world, A_WHILE);
    assert!(!is_given_up(&mut world));
    pass(&mut world, Duration::from_secs(1));
    assert!(is_given_up(&mut world));
}

#[test]
fn an_answered_ping_is_followed_by_another_when_the_lane_is_silent_again() {
    let mut world = World::with_connections(1);
    for _ in 0..3 {
        pass(&mut world, Duration::from_secs(10));
        let Some((InitiatorPdu::NopOut(ping), _)) = world.pull(0) else { panic!("no ping") };
        let answer = NopIn { itt: ping.itt, stat_sn: world.take_stat_sn(0), ..world.nop_in(Ttt::NONE) };
        assert!(world.receive(0, &answer.emit(), &[]).is_ok());
    }
    assert!(!is_given_up(&mut world));
}

#[test]
fn a_lane_on_which_data_arrives_is_alive_though_the_answer_does_not() {
    let mut world = World::with_connections(1);
    let task = world.read(0, 6000);
    world.session.ping(world.now, LANE);
    world.pull_all(0);
    for number in 0..6 {
        pass(&mut world, A_WHILE);
        let data_in = world.data_in(task, number, number * 1000, 1000);
        assert!(world.receive(0, &data_in.emit(), &[]).is_ok());
    }
    assert!(!is_given_up(&mut world));
    pass(&mut world, A_WHILE);
    assert!(!is_given_up(&mut world));
    pass(&mut world, Duration::from_secs(1));
    assert!(is_given_up(&mut world));
}

#[test]
fn a_ping_counts_from_when_it_left_and_what_leaves_before_it_is_a_sign_of_life() {
    let mut world = World::with_connections(1);
    for _ in 0..3 {
        world.submit_write(1);
        assert!(world.session.start(world.now, LANE).is_some());
        pull_unsent(&mut world);
    }
    world.session.ping(world.now, LANE);
    pull_unsent(&mut world);
    for _ in 0..4 {
        pass(&mut world, A_WHILE);
        world.session.transmitted(world.now, LANE, 1);
    }
    world.submit_write(1);
    assert!(world.session.start(world.now, LANE).is_some());
    pull_unsent(&mut world);
    pass(&mut world, A_WHILE);
    world.session.transmitted(world.now, LANE, 1);
    assert!(!is_given_up(&mut world));
    pass(&mut world, Duration::from_secs(1));
    assert!(is_given_up(&mut world), "what leaves after it is none");
}

#[test]
fn a_lane_that_takes_nothing_more_is_given_up() {
    let mut world = World::with_connections(1);
    pass(&mut world, Duration::from_secs(10));
    pull_unsent(&mut world);
    pass(&mut world, A_WHILE);
    assert!(!is_given_up(&mut world));
    pass(&mut world, Duration::from_secs(1));
    assert!(is_given_up(&mut world));
}

#[test]
fn a_logout_that_is_not_answered_takes_its_lane_and_no_other() {
    let mut world = World::with_connections(2);
    pass(&mut world, Duration::from_secs(9));
    world.session.logout_lane(world.now, LANE);
    let news = world.nop_in(Ttt::NONE);
    assert!(world.receive(1, &news.emit(), &[]).is_ok());
    pass(&mut world, A_WHILE);
    assert_eq!(world.events(), []);
    pass(&mut world, Duration::from_secs(1));
    let fault = Some(Fault::Timeout("a logout"));
    assert_eq!(world.events(), [Event::CloseLane { lane: LANE, loss: LaneLoss::Broken, fault }]);
    world.session.lane_lost(world.now, LANE, LaneLoss::Broken);
    assert!(world.session.lane_state(LaneId(1)).accepts_commands);
}

#[test]
fn every_probe_asks_for_an_answer_whether_or_not_the_one_before_has_had_its() {
    let mut world = World::with_connections(1);
    world.read(0, 3000);
    let tags = [(), (), ()].map(|()| {
        world.session.probe(world.now, LANE);
        match world.pull(0) {
            Some((InitiatorPdu::NopOut(probe), _)) => probe.itt,
            other => panic!("{other:?}"),
        }
    });
    for itt in tags {
        assert!(itt.is_some());
        world.answer_ping(0, itt);
    }
}
