//! Commands of all connections are handed out in the order of their CmdSN.

use crate::world::*;
use pdu::{CmdSn, Duration, InitiatorPdu, Itt, LaneId, RejectReason, TargetPdu, Ttt};
use ropewalk_session::seam::{Destination, Digest, Endpoint};

#[test]
fn a_command_that_arrives_early_waits_for_the_one_before_it() {
    let mut world = World::with_connections(2);
    world.plain(1, 8);
    world.expect_nothing_executed();
    world.plain(0, 7);
    assert_eq!(world.executed().len(), 2);
}

#[test]
fn a_session_counts_how_long_commands_waited_for_earlier_ones() {
    let mut world = World::with_connections(2);
    world.plain(1, 8);
    world.pass(3);
    world.plain(1, 9);
    world.pass(2);
    world.plain(0, 7);
    world.immediate(0, 10, 99);
    let told: Vec<_> = world.executed().iter().map(|command| command.order_wait).collect();
    assert_eq!(told, [Some(0), Some(5), Some(2), None].map(|seconds| seconds.map(Duration::from_secs)));
    let waits = world.session.order_waits();
    assert_eq!((waits.commands(), waits.waited(), waits.max()), (3, 2, Duration::from_secs(5)));
}

#[test]
fn immediate_data_that_is_still_arriving_is_no_wait_for_earlier_commands() {
    let mut world = World::with_connections(1);
    let write = InitiatorPdu::ScsiCommand(world.write_command(0, 7, 512, 512, false)).emit();
    world.session.receive_header(world.now, LaneId(0), &write, Digest::Good, &mut world.memory).unwrap();
    world.pass(1);
    world.session.receive_data(world.now, LaneId(0), &[], Digest::Good).unwrap();
    assert_eq!((world.session.order_waits().commands(), world.session.order_waits().waited()), (1, 0));
}

#[test]
fn a_command_beyond_the_window_is_ignored_in_silence() {
    let mut world = World::with_connections(1);
    world.plain(0, 7 + 8);
    world.plain(0, 6);
    world.expect_nothing_executed();
    world.expect_nothing_sent();
    assert_eq!(world.session.counters().ignored_commands, 2);
}

#[test]
fn data_of_an_ignored_command_is_read_and_forgotten() {
    let mut world = World::with_connections(1);
    assert_eq!(world.write(0, 6, 4096, &pattern(512), true), Destination::Discard { bytes: 512 });
    world.sequence(0, 6, Ttt::NONE, 512, &pattern(3584));
    world.expect_nothing_sent();
    world.expect_all_buffers_released();
}

#[test]
fn a_command_that_comes_twice_is_executed_once() {
    let mut world = World::with_connections(2);
    world.plain(0, 8);
    world.plain(1, 8);
    world.plain(0, 7);
    assert_eq!(world.executed().len(), 2);
    world.plain(0, 7);
    world.expect_nothing_executed();
}

#[test]
fn an_immediate_command_passes_and_takes_no_number() {
    let mut world = World::with_connections(1);
    world.immediate(0, 8, 99);
    let task = world.task();
    world.respond(task, GOOD, 0);
    let answer = response(&world.pull_only(0));
    assert_eq!((answer.itt, answer.window.exp_cmd_sn), (Itt(99), CmdSn(7)));
    world.plain(0, 7);
    assert_eq!(world.executed().len(), 1);
}

#[test]
fn one_immediate_command_too_many_is_rejected_and_may_come_again() {
    let mut world = World::with_connections(1);
    world.immediate(0, 7, 50);
    world.immediate(0, 7, 51);
    let first = world.executed()[0].task;
    world.immediate(0, 7, 52);
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::ImmediateCommandReject);
    world.respond(first, GOOD, 0);
    world.pull(0);
    world.immediate(0, 7, 52);
    assert_eq!(world.executed().len(), 1);
}

#[test]
fn every_connection_may_have_one_immediate_command_however_many_others_have() {
    let mut world = World::with_connections(2);
    world.immediate(0, 7, 50);
    world.immediate(0, 7, 51);
    world.immediate(1, 7, 52);
    assert_eq!(world.executed().len(), 3);
}

#[test]
fn the_window_moves_when_a_command_is_answered_not_when_it_is_handed_out() {
    let mut world = World::with_connections(1);
    for cmd_sn in 7..15 {
        world.plain(0, cmd_sn);
    }
    let executed = world.executed();
    assert_eq!(executed.len(), 8);
    world.plain(0, 15);
    world.expect_nothing_executed();
    world.respond(executed[3].task, GOOD, 0);
    let answer = response(&world.pull_only(0));
    assert_eq!((answer.window.exp_cmd_sn, answer.window.max_cmd_sn), (CmdSn(15), CmdSn(15)));
    world.plain(0, 15);
    assert_eq!(world.executed().len(), 1);
}

#[test]
fn a_window_that_opens_without_a_response_is_announced() {
    let mut world = World::with_connections(2);
    for cmd_sn in 7..15 {
        world.plain(0, cmd_sn);
    }
    let executed = world.executed();
    world.nop(1, Itt(1), Ttt::NONE, 15, true, &[]);
    assert_eq!(nop_in(&world.pull_only(1)).window.max_cmd_sn, CmdSn(14));
    world.session.abort(world.now, executed[0].task);
    world.expect_nothing_sent();
    world.respond(executed[0].task, GOOD, 0);
    let news = nop_in(&world.pull_only(0));
    assert_eq!((news.itt, news.ttt, news.window.max_cmd_sn), (Itt::NONE, Ttt::NONE, CmdSn(15)));
}

/// "A command sequence gap must be assumed" (RFC 7143 §7.3).
#[test]
fn a_tag_that_is_in_use_is_refused_to_another_command_whose_number_is_still_to_come() {
    let mut world = World::with_connections(1);
    world.plain(0, 7);
    let command = pdu::ScsiCommand { itt: Itt(7), ..world.command(0, 8) };
    world.send(0, &InitiatorPdu::ScsiCommand(command), &[]);
    let reject = world.pull_only(0);
    assert_eq!(reject_reason(&reject), RejectReason::TaskInProgress);
    assert_eq!(reject.0.window().exp_cmd_sn, CmdSn(8));
    world.plain(0, 9);
    assert_eq!(world.executed().len(), 1);
    world.nop(0, Itt(70), Ttt::NONE, 8, false, &[]);
    assert_eq!(world.executed().len(), 1);
}

#[test]
fn a_numbered_ping_is_answered_in_its_turn() {
    let mut world = World::with_connections(1);
    world.nop(0, Itt(1), Ttt::NONE, 8, false, b"late");
    world.expect_nothing_sent();
    world.plain(0, 7);
    let (pdu, data) = world.pull_only(0);
    assert!(matches!(pdu, TargetPdu::NopIn(nop) if nop.itt == Itt(1) && nop.window.exp_cmd_sn == CmdSn(9)));
    assert_eq!(data, b"late");
}
