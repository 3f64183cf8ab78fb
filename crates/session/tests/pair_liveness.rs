//! Pings both ways: who still answers.

mod world;

use pdu::{Duration, LaneId};
use ropewalk_session::initiator::Event;
use ropewalk_session::seam::Fault;
use world::device::GOOD;
use world::{PING_AFTER, PING_TIMEOUT, Settings, World};

fn is_over(world: &World) -> bool {
    world.events.iter().any(|event| matches!(event, Event::Ended { .. }))
}

#[test]
fn pings_keep_an_idle_session() {
    let mut world = World::with_delays(Settings::default(), &[50, 1]);
    world.run_for(PING_AFTER * 20);
    assert_eq!((world.faults.as_slice(), is_over(&world)), ([].as_slice(), false));
    let pings = world.initiator.session.counters().pings;
    assert!((30..=42).contains(&pings), "{pings} pings");
    let task = world.write(0, &[1; 100]);
    world.run();
    assert_eq!(world.completed[&task].status, GOOD);
}

#[test]
fn a_busy_connection_is_not_pinged() {
    let mut world = World::with_connections(1);
    for _ in 0..50 {
        world.read(0, 512);
        world.run_for(PING_AFTER / 2);
    }
    assert_eq!(world.initiator.session.counters().pings, 0);
}

#[test]
fn a_connection_that_does_not_answer_is_given_up() {
    let mut world = World::with_connections(2);
    let task = world.hang();
    world.run();
    world.silence(LaneId(1));
    world.run_for(PING_AFTER + PING_TIMEOUT + Duration::from_secs(1));
    assert!(world.faults.contains(&Fault::Timeout("a ping")));
    assert!(is_over(&world));
    assert_eq!(world.lost.get(&task), Some(&true));
}
