//! Responses that were lost on the way are asked for again.

use crate::world::{FIRST_STAT_SN, World};
use pdu::{Duration, InitiatorPdu, Itt, LaneId, NopIn, R2t, RejectReason, SnackKind, StatSn, Ttt};
use ropewalk_session::initiator::Event;
use ropewalk_session::seam::{Endpoint, Fault};

fn status_snack(first: u32, count: u32) -> SnackKind {
    SnackKind::Status { begin: FIRST_STAT_SN.plus(first), count }
}

fn completed(world: &mut World) -> usize {
    world.events().iter().filter(|event| matches!(event, Event::Completed(_))).count()
}

#[test]
fn a_gap_in_stat_sn_is_asked_for_and_nothing_that_is_complete_is_held_back() {
    let mut world = World::recovering(1, 1);
    let tasks: Vec<_> = (0..4).map(|_| world.write(0, 10)).collect();
    let responses: Vec<_> = tasks.iter().map(|task| world.response(0, *task)).collect();
    world.receive(0, &responses[2].emit(), &[]).unwrap();
    assert_eq!(completed(&mut world), 1);
    assert_eq!(world.snacks(0), [status_snack(0, 2)]);
    world.receive(0, &responses[3].emit(), &[]).unwrap();
    assert_eq!(world.snacks(0), [], "what was asked for is not asked for again at once");
    world.receive(0, &responses[1].emit(), &[]).unwrap();
    world.receive(0, &responses[0].emit(), &[]).unwrap();
    world.receive(0, &responses[0].emit(), &[]).unwrap();
    assert_eq!(completed(&mut world), 3);
    assert_eq!(world.acknowledged(0), FIRST_STAT_SN.plus(4));
}

#[test]
fn news_of_the_target_reveals_lost_responses() {
    let mut world = World::recovering(1, 1);
    let task = world.write(0, 10);
    let news = NopIn { stat_sn: FIRST_STAT_SN.plus(1), ..world.nop_in(Ttt::NONE) };
    world.receive(0, &news.emit(), &[]).unwrap();
    assert_eq!(world.snacks(0), [status_snack(0, 1)]);
    world.answer(0, task);
    assert_eq!(completed(&mut world), 1);
}

#[test]
fn an_r2t_reveals_lost_responses() {
    let mut world = World::recovering(1, 1);
    let (other, task) = (world.write(0, 10), world.write(0, 10_000));
    world.pull_all(0);
    let r2t = R2t { stat_sn: FIRST_STAT_SN.plus(1), ..world.r2t(task, 0, 4096, 10) };
    world.receive(0, &r2t.emit(), &[]).unwrap();
    let Some((InitiatorPdu::Snack(snack), _)) = world.pull(0) else { panic!() };
    assert_eq!(snack.kind, status_snack(0, 1));
    world.answer(0, other);
    assert_eq!(completed(&mut world), 1);
}

#[test]
fn connections_without_further_commands_do_not_owe_a_window_of_acknowledgements() {
    let mut world = World::recovering(1, 2);
    let tasks: Vec<_> = (0..3).map(|_| world.write(0, 10)).collect();
    for (task, told) in tasks.into_iter().zip([None, None, Some(FIRST_STAT_SN.plus(3))]) {
        world.answer(0, task);
        let acknowledgement = world.pull(0).map(|(pdu, _)| match pdu {
            InitiatorPdu::NopOut(pdu) => (pdu.itt, pdu.exp_stat_sn),
            other => panic!("not an acknowledgement: {other:?}"),
        });
        assert_eq!(acknowledgement, told.map(|told| (Itt::NONE, told)));
    }
}

#[test]
fn a_response_with_damaged_sense_data_is_asked_for_again() {
    let mut world = World::recovering(1, 1);
    let task = world.write(0, 10);
    let mut response = world.response(0, task);
    response.data_segment_bytes = 20;
    world.receive_damaged(0, &response.emit()).unwrap();
    assert_eq!((completed(&mut world), world.snacks(0)), (0, vec![status_snack(0, 1)]));
    let sense = [0; 20];
    world.receive(0, &response.emit(), &sense).unwrap();
    assert_eq!(completed(&mut world), 1);
}

#[test]
fn a_response_that_comes_damaged_once_more_is_asked_for_at_once_but_not_for_ever() {
    let mut world = World::recovering(1, 1);
    let task = world.write(0, 10);
    let mut response = world.response(0, task);
    response.data_segment_bytes = 20;
    for _ in 0..6 {
        world.receive_damaged(0, &response.emit()).unwrap();
        assert_eq!(world.snacks(0), [status_snack(0, 1)]);
    }
    world.receive_damaged(0, &response.emit()).unwrap();
    assert_eq!(world.snacks(0), []);
    world.receive(0, &response.emit(), &[0; 20]).unwrap();
    assert_eq!(completed(&mut world), 1);
}

#[test]
fn a_response_that_does_not_come_is_asked_for_again_but_not_for_ever() {
    let mut world = World::recovering(1, 1);
    world.write(0, 10);
    let mut asked = 0;
    let fault = loop {
        let news = NopIn { stat_sn: FIRST_STAT_SN.plus(1), ..world.nop_in(Ttt::NONE) };
        world.receive(0, &news.emit(), &[]).unwrap();
        asked += world.pull_all(0).iter().filter(|pdu| matches!(pdu, InitiatorPdu::Snack(_))).count();
        world.pass(Duration::from_secs(1));
        if let Some(Event::CloseLane { fault, .. }) = world.events().first() {
            break fault.clone();
        }
    };
    assert_eq!((fault, asked), (Some(Fault::Timeout("a response to be sent again")), 6));
}

#[test]
fn a_response_that_the_target_no_longer_has_takes_the_connection() {
    let mut world = World::recovering(1, 1);
    let task = world.write(0, 10);
    world.take_stat_sn(0);
    world.answer(0, task);
    let snack = world.session.poll_transmit(world.now, LaneId(0), 1 << 20).unwrap();
    world.reject(0, RejectReason::SnackReject, &snack.header).unwrap();
    let closes = |event: &Event| matches!(event, Event::CloseLane { .. });
    assert!(world.events().iter().any(closes));
}

#[test]
fn a_wild_stat_sn_is_a_fault() {
    let mut world = World::recovering(1, 1);
    let task = world.write(0, 10);
    let mut response = world.response(0, task);
    response.stat_sn = StatSn(1 << 20);
    let fault = world.receive(0, &response.emit(), &[]).unwrap_err();
    assert_eq!(fault, Fault::Limit("responses beyond a missing one"));
}
