//! Text exchanges between both roles.

use crate::world;
use crate::world::{Settings, World};
use pdu::LaneId;
use ropewalk_session::discovery;
use ropewalk_session::initiator::{Event, SendTargets, SendTargetsError};
use ropewalk_session::parameters::Offer;

fn answers(world: &World) -> Vec<&[u8]> {
    let mut texts = Vec::new();
    for event in &world.events {
        if let Event::SendTargets { text, .. } = event {
            texts.push(text.as_slice());
        }
    }
    texts
}

#[test]
fn a_list_of_targets_longer_than_a_segment_comes_whole() {
    let offer = Offer { receive_segment_bytes_max: 512, ..Offer::default() };
    let settings = Settings { initiator: offer, ..Settings::default() };
    let mut world = World::with_delays(settings, &[5, 5]);
    world.initiator.session.send_targets(world.now, LaneId(1), &SendTargets::Own).unwrap();
    let again = world.initiator.session.send_targets(world.now, LaneId(1), &SendTargets::Own);
    assert_eq!(again, Err(SendTargetsError::Busy));
    world.read(0, 512);
    world.run();
    let records = discovery::parse(answers(&world)[0]).unwrap();
    assert_eq!(records.len(), 30);
    assert_eq!(
        (records[29].target_name.as_str(), records[29].target_addresses.len()),
        (world::login::TARGET, 40)
    );
    assert_eq!(world.completed.len(), 1);
}

#[test]
fn exchanges_can_follow_each_other_and_run_on_several_connections_at_once() {
    let mut world = World::with_connections(2);
    for _ in 0..3 {
        for lane in [LaneId(0), LaneId(1)] {
            world.initiator.session.send_targets(world.now, lane, &SendTargets::Own).unwrap();
        }
        world.run();
    }
    assert_eq!(answers(&world).len(), 6);
}

#[test]
fn a_discovery_session_finds_the_targets_and_logs_out() {
    let settings = Settings { is_discovery: true, ..Settings::default() };
    let mut world = World::with_delays(settings, &[5]);
    world.initiator.session.send_targets(world.now, LaneId(0), &SendTargets::All).unwrap();
    world.run();
    assert_eq!(discovery::parse(answers(&world)[0]).unwrap().len(), 30);
    world.initiator.session.logout(world.now);
    world.run();
    assert_eq!((world.target_ended, world.faults.as_slice()), (Some(true), [].as_slice()));
}
