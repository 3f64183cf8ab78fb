//! StatSN counts responses on each connection, and only them.

use crate::world::*;
use pdu::{Itt, RejectReason, Ttt};

#[test]
fn every_connection_counts_for_itself() {
    let mut world = World::with_connections(2);
    world.plain(0, 7);
    world.plain(1, 8);
    for command in world.executed() {
        world.respond(command.task, GOOD, 0);
    }
    assert_eq!(response(&world.pull_only(0)).stat_sn, FIRST_STAT_SN);
    assert_eq!(response(&world.pull_only(1)).stat_sn, FIRST_STAT_SN);
}

#[test]
fn an_r2t_tells_the_next_number_and_does_not_take_it() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 2048, &[], false);
    let task = world.task();
    world.solicit(task, 2048);
    let request = r2t(&world.pull_only(0));
    assert_eq!(request.stat_sn, FIRST_STAT_SN);
    world.sequence(0, 7, request.ttt, 0, &pattern(2048));
    world.respond(task, GOOD, 2048);
    assert_eq!(response(&world.pull_only(0)).stat_sn, FIRST_STAT_SN);
}

#[test]
fn a_ping_of_the_target_takes_no_number_and_a_reject_does() {
    let mut world = World::with_connections(1);
    world.wait();
    assert_eq!(nop_in(&world.pull_only(0)).stat_sn, FIRST_STAT_SN);
    let unknown = pdu::Header::new([0x1e; 48]);
    let mut bhs = *unknown.bhs();
    bhs[4..8].fill(0);
    world.try_send(0, &pdu::Header::new(bhs), &[]).unwrap();
    let reject = world.pull_only(0);
    assert_eq!(reject_reason(&reject), RejectReason::CommandNotSupported);
    assert_eq!(reject.1, bhs);
    assert_eq!(world.exp_stat_sn[0], FIRST_STAT_SN.next());
}

#[test]
fn responses_wait_while_too_many_are_not_acknowledged() {
    let mut settings = Settings::default();
    settings.limits.window_commands = 4;
    settings.limits.immediate_commands_max = 1;
    let bound = 2 * (4 + 1) + 64;
    let mut world = World::with_settings(1, settings);
    world.acknowledges = false;
    let mut answered = 0;
    let ping = loop {
        world.nop(0, Itt(5), Ttt::NONE, 7, true, &[]);
        match nop_in(&world.pull_only(0)) {
            ping if ping.itt.is_none() => break ping,
            _ => answered += 1,
        }
    };
    assert_eq!(answered, bound);
    world.expect_nothing_sent();
    world.acknowledges = true;
    world.nop(0, Itt::NONE, ping.ttt, 7, true, &[]);
    assert_eq!(nop_in(&world.pull_only(0)).itt, Itt(5));
}
