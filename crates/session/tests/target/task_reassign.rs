//! Tasks whose connection is gone go on at another one (error recovery level 2).

use crate::world::*;
use pdu::{
    CmdSn, DataSn, Itt, RejectReason, SnackKind, TargetPdu, TaskManagementFunction, TaskManagementOutcome,
    Ttt,
};
use ropewalk_session::seam::LaneLoss;
use ropewalk_session::target::Event;

const DONE: TaskManagementOutcome = TaskManagementOutcome::FunctionComplete;

/// Lane 0 breaks and is logged out on lane 1.
fn lose_and_remove(world: &mut World) {
    world.lose(0, LaneLoss::Broken);
    world.remove(1, 0);
}

/// Task 7's status has left on lane 0, with this sense data, and was lost with it. Nothing is acknowledged.
fn with_lost_status(status: u8) -> (World, Vec<u8>) {
    let mut world = World::of_level(2, 2);
    world.acknowledges = false;
    world.plain(0, 7);
    let task = world.task();
    world.respond(task, status, 0);
    let sent = world.pull_only(0);
    assert_eq!(response(&sent).itt, Itt(7));
    lose_and_remove(&mut world);
    (world, sent.1)
}

#[test]
fn a_command_that_executes_goes_on_and_is_answered_elsewhere() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 7);
    let task = world.task();
    lose_and_remove(&mut world);
    assert_eq!(world.reassign(1, 7, 0), DONE);
    assert_eq!(world.pull(1), []);
    world.respond(task, GOOD, 0);
    let end = response(&world.pull_only(1));
    assert_eq!((end.itt, end.status), (Itt(7), GOOD));
    assert_eq!(world.events(), []);
}

#[test]
fn a_status_that_was_lost_with_its_connection_is_sent_again_under_a_new_number() {
    let (mut world, sense) = with_lost_status(CHECK_CONDITION);
    assert_eq!(world.reassign(1, 7, 0), DONE);
    let (end, again) = world.pull_only(1);
    assert!(matches!(end, TargetPdu::ScsiResponse(pdu) if pdu.status == CHECK_CONDITION));
    assert_eq!(again, sense);
    world.acknowledges = true;
    world.acknowledge(1);
    assert_eq!(world.session.counters().tasks, 0);
}

#[test]
fn a_status_that_became_ready_without_a_connection_waits_for_one() {
    let mut world = World::of_level(2, 2);
    world.read(0, 7, 2000);
    let task = world.task();
    lose_and_remove(&mut world);
    world.give(task, 0, 2000);
    world.respond(task, GOOD, 2000);
    assert_eq!(world.pull(1), []);
    assert_eq!(world.reassign(1, 7, 0), DONE);
    let sent = world.pull(1);
    assert_eq!(joined(&sent), pattern(2000));
    assert_eq!(response(&sent[2]).exp_data_sn, DataSn(2));
}

#[test]
fn a_task_whose_status_was_acknowledged_is_no_more() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 7);
    let task = world.task();
    world.respond(task, GOOD, 0);
    world.pull_only(0);
    world.acknowledge(0);
    lose_and_remove(&mut world);
    assert_eq!(world.reassign(1, 7, 0), TaskManagementOutcome::TaskDoesNotExist);
}

#[test]
fn data_is_sent_again_from_where_the_initiator_has_it() {
    for (exp_data_sn, first) in [(0, 0), (2, 2), (4, 4), (5, 0), (u32::MAX, 0)] {
        let mut world = World::of_level(2, 2);
        world.read(0, 7, 4000);
        let task = world.task();
        world.give(task, 0, 4000);
        world.pull(0);
        lose_and_remove(&mut world);
        world.respond(task, GOOD, 4000);
        assert_eq!(world.reassign(1, 7, exp_data_sn), DONE);
        let sent = world.pull(1);
        let (end, data) = sent.split_last().unwrap();
        assert_eq!(joined(data), pattern(4000).split_off((1024 * first as usize).min(4000)));
        let numbers: Vec<u32> = data.iter().map(|pdu| data_in(pdu).data_sn.0).collect();
        assert_eq!(numbers, (first..4).collect::<Vec<_>>(), "{exp_data_sn}");
        assert_eq!(response(end).exp_data_sn, DataSn(4));
    }
}

#[test]
fn data_is_cut_to_the_lengths_of_the_new_connection() {
    let mut world = World::of_level(2, 2);
    world.read(0, 7, 4000);
    let task = world.task();
    world.give(task, 0, 1500);
    world.give(task, 1500, 2500);
    world.pull(0);
    world.respond(task, GOOD, 4000);
    world.lose(0, LaneLoss::Broken);
    let lane = world.join(0, |connection| connection.send_segment_bytes_max = 512);
    assert_eq!(world.reassign(lane, 7, 1), DONE);
    let sent = world.pull(lane);
    let (end, data) = sent.split_last().unwrap();
    assert_eq!(joined(data), pattern(4000)[1024..]);
    assert!(data.iter().all(|(_, data)| data.len() <= 512));
    assert_eq!(data_in(&data[0]).data_sn, DataSn(1));
    assert_eq!(response(end).exp_data_sn.0 as usize, 1 + data.len());
}

#[test]
fn a_read_goes_on_with_what_the_driver_gives_later() {
    let mut world = World::of_level(2, 2);
    world.read(0, 7, 4000);
    let task = world.task();
    world.give(task, 0, 2000);
    world.pull_one(0, 1024).unwrap();
    lose_and_remove(&mut world);
    assert_eq!(world.reassign(1, 7, 1), DONE);
    let mut data = joined(&world.pull(1));
    world.give(task, 2000, 2000);
    world.respond(task, GOOD, 4000);
    data.extend(joined(&world.pull(1)));
    assert_eq!(data, pattern(4000)[1024..]);
    world.acknowledge(1);
    world.expect_all_buffers_released();
}

#[test]
fn missing_data_of_a_write_is_asked_for_on_the_new_connection() {
    let data = pattern(8192);
    let mut world = World::of_level(2, 2);
    world.write(0, 7, 8192, &data[..512], true);
    let task = world.task();
    let pdus = world.sequence_pdus(0, 7, Ttt::NONE, 512, &data[512..4096]);
    world.send(0, &pdus[0].0, &pdus[0].1);
    world.solicit(task, 8192);
    let old = r2t(&world.pull_only(0));
    lose_and_remove(&mut world);
    assert_eq!(world.pull(1), []);
    assert_eq!(world.reassign(1, 7, 0), DONE);
    let mut asked = Vec::new();
    while let Some(request) = world.pull_one(1, u32::MAX) {
        let request = r2t(&request);
        assert_ne!(request.ttt, old.ttt);
        asked.push((request.r2t_sn.0, request.buffer_offset, request.desired_bytes));
        let range = request.buffer_offset as usize..(request.buffer_offset + request.desired_bytes) as usize;
        world.sequence(1, 7, request.ttt, request.buffer_offset, &data[range]);
    }
    assert_eq!(asked, [(0, 2560, 5632)]);
    assert_eq!(world.complete_data_out(), data);
    world.respond(task, GOOD, 8192);
    assert_eq!(response(&world.pull_only(1)).status, GOOD);
}

#[test]
fn r2ts_are_numbered_on_from_what_the_initiator_has() {
    let mut world = World::of_level(2, 2);
    world.write(0, 7, 16384, &[], false);
    let task = world.task();
    world.solicit(task, 16384);
    let first = r2t(&world.pull_only(0));
    world.sequence(0, 7, first.ttt, 0, &pattern(8192));
    assert_eq!(r2t(&world.pull_only(0)).r2t_sn.0, 1);
    lose_and_remove(&mut world);
    assert_eq!(world.reassign(1, 7, 2), DONE);
    let again = r2t(&world.pull_only(1));
    assert_eq!((again.r2t_sn.0, again.buffer_offset), (2, 8192));
    world.snack(1, SnackKind::DataOrR2t { itt: Itt(7), begin: 1, count: 1 });
    assert_eq!(reject_reason(&world.pull_only(1)), RejectReason::ProtocolError);
}

#[test]
fn a_task_still_belongs_to_its_connection_until_that_is_logged_out() {
    let mut world = World::of_level(2, 3);
    world.plain(0, 7);
    let task = world.task();
    assert_eq!(world.reassign(1, 7, 0), TaskManagementOutcome::TaskStillAllegiant);
    world.lose(0, LaneLoss::Broken);
    world.pull_only(1);
    assert_eq!(world.reassign(1, 7, 0), TaskManagementOutcome::TaskStillAllegiant);
    world.remove(1, 0);
    assert_eq!(world.reassign(2, 7, 0), DONE);
    assert_eq!(world.reassign(1, 7, 0), TaskManagementOutcome::TaskStillAllegiant);
    world.respond(task, GOOD, 0);
    assert_eq!(response(&world.pull_only(2)).itt, Itt(7));
}

#[test]
fn an_answer_that_was_lost_is_given_again() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 7);
    let task = world.task();
    lose_and_remove(&mut world);
    assert_eq!(world.reassign(1, 7, 0), DONE);
    assert_eq!(world.reassign(1, 7, 0), DONE);
    world.respond(task, GOOD, 0);
    assert_eq!(response(&world.pull_only(1)).itt, Itt(7));
}

#[test]
fn only_scsi_tasks_move_and_only_by_an_immediate_request() {
    let mut world = World::of_level(2, 2);
    assert_eq!(world.reassign(1, 99, 0), TaskManagementOutcome::TaskDoesNotExist);
    world.manage(0, TaskManagementFunction::LogicalUnitReset, 7, 50);
    assert_eq!(world.reassign(1, 50, 0), TaskManagementOutcome::FunctionRejected);
    let numbered = pdu::TaskManagementRequest {
        function: TaskManagementFunction::TaskReassign,
        immediate: false,
        lun: pdu::Lun(0),
        itt: Itt(60),
        referenced_task: Itt(7),
        cmd_sn: CmdSn(7),
        exp_stat_sn: FIRST_STAT_SN,
        ref_cmd_sn: CmdSn(0),
        exp_data_sn: DataSn(0),
    };
    let mut world = World::of_level(2, 1);
    world.send(0, &pdu::InitiatorPdu::TaskManagementRequest(numbered), &[]);
    assert_eq!(function_outcome(&world.pull_only(0)), TaskManagementOutcome::FunctionRejected);
    let mut world = World::of_level(1, 1);
    assert_eq!(world.reassign(0, 7, 0), TaskManagementOutcome::ReassignmentNotSupported);
}

#[test]
fn nothing_of_a_task_is_sent_before_the_answer_that_moves_it() {
    let mut world = World::of_level(2, 2);
    world.write(0, 7, 8192, &[], false);
    world.read(0, 8, 2000);
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    lose_and_remove(&mut world);
    world.send_reassign(1, 7, 0);
    world.send_reassign(1, 8, 0);
    world.solicit(tasks[0], 8192);
    world.give(tasks[1], 0, 2000);
    world.respond(tasks[1], GOOD, 2000);
    let kinds: Vec<_> = world.pull(1).into_iter().map(|(pdu, _)| pdu).collect();
    let position = |wanted: &dyn Fn(&TargetPdu) -> bool| kinds.iter().position(wanted).unwrap();
    let answered =
        |itt| position(&|pdu| matches!(pdu, TargetPdu::TaskManagementResponse(pdu) if pdu.itt == Itt(itt)));
    let request = position(&|pdu| matches!(pdu, TargetPdu::R2t(_)));
    let data = position(&|pdu| matches!(pdu, TargetPdu::DataIn(_)));
    assert!(answered(0x1007) < request, "{kinds:?}");
    assert!(answered(0x1008) < data, "{kinds:?}");
}

#[test]
fn a_task_survives_one_connection_after_another() {
    let data = pattern(8192);
    let mut world = World::of_level(2, 1);
    world.write(0, 7, 8192, &[], false);
    let task = world.task();
    world.solicit(task, 8192);
    let mut lane = 0;
    for received in 0..4 {
        let sent = world.pull(lane);
        let request =
            sent.iter().find_map(|(pdu, _)| if let TargetPdu::R2t(pdu) = pdu { Some(*pdu) } else { None });
        let request = request.unwrap();
        assert_eq!(request.buffer_offset, 2048 * received);
        let rest = &data[request.buffer_offset as usize..];
        let pdus = world.sequence_pdus(lane, 7, request.ttt, request.buffer_offset, rest);
        world.send(lane, &pdus[0].0, &pdus[0].1);
        if received == 3 {
            break;
        }
        world.lose(lane, LaneLoss::Broken);
        lane = world.join(0, |_| {});
        world.send_reassign(lane, 7, 0);
    }
    assert_eq!(world.complete_data_out(), data);
    world.respond(task, GOOD, 8192);
    assert_eq!(response(&world.pull_only(lane)).status, GOOD);
    world.acknowledge(lane);
    world.expect_all_buffers_released();
}

#[test]
fn an_answer_that_is_lost_with_its_connection_moves_nothing() {
    let mut world = World::of_level(2, 3);
    world.plain(0, 7);
    let task = world.task();
    lose_and_remove(&mut world);
    world.send_reassign(1, 7, 0);
    world.lose(1, LaneLoss::Broken);
    world.remove(2, 1);
    assert_eq!(world.reassign(2, 7, 0), DONE);
    world.respond(task, GOOD, 0);
    assert_eq!(response(&world.pull_only(2)).itt, Itt(7));
}

#[test]
fn commands_that_had_not_been_acknowledged_are_sent_again_on_another_connection() {
    let mut world = World::of_level(2, 2);
    world.write(0, 8, 512, &pattern(512), false);
    lose_and_remove(&mut world);
    world.expect_all_buffers_released();
    assert_eq!(world.reassign(1, 8, 0), TaskManagementOutcome::TaskDoesNotExist);
    world.plain(1, 7);
    world.write(1, 8, 512, &pattern(512), false);
    assert_eq!(world.executed().len(), 2);
}

#[test]
fn data_that_was_given_up_fails_its_task_and_no_other() {
    let mut settings = Settings::of_level(2);
    settings.limits.retained_bytes_max = 2048;
    let mut world = World::with_settings(2, settings);
    world.read(0, 7, 8192);
    let task = world.task();
    for part in 0..8 {
        world.give(task, part << 10, 1 << 10);
    }
    world.respond(task, GOOD, 8192);
    world.pull(0);
    lose_and_remove(&mut world);
    assert_eq!(world.reassign(1, 7, 1), DONE);
    let end = response(&world.pull_only(1));
    assert_eq!(end.status, CHECK_CONDITION);
    world.acknowledge(1);
    world.expect_all_buffers_released();
}

/// A session that keeps 4 KiB, with two reads on these lanes; `meanwhile` is between them.
fn two_reads(lanes: [usize; 2], meanwhile: impl Fn(&mut World)) -> World {
    let mut settings = Settings::of_level(2);
    settings.limits.retained_bytes_max = 4096;
    let mut world = World::with_settings(2, settings);
    world.acknowledges = false;
    for (lane, (cmd_sn, bytes)) in lanes.into_iter().zip([(7, 2048), (8, 4096)]) {
        world.read(lane, cmd_sn, bytes);
        let task = world.task();
        for part in 0..bytes as usize / 1024 {
            world.give(task, part << 10, 1 << 10);
        }
        world.respond(task, GOOD, bytes);
        world.pull(lane);
        meanwhile(&mut world);
    }
    world
}

#[test]
fn of_more_data_than_is_kept_that_is_given_up_which_arrived_first() {
    let mut world = two_reads([0, 0], |_| {});
    lose_and_remove(&mut world);
    assert_eq!(world.reassign(1, 7, 2), DONE, "the initiator has all of its data");
    assert_eq!(response(&world.pull_only(1)).status, GOOD);
    assert_eq!(world.reassign(1, 8, 0), DONE);
    let sent = world.pull(1);
    assert_eq!(joined(&sent), pattern(4096));
    assert_eq!(response(&sent[4]).status, GOOD);
}

#[test]
fn data_whose_connection_broke_is_kept_for_another_while_the_session_goes_on_reading() {
    let mut world = two_reads([0, 1], |world| world.lose(0, LaneLoss::Broken));
    world.remove(1, 0);
    assert_eq!(world.reassign(1, 7, 0), DONE);
    let sent = world.pull(1);
    assert_eq!(joined(&sent), pattern(2048));
    assert_eq!(response(&sent[2]).status, GOOD);
}

#[test]
fn an_orphan_can_be_aborted_on_another_connection() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 7);
    let task = world.task();
    lose_and_remove(&mut world);
    let function = TaskManagementFunction::AbortTask;
    world.manage_task(1, function, 8, 90, Itt(7), CmdSn(7));
    let events = world.events();
    assert_eq!(events[0], Event::Aborted { task });
    let [_, Event::TaskManagement(function)] = events[..] else { panic!("{events:?}") };
    world.respond(task, GOOD, 0);
    world.session.task_management_done(world.now, function.id, DONE);
    assert_eq!(function_outcome(&world.pull_only(1)), DONE);
    assert_eq!(world.reassign(1, 7, 0), TaskManagementOutcome::TaskDoesNotExist);
}

#[test]
fn a_task_that_is_aborted_before_the_answer_that_moves_it_is_silent() {
    let (mut world, _) = with_lost_status(GOOD);
    world.acknowledges = true;
    world.send_reassign(1, 7, 0);
    world.manage_task(1, TaskManagementFunction::AbortTask, 8, 90, Itt(7), CmdSn(7));
    let sent = world.pull(1);
    assert_eq!(sent.iter().map(function_outcome).collect::<Vec<_>>(), [DONE, DONE]);
    assert_eq!(world.reassign(1, 7, 0), TaskManagementOutcome::TaskDoesNotExist);
    assert_eq!(world.session.counters().tasks, 0);
}

#[test]
fn a_lost_answer_of_a_task_that_moves_is_given_again_before_a_function_over_many_is_answered() {
    let (mut world, _) = with_lost_status(GOOD);
    world.send_reassign(1, 7, 0);
    world.manage(1, TaskManagementFunction::ClearTaskSet, 8, 90);
    let (function, _) = world.function().unwrap();
    world.session.task_management_done(world.now, function, DONE);
    let before = world.pull(1);
    assert_eq!((function_outcome(&before[0]), response(&before[1]).itt), (DONE, Itt(7)));
    assert!(!before[2..].iter().any(|(pdu, _)| matches!(pdu, TargetPdu::TaskManagementResponse(_))));
    world.acknowledges = true;
    world.acknowledge(1);
    assert_eq!(function_outcome(&world.pull_only(1)), DONE);
}

#[test]
fn all_commands_of_a_window_are_reassigned_together() {
    let mut world = World::of_level(2, 2);
    (7..15).for_each(|cmd_sn| world.plain(0, cmd_sn));
    world.executed();
    lose_and_remove(&mut world);
    (7..15).for_each(|task| world.send_reassign(1, task, 0));
    let answers = world.pull(1);
    assert_eq!(answers.len(), 8);
    assert!(answers.iter().all(|answer| function_outcome(answer) == DONE), "{answers:?}");
    assert_eq!(world.session.counters().immediate_commands, 0);
}

#[test]
fn whoever_asks_for_more_reassignments_than_that_is_refused_and_keeps_the_connection() {
    let mut world = World::of_level(2, 2);
    lose_and_remove(&mut world);
    (0..100).for_each(|task| world.send_reassign(1, task, 0));
    world.nop(1, Itt(70), Ttt::NONE, 7, true, b"other immediate commands have their own room");
    let answers = world.pull(1);
    let is_reject = |pdu: &&Received| matches!(pdu.0, TargetPdu::Reject(_));
    let rejects: Vec<_> = answers.iter().filter(is_reject).map(reject_reason).collect();
    assert_eq!(rejects, [RejectReason::ImmediateCommandReject; 16]);
    assert_eq!(answers.len(), 8 + 16 + 1);
    assert_eq!(world.events(), []);
}

#[test]
fn immediate_commands_end_with_their_connection() {
    let mut world = World::of_level(2, 2);
    world.immediate(0, 7, 70);
    let task = world.task();
    world.lose(0, LaneLoss::Broken);
    assert_eq!(world.events(), [Event::Aborted { task }]);
    world.remove(1, 0);
    world.respond(task, GOOD, 0);
    assert_eq!(world.reassign(1, 70, 0), TaskManagementOutcome::TaskDoesNotExist);
    assert_eq!(world.session.counters().immediate_commands, 0);
}

#[test]
fn an_aborted_task_that_the_driver_still_has_is_no_more_when_that_is_done_with_it() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 7);
    let task = world.task();
    world.manage(1, TaskManagementFunction::LogicalUnitReset, 8, 99);
    let (reset, _) = world.function().unwrap();
    lose_and_remove(&mut world);
    world.send_reassign(1, 7, 0);
    assert_eq!(world.pull(1), []);
    let (wait, _) = world.function().unwrap();
    // The device has written what it was at.
    world.respond(task, GOOD, 0);
    for id in [wait, reset] {
        world.function_done(id);
    }
    let outcomes: Vec<_> = world.pull(1).iter().map(function_outcome).collect();
    assert_eq!(outcomes, [TaskManagementOutcome::TaskDoesNotExist, DONE]);
}

#[test]
fn data_that_the_initiator_has_missed_is_kept_while_the_session_goes_on_reading() {
    two_reads([0, 1], |world| {
        world.snack(0, SnackKind::DataOrR2t { itt: Itt(7), begin: 0, count: 0 });
        assert_eq!(joined(&world.pull(0)), pattern(2048));
    });
}
