//! A write's data lands in its buffer, however it comes: immediate, unsolicited, or asked for.

use crate::world::*;
use pdu::{InitiatorPdu, RejectReason, ScsiCommand, Ttt};
use proptest::prelude::*;
use ropewalk_session::peer_fault::PeerFault;
use ropewalk_session::seam::Destination;
use ropewalk_session::target::Event;

/// Plays one write to its end and says what the driver found in the buffer.
fn write(settings: Settings, bytes: u32) -> Vec<u8> {
    let data = pattern(bytes as usize);
    let (session, segment) = (settings.session, settings.connection.receive_segment_bytes_max);
    let first_burst = session.first_burst_bytes.min(bytes);
    let immediate = if session.immediate_data { first_burst.min(segment) } else { 0 };
    let unsolicited_end = if session.initial_r2t { immediate } else { first_burst };
    let mut world = World::with_settings(1, settings);
    let more = unsolicited_end > immediate;
    world.write(0, 7, bytes, &data[..immediate as usize], more);
    let task = world.task();
    world.solicit(task, bytes);
    if more {
        let unsolicited = &data[immediate as usize..unsolicited_end as usize];
        world.sequence(0, 7, Ttt::NONE, immediate, unsolicited);
    }
    let mut asked = unsolicited_end;
    loop {
        let requests = world.pull(0);
        if requests.is_empty() {
            break;
        }
        assert!(requests.len() <= usize::from(session.max_outstanding_r2t));
        for request in &requests {
            let request = r2t(request);
            assert_eq!(request.buffer_offset, asked);
            assert!(request.desired_bytes <= session.max_burst_bytes);
            asked += request.desired_bytes;
            let piece = &data[request.buffer_offset as usize..asked as usize];
            world.sequence(0, 7, request.ttt, request.buffer_offset, piece);
        }
    }
    let found = if bytes == 0 { Vec::new() } else { world.complete_data_out() };
    assert_eq!(world.session.counters().data_out_bytes, bytes.into());
    world.respond(task, GOOD, bytes);
    assert_eq!(response(&world.pull_only(0)).residual, pdu::Residual::None);
    world.expect_all_buffers_released();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_way_of_sending_a_write_brings_the_same_bytes(
        initial_r2t: bool,
        immediate_data: bool,
        max_outstanding_r2t in 1u16..6,
        bytes in 1u32..40_000,
        first_burst_bytes in 1u32..9000,
        max_burst_bytes in 512u32..9000,
        receive_segment_bytes_max in 512u32..5000,
    ) {
        let mut settings = Settings::default();
        settings.session.initial_r2t = initial_r2t;
        settings.session.immediate_data = immediate_data;
        settings.session.max_outstanding_r2t = max_outstanding_r2t;
        settings.session.first_burst_bytes = first_burst_bytes.min(max_burst_bytes);
        settings.session.max_burst_bytes = max_burst_bytes;
        settings.connection.receive_segment_bytes_max = receive_segment_bytes_max;
        prop_assert_eq!(write(settings, bytes), pattern(bytes as usize));
    }
}

#[test]
fn bursts_and_segments_may_be_as_long_as_the_standard_allows() {
    let longest = (1 << 24) - 1;
    let mut settings = Settings::default();
    settings.session.max_burst_bytes = longest;
    settings.session.first_burst_bytes = longest;
    settings.connection.receive_segment_bytes_max = longest;
    settings.session.initial_r2t = true;
    settings.session.immediate_data = false;
    assert_eq!(write(settings, longest + 5), pattern(longest as usize + 5));
}

#[test]
fn the_response_to_a_write_counts_no_data_in_however_many_r2ts_there_were() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 512, &[], false);
    let task = world.task();
    world.solicit(task, 512);
    let request = r2t(&world.pull_only(0));
    world.sequence(0, 7, request.ttt, 0, &pattern(512));
    world.respond(task, GOOD, 512);
    assert_eq!(response(&world.pull_only(0)).exp_data_sn.0, 0);
}

#[test]
fn only_as_many_r2ts_are_outstanding_as_were_negotiated() {
    let mut settings = Settings::default();
    settings.session.max_outstanding_r2t = 3;
    let mut world = World::with_settings(1, settings);
    world.write(0, 7, 5 * 8192, &[], false);
    let task = world.task();
    world.solicit(task, 5 * 8192);
    let requests: Vec<_> = world.pull(0).iter().map(r2t).collect();
    assert_eq!(requests.iter().map(|request| request.r2t_sn.0).collect::<Vec<_>>(), [0, 1, 2]);
    world.sequence(0, 7, requests[0].ttt, 0, &pattern(8192));
    assert_eq!(r2t(&world.pull_only(0)).buffer_offset, 3 * 8192);
}

#[test]
fn a_driver_may_want_less_than_was_announced() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 4096, &pattern(512), true);
    let task = world.task();
    world.solicit(task, 100);
    let done = world.complete_data_out();
    assert_eq!(done, pattern(100));
    world.respond(task, GOOD, 100);
    // The rest is on its way; status must not overtake it.
    world.expect_nothing_sent();
    world.sequence(0, 7, Ttt::NONE, 512, &pattern(3584));
    assert_eq!(response(&world.pull_only(0)).residual, pdu::Residual::Underflow(3996));
    world.expect_all_buffers_released();
}

#[test]
fn data_of_a_refused_command_is_forgotten_and_its_status_waits_for_the_end_of_it() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 4096, &pattern(512), true);
    let task = world.task();
    world.respond(task, CHECK_CONDITION, 0);
    world.expect_nothing_sent();
    let pdu = world.data_out(0, 7, Ttt::NONE, 0, 512, 1792);
    assert_eq!(
        world.send(0, &InitiatorPdu::DataOut(pdu), &pattern(1792)),
        Destination::Discard { bytes: 1792 }
    );
    world.expect_nothing_sent();
    let last = pdu::DataOut { final_: true, ..world.data_out(0, 7, Ttt::NONE, 1, 2304, 1792) };
    world.send(0, &InitiatorPdu::DataOut(last), &pattern(1792));
    assert_eq!(response(&world.pull_only(0)).status, CHECK_CONDITION);
    world.expect_all_buffers_released();
}

#[test]
fn an_early_command_gets_a_place_for_its_unsolicited_data_and_no_more() {
    let mut world = World::with_connections(1);
    world.write(0, 8, 100_000, &pattern(1024), true);
    world.write(0, 7, 100_000, &pattern(1024), true);
    assert_eq!(world.memory.asked, [(4096, 4096), (4096, 100_000)]);
}

#[test]
fn early_commands_leave_room_for_the_one_that_fills_the_hole() {
    let settings = Settings { budget_bytes: 8 * 4096, ..Settings::default() };
    let mut world = World::with_settings(2, settings);
    for cmd_sn in 8..15 {
        world.write(1, cmd_sn, 4096, &pattern(1024), true);
    }
    world.expect_nothing_executed();
    world.write(0, 7, 4096, &pattern(1024), true);
    assert_eq!(world.executed().len(), 8);
    assert_eq!(world.memory.used_bytes, 8 * 4096);
}

#[test]
fn a_command_without_a_buffer_is_answered_in_its_turn_with_task_set_full() {
    let settings = Settings { budget_bytes: 0, ..Settings::default() };
    let mut world = World::with_settings(1, settings);
    assert_eq!(world.write(0, 8, 4096, &pattern(512), true), Destination::Discard { bytes: 512 });
    world.sequence(0, 8, Ttt::NONE, 512, &pattern(3584));
    world.expect_nothing_sent();
    world.plain(0, 7);
    assert_eq!(response(&world.pull_only(0)).status, TASK_SET_FULL);
    assert_eq!(world.executed().len(), 1);
}

#[test]
fn nothing_is_asked_for_before_there_is_room_for_it() {
    let settings = Settings { budget_bytes: 10_000, ..Settings::default() };
    let mut world = World::with_settings(1, settings);
    world.write(0, 7, 8000, &[], false);
    world.write(0, 8, 8000, &[], false);
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    world.solicit(tasks[0], 8000);
    world.solicit(tasks[1], 8000);
    let first = r2t(&world.pull_only(0));
    world.sequence(0, 7, first.ttt, 0, &pattern(8000));
    world.complete_data_out();
    world.respond(tasks[0], GOOD, 8000);
    world.session.buffers_available(world.now, &mut world.memory);
    let pulled = world.pull(0);
    assert_eq!(r2t(&pulled[0]).itt, pdu::Itt(8));
}

#[test]
fn while_an_older_write_waits_for_room_younger_ones_get_no_more_than_they_were_promised() {
    let settings = Settings { budget_bytes: 10_000, ..Settings::default() };
    let mut world = World::with_settings(1, settings);
    world.write(0, 7, 9000, &[], false);
    world.write(0, 8, 9000, &[], false);
    let tasks: Vec<_> = world.executed().iter().map(|command| command.task).collect();
    world.solicit(tasks[0], 9000);
    world.solicit(tasks[1], 9000);
    world.memory.asked.clear();
    world.write(0, 9, 1000, &pattern(512), false);
    assert_eq!(world.memory.asked, [(512, 512)]);
}

#[test]
fn data_pdus_out_of_order_end_the_connection() {
    let cases = [(0, 600, 100, PeerFault::DataOutOffset), (0, 512, 2048, PeerFault::DataOutTooLong)];
    for (sn, offset, bytes, expected) in cases {
        let mut world = World::with_connections(1);
        world.write(0, 7, 2000, &pattern(512), true);
        let pdu = world.data_out(0, 7, Ttt::NONE, sn, offset, bytes);
        let fault = world.try_send(0, &pdu.emit(), &pattern(bytes as usize)).unwrap_err();
        assert_eq!(fault, expected.into());
        assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::ProtocolError);
    }
}

#[test]
fn a_write_whose_data_was_lost_on_the_way_fails_once_the_rest_has_passed() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 2000, &pattern(512), true);
    let task = world.task();
    world.solicit(task, 2000);
    let late = world.data_out(0, 7, Ttt::NONE, 1, 512, 100);
    world.send(0, &InitiatorPdu::DataOut(late), &pattern(100));
    assert_eq!(world.events(), [Event::Aborted { task }]);
    world.respond(task, GOOD, 2000);
    world.expect_nothing_sent();
    let end = pdu::DataOut { final_: true, ..world.data_out(0, 7, Ttt::NONE, 2, 612, 100) };
    world.send(0, &InitiatorPdu::DataOut(end), &pattern(100));
    let received = world.pull_only(0);
    assert_eq!(response(&received).status, 0x02);
    assert_eq!(received.1[2..][12..14], [0x47, 0x05]);
}

#[test]
fn data_that_ends_too_soon_ends_the_connection() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 2000, &pattern(512), true);
    let pdu = pdu::DataOut { final_: true, ..world.data_out(0, 7, Ttt::NONE, 0, 512, 100) };
    assert!(world.try_send(0, &pdu.emit(), &pattern(100)).is_err());
}

#[test]
fn an_empty_data_pdu_may_carry_the_end() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 1024, &pattern(512), true);
    let task = world.task();
    world.solicit(task, 1024);
    let data = world.data_out(0, 7, Ttt::NONE, 0, 512, 512);
    world.send(0, &InitiatorPdu::DataOut(data), &pattern(1024)[512..]);
    let end = pdu::DataOut { final_: true, ..world.data_out(0, 7, Ttt::NONE, 1, 1024, 0) };
    world.send(0, &InitiatorPdu::DataOut(end), &[]);
    assert_eq!(world.complete_data_out(), pattern(1024));
}

#[test]
fn an_answer_to_no_r2t_is_rejected() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 2000, &[], false);
    let pdu = world.data_out(0, 7, Ttt(4711), 0, 0, 100);
    world.send(0, &InitiatorPdu::DataOut(pdu), &pattern(100));
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::InvalidPduField);
}

#[test]
fn an_r2t_that_was_not_sent_yet_cannot_be_answered() {
    let mut world = World::with_connections(1);
    world.write(0, 7, 2000, &[], false);
    let task = world.task();
    world.solicit(task, 2000);
    let pdu = world.data_out(0, 7, Ttt(1), 0, 0, 100);
    world.send(0, &InitiatorPdu::DataOut(pdu), &pattern(100));
    let pulled = world.pull(0);
    assert_eq!(r2t(&pulled[0]).ttt, Ttt(1));
    assert_eq!(reject_reason(&pulled[1]), RejectReason::InvalidPduField);
}

#[test]
fn data_on_another_connection_than_its_command_ends_that_connection() {
    let mut world = World::with_connections(2);
    world.write(0, 7, 2000, &pattern(512), true);
    let pdu = world.data_out(1, 7, Ttt::NONE, 0, 512, 100);
    assert!(world.try_send(1, &pdu.emit(), &pattern(100)).is_err());
}

#[test]
fn unsolicited_data_that_was_not_negotiated_ends_the_connection() {
    let cases: [(bool, bool, usize, bool); 4] = [
        (true, true, 0, true),
        (true, false, 512, false),
        (false, true, 4100, false),
        (false, true, 1500, false),
    ];
    for (initial_r2t, immediate_data, immediate_bytes, more) in cases {
        let mut settings = Settings::default();
        settings.session.initial_r2t = initial_r2t;
        settings.session.immediate_data = immediate_data;
        settings.connection.receive_segment_bytes_max = 8192;
        let mut world = World::with_settings(1, settings);
        let bytes = if immediate_bytes == 1500 { 1000 } else { 5000 };
        let pdu: ScsiCommand = world.write_command(0, 7, bytes, immediate_bytes, more);
        assert!(world.try_send(0, &pdu.emit(), &pattern(immediate_bytes)).is_err());
        world.expect_nothing_executed();
    }
}

#[test]
fn a_buffer_is_not_given_back_while_data_is_written_into_it() {
    let mut world = World::with_connections(2);
    world.write(0, 7, 4096, &pattern(512), true);
    let task = world.task();
    let lane = pdu::LaneId(0);
    let header = pdu::DataOut { final_: true, ..world.data_out(0, 7, Ttt::NONE, 0, 512, 1792) };
    let header = pdu::DataOut { final_: false, ..header }.emit();
    let destination = ropewalk_session::seam::Endpoint::receive_header(
        &mut world.session,
        world.now,
        lane,
        &header,
        ropewalk_session::seam::Digest::Good,
        &mut world.memory,
    );
    assert!(matches!(destination, Ok(Destination::Buffer(_))));
    world.manage_task(1, pdu::TaskManagementFunction::AbortTask, 8, 90, pdu::Itt(7), pdu::CmdSn(7));
    world.respond(task, GOOD, 0);
    assert_ne!(world.memory.used_bytes, 0);
    ropewalk_session::seam::Endpoint::receive_data(
        &mut world.session,
        world.now,
        lane,
        &[],
        ropewalk_session::seam::Digest::Good,
    )
    .unwrap();
    assert!(world.events().contains(&Event::Aborted { task }));
    world.expect_all_buffers_released();
}
