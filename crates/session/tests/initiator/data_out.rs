//! How a write's data leaves.

use crate::world::{FIRST_CMD_SN, FIRST_STAT_SN, UNIT, World, parameters};
use pdu::{BufferId, DataOut, InitiatorPdu, LaneId, Lun, Ttt};
use ropewalk_session::initiator::Event;
use ropewalk_session::parameters::SessionParameters;
use ropewalk_session::seam::{Endpoint, Payload, PayloadRef};

fn data_out(pdu: Option<(InitiatorPdu, Payload)>) -> (DataOut, Payload) {
    match pdu {
        Some((InitiatorPdu::DataOut(pdu), payload)) => (pdu, payload),
        other => panic!("not Data-Out: {other:?}"),
    }
}

fn pieces(world: &mut World) -> Vec<(Ttt, u32, u32, u32, bool)> {
    std::iter::from_fn(|| world.pull(0))
        .map(|pdu| data_out(Some(pdu)).0)
        .map(|pdu| (pdu.ttt, pdu.data_sn.0, pdu.buffer_offset, pdu.data_segment_bytes, pdu.final_))
        .collect()
}

fn start(world: &mut World, bytes: u32) {
    world.submit_write(bytes);
    world.session.start(world.now, LaneId(0)).unwrap();
}

#[test]
fn a_small_write_is_one_pdu() {
    let mut world = World::with_connections(1);
    start(&mut world, 500);
    let Some((InitiatorPdu::ScsiCommand(command), payload)) = world.pull(0) else { panic!() };
    assert!(command.final_ && command.write && !command.read && !command.immediate);
    assert_eq!((command.lun, command.cmd_sn, command.exp_stat_sn), (UNIT, FIRST_CMD_SN, FIRST_STAT_SN));
    assert_eq!((command.expected_data_bytes, command.data_segment_bytes), (500, 500));
    assert_eq!(payload, Payload::Buffer(PayloadRef { buffer: BufferId(1), offset_bytes: 64, bytes: 500 }));
    assert!(!world.session.wants_transmit(LaneId(0)));
}

#[test]
fn unsolicited_data_goes_up_to_first_burst_length_in_segments_of_whole_words() {
    let mut world = World::with_connections(1);
    start(&mut world, 10_000);
    let command = world.command(0);
    assert_eq!((command.final_, command.data_segment_bytes), (false, 1020));
    let expected =
        [(0, 1020, 1020, false), (1, 2040, 1020, false), (2, 3060, 1020, false), (3, 4080, 16, true)];
    assert_eq!(
        pieces(&mut world),
        expected.map(|(number, offset, bytes, last)| (Ttt::NONE, number, offset, bytes, last))
    );
}

#[test]
fn without_immediate_data_all_unsolicited_data_follows_the_command() {
    let mut world = World::with_parameters(1, SessionParameters { immediate_data: false, ..parameters() });
    start(&mut world, 1500);
    let command = world.command(0);
    assert_eq!((command.final_, command.data_segment_bytes), (false, 0));
    assert_eq!(pieces(&mut world), [(Ttt::NONE, 0, 0, 1020, false), (Ttt::NONE, 1, 1020, 480, true)]);
}

#[test]
fn with_initial_r2t_only_immediate_data_is_unsolicited() {
    let mut world = World::with_parameters(1, SessionParameters { initial_r2t: true, ..parameters() });
    start(&mut world, 10_000);
    let command = world.command(0);
    assert_eq!((command.final_, command.data_segment_bytes), (true, 1020));
    assert_eq!(pieces(&mut world), []);
}

#[test]
fn the_budget_bounds_every_data_segment() {
    let mut world = World::with_connections(1);
    start(&mut world, 2000);
    let bytes: Vec<usize> =
        std::iter::from_fn(|| world.pull_at_most(0, 602)).map(|(_, payload)| payload.bytes()).collect();
    assert_eq!(bytes, [600, 600, 600, 200]);
}

#[test]
fn r2ts_are_answered_one_after_the_other_in_the_order_in_which_they_came() {
    let mut world = World::with_parameters(
        1,
        SessionParameters { initial_r2t: true, immediate_data: false, ..parameters() },
    );
    let task = world.write(0, 4000);
    for (number, offset) in [(0, 2000), (1, 0)] {
        let r2t = world.r2t(task, number, offset, 2000);
        world.receive(0, &r2t.emit(), &[]).unwrap();
    }
    let expected = [
        (Ttt(0x70), 0, 2000, 1020, false),
        (Ttt(0x70), 1, 3020, 980, true),
        (Ttt(0x71), 0, 0, 1020, false),
        (Ttt(0x71), 1, 1020, 980, true),
    ];
    assert_eq!(pieces(&mut world), expected);
}

/// The tasks of the Data-Out PDUs that are sent now, without repetitions.
fn turns(world: &mut World) -> Vec<u32> {
    let mut turns: Vec<u32> =
        std::iter::from_fn(|| world.pull(0)).map(|pdu| data_out(Some(pdu)).0.itt.0).collect();
    turns.dedup();
    turns
}

#[test]
fn all_data_that_was_asked_for_of_a_write_is_sent_before_that_of_the_next() {
    let parameters = SessionParameters { initial_r2t: true, immediate_data: false, ..parameters() };
    let mut world = World::with_parameters(1, parameters);
    let (first, second) = (world.write(0, 4000), world.write(0, 4000));
    for (task, number) in [(first, 0), (second, 0), (first, 1), (second, 1)] {
        let r2t = world.r2t(task, number, number * 2000, 2000);
        world.receive(0, &r2t.emit(), &[]).unwrap();
    }
    assert_eq!(turns(&mut world), [first.0, second.0]);
}

#[test]
fn a_write_longer_than_a_turn_lets_others_pass() {
    const LONG: u32 = 3 << 19;
    let parameters =
        SessionParameters { initial_r2t: true, immediate_data: false, max_burst_bytes: LONG, ..parameters() };
    let mut world = World::with_parameters(1, parameters);
    let (long, short) = (world.write(0, LONG), world.write(0, 4000));
    for (task, bytes) in [(long, LONG), (short, 4000)] {
        let r2t = world.r2t(task, 0, 0, bytes);
        world.receive(0, &r2t.emit(), &[]).unwrap();
    }
    assert_eq!(turns(&mut world), [long.0, short.0, long.0]);
}

#[test]
fn solicited_data_names_the_logical_unit_and_unsolicited_data_does_not() {
    let mut world = World::with_connections(1);
    let task = world.write(0, 6000);
    let r2t = world.r2t(task, 0, 4096, 1000);
    world.receive(0, &r2t.emit(), &[]).unwrap();
    let luns: Vec<Lun> = std::iter::from_fn(|| world.pull(0)).map(|pdu| data_out(Some(pdu)).0.lun).collect();
    assert_eq!(luns, [Lun(0), Lun(0), Lun(0), Lun(0), UNIT]);
}

#[test]
fn requests_do_not_wait_for_the_data_of_writes() {
    let mut world = World::with_connections(1);
    start(&mut world, 4096);
    start(&mut world, 4096);
    world.session.ping(world.now, LaneId(0));
    let order: Vec<&str> = world
        .pull_all(0)
        .iter()
        .map(|pdu| match pdu {
            InitiatorPdu::ScsiCommand(_) => "command",
            InitiatorPdu::DataOut(pdu) if pdu.itt.0.is_multiple_of(2) => "first",
            InitiatorPdu::DataOut(_) => "second",
            _ => "ping",
        })
        .collect();
    let requests_and_data = ["command", "first", "command", "first", "ping", "first"];
    let data = ["first", "second", "second", "second", "second"];
    assert_eq!(order, [requests_and_data.as_slice(), &data].concat());
}

#[test]
fn data_that_was_asked_for_is_not_sent_after_the_response() {
    let mut world = World::with_connections(1);
    let task = world.write(0, 6000);
    world.answer(0, task);
    assert_eq!(world.pull_all(0), []);
}

#[test]
fn a_completion_tells_how_much_of_a_write_the_target_took() {
    let mut world = World::with_connections(1);
    let task = world.write(0, 6000);
    world.pull_all(0);
    world.answer(0, task);
    let events = world.events();
    let Event::Completed(completion) = &events[0] else { panic!() };
    assert_eq!((completion.status, completion.data_out_bytes), (0, 4096), "the rest was never asked for");
}

#[test]
fn what_has_not_left_and_not_moved_is_counted() {
    let mut world = World::with_connections(1);
    start(&mut world, 2000);
    let state = world.session.lane_state(LaneId(0));
    assert_eq!((state.outstanding_out_bytes, state.outstanding_in_bytes), (2000, 0));
    assert_eq!((state.outstanding_commands, state.unsent_bytes), (1, 0));
    world.session.poll_transmit(world.now, LaneId(0), 1 << 20).unwrap();
    let state = world.session.lane_state(LaneId(0));
    assert_eq!((state.outstanding_out_bytes, state.unsent_bytes), (980, 48 + 1020));
    world.session.transmitted(world.now, LaneId(0), 1);
    assert_eq!(world.session.lane_state(LaneId(0)).unsent_bytes, 0);
}
