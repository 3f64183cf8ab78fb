//! Ta, Tb, Tc, RTT and waits, of sessions whose every time is known.

mod world;

use ropewalk_observe::{CommandReport, Kind};
use world::{MS, World, data_in, data_out, r2t, read, response, write};

fn commands(world: World) -> Vec<CommandReport> {
    let (report, _) = world.analyse();
    assert_eq!(report.connections.len(), 1);
    report.connections[0].commands.clone()
}

#[test]
fn the_round_trip_is_the_sum_of_both_sides_of_the_capture() {
    let mut world = World::new();
    world.at(20).initiator(&read(1, 512)).at(40).target(&data_in(1, 512, true));
    let (report, _) = world.analyse();
    let connection = &report.connections[0];
    assert_eq!(connection.to_target.rtt.unwrap().min_ns, 10 * MS);
    assert_eq!(connection.to_initiator.rtt.unwrap().min_ns, 2 * MS);
    assert_eq!(connection.rtt_ns_min, Some(12 * MS));
}

#[test]
fn the_times_of_a_write_add_up_to_its_cycle() {
    let mut world = World::new();
    world.at(20).initiator(&write(1, 8192, 4096)).at(23).initiator(&data_out(1, 4096, 4096, true));
    // 10 ms to the target and back, 5 ms in it.
    world.at(38).target(&response(1));
    // 2 ms to the initiator and back, 4 ms in it.
    world.at(44).initiator(&write(2, 4096, 4096)).at(60).target(&response(2));
    let commands = commands(world);
    let first = &commands[0];
    assert_eq!(first.kind, Kind::Write);
    assert_eq!((first.ta_ns, first.tb_ns, first.tc_ns), (3 * MS, 5 * MS, Some(4 * MS)));
    assert_eq!(first.turnaround_ns, first.ta_ns + 12 * MS + first.tb_ns);
    assert_eq!(first.turnaround_ns + first.tc_ns.unwrap(), (44 - 20) * MS);
    assert_eq!(first.data_bytes, 8192);
    assert!(first.whole);
}

#[test]
fn a_read_is_timed_to_its_first_data_and_from_there_to_its_last() {
    let mut world = World::new();
    world.at(20).initiator(&read(1, 2048));
    world.at(36).target(&data_in(1, 1024, false)).at(39).target(&data_in(1, 1024, true));
    let read = &commands(world)[0];
    assert_eq!((read.kind, read.data_bytes), (Kind::Read, 2048));
    assert_eq!((read.ta_ns, read.tb_ns), (3 * MS, 6 * MS));
}

#[test]
fn a_write_that_must_ask_waits_a_round_trip_for_its_r2t() {
    let mut world = World::new();
    world.at(20).initiator(&write(1, 4096, 0));
    // The target takes 1 ms, the initiator none.
    world.at(31).target(&r2t(1, 0, 4096)).at(33).initiator(&data_out(1, 0, 4096, true));
    world.at(43).target(&response(1));
    let write = &commands(world)[0];
    assert_eq!((write.r2ts, write.r2t_wait_ns, write.r2t_delay_ns), (1, 13 * MS, Some(MS)));
    assert!(write.gaps[0].waiting_for_r2t);
}

#[test]
fn a_pause_of_a_round_trip_amid_data_is_a_gap_with_what_was_in_flight() {
    let mut world = World::new();
    let pdu = write(1, 4000, 4000);
    let (first, rest) = pdu.split_at(1000);
    world.at(20).initiator(first).at(21).initiator(&rest[..1000]);
    world.at(33).initiator(&rest[1000..]).at(43).target(&response(1));
    let write = &commands(world)[0];
    assert_eq!((write.gap_count, write.gap_ns), (1, 12 * MS));
    assert_eq!(write.gaps[0].in_flight_bytes, 2000);
    assert_eq!(write.gaps[0].window_bytes, None, "no window but a SYN's has been seen yet");
    assert!(!write.gaps[0].waiting_for_r2t);
}

#[test]
fn a_silence_that_ends_with_parts_of_several_pdus_is_one_gap() {
    let mut world = World::new();
    let pdus = [write(1, 8000, 4000), data_out(1, 4000, 2000, false), data_out(1, 6000, 2000, true)].concat();
    let (first, rest) = pdus.split_at(1000);
    world.at(20).initiator(first).at(33).initiator(rest).at(43).target(&response(1));
    let write = &commands(world)[0];
    assert_eq!((write.gap_count, write.gap_ns, write.gaps.len()), (1, 13 * MS, 1));
}

#[test]
fn commands_beside_each_other_have_no_time_between_them() {
    let mut world = World::new();
    world.at(20).initiator(&read(1, 512)).initiator(&read(2, 512));
    world.at(31).target(&data_in(1, 512, true)).at(32).initiator(&read(3, 512));
    world.at(33).target(&data_in(2, 512, true)).at(45).target(&data_in(3, 512, true));
    let commands = commands(world);
    assert_eq!(commands.iter().map(|command| command.depth).collect::<Vec<_>>(), [1, 2, 2]);
    assert!(commands.iter().all(|command| command.tc_ns.is_none()));
}
