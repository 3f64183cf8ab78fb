//! Connections break one after another, PDUs are damaged, or both at once, and no command notices (error recovery
//! level 2).

use crate::world::device::GOOD;
use crate::world::wire::{Path, Random};
use crate::world::{Settings, World};
use pdu::Duration;
use ropewalk_session::initiator::{Event, TaskId};
use ropewalk_session::parameters::{DigestPreference, Offer};

fn settings(seed: u64) -> Settings {
    let offer = Offer {
        error_recovery_level: 2,
        default_time2wait_s: 0,
        default_time2retain_s: 20,
        header_digest: DigestPreference::Required,
        data_digest: DigestPreference::Required,
        first_burst_bytes: 4096,
        max_burst_bytes: 8192,
        max_outstanding_r2t: 2,
        receive_segment_bytes_max: 1536,
        ..Offer::default()
    };
    Settings { initiator: offer, target: offer, seed, ..Settings::default() }
}

fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..bytes).map(|_| random.below(256) as u8).collect()
}

/// Kills one connection after another, and opens another one for each: in its place, or beside it.
fn kill(world: &mut World, pauses_us: &[u64], takes_the_place: bool) {
    for pause_us in pauses_us {
        world.run_for(Duration::from_micros(*pause_us));
        let alive = world.lanes();
        let Some(victim) = alive.get(world.random.below(alive.len().max(1) as u64) as usize) else {
            continue;
        };
        world.kill(*victim);
        world.run_for(Duration::from_micros(300));
        let cid = world.events.iter().find_map(|event| match event {
            Event::ConnectionLost { lane, cid, .. } if lane == victim => Some(cid.0),
            _ => None,
        });
        match cid.filter(|_| takes_the_place) {
            Some(cid) => world.add_connection(Path::of_delay_ms(2), cid),
            None => world.add_lane(Path::of_delay_ms(2)),
        };
    }
}

fn finish(world: &mut World, tasks: &[TaskId]) {
    world.run_until(|world| {
        let is_over = |task| world.completed.contains_key(task) || world.lost.contains_key(task);
        tasks.iter().all(is_over)
    });
    assert!(world.lost.is_empty(), "{:?} {:?}", world.lost, world.faults);
    assert!(tasks.iter().all(|task| world.completed[task].status == GOOD));
}

/// Writes and reads back in a storm.
fn survive(seed: u64, pauses_us: &[u64], damaged_permille: u64) {
    const COMMANDS: u32 = 12;
    let lanes = 1 + seed as usize % 4;
    let takes_the_place = seed.is_multiple_of(2);
    let mut world = World::with_delays(settings(seed), &vec![2; lanes]);
    world.damaged_permille = damaged_permille;
    world.device.delay = Duration::from_micros(700);
    let data = |index: u32| pattern(500 + 3000 * index as usize, u64::from(index) + 1);
    let offset = |index: u32| index * 40_000;
    let (first, second) = pauses_us.split_at(pauses_us.len() / 2);

    let writes: Vec<_> = (0..COMMANDS).map(|index| world.write(offset(index), &data(index))).collect();
    kill(&mut world, first, takes_the_place);
    finish(&mut world, &writes);
    for index in 0..COMMANDS {
        assert!(world.device.content[offset(index) as usize..].starts_with(&data(index)), "write {index}");
    }

    let reads: Vec<_> =
        (0..COMMANDS).map(|index| world.read(offset(index), data(index).len() as u32)).collect();
    kill(&mut world, second, takes_the_place);
    finish(&mut world, &reads);
    // What the initiator has, and could not acknowledge before its connection broke, is kept until its time is up.
    world.run_for(Duration::from_secs(60));
    for (index, task) in (0..COMMANDS).zip(reads) {
        assert_eq!(world.data[&task], data(index), "read {index}");
    }
    assert_eq!(world.device.executed.len(), 2 * COMMANDS as usize, "every command is executed once");
    assert!(world.is_clean());
    assert_eq!(world.target_ended, None);
}

fn pauses_us(seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    (0..6).map(|_| random.below(6000)).collect()
}

#[test]
fn connections_killed_at_any_time_cost_no_command() {
    (0..30).for_each(|seed| survive(seed, &pauses_us(seed + 77), 0));
}

#[test]
fn connections_killed_on_lossy_paths_cost_no_command() {
    (0..20).for_each(|seed| survive(seed, &pauses_us(seed + 99), 20));
}

#[test]
fn lossy_paths_cost_no_command() {
    (0..20).for_each(|seed| survive(seed, &[], 30));
}
