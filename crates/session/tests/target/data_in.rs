//! A read's data is cut to segments and bursts, and carries its status where it may.

use crate::world::*;
use pdu::{Itt, Residual, TargetPdu};
use ropewalk_session::seam::Payload;
use ropewalk_session::target::Response;

#[test]
fn data_is_cut_to_the_lanes_segments_and_ends_every_burst_with_f() {
    let mut world = World::with_connections(1);
    world.read(0, 7, 10_000);
    let task = world.task();
    world.data_in(task, &pattern(10_000));
    world.respond(task, GOOD, 10_000);
    let pulled = world.pull(0);
    let mut data = Vec::new();
    for (number, received) in pulled.iter().enumerate() {
        let pdu = data_in(received);
        assert_eq!(pdu.data_sn.0 as usize, number);
        assert_eq!(pdu.buffer_offset as usize, data.len());
        assert!(received.1.len() <= 1024);
        data.extend_from_slice(&received.1);
        assert_eq!(pdu.final_, data.len() == 8192 || data.len() == 10_000);
        assert_eq!(pdu.status.is_some(), data.len() == 10_000);
    }
    assert_eq!(data, pattern(10_000));
    world.expect_all_buffers_released();
}

#[test]
fn a_good_status_travels_with_the_last_data() {
    let mut world = World::with_connections(1);
    world.read(0, 7, 512);
    let task = world.task();
    world.data_in(task, &pattern(100));
    world.respond(task, GOOD, 100);
    let status = data_in(&world.pull_only(0)).status.unwrap();
    assert_eq!((status.status, status.residual), (GOOD, Residual::Underflow(412)));
}

#[test]
fn a_bad_status_travels_alone_with_its_sense_data() {
    let mut world = World::with_connections(1);
    world.read(0, 7, 512);
    let task = world.task();
    world.data_in(task, &pattern(100));
    let bad = Response { status: CHECK_CONDITION, sense: vec![0x70, 0, 3], wanted_bytes: 100 };
    world.session.respond(world.now, task, bad);
    let pulled = world.pull(0);
    assert!(data_in(&pulled[0]).status.is_none());
    let answer = response(&pulled[1]);
    assert_eq!((answer.status, answer.exp_data_sn.0), (CHECK_CONDITION, 1));
    assert_eq!(pulled[1].1, [0, 3, 0x70, 0, 3]);
}

#[test]
fn data_may_leave_before_the_status_is_known() {
    let mut world = World::with_connections(1);
    world.read(0, 7, 2048);
    let task = world.task();
    world.data_in(task, &pattern(1024));
    assert!(data_in(&world.pull_only(0)).final_);
    world.data_in(task, &pattern(1024));
    assert_eq!(data_in(&world.pull_only(0)).buffer_offset, 1024);
    world.respond(task, GOOD, 2048);
    assert_eq!(response(&world.pull_only(0)).exp_data_sn.0, 2);
}

#[test]
fn what_goes_beyond_the_announced_length_is_left_out_and_counted() {
    let mut world = World::with_connections(1);
    world.read(0, 7, 100);
    let task = world.task();
    world.session.data_in(world.now, task, Payload::Inline(pattern(90)));
    world.session.data_in(world.now, task, Payload::Inline(pattern(90)));
    world.data_in(task, &pattern(5));
    world.respond(task, GOOD, 185);
    let pulled = world.pull(0);
    assert_eq!(pulled.iter().map(|(_, data)| data.len()).sum::<usize>(), 100);
    assert_eq!(data_in(&pulled[1]).status.unwrap().residual, Residual::Overflow(85));
    world.expect_all_buffers_released();
}

#[test]
fn reads_of_usual_lengths_are_sent_one_after_the_other_however_their_pieces_come() {
    let mut world = World::with_connections(1);
    let bytes = 1 << 20;
    (0..3).for_each(|number| world.read(0, 7 + number, bytes));
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    let half = pattern(bytes as usize / 2);
    for _ in 0..2 {
        tasks.iter().for_each(|task| world.data_in(*task, &half));
    }
    tasks.iter().for_each(|task| world.respond(*task, GOOD, bytes));
    let tags: Vec<_> = world.pull(0).iter().map(|received| data_in(received).itt).collect();
    assert!(tags.is_sorted_by_key(|tag| tag.0), "{tags:?}");
    assert_eq!((tags.first(), tags.last()), (Some(&Itt(7)), Some(&Itt(9))));
}

#[test]
fn a_long_read_does_not_hold_up_a_short_one() {
    let mut world = World::with_connections(1);
    let long = 3 << 20;
    world.read(0, 7, long);
    world.read(0, 8, 512);
    world.plain(0, 9);
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    world.data_in(tasks[0], &pattern(long as usize));
    world.respond(tasks[0], GOOD, long);
    world.data_in(tasks[1], &pattern(512));
    world.respond(tasks[1], GOOD, 512);
    world.respond(tasks[2], GOOD, 0);
    let tags: Vec<_> = world
        .pull(0)
        .iter()
        .map(|(pdu, _)| match pdu {
            TargetPdu::DataIn(pdu) => pdu.itt,
            TargetPdu::ScsiResponse(pdu) => pdu.itt,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(tags[..2], [Itt(9), Itt(7)]);
    let short = tags.iter().position(|tag| *tag == Itt(8)).unwrap();
    assert!(short < tags.len() / 2, "the short read was sent as PDU {short} of {}", tags.len());
}

#[test]
fn long_reads_are_sent_one_after_the_other_and_short_ones_between_their_turns() {
    let mut world = World::with_connections(1);
    let lengths = [3 << 20, 512, 3 << 20, 512, 3 << 20, 512];
    (7..).zip(lengths).for_each(|(number, bytes)| world.read(0, number, bytes));
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    for (task, bytes) in tasks.into_iter().zip(lengths) {
        world.data_in(task, &pattern(bytes as usize));
        world.respond(task, GOOD, bytes);
    }
    let mut tags: Vec<_> = world.pull(0).iter().map(|received| data_in(received).itt.0).collect();
    tags.dedup();
    assert_eq!(tags, [7, 8, 7, 10, 7, 12, 9, 11]);
}

#[test]
fn a_long_read_whose_data_comes_late_is_sent_before_a_later_one() {
    let mut world = World::with_connections(1);
    let bytes = 3 << 20;
    (7..9).for_each(|number| world.read(0, number, bytes));
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    world.data_in(tasks[0], &pattern(1 << 20));
    assert!(!world.pull(0).is_empty());
    world.data_in(tasks[1], &pattern(bytes as usize));
    world.data_in(tasks[0], &pattern(2 << 20));
    tasks.iter().for_each(|task| world.respond(*task, GOOD, bytes));
    let tags: Vec<_> = world.pull(0).iter().map(|received| data_in(received).itt.0).collect();
    assert!(tags.is_sorted(), "{tags:?}");
}

#[test]
fn no_more_is_handed_out_than_the_budget_allows() {
    let mut world = World::with_connections(1);
    world.read(0, 7, 2048);
    let task = world.task();
    world.data_in(task, &pattern(2048));
    assert_eq!(world.pull_one(0, 0), None);
    assert_eq!(world.pull_one(0, 301).unwrap().1.len(), 300);
    assert_eq!(world.pull_one(0, 3).unwrap().1.len(), 3);
    assert_eq!(world.pull_one(0, u32::MAX).unwrap().1, pattern(2048)[303..303 + 1024]);
}

#[test]
fn a_response_without_data_tells_how_much_did_not_move() {
    let mut world = World::with_connections(1);
    world.read(0, 7, 512);
    let task = world.task();
    world.respond(task, GOOD, 0);
    assert_eq!(response(&world.pull_only(0)).residual, Residual::Underflow(512));
}

#[test]
fn a_command_of_both_directions_has_two_residuals_and_its_status_alone() {
    let mut world = World::with_connections(1);
    let command = pdu::ScsiCommand {
        read: true,
        bidirectional_read_bytes: Some(64),
        ..world.write_command(0, 7, 32, 32, false)
    };
    world.send(0, &pdu::InitiatorPdu::ScsiCommand(command), &pattern(32));
    let task = world.task();
    world.solicit(task, 32);
    assert_eq!(world.complete_data_out(), pattern(32));
    world.data_in(task, &pattern(60));
    world.respond(task, GOOD, 92);
    let pulled = world.pull(0);
    assert!(data_in(&pulled[0]).status.is_none());
    let answer = response(&pulled[1]);
    let residuals = (answer.residual, answer.bidirectional_read_residual);
    assert_eq!(residuals, (Residual::None, Residual::Underflow(4)));
}
