//! What an initiator has lost is sent again, exactly, until it is acknowledged (error recovery level 1).

use crate::world::*;
use pdu::{DataSn, Itt, RejectReason, SnackKind, StatSn, TargetPdu, Ttt};
use ropewalk_session::target::Event;

fn data(begin: u32, count: u32) -> SnackKind {
    SnackKind::DataOrR2t { itt: Itt(7), begin, count }
}

fn statuses(begin: u32, count: u32) -> SnackKind {
    SnackKind::Status { begin: StatSn(begin), count }
}

/// A read of 4000 bytes whose data and status have been sent, in PDUs of 1024 bytes, and are not acknowledged.
fn answered_read() -> (World, Vec<Received>) {
    let mut world = World::of_level(1, 1);
    world.acknowledges = false;
    world.read(0, 7, 4000);
    let task = world.task();
    world.give(task, 0, 1500);
    world.give(task, 1500, 2500);
    world.respond(task, GOOD, 4000);
    let sent = world.pull(0);
    assert_eq!(sent.len(), 6);
    (world, sent)
}

#[test]
fn the_data_asked_for_comes_again_exactly() {
    let (mut world, sent) = answered_read();
    for (begin, count) in [(0, 0), (0, 5), (2, 1), (3, 0), (1, 3)] {
        world.snack(0, data(begin, count));
        let begin = begin as usize;
        let end = if count == 0 { 5 } else { begin + count as usize };
        assert_eq!(timeless(&world.pull(0)), timeless(&sent[begin..end]), "{begin} {count}");
    }
}

#[test]
fn data_is_sent_again_while_more_of_it_is_on_its_way() {
    let mut world = World::of_level(1, 1);
    world.read(0, 7, 4000);
    let task = world.task();
    world.give(task, 0, 4000);
    let first = world.pull_one(0, 1024).unwrap();
    let second = world.pull_one(0, 1024).unwrap();
    world.snack(0, data(0, 1));
    assert_eq!(world.pull_one(0, 1024).unwrap(), first);
    world.snack(0, data(1, 1));
    assert_eq!(world.pull_one(0, 1024).unwrap(), second);
    assert_eq!(data_in(&world.pull_one(0, 1024).unwrap()).data_sn, DataSn(2));
}

#[test]
fn the_responses_asked_for_come_again_with_their_numbers() {
    let mut world = World::of_level(1, 1);
    world.acknowledges = false;
    world.plain(0, 7);
    let task = world.task();
    world.respond(task, CHECK_CONDITION, 0);
    world.nop(0, Itt(8), Ttt::NONE, 8, false, b"echo");
    world.text(0, 9, 9, Ttt::NONE, "X-key=1\0");
    let sent = world.pull(0);
    assert_eq!(sent.len(), 3);
    for (begin, count, wanted) in [(0, 0, 0..3), (100, 1, 0..1), (101, 0, 1..3), (102, 1, 2..3)] {
        world.snack(0, statuses(begin, count));
        assert_eq!(timeless(&world.pull(0)), timeless(&sent[wanted]), "{begin} {count}");
    }
}

#[test]
fn what_is_sent_again_tells_the_window_of_today() {
    let (mut world, sent) = answered_read();
    let then = response(&sent[5]).window;
    world.plain(0, 8);
    world.snack(0, statuses(0, 0));
    let replica = response(&world.pull_only(0));
    assert_eq!(replica.window.exp_cmd_sn, then.exp_cmd_sn.next());
}

#[test]
fn what_is_acknowledged_is_given_back_and_not_sent_again() {
    let (mut world, _) = answered_read();
    assert!(world.memory.used_bytes > 0);
    world.acknowledges = true;
    world.acknowledge(0);
    world.expect_all_buffers_released();
    assert_eq!(world.session.counters().tasks, 0);
    world.snack(0, data(0, 0));
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::ProtocolError);
    world.snack(0, statuses(100, 1));
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::ProtocolError);
}

#[test]
fn a_snack_asks_before_it_acknowledges() {
    let (mut world, sent) = answered_read();
    world.acknowledges = true;
    world.snack(0, SnackKind::DataOrR2t { itt: Itt(7), begin: 4, count: 1 });
    // Its ExpStatSN says that nothing is missing: there is nobody left to send anything to.
    assert_eq!(world.pull(0), []);
    assert_eq!(data_in(&sent[4]).data_sn, DataSn(4));
    world.expect_all_buffers_released();
}

#[test]
fn what_was_never_sent_cannot_be_sent_again() {
    for (kind, next_sn) in [
        (data(5, 1), 5),
        (data(4, 2), 5),
        (data(6, 0), 5),
        (data(u32::MAX, u32::MAX), 5),
        (SnackKind::DataOrR2t { itt: Itt(99), begin: 0, count: 0 }, 0),
        (SnackKind::ResegmentedData { itt: Itt(99), tag: 1 }, 0),
        (statuses(99, 1), 0),
        (statuses(101, 1), 0),
        (statuses(100, u32::MAX), 0),
    ] {
        let (mut world, _) = answered_read();
        world.snack(0, kind);
        let sent = world.pull_only(0);
        assert_eq!(reject_reason(&sent), RejectReason::ProtocolError);
        assert!(matches!(sent.0, TargetPdu::Reject(reject) if reject.next_data_or_r2t_sn == next_sn));
    }
}

#[test]
fn a_lost_r2t_comes_again() {
    let mut world = World::of_level(1, 1);
    world.write(0, 7, 8192, &[], false);
    let task = world.task();
    world.solicit(task, 8192);
    let request = world.pull_only(0);
    world.snack(0, data(0, 1));
    assert_eq!(world.pull_only(0), request);
    world.sequence(0, 7, r2t(&request).ttt, 0, &pattern(8192));
    assert_eq!(world.complete_data_out(), pattern(8192));
}

#[test]
fn long_reads_are_acknowledged_in_parts() {
    const BURST: usize = 256 << 10;
    const READ_BYTES: u32 = 3 * (256 << 10);
    let mut settings = Settings::of_level(1);
    settings.session.max_burst_bytes = 256 << 10;
    settings.connection.send_segment_bytes_max = 64 << 10;
    let mut world = World::with_settings(1, settings);
    world.read(0, 7, READ_BYTES);
    let task = world.task();
    for burst in 0..3 {
        world.give(task, burst * BURST, BURST);
        let sent = world.pull(0);
        let asking: Vec<_> = sent.iter().map(data_in).filter(|pdu| pdu.acknowledge).collect();
        let [asking] = asking[..] else { panic!("{asking:?}") };
        assert_eq!(asking.lun, UNIT);
        assert_eq!(asking.data_sn.0, 4 * u32::try_from(burst).unwrap() + 3);
        assert_eq!(world.memory.used_bytes as usize, BURST);
        world.snack(0, SnackKind::DataAck { ttt: asking.ttt, next: asking.data_sn.next() });
        world.expect_all_buffers_released();
        world.snack(0, SnackKind::DataAck { ttt: asking.ttt, next: asking.data_sn.next() });
        assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::InvalidDataAck);
    }
    world.snack(0, data(0, 1));
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::ProtocolError);
    world.respond(task, GOOD, READ_BYTES);
    assert_eq!(response(&world.pull_only(0)).exp_data_sn, DataSn(12));
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_rejected() {
    let mut world = World::of_level(1, 1);
    world.snack(0, SnackKind::DataAck { ttt: Ttt(1), next: DataSn(1) });
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::InvalidDataAck);
}

#[test]
fn data_is_cut_anew_for_an_initiator_that_takes_other_lengths_now() {
    let (mut world, sent) = answered_read();
    world.text(0, 8, 8, Ttt::NONE, "MaxRecvDataSegmentLength=512\0");
    world.pull(0);
    world.snack(0, SnackKind::ResegmentedData { itt: Itt(7), tag: 5 });
    let again = world.pull(0);
    let (last, pdus) = again.split_last().unwrap();
    assert_eq!(pdus.iter().map(|pdu| data_in(pdu).data_sn.0).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    assert_eq!(joined(pdus), pattern(4000));
    let (last, first) = (response(last), response(&sent[5]));
    assert_eq!((last.snack_tag, last.stat_sn), (5, first.stat_sn));
    assert_eq!(last.exp_data_sn, DataSn(8));
    // It is what a Status SNACK brings from now on.
    world.snack(0, statuses(100, 1));
    assert_eq!(response(&world.pull_only(0)), last);
}

#[test]
fn only_unacknowledged_data_is_cut_anew_and_the_first_response_comes_after_it() {
    let mut world = World::of_level(1, 1);
    world.acknowledges = false;
    world.read(0, 7, 4000);
    let task = world.task();
    world.give(task, 0, 4000);
    for _ in 0..2 {
        world.pull_one(0, 1024);
    }
    world.respond(task, GOOD, 4000);
    world.snack(0, SnackKind::ResegmentedData { itt: Itt(7), tag: 1 });
    let sent = world.pull(0);
    assert_eq!(sent.len(), 5);
    assert_eq!(joined(&sent), pattern(4000));
    assert_eq!(response(&sent[4]).snack_tag, 1);
}

#[test]
fn an_initiator_that_acknowledges_nothing_is_reminded() {
    let (mut world, sent) = answered_read();
    for _ in 0..3 {
        world.wait();
        let reminder = nop_in(&world.pull_only(0));
        assert_eq!(reminder.stat_sn, response(&sent[5]).stat_sn.next());
        assert!(reminder.ttt.is_some());
        world.acknowledge(0);
    }
}

#[test]
fn an_initiator_is_told_that_a_command_did_not_arrive() {
    let mut world = World::of_level(1, 2);
    world.plain(1, 8);
    world.wait();
    for lane in 0..2 {
        assert_eq!(nop_in(&world.pull_only(lane)).window.exp_cmd_sn, FIRST_CMD_SN);
    }
    world.plain(0, 7);
    assert_eq!(world.executed().len(), 2);
}

#[test]
fn snacks_without_end_cost_nothing_but_their_lane() {
    let mut settings = Settings::of_level(1);
    settings.session.max_burst_bytes = 64 << 10;
    let mut world = World::with_settings(1, settings);
    world.acknowledges = false;
    world.read(0, 7, 256 << 10);
    let task = world.task();
    world.give(task, 0, 256 << 10);
    let sent = world.pull(0).len();
    assert_eq!(sent, 256);
    for _ in 0..100_000 {
        world.snack(0, data(0, 0));
    }
    assert_eq!(world.pull(0).len(), sent, "the same run waits once");
    for begin in 0..256 {
        world.snack(0, data(begin, 1));
    }
    assert!((1..100).contains(&world.pull(0).len()), "and of different ones a few");
}

#[test]
fn many_snacks_at_once_that_cannot_be_served_do_not_end_their_connection() {
    let (mut world, _) = answered_read();
    for number in 0..200 {
        world.snack(0, SnackKind::DataAck { ttt: Ttt(1000 + number), next: DataSn(1) });
        world.snack(0, SnackKind::DataOrR2t { itt: Itt(100 + number), begin: 0, count: 1 });
    }
    let rejects = world.pull(0).len();
    assert!((1..=16).contains(&rejects), "{rejects}");
    world.snack(0, data(0, 1));
    assert_eq!(world.pull(0).len(), 1);
}

#[test]
fn more_than_can_wait_to_be_sent_again_is_not_refused_for_good() {
    let mut world = World::of_level(1, 1);
    world.acknowledges = false;
    world.read(0, 7, 100 * 1024);
    let task = world.task();
    world.give(task, 0, 100 * 1024);
    world.respond(task, GOOD, 100 * 1024);
    world.pull(0);
    for number in 0..100 {
        world.snack(0, data(number, 1));
    }
    let again = world.pull(0);
    assert!(!again.is_empty() && again.iter().all(|(pdu, _)| matches!(pdu, TargetPdu::DataIn(_))));
    world.snack(0, data(99, 1));
    assert_eq!(data_in(&world.pull_only(0)).data_sn, DataSn(99));
}

#[test]
fn nothing_is_asked_again_of_a_command_whose_turn_has_not_come() {
    let mut world = World::of_level(1, 1);
    world.read(0, 8, 1024);
    world.snack(0, SnackKind::ResegmentedData { itt: Itt(8), tag: 1 });
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::ProtocolError);
    world.plain(0, 7);
    assert_eq!(world.executed().len(), 2);
}

#[test]
fn what_a_driver_has_no_room_for_is_not_kept() {
    let mut world = World::of_level(1, 1);
    world.acknowledges = false;
    world.read(0, 7, 4 << 10);
    let task = world.task();
    world.give(task, 0, 2 << 10);
    world.pull(0);
    assert_eq!(world.memory.used_bytes, 2 << 10);
    world.session.forgo_retention(task);
    world.events();
    assert_eq!(world.memory.used_bytes, 0);
    world.give(task, 2 << 10, 2 << 10);
    world.pull(0);
    world.events();
    assert_eq!(world.memory.used_bytes, 0);
    world.respond(task, GOOD, 4 << 10);
    let (end, _) = world.pull_only(0);
    assert!(matches!(end, TargetPdu::ScsiResponse(pdu) if pdu.status == GOOD));
    world.snack(0, data(0, 1));
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::SnackReject);
}

#[test]
fn memory_for_what_may_be_asked_again_is_bounded() {
    let mut settings = Settings::of_level(1);
    settings.limits.retained_bytes_max = 4096;
    let mut world = World::with_settings(1, settings);
    world.acknowledges = false;
    world.read(0, 7, 16 << 10);
    let task = world.task();
    for part in 0..16 {
        world.give(task, part << 10, 1 << 10);
        world.pull(0);
        assert!(world.memory.used_bytes <= 4096 + 1024);
    }
    world.snack(0, data(15, 1));
    assert_eq!(data_in(&world.pull_only(0)).data_sn, DataSn(15));
    world.snack(0, data(0, 1));
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::SnackReject);
    assert_eq!(world.events(), [Event::Aborted { task }]);
    world.expect_all_buffers_released();
    world.respond(task, GOOD, 16 << 10);
    let (end, sense) = world.pull_only(0);
    assert!(matches!(end, TargetPdu::ScsiResponse(pdu) if pdu.status == CHECK_CONDITION));
    assert_eq!((sense[2 + 2] & 0x0f, sense[2 + 12], sense[2 + 13]), (0x0b, 0x11, 0x13));
}

#[test]
fn a_tag_is_free_once_the_initiator_may_have_the_response() {
    let (mut world, _) = answered_read();
    let again = pdu::ScsiCommand { itt: Itt(7), ..world.command(0, 8) };
    world.send(0, &pdu::InitiatorPdu::ScsiCommand(again), &[]);
    assert_eq!(world.executed().len(), 1);
    world.snack(0, statuses(100, 1));
    assert_eq!(response(&world.pull_only(0)).stat_sn, StatSn(100));
}

#[test]
fn a_session_that_ends_gives_back_what_it_kept() {
    let (mut world, _) = answered_read();
    world.lose(0, ropewalk_session::seam::LaneLoss::Broken);
    assert_eq!(world.events(), [Event::NexusLost, Event::Ended { orderly: false }]);
    world.expect_all_buffers_released();
    assert_eq!(world.session.counters().retained_bytes, 0);
}
