//! What becomes of a session whose connections break, or are replaced (error recovery level 2, reinstatement).

use crate::world::*;
use pdu::{
    AsyncEvent, Cid, Header, InitiatorPdu, Itt, LaneId, LogoutOutcome, LogoutReason, LogoutRequest, Opcode,
    StatSn, TargetPdu, TaskManagementFunction, TaskManagementOutcome, Ttt,
};
use ropewalk_session::seam::{Destination, Digest, Endpoint, LaneLoss};
use ropewalk_session::target::Event;

const WAIT_AND_RETAIN_SECONDS: u64 = 22;

fn closed(lane: u32) -> Event {
    Event::CloseLane { lane: LaneId(lane), loss: LaneLoss::LoggedOut, fault: None }
}

#[test]
fn a_broken_connection_takes_nothing_with_it_and_is_reported_on_another() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 7);
    world.executed();
    world.lose(0, LaneLoss::Broken);
    assert_eq!(world.events(), []);
    let (pdu, _) = world.pull_only(1);
    let drop = AsyncEvent::ConnectionDrop { cid: Cid(0), wait_seconds: 2, retain_seconds: 20 };
    assert!(matches!(pdu, TargetPdu::AsyncMessage(pdu) if pdu.event == drop));
}

#[test]
fn a_connection_is_logged_out_for_recovery_on_itself() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 7);
    let task = world.task();
    let answer = world.remove(0, 0);
    assert_eq!((answer.outcome, answer.wait_seconds, answer.retain_seconds), (LogoutOutcome::Closed, 2, 20));
    assert_eq!(world.events(), [closed(0)]);
    world.respond(task, GOOD, 0);
    assert_eq!(world.pull(0), []);
    assert_eq!(world.reassign(1, 7, 0), TaskManagementOutcome::FunctionComplete);
    assert_eq!(response(&world.pull_only(1)).status, GOOD);
    world.lose(0, LaneLoss::LoggedOut);
    assert_eq!(world.events(), []);
}

#[test]
fn a_living_connection_is_logged_out_for_recovery_on_another() {
    let mut world = World::of_level(2, 2);
    world.read(0, 7, 4000);
    let task = world.task();
    world.give(task, 0, 4000);
    world.pull_one(0, 1024).unwrap();
    assert_eq!(world.remove(1, 0).outcome, LogoutOutcome::Closed);
    assert_eq!(world.pull(0), [], "its transfers are suspended");
    assert_eq!(world.events(), [closed(0)]);
    assert_eq!(world.reassign(1, 7, 1), TaskManagementOutcome::FunctionComplete);
    assert_eq!(joined(&world.pull(1)), pattern(4000)[1024..]);
}

#[test]
fn logging_out_twice_is_no_error_but_a_stranger_is() {
    let mut world = World::of_level(2, 2);
    world.lose(0, LaneLoss::Broken);
    assert_eq!(world.remove(1, 0).outcome, LogoutOutcome::Closed);
    assert_eq!(world.remove(1, 0).outcome, LogoutOutcome::Closed);
    assert_eq!(world.remove(1, 9).outcome, LogoutOutcome::CidNotFound);
    let mut world = World::of_level(1, 2);
    assert_eq!(world.remove(1, 0).outcome, LogoutOutcome::RecoveryNotSupported);
}

#[test]
fn responses_that_arrived_before_their_connection_broke_are_not_kept_for_another() {
    let mut world = World::of_level(2, 2);
    world.acknowledges = false;
    world.read(0, 7, 2000);
    world.plain(0, 8);
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    world.give(tasks[0], 0, 2000);
    world.respond(tasks[0], GOOD, 2000);
    world.pull(0);
    world.respond(tasks[1], GOOD, 0);
    world.pull(0);
    world.lose(0, LaneLoss::Broken);
    for never_sent in [StatSn(FIRST_STAT_SN.0 - 1), StatSn(FIRST_STAT_SN.0 + 3)] {
        world.remove_after(1, 0, never_sent);
        assert_eq!(world.session.counters().tasks, 2, "{never_sent:?}");
    }
    world.remove_after(1, 0, FIRST_STAT_SN.next());
    world.expect_all_buffers_released();
    assert_eq!(world.reassign(1, 7, 0), TaskManagementOutcome::TaskDoesNotExist);
    assert_eq!(world.reassign(1, 8, 0), TaskManagementOutcome::FunctionComplete);
    assert_eq!(response(&world.pull_only(1)).itt, Itt(8));
}

#[test]
fn a_login_that_takes_the_place_of_a_connection_acknowledges_what_arrived_on_it() {
    let mut world = World::of_level(2, 1);
    world.acknowledges = false;
    for cmd_sn in [7, 8] {
        world.plain(0, cmd_sn);
        let task = world.task();
        world.respond(task, GOOD, 0);
    }
    world.pull(0);
    world.lose(0, LaneLoss::Broken);
    let lane = world.join_as(0, |established| established.replaced_exp_stat_sn = FIRST_STAT_SN.next());
    assert_eq!(world.reassign(lane, 7, 0), TaskManagementOutcome::TaskDoesNotExist);
    assert_eq!(world.reassign(lane, 8, 0), TaskManagementOutcome::FunctionComplete);
}

#[test]
fn a_response_that_moves_is_not_acknowledged_by_a_number_of_the_connection_that_did_not_get_it() {
    let mut world = World::of_level(2, 3);
    world.acknowledges = false;
    world.plain(0, 7);
    world.plain(2, 8);
    for task in world.executed().iter().map(|command| command.task).collect::<Vec<_>>() {
        world.respond(task, GOOD, 0);
    }
    world.pull(0);
    world.pull(2);
    world.lose(0, LaneLoss::Broken);
    world.remove(1, 0);
    world.send_reassign(2, 7, 0);
    world.lose(2, LaneLoss::Broken);
    world.remove_after(1, 2, FIRST_STAT_SN.next());
    assert_eq!(world.reassign(1, 8, 0), TaskManagementOutcome::TaskDoesNotExist);
    assert_eq!(world.reassign(1, 7, 0), TaskManagementOutcome::FunctionComplete);
    assert_eq!(response(&world.pull_only(1)).status, GOOD);
}

#[test]
fn a_reset_does_not_wait_for_responses_that_the_logout_for_recovery_acknowledges() {
    let mut world = World::of_level(2, 2);
    world.acknowledges = false;
    world.plain(0, 7);
    let task = world.task();
    world.respond(task, GOOD, 0);
    world.pull(0);
    world.lose(0, LaneLoss::Broken);
    world.manage(1, TaskManagementFunction::LogicalUnitReset, 8, 90);
    let events = world.events();
    let [Event::TaskManagement(function)] = events[..] else { panic!("{events:?}") };
    let done = TaskManagementOutcome::FunctionComplete;
    world.session.task_management_done(world.now, function.id, done);
    let is_answer = |pdu: &Received| matches!(pdu.0, TargetPdu::TaskManagementResponse(_));
    assert!(!world.pull(1).iter().any(is_answer), "a response before it may not have arrived");
    world.acknowledges = true;
    world.remove_after(1, 0, FIRST_STAT_SN.next());
    world.acknowledge(1);
    assert_eq!(function_outcome(&world.pull_only(1)), done);
}

#[test]
fn tasks_that_nobody_takes_over_are_terminated_when_their_time_is_up() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 7);
    let task = world.task();
    world.lose(0, LaneLoss::Broken);
    for _ in 0..WAIT_AND_RETAIN_SECONDS - 1 {
        world.pass(1);
        world.acknowledge(1);
    }
    assert_eq!(world.events(), []);
    world.pass(1);
    assert_eq!(world.events(), [Event::Aborted { task }, Event::CommandsCleared { lun: UNIT }]);
    world.respond(task, GOOD, 0);
    world.pull(1);
    assert_eq!(world.reassign(1, 7, 0), TaskManagementOutcome::TaskDoesNotExist);
    assert_eq!(world.remove(1, 0).outcome, LogoutOutcome::CidNotFound);
}

#[test]
fn a_session_without_connections_waits_for_one_and_then_ends() {
    let mut world = World::of_level(2, 1);
    world.plain(0, 7);
    let task = world.task();
    world.lose(0, LaneLoss::Broken);
    assert_eq!(world.events(), []);
    world.pass(WAIT_AND_RETAIN_SECONDS);
    let events = world.events();
    assert!(events.contains(&Event::Aborted { task }) && events.contains(&Event::NexusLost), "{events:?}");
    assert!(!events.contains(&Event::Ended { orderly: false }), "the task is not at rest");
    world.respond(task, GOOD, 0);
    assert_eq!(world.events(), [Event::Ended { orderly: false }]);
}

#[test]
fn a_session_without_connections_goes_on_with_a_new_one() {
    for cid in [0, 5] {
        let mut world = World::of_level(2, 1);
        world.plain(0, 7);
        let task = world.task();
        world.lose(0, LaneLoss::Broken);
        world.pass(WAIT_AND_RETAIN_SECONDS - 1);
        let lane = world.join(cid, |_| {});
        if cid != 0 {
            assert_eq!(world.reassign(lane, 7, 0), TaskManagementOutcome::TaskStillAllegiant);
            assert_eq!(world.remove(lane, 0).outcome, LogoutOutcome::Closed);
        }
        assert_eq!(world.reassign(lane, 7, 0), TaskManagementOutcome::FunctionComplete);
        world.pass(2);
        world.respond(task, GOOD, 0);
        let sent = world.pull(lane);
        response(sent.last().unwrap());
        assert_eq!(world.events(), []);
    }
}

#[test]
fn without_time_to_retain_tasks_end_at_once() {
    let mut settings = Settings::of_level(2);
    settings.session.default_time2retain_s = 0;
    let mut world = World::with_settings(2, settings);
    world.plain(0, 7);
    let task = world.task();
    world.lose(0, LaneLoss::Broken);
    assert_eq!(world.events(), [Event::Aborted { task }, Event::CommandsCleared { lun: UNIT }]);
    world.respond(task, GOOD, 0);
    world.lose(1, LaneLoss::Broken);
    assert_eq!(world.events(), [Event::NexusLost, Event::Ended { orderly: false }]);
}

#[test]
fn a_login_of_the_same_cid_replaces_a_connection_that_seems_alive() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 7);
    let task = world.task();
    let lane = world.join(0, |_| {});
    assert_eq!(world.events(), [closed(0)]);
    world.plain(0, 8);
    world.expect_nothing_executed();
    world.lose(0, LaneLoss::LoggedOut);
    assert_eq!(world.reassign(lane, 7, 0), TaskManagementOutcome::FunctionComplete);
    world.respond(task, GOOD, 0);
    response(&world.pull_only(lane));
    assert_eq!(world.events(), []);
}

#[test]
fn below_level_2_replacing_a_connection_terminates_its_tasks_and_keeps_the_session() {
    for level in [0, 1] {
        let mut world = World::of_level(level, 2);
        world.plain(0, 7);
        world.plain(1, 8);
        let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
        let lane = world.join(0, |_| {});
        let cleared = Event::CommandsCleared { lun: UNIT };
        assert_eq!(world.events(), [Event::Aborted { task: tasks[0] }, cleared, closed(0)]);
        world.lose(0, LaneLoss::Broken);
        // What replaces the terminated command must not meet it at the device.
        world.plain(lane, 9);
        world.immediate(lane, 10, 99);
        world.expect_nothing_executed();
        world.respond(tasks[0], GOOD, 0);
        assert_eq!(world.executed().len(), 2);
        world.respond(tasks[1], GOOD, 0);
        response(&world.pull_only(1));
    }
}

#[test]
fn a_dead_connection_can_be_closed_with_its_tasks() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 7);
    let task = world.task();
    world.lose(0, LaneLoss::Broken);
    world.pull(1);
    world.logout(1, 8, LogoutReason::CloseConnection, 0);
    assert_eq!(world.events(), [Event::Aborted { task }, Event::CommandsCleared { lun: UNIT }]);
    world.respond(task, GOOD, 0);
    assert!(
        matches!(world.pull_only(1).0, TargetPdu::LogoutResponse(pdu) if pdu.outcome == LogoutOutcome::Closed)
    );
    assert_eq!(world.events(), []);
    assert_eq!(world.session.counters().departed_lanes, 0);
}

#[test]
fn a_session_is_logged_out_with_what_its_dead_connections_left() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 7);
    let task = world.task();
    world.lose(0, LaneLoss::Broken);
    world.pull(1);
    world.logout(1, 8, LogoutReason::CloseSession, 0);
    assert_eq!(world.events(), [Event::Aborted { task }]);
    world.respond(task, GOOD, 0);
    world.pull_only(1);
    assert_eq!(world.events(), [closed(1)]);
    world.lose(1, LaneLoss::LoggedOut);
    assert_eq!(world.events(), [Event::Ended { orderly: true }]);
}

#[test]
fn the_last_connection_may_log_out_while_tasks_wait_for_another() {
    let mut world = World::of_level(2, 1);
    world.plain(0, 7);
    let task = world.task();
    world.remove(0, 0);
    world.lose(0, LaneLoss::LoggedOut);
    assert_eq!(world.events(), [closed(0)]);
    let lane = world.join(0, |_| {});
    assert_eq!(world.reassign(lane, 7, 0), TaskManagementOutcome::FunctionComplete);
    world.respond(task, GOOD, 0);
    response(&world.pull_only(lane));
}

#[test]
fn dead_connections_without_end_are_not_remembered() {
    let mut world = World::of_level(2, 1);
    for _ in 0..1000 {
        let lane = world.join(9, |_| {});
        world.lose(lane, LaneLoss::Broken);
    }
    assert!(world.session.counters().departed_lanes <= 64);
    world.pull(0);
    world.plain(0, 7);
    assert_eq!(world.executed().len(), 1);
}

#[test]
fn a_closed_session_gives_up_its_orphans() {
    let mut world = World::of_level(2, 1);
    world.read(0, 7, 4000);
    let task = world.task();
    world.give(task, 0, 4000);
    world.pull(0);
    world.lose(0, LaneLoss::Broken);
    world.session.close(world.now);
    assert_eq!(world.events(), [Event::NexusLost, Event::Aborted { task }]);
    world.expect_all_buffers_released();
    world.respond(task, GOOD, 0);
    assert_eq!(world.events(), [Event::Ended { orderly: false }]);
}

#[test]
fn what_was_given_up_comes_to_rest_before_anything_new_is_done() {
    for retains in [true, false] {
        let mut settings = Settings::of_level(2);
        if !retains {
            settings.session.default_time2retain_s = 0;
        }
        let mut world = World::with_settings(2, settings);
        world.plain(0, 7);
        let task = world.task();
        world.lose(0, LaneLoss::Broken);
        if retains {
            for _ in 0..WAIT_AND_RETAIN_SECONDS {
                world.pass(1);
                world.pull(1);
                world.acknowledge(1);
            }
        }
        assert_eq!(world.events(), [Event::Aborted { task }, Event::CommandsCleared { lun: UNIT }]);
        // What takes the place of the terminated command must not meet it at the device.
        world.plain(1, 8);
        world.immediate(1, 9, 99);
        world.expect_nothing_executed();
        world.respond(task, GOOD, 0);
        assert_eq!(world.executed().len(), 2);
    }
}

#[test]
fn a_connection_that_is_logged_out_on_another_is_closed_before_its_buffers_serve_others() {
    for for_recovery in [true, false] {
        let mut world = World::of_level(2, 2);
        let pdu = world.write_command(0, 7, 2000, 1000, false);
        let header = InitiatorPdu::ScsiCommand(pdu).emit();
        let begun =
            world.session.receive_header(world.now, LaneId(0), &header, Digest::Good, &mut world.memory);
        assert!(matches!(begun, Ok(Destination::Buffer(_))));
        // Its data segment is still arriving.
        let reason = if for_recovery {
            LogoutReason::RemoveConnectionForRecovery
        } else {
            LogoutReason::CloseConnection
        };
        let pdu = LogoutRequest {
            reason,
            immediate: true,
            itt: Itt(0x2000),
            cid: Cid(0),
            cmd_sn: FIRST_CMD_SN,
            exp_stat_sn: FIRST_STAT_SN,
        };
        world.send(1, &InitiatorPdu::LogoutRequest(pdu), &[]);
        world.expect_all_buffers_released();
        assert_eq!(world.events(), [closed(0)]);
        assert!(matches!(world.pull_only(1).0, TargetPdu::LogoutResponse(_)));
        world.lose(0, LaneLoss::LoggedOut);
        assert_eq!(world.events(), []);
    }
}

#[test]
fn the_window_that_a_replacement_is_told_is_moved_by_nothing_that_its_predecessor_brought() {
    let mut world = World::of_level(2, 2);
    world.plain(0, 8);
    world.session.make_way(world.now, Cid(0));
    assert_eq!(world.events(), [closed(0)]);
    let told = world.session.counters().exp_cmd_sn;
    // The hole is filled, and what waited behind it on the dead connection is not carried out.
    world.plain(0, 7);
    world.expect_nothing_executed();
    assert_eq!(world.session.counters().exp_cmd_sn, told);
    let lane = world.join(0, |_| {});
    world.plain(lane, 7);
    world.plain(lane, 8);
    assert_eq!(world.executed().len(), 2);
}

#[test]
fn a_connection_that_breaks_the_protocol_does_not_narrow_the_window() {
    let mut world = World::of_level(2, 2);
    let window = |world: &World| {
        let counters = world.session.counters();
        counters.max_cmd_sn.distance_from(counters.exp_cmd_sn)
    };
    let whole = window(&world);
    for cmd_sn in 7..10 {
        world.nop(0, Itt(cmd_sn), Ttt::NONE, cmd_sn, false, b"returned");
    }
    assert_eq!(window(&world), whole - 3);
    let login = Header::new(raw(Opcode::LoginRequest));
    assert!(world.try_send(0, &login, &[]).is_err());
    world.lose(0, LaneLoss::Broken);
    assert_eq!(window(&world), whole);
}

#[test]
fn answers_that_nobody_fetches_are_bounded() {
    let mut settings = Settings::of_level(2);
    settings.limits.window_commands = 4096;
    settings.session.max_connections = 1;
    let mut world = World::with_settings(1, settings);
    world.acknowledges = false;
    let mut cmd_sn = FIRST_CMD_SN.0;
    for lane in 0..8 {
        for _ in 0..4000 {
            world.plain(lane, cmd_sn);
            cmd_sn += 1;
        }
        for task in world.executed().iter().map(|command| command.task).collect::<Vec<_>>() {
            world.respond(task, GOOD, 0);
        }
        world.pull(lane);
        world.lose(lane, LaneLoss::Broken);
        assert_eq!(world.join(u16::try_from(lane + 1).unwrap(), |_| {}), lane + 1);
    }
    assert!(world.session.counters().tasks <= 3 * 4096, "{}", world.session.counters().tasks);
}
