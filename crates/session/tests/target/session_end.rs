//! How a session and its connections end: by logout, by loss, by order; always once, and with everything given back.

use crate::world::*;
use pdu::{AsyncEvent, LaneId, LogoutOutcome, LogoutReason, TargetPdu, Ttt};
use ropewalk_session::seam::LaneLoss;
use ropewalk_session::target::{AsyncMessage, Event};

fn outcome(received: &Received) -> LogoutOutcome {
    match received.0 {
        TargetPdu::LogoutResponse(pdu) => pdu.outcome,
        other => panic!("{other:?} instead of a Logout Response"),
    }
}

fn closed(lane: u32) -> Event {
    Event::CloseLane { lane: LaneId(lane), loss: LaneLoss::LoggedOut, fault: None }
}

fn broken(lane: u32) -> Event {
    Event::CloseLane { lane: LaneId(lane), loss: LaneLoss::Broken, fault: None }
}

#[test]
fn a_session_that_is_logged_out_ends_in_order() {
    let mut world = World::with_connections(2);
    world.logout(0, 7, LogoutReason::CloseSession, 0);
    assert_eq!(outcome(&world.pull_only(0)), LogoutOutcome::Closed);
    assert_eq!(world.events(), [closed(0), closed(1)]);
    world.lose(0, LaneLoss::LoggedOut);
    assert_eq!(world.events(), []);
    world.lose(1, LaneLoss::LoggedOut);
    assert_eq!(world.events(), [Event::Ended { orderly: true }]);
}

#[test]
fn a_logout_is_answered_when_the_tasks_it_terminates_have_ended() {
    let mut world = World::with_connections(1);
    world.plain(0, 7);
    let task = world.task();
    world.logout(0, 8, LogoutReason::CloseSession, 0);
    assert_eq!(world.events(), [Event::Aborted { task }]);
    world.expect_nothing_sent();
    world.respond(task, GOOD, 0);
    assert_eq!(outcome(&world.pull_only(0)), LogoutOutcome::Closed);
}

#[test]
fn who_does_not_wait_for_the_answer_to_a_logout_has_left_in_order_too() {
    let mut world = World::with_connections(2);
    world.plain(0, 7);
    let task = world.task();
    world.logout(0, 8, LogoutReason::CloseSession, 0);
    assert_eq!(world.events(), [Event::Aborted { task }]);
    world.lose(1, LaneLoss::Broken);
    assert_eq!(world.events(), []);
    world.lose(0, LaneLoss::Broken);
    assert_eq!(world.events(), []);
    world.respond(task, GOOD, 0);
    assert_eq!(world.events(), [Event::Ended { orderly: true }]);
}

#[test]
fn a_connection_that_closes_before_its_logout_is_answered_takes_no_other_with_it() {
    let mut world = World::with_connections(2);
    world.logout(1, 7, LogoutReason::CloseConnection, 1);
    world.lose(1, LaneLoss::Broken);
    assert_eq!(world.events(), []);
    world.plain(0, 8);
    let task = world.task();
    world.respond(task, GOOD, 0);
    response(&world.pull_only(0));
}

#[test]
fn one_connection_is_logged_out_while_others_go_on() {
    let mut world = World::with_connections(2);
    world.plain(0, 7);
    world.plain(1, 8);
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    world.logout(0, 9, LogoutReason::CloseConnection, 1);
    let cleared = Event::CommandsCleared { lun: UNIT };
    assert_eq!(world.events(), [Event::Aborted { task: tasks[1] }, cleared, closed(1)]);
    assert_eq!(world.pull(0), [], "the task is not at rest");
    world.respond(tasks[1], GOOD, 0);
    assert_eq!(outcome(&world.pull_only(0)), LogoutOutcome::Closed);
    world.lose(1, LaneLoss::LoggedOut);
    world.respond(tasks[0], GOOD, 0);
    response(&world.pull_only(0));
    assert_eq!(world.events(), []);
}

#[test]
fn commands_of_a_logged_out_connection_that_waited_may_be_sent_again() {
    let mut world = World::with_connections(2);
    world.write(1, 8, 4096, &pattern(512), true);
    let logout = pdu::LogoutRequest {
        reason: LogoutReason::CloseConnection,
        immediate: true,
        itt: pdu::Itt(99),
        cid: pdu::Cid(1),
        cmd_sn: pdu::CmdSn(9),
        exp_stat_sn: FIRST_STAT_SN,
    };
    world.send(0, &pdu::InitiatorPdu::LogoutRequest(logout), &[]);
    assert_eq!(outcome(&world.pull_only(0)), LogoutOutcome::Closed);
    world.expect_all_buffers_released();
    world.events();
    world.plain(0, 8);
    world.plain(0, 7);
    assert_eq!(world.executed().len(), 2);
}

#[test]
fn the_last_connection_takes_the_session_with_it() {
    let mut world = World::with_connections(1);
    world.logout(0, 7, LogoutReason::CloseConnection, 0);
    world.pull(0);
    world.lose(0, LaneLoss::LoggedOut);
    assert_eq!(world.events(), [closed(0), Event::Ended { orderly: true }]);
}

#[test]
fn a_connection_that_is_not_there_cannot_be_logged_out_and_none_can_for_recovery() {
    let mut world = World::with_connections(1);
    world.logout(0, 7, LogoutReason::CloseConnection, 5);
    assert_eq!(outcome(&world.pull_only(0)), LogoutOutcome::CidNotFound);
    world.logout(0, 8, LogoutReason::RemoveConnectionForRecovery, 0);
    assert_eq!(outcome(&world.pull_only(0)), LogoutOutcome::RecoveryNotSupported);
    assert_eq!(world.events(), []);
    world.plain(0, 9);
    assert_eq!(world.executed().len(), 1);
}

#[test]
fn nothing_is_taken_after_a_logout() {
    let mut world = World::with_connections(1);
    world.logout(0, 7, LogoutReason::CloseSession, 0);
    world.write(0, 8, 512, &pattern(512), false);
    assert_eq!(outcome(&world.pull_only(0)), LogoutOutcome::Closed);
    assert_eq!(world.session.counters().commands, 0);
}

#[test]
fn a_connection_that_breaks_ends_the_session_once_its_writes_have_ended() {
    let mut world = World::with_connections(2);
    world.write(0, 7, 2048, &pattern(512), false);
    let task = world.task();
    world.solicit(task, 2048);
    world.write(1, 9, 2048, &pattern(512), false);
    world.lose(0, LaneLoss::Broken);
    assert_eq!(world.events(), [Event::NexusLost, broken(1), Event::Aborted { task }]);
    world.lose(1, LaneLoss::Broken);
    assert_eq!(world.events(), []);
    world.respond(task, GOOD, 2048);
    assert_eq!(world.events(), [Event::Ended { orderly: false }]);
    world.expect_all_buffers_released();
}

#[test]
fn a_session_is_closed_by_order_and_takes_no_further_connection() {
    let mut world = World::with_connections(1);
    world.plain(0, 7);
    let task = world.task();
    world.session.close(world.now);
    world.session.close(world.now);
    let late = established(&Settings::default(), 3);
    world.session.add_lane(world.now, LaneId(3), &late);
    assert_eq!(world.events(), [Event::NexusLost, broken(0), Event::Aborted { task }, broken(3)]);
    world.lose(0, LaneLoss::Broken);
    world.respond(task, GOOD, 0);
    assert_eq!(world.events(), []);
    world.lose(3, LaneLoss::Broken);
    assert_eq!(world.events(), [Event::Ended { orderly: false }]);
}

#[test]
fn a_connection_lost_in_the_middle_of_a_data_segment_leaves_nothing_behind() {
    use ropewalk_session::seam::{Digest, Endpoint};
    let mut world = World::with_connections(1);
    world.write(0, 7, 2048, &pattern(512), true);
    let task = world.task();
    let header = world.data_out(0, 7, Ttt::NONE, 0, 512, 512).emit();
    world.session.receive_header(world.now, LaneId(0), &header, Digest::Good, &mut world.memory).unwrap();
    world.lose(0, LaneLoss::Broken);
    world.respond(task, GOOD, 0);
    assert!(world.events().contains(&Event::Ended { orderly: false }));
    world.expect_all_buffers_released();

    let mut world = World::with_connections(1);
    let header = world.write_command(0, 7, 2048, 512, true).emit();
    world.session.receive_header(world.now, LaneId(0), &header, Digest::Good, &mut world.memory).unwrap();
    world.lose(0, LaneLoss::Broken);
    assert_eq!(world.events(), [Event::NexusLost, Event::Ended { orderly: false }]);
    world.expect_all_buffers_released();
}

#[test]
fn initiators_are_asked_to_log_out_and_closed_if_they_do_not() {
    let mut world = World::with_connections(2);
    world.session.request_logout(world.now, 3);
    for lane in 0..2 {
        let (pdu, _) = world.pull_only(lane);
        assert!(matches!(
            pdu,
            TargetPdu::AsyncMessage(pdu) if pdu.event == AsyncEvent::LogoutRequest { seconds_max: 3 }
        ));
    }
    assert_eq!(world.events(), []);
    world.pass(3);
    assert_eq!(world.events(), [], "their logout may be on its way");
    world.wait();
    assert_eq!(world.events(), [Event::NexusLost, broken(0), broken(1)]);
}

#[test]
fn a_connection_that_joins_after_the_others_were_asked_to_log_out_is_asked_too() {
    let mut world = World::with_connections(1);
    world.session.request_logout(world.now, 9);
    world.pull_only(0);
    world.pass(4);
    let lane = world.join(1, |_| {});
    let (pdu, _) = world.pull_only(lane);
    let asked = AsyncEvent::LogoutRequest { seconds_max: 5 };
    assert!(matches!(pdu, TargetPdu::AsyncMessage(pdu) if pdu.event == asked), "{pdu:?}");
}

#[test]
fn a_message_reaches_the_initiator_with_its_sense_data() {
    let mut world = World::with_connections(2);
    let message = AsyncMessage::Scsi { lun: UNIT, sense: vec![0x72, 6] };
    world.session.async_message(world.now, &message);
    let (pdu, data) = world.pull_only(0);
    assert!(matches!(pdu, TargetPdu::AsyncMessage(pdu) if pdu.lun == UNIT && pdu.event == AsyncEvent::Scsi));
    assert_eq!(data, [0, 2, 0x72, 6]);
    world
        .session
        .async_message(world.now, &AsyncMessage::ConnectionDrop { lane: LaneId(1), wait_seconds: 9 });
    let (pdu, _) = world.pull_only(1);
    let drop = AsyncEvent::ConnectionDrop { cid: pdu::Cid(1), wait_seconds: 9, retain_seconds: 0 };
    assert!(matches!(pdu, TargetPdu::AsyncMessage(pdu) if pdu.event == drop));
}
