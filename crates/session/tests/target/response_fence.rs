//! Fenced responses: after all earlier ones of their unit, before all later ones, on whatever connection.

use crate::world::*;
use pdu::TaskManagementFunction as Function;
use pdu::TaskManagementOutcome as Outcome;
use pdu::{CmdSn, InitiatorPdu, Itt, Lun, ScsiCommand, TargetPdu, Ttt};
use ropewalk_session::seam::LaneLoss;
use ropewalk_session::target::{Response, TaskId};

const OTHER_UNIT: Lun = Lun(2 << 48);

impl World {
    /// Ends a task with a unit attention that is the first after many tasks were aborted.
    fn respond_fenced(&mut self, task: TaskId) {
        let response = Response { status: CHECK_CONDITION, sense: vec![0x70, 0, 6], wanted_bytes: 0 };
        self.session.respond_fenced(self.now, task, response);
    }

    /// A command without data on each of these lanes, in this order.
    fn plains(&mut self, lanes: &[usize]) -> Vec<TaskId> {
        self.plains_from(7, lanes)
    }

    fn plains_from(&mut self, first: u32, lanes: &[usize]) -> Vec<TaskId> {
        for (cmd_sn, lane) in (first..).zip(lanes) {
            self.plain(*lane, cmd_sn);
        }
        self.executed().iter().map(|command| command.task).collect()
    }

    /// The tags of the SCSI Responses on a lane; pings are left out, and unanswered.
    fn answered(&mut self, lane: usize) -> Vec<u32> {
        let tag = |(pdu, _): Received| match pdu {
            TargetPdu::ScsiResponse(pdu) => Some(pdu.itt.0),
            TargetPdu::NopIn(_) => None,
            other => panic!("{other:?}"),
        };
        self.pull(lane).into_iter().filter_map(tag).collect()
    }
}

#[test]
fn it_waits_until_what_was_sent_before_has_arrived() {
    for level in 0..=2 {
        let mut world = World::of_level(level, 2);
        world.acknowledges = false;
        let tasks = world.plains(&[0, 1]);
        world.respond(tasks[0], GOOD, 0);
        assert_eq!(world.answered(0), [7]);
        world.respond_fenced(tasks[1]);
        assert_eq!(world.answered(1), []);
        let ping = nop_in(&world.pull_only(0));
        world.acknowledges = true;
        world.nop(0, Itt::NONE, ping.ttt, 9, true, &[]);
        assert_eq!(world.answered(1), [8]);
    }
}

#[test]
fn an_initiator_that_answers_and_acknowledges_nothing_is_not_asked_once_a_round_trip() {
    let mut world = World::of_level(1, 2);
    world.acknowledges = false;
    let tasks = world.plains(&[0, 1]);
    world.respond(tasks[0], GOOD, 0);
    assert_eq!(world.answered(0), [7]);
    world.respond_fenced(tasks[1]);
    let mut pings = 0;
    while let Some(ping) = world.pull(0).first() {
        world.nop(0, Itt::NONE, nop_in(ping).ttt, 9, true, &[]);
        pings += 1;
    }
    assert_eq!(pings, 4);
    world.pass(2);
    assert!(matches!(world.pull_only(0).0, TargetPdu::NopIn(_)));
}

#[test]
fn it_waits_for_what_was_handed_over_before_and_not_sent() {
    for level in 0..=2 {
        let mut world = World::of_level(level, 2);
        let tasks = world.plains(&[0, 1]);
        world.respond(tasks[0], GOOD, 0);
        world.respond_fenced(tasks[1]);
        assert_eq!(world.answered(1), []);
        assert_eq!(world.answered(0), [7]);
        assert_eq!(world.answered(1), []);
        world.acknowledge(0);
        assert_eq!(world.answered(1), [8]);
    }
}

#[test]
fn what_follows_waits_until_it_has_arrived() {
    for level in 0..=2 {
        let mut world = World::of_level(level, 2);
        let tasks = world.plains(&[0, 1, 0]);
        world.respond_fenced(tasks[0]);
        world.respond(tasks[1], GOOD, 0);
        world.respond(tasks[2], GOOD, 0);
        assert_eq!((world.answered(1), world.answered(0)), (vec![], vec![7]));
        assert_eq!((world.answered(1), world.answered(0)), (vec![], vec![]));
        world.acknowledge(0);
        assert_eq!((world.answered(1), world.answered(0)), (vec![8], vec![9]));
    }
}

#[test]
fn a_session_of_one_connection_needs_no_waiting() {
    let mut world = World::of_level(2, 1);
    let tasks = world.plains(&[0, 0]);
    world.respond_fenced(tasks[0]);
    world.respond(tasks[1], GOOD, 0);
    assert_eq!(world.answered(0), [7, 8]);
}

#[test]
fn other_units_are_not_held_up() {
    let mut world = World::with_connections(2);
    world.plain(0, 7);
    let other = ScsiCommand { lun: OTHER_UNIT, ..world.command(1, 8) };
    world.send(1, &InitiatorPdu::ScsiCommand(other), &[]);
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    world.respond_fenced(tasks[0]);
    world.respond(tasks[1], GOOD, 0);
    assert_eq!(world.answered(1), [8]);
}

#[test]
fn data_passes_and_its_status_waits() {
    let mut world = World::with_connections(2);
    world.plain(0, 7);
    world.read(1, 8, 1000);
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    world.respond_fenced(tasks[0]);
    world.data_in(tasks[1], &pattern(1000));
    world.respond(tasks[1], GOOD, 1000);
    assert_eq!(data_in(&world.pull_only(1)).status, None);
    assert_eq!(world.answered(0), [7]);
    world.acknowledge(0);
    assert_eq!(world.answered(1), [8]);
}

#[test]
fn one_fence_follows_another_in_the_order_of_the_responses() {
    let mut world = World::with_connections(3);
    let tasks = world.plains(&[0, 1, 2, 0]);
    world.respond_fenced(tasks[1]);
    world.respond(tasks[0], GOOD, 0);
    world.respond_fenced(tasks[2]);
    world.respond(tasks[3], GOOD, 0);
    assert_eq!((world.answered(0), world.answered(2), world.answered(1)), (vec![], vec![], vec![8]));
    world.acknowledge(1);
    assert_eq!((world.answered(2), world.answered(0)), (vec![], vec![7]));
    world.acknowledge(0);
    assert_eq!((world.answered(0), world.answered(2)), (vec![], vec![9]));
    world.acknowledge(2);
    assert_eq!(world.answered(0), [10]);
    world.acknowledge(0);
    assert_eq!(world.session.counters().tasks, 0);
}

#[test]
fn a_response_that_waits_for_data_waits_for_the_fence_too_and_is_not_waited_for() {
    let mut world = World::with_connections(2);
    world.write(0, 7, 1000, &[], true);
    let refused = world.executed()[0].task;
    world.respond(refused, CHECK_CONDITION, 0);
    let tasks = world.plains_from(8, &[1, 1]);
    tasks.into_iter().for_each(|task| world.respond_fenced(task));
    world.sequence(0, 7, Ttt::NONE, 0, &pattern(1000));
    assert_eq!((world.answered(0), world.answered(1)), (vec![], vec![8]));
    world.acknowledge(1);
    assert_eq!((world.answered(0), world.answered(1)), (vec![], vec![9]));
    world.acknowledge(1);
    assert_eq!(world.answered(0), [7]);
}

#[test]
fn a_fence_whose_task_is_aborted_is_none() {
    let mut world = World::with_connections(2);
    world.acknowledges = false;
    let tasks = world.plains(&[0, 1, 0]);
    world.respond(tasks[0], GOOD, 0);
    assert_eq!(world.answered(0), [7]);
    world.respond_fenced(tasks[1]);
    world.respond(tasks[2], GOOD, 0);
    world.manage_task(1, Function::AbortTask, 10, 99, Itt(8), CmdSn(8));
    assert_eq!(function_outcome(&world.pull_only(1)), Outcome::FunctionComplete);
    assert_eq!(world.answered(0), [9]);
}

#[test]
fn the_answer_to_an_abort_follows_a_fence_too() {
    let mut world = World::with_connections(2);
    let tasks = world.plains(&[0, 1]);
    world.respond_fenced(tasks[0]);
    world.manage_task(1, Function::AbortTask, 9, 99, Itt(8), CmdSn(8));
    let (id, _) = world.function().unwrap();
    world.respond(tasks[1], GOOD, 0);
    world.function_done(id);
    assert_eq!(world.pull(1), []);
    assert_eq!(world.answered(0), [7]);
    world.acknowledge(0);
    assert_eq!(function_outcome(&world.pull_only(1)), Outcome::FunctionComplete);
}

#[test]
fn a_function_over_many_tasks_aborts_what_a_fence_holds_up() {
    let mut world = World::with_connections(2);
    let tasks = world.plains(&[0, 1]);
    world.respond_fenced(tasks[0]);
    world.respond(tasks[1], GOOD, 0);
    world.manage(1, Function::LogicalUnitReset, 9, 99);
    let (id, _) = world.function().unwrap();
    world.function_done(id);
    assert_eq!(world.answered(0), []);
    assert_eq!(function_outcome(&world.pull_one(1, u32::MAX).unwrap()), Outcome::FunctionComplete);
    world.acknowledge(1);
    assert_eq!(world.session.counters().tasks, 0);
    world.plain(0, 9);
    assert_eq!(world.executed().len(), 1);
}

/// Of a function, or a unit attention.
fn fence_somehow(world: &mut World, by_function: bool, cmd_sn: u32) {
    if by_function {
        world.manage(1, Function::AbortTaskSet, cmd_sn, 99);
        let (id, _) = world.function().unwrap();
        world.function_done(id);
    } else {
        world.plain(1, cmd_sn);
        let task = world.task();
        world.respond_fenced(task);
    }
}

fn is_fenced_answer((pdu, _): &Received) -> bool {
    matches!(pdu, TargetPdu::TaskManagementResponse(pdu) if pdu.itt == Itt(99))
        || matches!(pdu, TargetPdu::ScsiResponse(pdu) if pdu.itt == Itt(8))
}

#[test]
fn a_status_whose_connection_is_gone_is_waited_for_until_another_has_brought_it() {
    for by_function in [true, false] {
        let mut world = World::of_level(2, 2);
        world.acknowledges = false;
        let tasks = world.plains(&[0]);
        world.respond(tasks[0], GOOD, 0);
        assert_eq!(world.answered(0), [7]);
        world.lose(0, LaneLoss::Broken);
        world.pull(1);
        fence_somehow(&mut world, by_function, 8);
        assert!(!world.pull(1).iter().any(is_fenced_answer));
        world.acknowledges = true;
        world.remove(1, 0);
        world.send_reassign(1, 7, 0);
        let brought = |(pdu, _): &Received| matches!(pdu, TargetPdu::ScsiResponse(pdu) if pdu.itt == Itt(7));
        let sent = world.pull(1);
        assert!(sent.iter().any(brought) && !sent.iter().any(is_fenced_answer));
        world.acknowledge(1);
        assert!(is_fenced_answer(&world.pull_only(1)));
    }
}

#[test]
fn a_status_that_nobody_fetches_is_waited_for_no_longer_than_it_is_kept() {
    for by_function in [true, false] {
        let mut world = World::of_level(2, 2);
        world.acknowledges = false;
        let tasks = world.plains(&[0]);
        world.respond(tasks[0], GOOD, 0);
        assert_eq!(world.answered(0), [7]);
        world.lose(0, LaneLoss::Broken);
        world.acknowledges = true;
        world.pull(1);
        fence_somehow(&mut world, by_function, 8);
        world.acknowledge(1);
        assert!(!world.pull(1).iter().any(is_fenced_answer));
        // Time2Wait and Time2Retain; the initiator shows that it lives.
        for _ in 0..3 {
            world.pass(8);
            let pings = world.pull(1);
            for ping in pings.iter().filter(|(pdu, _)| matches!(pdu, TargetPdu::NopIn(_))) {
                world.nop(1, Itt::NONE, nop_in(ping).ttt, 8, true, &[]);
            }
            if pings.iter().any(is_fenced_answer) {
                return;
            }
        }
        assert!(world.pull(1).iter().any(is_fenced_answer));
    }
}

#[test]
fn a_fenced_response_whose_connection_breaks_travels_on_another_before_the_rest() {
    let mut world = World::of_level(2, 2);
    world.acknowledges = false;
    let tasks = world.plains(&[0, 1]);
    world.respond_fenced(tasks[0]);
    world.respond(tasks[1], GOOD, 0);
    assert_eq!(world.answered(0), [7]);
    world.acknowledges = true;
    world.lose(0, LaneLoss::Broken);
    world.remove(1, 0);
    assert_eq!(world.answered(1), []);
    assert_eq!(world.reassign(1, 7, 0), Outcome::FunctionComplete);
    assert_eq!(world.answered(1), [7]);
    world.acknowledge(1);
    assert_eq!(world.answered(1), [8]);
}

#[test]
fn an_abort_of_a_task_whose_connection_is_gone_brings_its_status_and_then_its_answer() {
    let mut world = World::of_level(2, 2);
    world.acknowledges = false;
    let tasks = world.plains(&[0]);
    world.respond(tasks[0], CHECK_CONDITION, 0);
    let (_, sense) = world.pull_only(0);
    world.acknowledges = true;
    world.lose(0, LaneLoss::Broken);
    world.remove(1, 0);
    world.manage_task(1, Function::AbortTask, 8, 99, Itt(7), CmdSn(7));
    let sent = world.pull(1);
    assert_eq!((response(&sent[0]).itt, &sent[0].1), (Itt(7), &sense));
    assert_eq!(function_outcome(&sent[1]), Outcome::FunctionComplete);
    world.nop(1, Itt::NONE, Ttt::NONE, 8, true, &[]);
    assert_eq!(world.session.counters().tasks, 0);
    assert_eq!(world.reassign(1, 7, 0), Outcome::TaskDoesNotExist);
}
