//! Task management: single tasks and many, over all connections, with nothing of them heard afterwards.

use crate::world::*;
use pdu::TaskManagementFunction as Function;
use pdu::TaskManagementOutcome as Outcome;
use pdu::{CmdSn, DataOut, InitiatorPdu, Itt, Lun, ScsiCommand, Ttt};
use ropewalk_session::target::{Event, LogicalUnitFunction};

fn abort(world: &mut World, lane: usize, cmd_sn: u32, task: u32) {
    world.manage_task(lane, Function::AbortTask, cmd_sn, 1000 + task, Itt(task), CmdSn(task));
}

#[test]
fn an_aborted_task_is_never_answered() {
    let mut world = World::with_connections(1);
    world.plain(0, 7);
    let task = world.task();
    abort(&mut world, 0, 8, 7);
    let events = world.events();
    assert_eq!(events[0], Event::Aborted { task });
    let Event::TaskManagement(request) = events[1] else { panic!("{events:?}") };
    assert_eq!(request.function, LogicalUnitFunction::AbortTask { task });
    world.expect_nothing_sent();
    world.function_done(request.id);
    assert_eq!(function_outcome(&world.pull_only(0)), Outcome::FunctionComplete);
    world.respond(task, GOOD, 0);
    world.expect_nothing_sent();
    assert_eq!(world.session.counters().tasks, 0);
}

#[test]
fn a_read_that_is_aborted_stops_and_gives_its_buffer_back() {
    let mut world = World::with_connections(1);
    world.read(0, 7, 4096);
    let task = world.task();
    world.data_in(task, &pattern(4096));
    world.respond(task, GOOD, 4096);
    assert!(world.pull_one(0, u32::MAX).is_some());
    abort(&mut world, 0, 8, 7);
    assert_eq!(function_outcome(&world.pull_only(0)), Outcome::FunctionComplete);
    world.expect_all_buffers_released();
}

#[test]
fn aborting_a_command_that_has_not_arrived_plugs_its_hole() {
    let mut world = World::with_connections(2);
    world.plain(1, 8);
    abort(&mut world, 1, 9, 7);
    let executed = world.executed();
    assert_eq!(executed.len(), 1);
    assert_eq!(function_outcome(&world.pull_only(1)), Outcome::FunctionComplete);
    world.plain(0, 7);
    world.expect_nothing_executed();
}

#[test]
fn aborting_a_command_that_waits_lets_those_behind_it_pass() {
    let mut world = World::with_connections(1);
    world.write(0, 8, 4096, &pattern(512), true);
    world.plain(0, 9);
    abort(&mut world, 0, 10, 8);
    assert_eq!(function_outcome(&world.pull_only(0)), Outcome::FunctionComplete);
    world.plain(0, 7);
    let tags: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    assert_eq!(tags.len(), 2);
    // Its data still arrives, and means nothing.
    world.sequence(0, 8, Ttt::NONE, 512, &pattern(3584));
    world.expect_nothing_sent();
    world.expect_all_buffers_released();
}

#[test]
fn a_task_that_was_answered_or_never_was_does_not_exist() {
    let mut world = World::with_connections(1);
    world.plain(0, 7);
    let task = world.task();
    world.respond(task, GOOD, 0);
    world.pull(0);
    abort(&mut world, 0, 8, 7);
    assert_eq!(function_outcome(&world.pull_only(0)), Outcome::TaskDoesNotExist);
    abort(&mut world, 0, 8, 4711);
    assert_eq!(function_outcome(&world.pull_only(0)), Outcome::TaskDoesNotExist);
}

#[test]
fn a_task_management_request_cannot_be_aborted() {
    let mut world = World::with_connections(1);
    world.plain(0, 7);
    world.manage(0, Function::AbortTaskSet, 8, 77);
    world.nop(0, Itt::NONE, Ttt::NONE, 8, true, &[]);
    // The function is with the driver; a second request names it.
    world.manage_task(0, Function::AbortTask, 8, 78, Itt(77), CmdSn(8));
    let refused = world.pull(0);
    let outcomes: Vec<_> = refused
        .iter()
        .filter_map(|(pdu, _)| match pdu {
            pdu::TargetPdu::TaskManagementResponse(pdu) => Some((pdu.itt, pdu.outcome)),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, [(Itt(78), Outcome::FunctionRejected)]);
}

#[test]
fn functions_beyond_this_error_recovery_level_are_refused() {
    let mut world = World::with_connections(1);
    world.manage(0, Function::TaskReassign, 7, 1);
    assert_eq!(function_outcome(&world.pull_only(0)), Outcome::ReassignmentNotSupported);
    world.manage(0, Function::ClearAca, 7, 2);
    assert_eq!(function_outcome(&world.pull_only(0)), Outcome::FunctionNotSupported);
    world.manage(0, Function::Unassigned(99), 7, 3);
    assert_eq!(function_outcome(&world.pull_only(0)), Outcome::FunctionNotSupported);
}

#[test]
fn a_function_over_many_tasks_waits_for_the_commands_before_it() {
    let mut world = World::with_connections(2);
    world.plain(0, 7);
    world.manage(1, Function::AbortTaskSet, 9, 77);
    assert_eq!(world.function(), None);
    world.plain(0, 8);
    assert_eq!(world.function().unwrap().1, LogicalUnitFunction::AbortTaskSet { lun: UNIT });
    assert_eq!(world.session.counters().commands, 2);
}

#[test]
fn a_reset_of_the_target_waits_for_nothing_that_has_not_arrived() {
    let mut world = World::with_connections(2);
    world.plain(0, 8);
    world.manage(1, Function::TargetWarmReset, 9, 77);
    let (id, reset) = world.function().unwrap();
    assert_eq!(reset, LogicalUnitFunction::TargetWarmReset);
    world.function_done(id);
    world.plain(0, 7);
    world.plain(0, 9);
    assert_eq!(world.session.counters().commands, 0);
    assert_eq!(function_outcome(&world.pull(1)[0]), Outcome::FunctionComplete);
    world.acknowledge(1);
    assert_eq!(world.executed().len(), 1);
}

#[test]
fn data_that_was_asked_for_is_drained_before_the_driver_aborts() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 4096, &[], false);
    let task = world.task();
    world.solicit(task, 4096);
    let request = r2t(&world.pull_only(0));
    world.manage(0, Function::LogicalUnitReset, 8, 77);
    assert_eq!(world.events(), [Event::Aborted { task }]);
    world.sequence(0, 7, request.ttt, 0, &pattern(4096));
    assert!(world.function().is_some());
    world.respond(task, GOOD, 0);
    world.expect_all_buffers_released();
    world.expect_nothing_sent();
}

#[test]
fn an_initiator_that_stops_sending_does_not_hold_up_its_own_reset() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 4096, &[], false);
    let task = world.task();
    world.solicit(task, 4096);
    let request = r2t(&world.pull_only(0));
    world.manage(0, Function::LogicalUnitReset, 8, 77);
    assert_eq!(world.function(), None);
    world.wait();
    let (id, _) = world.function().unwrap();
    world.respond(task, GOOD, 0);
    world.function_done(id);
    assert_eq!(function_outcome(&world.pull_only(0)), Outcome::FunctionComplete);
    // What it sends after all is forgotten.
    world.sequence(0, 7, request.ttt, 0, &pattern(4096));
    world.expect_nothing_sent();
}

#[test]
fn an_r2t_that_was_not_sent_yet_is_withdrawn() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 4096, &[], false);
    let task = world.task();
    world.solicit(task, 4096);
    world.manage(0, Function::ClearTaskSet, 8, 77);
    assert!(world.function().is_some());
    world.expect_nothing_sent();
}

#[test]
fn other_units_and_later_commands_are_spared() {
    let mut world = World::with_connections(1);
    let other = ScsiCommand { lun: Lun(2 << 48), ..world.command(0, 7) };
    world.send(0, &InitiatorPdu::ScsiCommand(other), &[]);
    world.plain(0, 8);
    world.plain(0, 9);
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    world.manage(0, Function::AbortTaskSet, 9, 77);
    let aborted: Vec<_> = world
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Aborted { task } => Some(task),
            _ => None,
        })
        .collect();
    assert_eq!(aborted, [tasks[1]]);
}

#[test]
fn commands_after_a_function_wait_for_it() {
    let mut world = World::with_connections(1);
    world.manage(0, Function::LogicalUnitReset, 7, 77);
    let (id, _) = world.function().unwrap();
    world.plain(0, 7);
    world.immediate(0, 8, 99);
    world.expect_nothing_executed();
    world.function_done(id);
    assert_eq!(world.executed().len(), 2);
}

#[test]
fn the_response_waits_until_earlier_ones_have_arrived_on_every_connection() {
    let mut world = World::with_connections(2);
    world.acknowledges = false;
    world.plain(0, 7);
    world.plain(1, 8);
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    world.respond(tasks[1], GOOD, 0);
    response(&world.pull_only(1));
    world.manage(0, Function::AbortTaskSet, 9, 77);
    let (id, _) = world.function().unwrap();
    world.respond(tasks[0], GOOD, 0);
    world.function_done(id);
    assert_eq!(world.pull(0), []);
    // The other connection is asked for its acknowledgement.
    let ping = nop_in(&world.pull_only(1));
    assert!(ping.ttt.is_some());
    world.acknowledges = true;
    world.nop(1, Itt::NONE, ping.ttt, 9, true, &[]);
    let answer = world.pull(0);
    assert_eq!(function_outcome(&answer[0]), Outcome::FunctionComplete);
}

#[test]
fn nothing_passes_before_the_response_has_arrived() {
    let mut world = World::with_connections(2);
    world.manage(0, Function::LogicalUnitReset, 7, 77);
    let (id, _) = world.function().unwrap();
    world.plain(1, 7);
    world.function_done(id);
    world.expect_nothing_executed();
    let pulled = world.pull(0);
    assert_eq!(function_outcome(&pulled[0]), Outcome::FunctionComplete);
    // The PDU that asks for its acknowledgement follows.
    world.expect_nothing_executed();
    world.acknowledge(0);
    assert_eq!(world.executed().len(), 1);
}

#[test]
fn a_response_of_a_spared_task_follows_that_of_the_function() {
    let mut world = World::with_connections(2);
    world.plain(0, 7);
    world.plain(0, 8);
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    // The function was sent before command 8, and arrives after it.
    world.manage(1, Function::AbortTaskSet, 8, 77);
    let (id, _) = world.function().unwrap();
    world.respond(tasks[0], GOOD, 0);
    world.function_done(id);
    world.respond(tasks[1], GOOD, 0);
    assert_eq!(world.pull(0), []);
    assert_eq!(function_outcome(&world.pull(1)[0]), Outcome::FunctionComplete);
    assert_eq!(world.pull(0), []);
    world.acknowledge(1);
    assert_eq!(response(&world.pull_only(0)).itt, Itt(8));
}

#[test]
fn functions_are_carried_out_one_after_the_other() {
    let mut world = World::with_connections(1);
    world.manage(0, Function::AbortTaskSet, 7, 77);
    world.manage(0, Function::LogicalUnitReset, 7, 78);
    let (first, _) = world.function().unwrap();
    assert_eq!(world.function(), None);
    world.function_done(first);
    let (second, reset) = world.function().unwrap();
    assert_eq!(reset, LogicalUnitFunction::LogicalUnitReset { lun: UNIT });
    world.function_done(second);
    assert_eq!(world.pull(0).len(), 2);
}

#[test]
fn a_function_from_beyond_the_window_is_rejected() {
    let mut world = World::with_connections(1);
    world.manage(0, Function::LogicalUnitReset, 7 + 100, 77);
    assert_eq!(function_outcome(&world.pull_only(0)), Outcome::FunctionRejected);
}

#[test]
fn a_task_that_another_session_aborted_takes_its_data_and_stays_silent() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 2048, &pattern(512), true);
    let task = world.task();
    world.session.abort(world.now, task);
    assert_eq!(world.events(), [Event::Aborted { task }]);
    world.respond(task, GOOD, 0);
    let rest = DataOut { final_: true, ..world.data_out(0, 7, Ttt::NONE, 0, 512, 1536) };
    world.send(0, &InitiatorPdu::DataOut(rest), &pattern(1536));
    world.expect_nothing_sent();
    world.expect_all_buffers_released();
    assert_eq!(world.session.counters().tasks, 0);
}

#[test]
fn a_function_that_is_asked_for_again_while_it_is_carried_out_is_carried_out_once() {
    let mut world = World::with_connections(2);
    world.manage(0, Function::LogicalUnitReset, 7, 77);
    let (id, _) = world.function().unwrap();
    world.manage(1, Function::LogicalUnitReset, 7, 77);
    assert_eq!(world.function(), None);
    world.function_done(id);
    let answer = world.pull_one(1, u32::MAX).unwrap();
    assert_eq!(function_outcome(&answer), Outcome::FunctionComplete);
    world.acknowledge(1);
    assert_eq!(world.function(), None);
}
