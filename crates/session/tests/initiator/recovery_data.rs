//! Data and R2Ts that were lost on the way are asked for again, and nothing is complete before they are here.

use crate::world::{FIRST_STAT_SN, NoBuffers, UNIT, World};
use pdu::{
    CollapsedStatus, DataIn, DataSn, Duration, Header, InitiatorPdu, Itt, LaneId, RejectReason, Residual,
    ScsiResponse, SnackKind, StatSn, Ttt,
};
use ropewalk_session::initiator::{Event, TaskId};
use ropewalk_session::peer_fault::PeerFault;
use ropewalk_session::seam::{Destination, Digest, Endpoint, Fault};

const PIECE_BYTES: u32 = 1000;

fn data(world: &World, task: TaskId, number: u32) -> Header {
    world.data_in(task, number, number * PIECE_BYTES, PIECE_BYTES).emit()
}

fn data_snack(task: TaskId, begin: u32, count: u32) -> SnackKind {
    SnackKind::DataOrR2t { itt: Itt(task.0), begin, count }
}

/// The status of a completed command and the bytes that came for it.
fn completed(world: &mut World) -> Option<(u8, u32)> {
    world.events().into_iter().find_map(|event| match event {
        Event::Completed(completion) => Some((completion.status, completion.data_in_bytes)),
        _ => None,
    })
}

/// A response after so many Data-In PDUs.
fn response(world: &mut World, task: TaskId, pdus: u32) -> ScsiResponse {
    ScsiResponse { exp_data_sn: DataSn(pdus), ..world.response(0, task) }
}

fn collapsed(stat_sn: StatSn) -> Option<CollapsedStatus> {
    Some(CollapsedStatus { stat_sn, status: 0, residual: Residual::None })
}

#[test]
fn a_gap_in_data_is_asked_for_and_filled_in_any_order() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, 5 * PIECE_BYTES);
    for number in [0, 3] {
        let pdu = data(&world, task, number);
        world.receive(0, &pdu, &[]).unwrap();
    }
    assert_eq!(world.snacks(0), [data_snack(task, 1, 2)]);
    let response = response(&mut world, task, 5);
    world.receive(0, &response.emit(), &[]).unwrap();
    assert_eq!(world.snacks(0), [data_snack(task, 4, 1)]);
    for number in [2, 4] {
        let pdu = data(&world, task, number);
        world.receive(0, &pdu, &[]).unwrap();
    }
    assert_eq!(completed(&mut world), None);
    let pdu = data(&world, task, 1);
    world.receive(0, &pdu, &[]).unwrap();
    assert_eq!(completed(&mut world), Some((0, 5 * PIECE_BYTES)));
    assert_eq!(world.session.lane_state(LaneId(0)).outstanding_bytes(), 0);
}

#[test]
fn damaged_data_is_asked_for_again_and_one_status_ends_the_command() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, 2 * PIECE_BYTES);
    let pdu = data(&world, task, 0);
    world.receive_damaged(0, &pdu).unwrap();
    assert_eq!(world.snacks(0), [data_snack(task, 0, 1)]);
    let stat_sn = world.take_stat_sn(0);
    let last = DataIn { status: collapsed(stat_sn), ..world.data_in(task, 1, PIECE_BYTES, PIECE_BYTES) };
    world.receive(0, &last.emit(), &[]).unwrap();
    assert_eq!(completed(&mut world), None);
    world.receive(0, &pdu, &[]).unwrap();
    assert_eq!(completed(&mut world), Some((0, 2 * PIECE_BYTES)));
    assert_eq!(world.receive(0, &last.emit(), &[]), Ok(Destination::Discard { bytes: PIECE_BYTES }));
    assert_eq!(world.events(), []);
}

#[test]
fn data_that_is_damaged_again_is_asked_for_again_at_once_but_not_for_ever() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, 2 * PIECE_BYTES);
    let last = data(&world, task, 1);
    world.receive(0, &last, &[]).unwrap();
    assert_eq!(world.snacks(0), [data_snack(task, 0, 1)]);
    let pdu = data(&world, task, 0);
    for _ in 1..6 {
        world.receive_damaged(0, &pdu).unwrap();
        assert_eq!(world.snacks(0), [data_snack(task, 0, 1)]);
    }
    world.receive_damaged(0, &pdu).unwrap();
    world.receive_damaged(0, &last).unwrap();
    assert_eq!(world.snacks(0), []);
}

#[test]
fn damaged_data_with_a_status_is_a_hole_in_both_numberings() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, PIECE_BYTES);
    let stat_sn = world.take_stat_sn(0);
    let only = DataIn { status: collapsed(stat_sn), ..world.data_in(task, 0, 0, PIECE_BYTES) };
    world.receive_damaged(0, &only.emit()).unwrap();
    let expected = [data_snack(task, 0, 1), SnackKind::Status { begin: stat_sn, count: 1 }];
    assert_eq!(world.snacks(0), expected);
    world.receive(0, &only.emit(), &[]).unwrap();
    assert_eq!(completed(&mut world), Some((0, PIECE_BYTES)));
    assert_eq!(world.acknowledged(0), stat_sn.next());
}

#[test]
fn a_status_is_not_acknowledged_before_the_data_that_it_counts_is_here() {
    let mut world = World::recovering(1, 1);
    let (first, second) = (world.read(0, PIECE_BYTES), world.read(0, PIECE_BYTES));
    let held = response(&mut world, first, 1);
    world.receive(0, &held.emit(), &[]).unwrap();
    let pdu = data(&world, second, 0);
    world.receive(0, &pdu, &[]).unwrap();
    let done = response(&mut world, second, 1);
    world.receive(0, &done.emit(), &[]).unwrap();
    assert_eq!(completed(&mut world), Some((0, PIECE_BYTES)), "what is complete is not held back");
    world.snacks(0);
    assert_eq!(world.acknowledged(0), held.stat_sn);
    let pdu = data(&world, first, 0);
    world.receive(0, &pdu, &[]).unwrap();
    assert_eq!(world.acknowledged(0), done.stat_sn.plus(2));
}

#[test]
fn a_header_that_is_damaged_is_a_hole() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, 2 * PIECE_BYTES);
    let pdu = data(&world, task, 0);
    let lost = world.session.receive_header(world.now, LaneId(0), &pdu, Digest::Bad, &mut NoBuffers);
    assert_eq!(lost, Ok(Destination::Discard { bytes: PIECE_BYTES }));
    assert_eq!(world.snacks(0), []);
    let pdu = data(&world, task, 1);
    world.receive(0, &pdu, &[]).unwrap();
    assert_eq!(world.snacks(0), [data_snack(task, 0, 1)]);
}

#[test]
fn data_is_acknowledged_when_the_target_asks_and_nothing_is_missing_before_it() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, 5 * PIECE_BYTES);
    let asking = |world: &World, number: u32| {
        let pdu = world.data_in(task, number, number * PIECE_BYTES, PIECE_BYTES);
        DataIn { acknowledge: true, ttt: Ttt(number), lun: UNIT, ..pdu }.emit()
    };
    let ack = |number: u32| SnackKind::DataAck { ttt: Ttt(number), next: DataSn(number + 1) };
    let pdu = asking(&world, 0);
    world.receive(0, &pdu, &[]).unwrap();
    assert_eq!(world.snacks(0), [ack(0)]);
    let pdu = asking(&world, 2);
    world.receive(0, &pdu, &[]).unwrap();
    assert_eq!(world.snacks(0), [data_snack(task, 1, 1)]);
    let pdu = data(&world, task, 1);
    world.receive(0, &pdu, &[]).unwrap();
    assert_eq!(world.snacks(0), [ack(2)]);
}

#[test]
fn a_read_that_has_ended_acknowledges_no_data_but_its_response() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, 2 * PIECE_BYTES);
    let asking =
        DataIn { acknowledge: true, ttt: Ttt(1), lun: UNIT, ..world.data_in(task, 0, 0, PIECE_BYTES) };
    world.receive(0, &asking.emit(), &[]).unwrap();
    let pdu = data(&world, task, 1);
    world.receive(0, &pdu, &[]).unwrap();
    let response = ScsiResponse { exp_data_sn: DataSn(2), ..world.response(0, task) };
    world.receive(0, &response.emit(), &[]).unwrap();
    let Some((InitiatorPdu::NopOut(pdu), _)) = world.pull(0) else { panic!("no acknowledgement") };
    assert_eq!((pdu.itt, pdu.exp_stat_sn), (Itt::NONE, FIRST_STAT_SN.next()));
    assert_eq!(world.pull(0), None);
}

#[test]
fn at_level_0_a_wish_for_an_acknowledgement_is_ignored() {
    let mut world = World::with_connections(1);
    let task = world.read(0, 5 * PIECE_BYTES);
    let pdu = DataIn { acknowledge: true, ttt: Ttt(1), ..world.data_in(task, 0, 0, PIECE_BYTES) };
    world.receive(0, &pdu.emit(), &[]).unwrap();
    assert_eq!(world.pull_all(0), []);
}

#[test]
fn a_retransmission_that_is_lost_is_asked_for_again_but_not_for_ever() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, 2 * PIECE_BYTES);
    let pdu = data(&world, task, 1);
    world.receive(0, &pdu, &[]).unwrap();
    let mut asked = 0;
    let fault = loop {
        asked += world.pull_all(0).iter().filter(|pdu| matches!(pdu, InitiatorPdu::Snack(_))).count();
        world.pass(Duration::from_secs(1));
        let news = world.nop_in(Ttt::NONE);
        world.receive(0, &news.emit(), &[]).unwrap();
        if let Some(Event::CloseLane { fault, .. }) = world.events().first() {
            break fault.clone();
        }
    };
    assert_eq!(fault, Some(Fault::Timeout("data to be sent again")));
    assert_eq!(asked, 6);
}

/// A read whose command the target acknowledges with whatever it sends next.
fn acknowledged_read(world: &mut World, bytes: u32) -> TaskId {
    let task = world.read(0, bytes);
    let next = world.session.counters().cmd_sn;
    world.acknowledge_before(next);
    task
}

/// A read of two PDUs of which the first was lost, and asked for.
fn read_with_a_hole(world: &mut World) -> TaskId {
    let task = acknowledged_read(world, 2 * PIECE_BYTES);
    let pdu = data(world, task, 1);
    world.receive(0, &pdu, &[]).unwrap();
    assert_eq!(world.snacks(0), [data_snack(task, 0, 1)]);
    task
}

#[test]
fn what_comes_behind_other_data_of_its_lane_is_not_asked_for_again() {
    let mut world = World::recovering(1, 1);
    let task = read_with_a_hole(&mut world);
    let other = acknowledged_read(&mut world, 100 * PIECE_BYTES);
    for number in 0..100 {
        world.pass(Duration::from_secs(1));
        let pdu = data(&world, other, number);
        world.receive(0, &pdu, &[]).unwrap();
        assert_eq!(world.snacks(0), []);
    }
    // Now the lane is silent; it is pinged, too.
    world.pass(Duration::from_secs(4));
    let sent = world.pull_all(0);
    let asks = |pdu: &&InitiatorPdu| matches!(pdu, InitiatorPdu::Snack(snack) if snack.kind == data_snack(task, 0, 1));
    assert_eq!(sent.iter().filter(asks).count(), 1, "{sent:?}");
}

#[test]
fn what_was_lost_again_is_asked_for_while_its_lane_goes_on_with_later_reads() {
    let mut world = World::recovering(1, 1);
    let task = read_with_a_hole(&mut world);
    let others = (1..100).find(|_| {
        world.pass(Duration::from_secs(1));
        let asked = world.snacks(0);
        let other = acknowledged_read(&mut world, PIECE_BYTES);
        let pdu = data(&world, other, 0);
        world.receive(0, &pdu, &[]).unwrap();
        let done = response(&mut world, other, 1);
        world.receive(0, &done.emit(), &[]).unwrap();
        asked == [data_snack(task, 0, 1)]
    });
    // Two seconds until it is late, and then two looks until the lane has brought twice what it owed.
    assert_eq!(others, Some(4));
}

#[test]
fn a_read_that_waits_for_its_turn_is_not_asked_for_its_end() {
    let mut world = World::recovering(1, 1);
    let [task, other] = [(); 2].map(|()| acknowledged_read(&mut world, 2 * PIECE_BYTES));
    for read in [task, other] {
        let pdu = data(&world, read, 0);
        world.receive(0, &pdu, &[]).unwrap();
    }
    for (is_busy, expected) in [(true, vec![]), (false, vec![data_snack(task, 1, 0)])] {
        world.session.ping(world.now, LaneId(0));
        let Some((InitiatorPdu::NopOut(ping), _)) = world.pull(0) else { panic!() };
        world.now += Duration::from_secs(1);
        if is_busy {
            let pdu = data(&world, other, 1);
            world.receive(0, &pdu, &[]).unwrap();
            let done = response(&mut world, other, 2);
            world.receive(0, &done.emit(), &[]).unwrap();
        }
        world.answer_ping(0, ping.itt);
        assert_eq!(world.snacks(0), expected);
    }
}

#[test]
fn data_that_does_not_fit_the_hole_is_a_fault() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, 3 * PIECE_BYTES);
    for number in [0, 2] {
        let pdu = data(&world, task, number);
        world.receive(0, &pdu, &[]).unwrap();
    }
    let overlapping = world.data_in(task, 1, PIECE_BYTES - 1, PIECE_BYTES).emit();
    assert_eq!(world.receive(0, &overlapping, &[]), Err(PeerFault::DataInOutOfOrder.into()));
}

#[test]
fn a_read_whose_data_cannot_be_sent_again_ends_with_a_check_condition() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, 2 * PIECE_BYTES);
    let pdu = data(&world, task, 1);
    world.receive(0, &pdu, &[]).unwrap();
    let Some(transmit) = world.session.poll_transmit(world.now, LaneId(0), 1 << 20) else { panic!() };
    let done = response(&mut world, task, 2);
    world.receive(0, &done.emit(), &[]).unwrap();
    world.reject(0, RejectReason::SnackReject, &transmit.header).unwrap();
    let Some(Event::Completed(completion)) = world.events().into_iter().next() else { panic!() };
    assert_eq!((completion.status, &completion.sense[12..14]), (2, [0x47, 0x05].as_slice()));
}

#[test]
fn a_lost_r2t_is_asked_for_and_those_after_it_are_answered() {
    let mut world = World::recovering(1, 1);
    let task = world.write(0, 10_000);
    world.pull_all(0);
    let second = world.r2t(task, 1, 6000, 500);
    world.receive(0, &second.emit(), &[]).unwrap();
    let Some((InitiatorPdu::Snack(snack), _)) = world.pull(0) else { panic!() };
    assert_eq!(snack.kind, data_snack(task, 0, 1));
    let Some((InitiatorPdu::DataOut(answer), _)) = world.pull(0) else { panic!() };
    assert_eq!((answer.buffer_offset, answer.final_), (6000, true));
    let first = world.r2t(task, 0, 4096, 500);
    world.receive(0, &first.emit(), &[]).unwrap();
    let Some((InitiatorPdu::DataOut(answer), _)) = world.pull(0) else { panic!() };
    assert_eq!(answer.buffer_offset, 4096);
    world.receive(0, &first.emit(), &[]).unwrap();
    assert_eq!(world.pull(0), None, "an R2T that is sent twice is answered once");
}

#[test]
fn a_recovery_r2t_is_answered_though_the_data_was_sent() {
    let mut world = World::recovering(1, 1);
    let task = world.write(0, 6000);
    world.pull_all(0);
    let numbers = [(0, 4096, 1904), (1, 4096, 1904), (2, 0, 1000)];
    for (number, offset, bytes) in numbers {
        let r2t = world.r2t(task, number, offset, bytes);
        world.receive(0, &r2t.emit(), &[]).unwrap();
    }
    let sent: Vec<(Ttt, u32, u32)> = world
        .pull_all(0)
        .into_iter()
        .map(|pdu| match pdu {
            InitiatorPdu::DataOut(pdu) => (pdu.ttt, pdu.data_sn.0, pdu.buffer_offset),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [(0x70, 0, 4096), (0x70, 1, 5116), (0x71, 0, 4096), (0x71, 1, 5116), (0x72, 0, 0)];
    assert_eq!(sent, expected.map(|(ttt, data_sn, offset)| (Ttt(ttt), data_sn, offset)));
    world.answer(0, task);
    let Some(Event::Completed(completion)) = world.events().into_iter().next() else { panic!() };
    assert_eq!(completion.data_out_bytes, 6000);
}

#[test]
fn data_that_was_asked_for_twice_does_not_stand_for_data_that_was_not() {
    let mut world = World::recovering(1, 1);
    let task = world.write(0, 6000);
    world.pull_all(0);
    for number in 0..2 {
        let r2t = world.r2t(task, number, 0, 1904);
        world.receive(0, &r2t.emit(), &[]).unwrap();
    }
    world.pull_all(0);
    world.answer(0, task);
    let Some(Event::Completed(completion)) = world.events().into_iter().next() else { panic!() };
    assert_eq!(completion.data_out_bytes, 4096);
}
