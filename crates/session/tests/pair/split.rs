//! Sessions that are split over their connections: requests on one, responses on another, and perhaps the data of reads
//! on a third.

use crate::world::device::GOOD;
use crate::world::wire::Path;
use crate::world::{PING_AFTER, PING_TIMEOUT, Settings, UNIT, World};
use pdu::LaneId;
use ropewalk_session::initiator::{Event, SendTargets, TaskFunction};
use ropewalk_session::parameters::{LaneRole, Offer, SplitLanes};

const SPLITS: [SplitLanes; 2] = [SplitLanes::Two, SplitLanes::Three];

/// Short bursts and segments, so that a few kilobytes need several R2Ts and PDUs.
fn offer(split: SplitLanes) -> Offer {
    Offer {
        split,
        first_burst_bytes: 2048,
        max_burst_bytes: 8192,
        receive_segment_bytes_max: 1536,
        max_outstanding_r2t: 2,
        ..Offer::default()
    }
}

/// A target accepts any split.
fn settings(split: SplitLanes) -> Settings {
    Settings { initiator: offer(split), target: offer(SplitLanes::Three), ..Settings::default() }
}

/// A split session with a delay for each of its connections.
fn world(split: SplitLanes, delays_ms: [u64; 3]) -> World {
    let world = World::with_delays(settings(split), &delays_ms[..split.roles().len()]);
    assert_eq!(world.parameters.split, split);
    world
}

fn ended(world: &World) -> Option<bool> {
    world.events.iter().find_map(|event| match event {
        Event::Ended { orderly } => Some(*orderly),
        _ => None,
    })
}

/// Writes pieces and reads them, all at once, and looks at what came of it.
fn move_data(world: &mut World) {
    const PIECE_BYTES: u32 = 30_000;
    let lost_before = world.lost.len();
    let pattern = |index: u32| vec![index as u8 + 1; PIECE_BYTES as usize];
    for index in 0..10 {
        world.write(index * PIECE_BYTES, &pattern(index));
    }
    world.run();
    // Reads and writes beside each other.
    let reads: Vec<_> = (0..10).map(|index| world.read(index * PIECE_BYTES, PIECE_BYTES)).collect();
    for index in 10..20 {
        world.write(index * PIECE_BYTES, &pattern(index));
    }
    world.run();
    assert_eq!((world.faults.as_slice(), world.lost.len()), ([].as_slice(), lost_before));
    for (task, index) in reads.into_iter().zip(0..) {
        let completion = &world.completed[&task];
        assert_eq!((completion.status, completion.data_in_bytes), (GOOD, PIECE_BYTES));
        assert_eq!(world.data[&task], pattern(index));
    }
    let pieces = world.device.content.chunks(PIECE_BYTES as usize).zip(0..20);
    assert!(pieces.into_iter().all(|(piece, index)| piece == pattern(index)));
    assert!(world.is_clean());
}

#[test]
fn data_moves_whole_and_right_whichever_connection_is_the_slowest() {
    for split in SPLITS {
        for delays_ms in [[5, 5, 5], [80, 3, 3], [3, 80, 3], [3, 3, 80]] {
            move_data(&mut world(split, delays_ms));
        }
    }
}

#[test]
fn commands_wait_until_all_connections_are_there() {
    for split in SPLITS {
        let mut world = World::with_delays(settings(split), &[5]);
        let write = world.write(0, &[7; 5000]);
        for role in &split.roles()[1..] {
            world.run();
            assert!(world.initiator.session.demand().is_none() && world.completed.is_empty());
            let lane = world.add_lane(Path::of_delay_ms(5));
            assert_eq!(world.initiator.session.lane_role(lane), *role);
        }
        world.run();
        assert_eq!(world.completed[&write].status, GOOD);
    }
}

#[test]
fn only_the_connection_of_the_requests_takes_commands() {
    let mut world = world(SplitLanes::Three, [5; 3]);
    let states = |world: &World| [0, 1, 2].map(|lane| world.initiator.session.lane_state(LaneId(lane)));
    assert_eq!(states(&world).map(|state| state.accepts_commands), [true, false, false]);
    world.read(0, 100_000);
    world.run_until(|world| world.initiator.session.counters().data_in_bytes > 20_000);
    // What reads have yet to bring counts where commands are placed.
    let [requests, responses, data_in] = states(&world);
    assert_eq!(
        (requests.outstanding_in_bytes, responses.outstanding_in_bytes),
        (data_in.outstanding_in_bytes, 0)
    );
    assert!(requests.outstanding_in_bytes > 0);
}

#[test]
fn a_short_read_comes_with_its_status_and_does_not_wait_for_the_data_of_others() {
    let mut world = world(SplitLanes::Three, [5, 5, 5000]);
    let [short, long] = [4096, 4097].map(|bytes| world.read(0, bytes));
    world.run_until(|world| world.completed.contains_key(&short));
    assert!(!world.completed.contains_key(&long));
    world.run();
    assert_eq!([short, long].map(|task| world.completed[&task].data_in_bytes), [4096, 4097]);
    assert!(world.is_clean());
}

#[test]
fn who_does_not_split_sessions_has_ordinary_ones() {
    let mut world = World::with_delays(
        Settings { target: offer(SplitLanes::None), ..settings(SplitLanes::Three) },
        &[5, 20],
    );
    assert_eq!(world.parameters.split, SplitLanes::None);
    move_data(&mut world);
    assert_eq!(world.initiator.session.lane_role(LaneId(1)), LaneRole::Whole);
}

#[test]
fn the_loss_of_any_connection_ends_the_session() {
    for split in SPLITS {
        for lost in 0..split.roles().len() {
            let mut world = world(split, [5; 3]);
            world.write(0, &[1; 200_000]);
            world.read(300_000, 200_000);
            world.run_until(|world| world.initiator.session.counters().data_out_bytes > 50_000);
            world.kill(LaneId(lost as u32));
            world.run();
            assert_eq!((ended(&world), world.target_ended), (Some(false), Some(false)), "{split:?}, {lost}");
            assert_eq!(world.lost.len() + world.completed.len(), 2);
            assert!(!world.lost.is_empty());
        }
    }
}

#[test]
fn a_logout_is_orderly_whichever_connection_is_the_slowest() {
    for split in SPLITS {
        for delays_ms in [[80, 1, 1], [1, 80, 1], [1, 1, 80]] {
            let mut world = world(split, delays_ms);
            world.write(0, &[1; 20_000]);
            world.read(50_000, 20_000);
            world.run_until(|world| world.initiator.session.counters().outstanding_commands == 2);
            world.initiator.session.logout(world.now);
            world.run();
            assert_eq!(
                (ended(&world), world.target_ended),
                (Some(true), Some(true)),
                "{split:?}, {delays_ms:?}"
            );
            assert_eq!((world.completed.len(), world.faults.as_slice()), (2, [].as_slice()));
        }
    }
}

#[test]
fn who_leaves_does_not_wait_for_the_answer() {
    for split in SPLITS {
        let mut world = world(split, [5; 3]);
        world.initiator.session.logout(world.now);
        assert!(world.initiator.session.has_said_goodbye());
        world.run();
        assert_eq!((ended(&world), world.target_ended), (Some(true), Some(true)));
    }
}

#[test]
fn a_target_that_asks_for_a_logout_gets_it() {
    for split in SPLITS {
        let mut world = world(split, [5; 3]);
        world.write(0, &[1; 20_000]);
        world.target.session.request_logout(world.now, 30);
        world.run();
        assert_eq!((ended(&world), world.target_ended), (Some(true), Some(true)));
        assert_eq!((world.completed.len(), world.faults.as_slice()), (1, [].as_slice()));
    }
}

#[test]
fn pings_keep_each_connection_of_an_idle_session() {
    for split in SPLITS {
        let mut world = world(split, [50, 1, 20]);
        world.run_for(PING_AFTER * 20);
        assert_eq!((world.faults.as_slice(), ended(&world)), ([].as_slice(), None));
        move_data(&mut world);
    }
}

#[test]
fn a_silent_connection_is_noticed_although_the_others_live() {
    for split in SPLITS {
        for silent in 0..split.roles().len() {
            let mut world = world(split, [5; 3]);
            world.silence(LaneId(silent as u32));
            world.run_for((PING_AFTER + PING_TIMEOUT) * 3);
            assert_eq!(ended(&world), Some(false), "{split:?}, {silent}");
        }
    }
}

#[test]
fn a_reset_ends_all_tasks_and_no_data_of_theirs_is_mistaken() {
    for split in SPLITS {
        // The answer overtakes the data of the reads.
        let mut world = world(split, [3, 3, 60]);
        let hanging = world.hang();
        for index in 0..4 {
            world.read(index * 50_000, 50_000);
        }
        world.run_until(|world| world.initiator.session.counters().outstanding_commands == 5);
        let reset = world.initiator.session.task_management(world.now, TaskFunction::LogicalUnitReset(UNIT));
        world.run();
        let is_done =
            |event: &Event| matches!(event, Event::FunctionDone { function, .. } if *function == reset);
        assert!(world.events.iter().any(is_done));
        assert!(world.lost.contains_key(&hanging));
        assert_eq!(world.lost.len() + world.completed.len(), 5);
        move_data(&mut world);
    }
}

#[test]
fn targets_are_listed_over_the_connection_of_the_requests() {
    for split in SPLITS {
        let mut world = world(split, [5; 3]);
        world.initiator.session.send_targets(world.now, LaneId(0), &SendTargets::Own).unwrap();
        world.run();
        let listed = |event: &Event| matches!(event, Event::SendTargets { lane: LaneId(0), .. });
        assert!(world.events.iter().any(listed), "{:?}", world.events);
    }
}
