//! Connections come and go while data moves.

use crate::world;
use crate::world::wire::Path;
use crate::world::{Settings, World};
use pdu::{Duration, LaneId};
use proptest::prelude::*;
use ropewalk_session::initiator::{Event, SubmitError};
use ropewalk_session::parameters::Offer;
use ropewalk_session::seam::LaneLoss;
use ropewalk_session::target::AsyncMessage;

const PIECE_BYTES: usize = 40_000;

/// As many writes as fit the window, with some of their data on the way.
fn writing(delays_ms: &[u64]) -> World {
    let offer = Offer { first_burst_bytes: 4096, receive_segment_bytes_max: 4096, ..Offer::default() };
    let settings = Settings { initiator: offer, target: offer, ..Settings::default() };
    let mut world = World::with_delays(settings, delays_ms);
    for index in 0..20 {
        world.write(index * PIECE_BYTES as u32, &[index as u8 + 1; PIECE_BYTES]);
    }
    world.run_until(|world| world.initiator.session.counters().r2ts > 0);
    world
}

fn all_is_written(world: &World) -> bool {
    world
        .device
        .content
        .chunks(PIECE_BYTES)
        .zip(1..=20)
        .all(|(piece, value)| piece.iter().all(|byte| *byte == value))
}

fn closed(world: &World) -> Vec<(LaneId, LaneLoss)> {
    let closed = |event: &Event| match event {
        Event::CloseLane { lane, loss, .. } => Some((*lane, *loss)),
        _ => None,
    };
    world.events.iter().filter_map(closed).collect()
}

fn ended(world: &World) -> Option<bool> {
    world
        .events
        .iter()
        .find_map(|event| if let Event::Ended { orderly } = event { Some(*orderly) } else { None })
}

#[test]
fn a_connection_is_added_and_another_logged_out_while_data_moves() {
    let mut world = writing(&[10, 20]);
    let added = world.add_lane(Path::of_delay_ms(5));
    world.initiator.session.logout_lane(world.now, LaneId(0));
    assert!(!world.initiator.session.lane_state(LaneId(0)).accepts_commands);
    world.run();
    assert_eq!(closed(&world), [(LaneId(0), LaneLoss::LoggedOut)]);
    assert_eq!((world.completed.len(), world.faults.as_slice()), (20, [].as_slice()));
    assert!(all_is_written(&world));

    world.preferred = vec![added];
    world.read(0, 10);
    world.run();
    assert_eq!(world.completed.len(), 21);
    assert_eq!((ended(&world), world.target_ended), (None, None));
}

#[test]
fn every_connection_but_the_last_can_be_replaced_while_data_moves() {
    let mut world = writing(&[10, 20, 30]);
    for lane in 0..3 {
        world.add_lane(Path::of_delay_ms(7));
        world.initiator.session.logout_lane(world.now, LaneId(lane));
    }
    world.run();
    assert_eq!(closed(&world).len(), 3);
    assert_eq!(world.target.session.counters().lanes, 3);
    assert!(all_is_written(&world));
}

#[test]
fn logging_out_the_last_connection_logs_out_the_session() {
    let mut world = World::with_connections(1);
    world.initiator.session.logout_lane(world.now, LaneId(0));
    world.run();
    assert_eq!((ended(&world), world.target_ended), (Some(true), Some(true)));
}

#[test]
fn a_session_is_logged_out_when_what_was_started_is_answered() {
    let mut world = writing(&[10, 20]);
    let queued = world.initiator.session.counters().queued_commands;
    assert_eq!(queued, 0);
    world.initiator.session.logout(world.now);
    assert_eq!(world.initiator.session.demand(), None);
    world.run();
    assert_eq!((ended(&world), world.target_ended), (Some(true), Some(true)));
    assert_eq!((world.completed.len(), world.lost.len()), (20, 0));
    assert!(all_is_written(&world) && world.is_clean());
}

#[test]
fn a_logout_is_orderly_even_if_its_answer_comes_after_the_end_of_the_other_connections() {
    let mut world = World::with_delays(Settings::default(), &[50, 1, 1]);
    world.initiator.session.logout(world.now);
    world.run();
    assert_eq!((ended(&world), world.target_ended), (Some(true), Some(true)));
}

#[test]
fn commands_that_were_not_started_are_lost_in_a_logout() {
    let mut world = World::with_delays(Settings { window_commands: 2, ..Settings::default() }, &[5]);
    let tasks: Vec<_> = (0..5).map(|index| world.write(index * 512, &[1; 512])).collect();
    world.run_until(|world| world.initiator.session.counters().outstanding_commands == 2);
    world.initiator.session.logout(world.now);
    world.run();
    assert!(tasks[..2].iter().all(|task| world.completed.contains_key(task)));
    assert!(tasks[2..].iter().all(|task| !world.lost[task]));
    assert_eq!(ended(&world), Some(true));
}

#[test]
fn a_closed_session_takes_no_command() {
    let mut world = World::with_connections(1);
    world.initiator.session.logout(world.now);
    world.run();
    let command = ropewalk_session::initiator::Command {
        lun: world::UNIT,
        attribute: pdu::TaskAttribute::Simple,
        cdb: world::device::hang(),
        data: ropewalk_session::initiator::Data::None,
    };
    assert_eq!(world.initiator.session.submit(world.now, command), Err(SubmitError::Closed));
}

#[test]
fn a_target_that_asks_for_a_logout_gets_it() {
    let mut world = writing(&[10, 20]);
    world.target.session.request_logout(world.now, 30);
    world.run();
    assert_eq!((ended(&world), world.target_ended), (Some(true), Some(true)));
    assert_eq!((world.completed.len(), world.faults.as_slice()), (20, [].as_slice()));
}

#[test]
fn a_target_that_waits_for_a_logout_long_enough_gets_it_at_once() {
    let mut world = World::with_connections(2);
    let task = world.hang();
    world.run();
    world.target.session.request_logout(world.now, 3);
    world.run_for(Duration::from_secs(4));
    assert!(ended(&world).is_some());
    assert_eq!(world.lost.get(&task), Some(&true));
}

#[test]
fn a_target_that_drops_the_session_ends_it() {
    let mut world = World::with_connections(2);
    let task = world.hang();
    world.run();
    world.target.session.async_message(world.now, &AsyncMessage::SessionDrop { wait_seconds: 1 });
    world.run();
    assert_eq!(ended(&world), Some(false));
    assert_eq!(world.lost.get(&task), Some(&true));
}

#[test]
fn a_killed_connection_ends_the_session_with_every_task_completed_or_lost_once() {
    let mut world = writing(&[10, 20, 3, 40]);
    world.kill(LaneId(1));
    world.run();
    assert_eq!((ended(&world), world.target_ended), (Some(false), Some(false)));
    assert_eq!(world.completed.len() + world.lost.len(), 20);
    assert!(!world.lost.is_empty() && world.is_clean());
}

#[test]
fn a_closed_session_tells_its_owner_when_it_is_over() {
    let mut world = writing(&[10, 20]);
    world.initiator.session.close(world.now);
    world.run();
    assert_eq!((ended(&world), world.target_ended), (Some(false), Some(false)));
    assert_eq!(world.completed.len() + world.lost.len(), 20);
    assert!(world.is_clean());
}

#[test]
fn a_reinstated_session_begins_when_the_old_ones_writes_have_ended() {
    let mut world = World::with_connections(1);
    world.device.delay = Duration::from_secs(1);
    world.write(0, &[5; 512]);
    world.run_until(|world| world.device.due_at().is_some());
    world.lose_at_initiator(LaneId(0));
    world.run_until(|world| ended(world).is_some());
    assert_eq!(world.lost.len(), 1);

    assert_eq!(world.reinstate(Path::of_delay_ms(5)), None);
    world.run_until(|world| world.target_ended.is_some());
    assert!(world.device.content.starts_with(&[5; 512]), "the old write came to its end first");
    assert_eq!(world.reinstate(Path::of_delay_ms(5)), Some(()));
    let read = world.read(0, 512);
    world.run();
    assert_eq!(world.data[&read], [5; 512]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whenever_a_connection_is_killed_each_task_completes_or_is_lost_once(
        seed in any::<u64>(),
        delays_ms in proptest::collection::vec(0_u64..30, 1..5),
        killed in any::<proptest::sample::Index>(),
        after_us in 0_u64..60_000,
        reads in proptest::collection::vec(any::<bool>(), 1..30),
    ) {
        let mut world = World::with_delays(Settings { seed, ..Settings::default() }, &delays_ms);
        for (index, is_read) in reads.iter().enumerate() {
            let offset = (index * 30_000) as u32;
            if *is_read { world.read(offset, 30_000); } else { world.write(offset, &[1; 30_000]); }
        }
        world.run_for(Duration::from_micros(after_us));
        world.kill(LaneId(killed.index(delays_ms.len()) as u32));
        world.run();
        prop_assert_eq!((ended(&world), world.target_ended), (Some(false), Some(false)));
        prop_assert_eq!(world.completed.len() + world.lost.len(), reads.len());
        prop_assert!(world.is_clean());
    }
}
