//! Commands and requests that were lost on their way are sent again: the same, and not for ever.

use crate::world::{FIRST_CMD_SN, UNIT, World};
use pdu::{
    CmdSn, DataSn, Duration, InitiatorPdu, Itt, LaneId, RejectReason, SnackKind, TaskManagementFunction,
    TaskManagementOutcome, Ttt,
};
use ropewalk_session::initiator::{Event, SendTargets, TaskFunction, TaskId};
use ropewalk_session::seam::{Endpoint, Fault};

const LANE: LaneId = LaneId(0);
const LONG: Duration = Duration::from_secs(2);

/// Pulls what must be a ping and answers it.
fn answer_ping(world: &mut World, lane: usize) {
    match world.pull(lane) {
        Some((InitiatorPdu::NopOut(ping), _)) => world.answer_ping(lane, ping.itt),
        other => panic!("not a ping: {other:?}"),
    }
}

/// A write that the target turns out not to have.
fn lost_write(world: &mut World, bytes: u32) -> TaskId {
    let task = world.write(0, bytes);
    world.pull_all(0);
    world.pass(LONG);
    answer_ping(world, 0);
    task
}

fn closed(world: &mut World) -> Option<Fault> {
    world.events().into_iter().find_map(|event| match event {
        Event::CloseLane { fault, .. } => fault,
        _ => None,
    })
}

#[test]
fn a_command_that_did_not_arrive_is_sent_again_with_all_of_its_data() {
    let mut world = World::recovering(1, 1);
    let task = lost_write(&mut world, 2000);
    let again = world.command(0);
    assert_eq!((again.itt, again.cmd_sn, again.data_segment_bytes), (Itt(task.0), FIRST_CMD_SN, 1020));
    let Some((InitiatorPdu::DataOut(data), _)) = world.pull(0) else { panic!("no data") };
    assert_eq!((data.data_sn, data.buffer_offset, data.final_), (DataSn(0), 1020, true));
    assert_eq!(world.pull(0), None);
    world.answer(0, task);
    let Some(Event::Completed(completion)) = world.events().into_iter().next() else { panic!() };
    assert_eq!(completion.data_out_bytes, 2000);
    assert_eq!(world.session.lane_state(LANE).outstanding_bytes(), 0);
}

#[test]
fn a_command_that_did_not_arrive_is_sent_again_when_the_ping_after_it_is_rejected() {
    let mut world = World::recovering(1, 1);
    let task = world.write(0, 100);
    world.pull_all(0);
    world.pass(LONG);
    let Some((InitiatorPdu::NopOut(ping), _)) = world.pull(0) else { panic!("no ping") };
    world.reject(0, RejectReason::ImmediateCommandReject, &ping.emit()).unwrap();
    assert_eq!(world.command(0).itt, Itt(task.0));
}

#[test]
fn a_command_that_may_only_be_late_is_not_sent_again() {
    let mut world = World::recovering(1, 1);
    world.session.ping(world.now, LANE);
    let Some((InitiatorPdu::NopOut(before), _)) = world.pull(0) else { panic!() };
    world.write(0, 100);
    world.pass(LONG);
    world.answer_ping(0, before.itt);
    world.pull_all(0).iter().for_each(|pdu| assert!(matches!(pdu, InitiatorPdu::NopOut(_)), "{pdu:?}"));
}

#[test]
fn a_command_that_the_target_has_is_not_sent_again_however_long_it_takes() {
    let mut world = World::recovering(1, 1);
    world.write(0, 100);
    world.acknowledge_before(FIRST_CMD_SN.next());
    let news = world.nop_in(Ttt::NONE);
    world.receive(0, &news.emit(), &[]).unwrap();
    for _ in 0..100 {
        world.pass(LONG);
        answer_ping(&mut world, 0);
        assert_eq!(world.pull(0), None);
    }
    assert_eq!(world.events(), []);
}

#[test]
fn only_the_command_that_the_target_misses_first_is_sent_again() {
    let mut world = World::recovering(1, 2);
    let tasks = [world.write(0, 10), world.write(0, 10), world.write(1, 10)];
    world.acknowledge_before(FIRST_CMD_SN.next());
    world.answer(0, tasks[0]);
    world.pass(LONG);
    answer_ping(&mut world, 0);
    assert_eq!(world.command(0).itt, Itt(tasks[1].0));
    assert_eq!(world.pull(0), None);
}

#[test]
fn a_command_that_the_target_may_only_not_have_come_to_is_not_sent_again() {
    let mut world = World::recovering(1, 2);
    let tasks = [world.write(1, 10), world.write(0, 10)];
    world.acknowledge_before(FIRST_CMD_SN.next());
    world.pass(LONG);
    answer_ping(&mut world, 0);
    assert_eq!(world.pull(0), None, "the target works on the command before it");
    world.pass(LONG);
    let Some((InitiatorPdu::NopOut(before), _)) = world.pull(0) else { panic!("no ping") };
    world.answer(1, tasks[0]);
    world.answer_ping(0, before.itt);
    assert_eq!(world.pull(0), None, "when the ping left, the target worked on it");
    world.pass(LONG);
    answer_ping(&mut world, 0);
    assert_eq!(world.command(0).itt, Itt(tasks[1].0));
}

#[test]
fn a_write_that_was_to_be_sent_again_is_whole_when_the_target_answers_its_first_copy() {
    let mut world = World::recovering(1, 1);
    let task = lost_write(&mut world, 2000);
    world.answer(0, task);
    let Some(Event::Completed(completion)) = world.events().into_iter().next() else { panic!() };
    assert_eq!(completion.data_out_bytes, 2000);
    assert_eq!(world.pull(0), None);
}

#[test]
fn a_command_that_never_arrives_takes_its_connection() {
    let mut world = World::recovering(1, 1);
    world.write(0, 100);
    let mut sent = 1;
    let fault = loop {
        for pdu in world.pull_all(0) {
            match pdu {
                InitiatorPdu::NopOut(ping) => world.answer_ping(0, ping.itt),
                InitiatorPdu::ScsiCommand(_) => sent += 1,
                other => panic!("{other:?}"),
            }
        }
        world.pass(Duration::from_secs(1));
        if let Some(fault) = closed(&mut world) {
            break fault;
        }
    };
    assert_eq!((fault, sent), (Fault::Timeout("the acknowledgement of a command"), 6));
}

#[test]
fn a_command_whose_data_was_damaged_is_sent_again_at_once_whatever_else_the_target_misses() {
    let mut world = World::recovering(1, 1);
    let tasks = [world.submit_write(100), world.submit_write(100)];
    let headers = tasks.map(|_| {
        world.session.start(world.now, LANE).unwrap();
        world.session.poll_transmit(world.now, LANE, 1 << 20).unwrap().header
    });
    for (task, header) in tasks.iter().zip(&headers).rev() {
        world.reject(0, RejectReason::DataDigestError, header).unwrap();
        assert_eq!(world.command(0).itt, Itt(task.0));
    }
}

#[test]
fn a_late_word_of_damage_does_no_harm_when_another_copy_has_arrived() {
    let mut world = World::recovering(1, 1);
    let task = world.submit_write(100);
    world.session.start(world.now, LANE).unwrap();
    let header = world.session.poll_transmit(world.now, LANE, 1 << 20).unwrap().header;
    world.pass(LONG);
    answer_ping(&mut world, 0);
    assert_eq!(world.command(0).itt, Itt(task.0));
    world.acknowledge_before(FIRST_CMD_SN.next());
    world.reject(0, RejectReason::DataDigestError, &header).unwrap();
    assert_eq!(world.events(), []);
    world.answer(0, task);
    assert!(matches!(world.events()[..], [Event::Completed(_), ..]));
    world.reject(0, RejectReason::DataDigestError, &header).unwrap();
}

#[test]
fn the_only_copy_of_a_command_that_was_acknowledged_and_dropped_takes_its_connection() {
    let mut world = World::recovering(1, 1);
    world.submit_write(100);
    world.session.start(world.now, LANE).unwrap();
    let header = world.session.poll_transmit(world.now, LANE, 1 << 20).unwrap().header;
    world.acknowledge_before(FIRST_CMD_SN.next());
    assert_eq!(world.reject(0, RejectReason::DataDigestError, &header), Err(Fault::DataDigest));
}

#[test]
fn a_lost_command_that_was_reset_meanwhile_leaves_no_hole() {
    let mut world = World::recovering(1, 1);
    let task = world.write(0, 100);
    world.session.task_management(world.now, TaskFunction::LogicalUnitReset(UNIT));
    let reset = world.function(0);
    world.answer_function(0, reset.itt, TaskManagementOutcome::FunctionComplete);
    world.events();
    world.pull_all(0);
    world.pass(LONG);
    answer_ping(&mut world, 0);
    let abort = world.function(0);
    assert_eq!(abort.function, TaskManagementFunction::AbortTask);
    assert_eq!((abort.referenced_task, abort.ref_cmd_sn), (Itt(task.0), FIRST_CMD_SN));
    world.acknowledge_before(FIRST_CMD_SN.next());
    world.answer_function(0, abort.itt, TaskManagementOutcome::FunctionComplete);
    assert_eq!(world.events(), []);
    assert_eq!(world.session.counters().exp_cmd_sn, CmdSn(8));
}

#[test]
fn a_ping_a_function_and_a_text_are_sent_again_with_the_same_tag() {
    let mut world = World::recovering(1, 1);
    world.session.ping(world.now, LANE);
    world.session.task_management(world.now, TaskFunction::TargetWarmReset);
    world.session.send_targets(world.now, LANE, &SendTargets::Own).unwrap();
    let tag = |pdu: InitiatorPdu| match pdu {
        InitiatorPdu::NopOut(pdu) => pdu.itt,
        InitiatorPdu::TaskManagementRequest(pdu) => pdu.itt,
        InitiatorPdu::TextRequest(pdu) => pdu.itt,
        other => panic!("{other:?}"),
    };
    let mut first: Vec<Itt> = world.pull_all(0).into_iter().map(tag).collect();
    world.pass(LONG);
    let mut second: Vec<Itt> = world.pull_all(0).into_iter().map(tag).collect();
    first.sort();
    second.sort();
    assert_eq!((first.len(), first), (3, second));
}

#[test]
fn both_answers_to_a_request_that_was_sent_twice_are_taken() {
    let mut world = World::recovering(1, 1);
    let function = world.session.task_management(world.now, TaskFunction::TargetWarmReset);
    let request = world.function(0);
    world.pass(LONG);
    for _ in 0..2 {
        world.answer_function(0, request.itt, TaskManagementOutcome::FunctionComplete);
    }
    let response = TaskManagementOutcome::FunctionComplete;
    assert_eq!(world.events(), [Event::FunctionDone { function, response }]);
}

#[test]
fn a_read_that_stands_still_on_a_lane_that_answers_is_asked_for_its_tail() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, 3000);
    world.acknowledge_before(FIRST_CMD_SN.next());
    let data = world.data_in(task, 0, 0, 1000);
    world.receive(0, &data.emit(), &[]).unwrap();
    world.pass(LONG);
    answer_ping(&mut world, 0);
    assert_eq!(world.snacks(0), [SnackKind::DataOrR2t { itt: Itt(task.0), begin: 1, count: 0 }]);
}

#[test]
fn the_answer_to_a_probe_says_nothing_of_a_reads_tail() {
    let mut world = World::recovering(1, 1);
    let task = world.read(0, 3000);
    world.acknowledge_before(FIRST_CMD_SN.next());
    let data = world.data_in(task, 0, 0, 1000);
    world.receive(0, &data.emit(), &[]).unwrap();
    world.session.probe(world.now, LaneId(0));
    answer_ping(&mut world, 0);
    assert_eq!(world.snacks(0), []);
}
