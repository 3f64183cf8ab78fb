//! Data of a write that is lost on its way is asked for again (error recovery level 1).

use crate::world::*;
use pdu::{InitiatorPdu, Itt, LaneId, RejectReason, TargetPdu, Ttt};
use proptest::prelude::*;
use ropewalk_session::seam::{Destination, Digest, Endpoint, Fault};
use ropewalk_session::target::{Event, TaskId};

/// How a PDU is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Header,
    Data,
}

/// Answers R2Ts until the write's data is there; returns what was asked for.
fn answer_all(world: &mut World, data: &[u8]) -> Vec<(u32, u32)> {
    let mut asked = Vec::new();
    loop {
        let sent = world.pull(0);
        let requests: Vec<_> = sent
            .iter()
            .filter_map(|(pdu, _)| if let TargetPdu::R2t(request) = pdu { Some(*request) } else { None })
            .collect();
        if requests.is_empty() {
            return asked;
        }
        for request in requests {
            asked.push((request.buffer_offset, request.desired_bytes));
            let range =
                request.buffer_offset as usize..(request.buffer_offset + request.desired_bytes) as usize;
            world.sequence(0, 7, request.ttt, request.buffer_offset, &data[range]);
        }
    }
}

/// A write of four segments of 2048 bytes, asked for by one R2T.
fn asked_write(level: u8) -> (World, TaskId, Ttt) {
    let mut world = World::of_level(level, 1);
    world.write(0, 7, 8192, &[], false);
    let task = world.task();
    world.solicit(task, 8192);
    let request = r2t(&world.pull_only(0));
    (world, task, request.ttt)
}

fn lose(world: &mut World, pdu: &InitiatorPdu, loss: Loss) {
    match loss {
        Loss::Header => {
            assert!(matches!(world.send_lost(0, pdu), Ok(Destination::Discard { .. })));
        }
        Loss::Data => {
            world.send_damaged(0, pdu).unwrap();
            assert_eq!(world.session.counters().data_digest_errors, 1);
        }
    }
}

#[test]
fn one_lost_segment_costs_that_segment_once_more() {
    let data = pattern(8192);
    for loss in [Loss::Header, Loss::Data] {
        for lost in 0..3 {
            let (mut world, task, ttt) = asked_write(1);
            for (index, (pdu, piece)) in world.sequence_pdus(0, 7, ttt, 0, &data).iter().enumerate() {
                if index == lost {
                    lose(&mut world, pdu, loss);
                } else {
                    world.send(0, pdu, piece);
                }
            }
            let asked = answer_all(&mut world, &data);
            assert_eq!(asked, [(2048 * u32::try_from(lost).unwrap(), 2048)], "{loss:?} {lost}");
            assert_eq!(world.complete_data_out(), data);
            world.respond(task, GOOD, 8192);
            let end = response(&world.pull_only(0));
            assert_eq!((end.status, end.residual), (GOOD, pdu::Residual::None));
        }
    }
}

#[test]
fn the_last_segment_is_missed_after_a_while_unless_its_header_came() {
    let data = pattern(8192);
    for loss in [Loss::Header, Loss::Data] {
        let (mut world, _, ttt) = asked_write(1);
        let pdus = world.sequence_pdus(0, 7, ttt, 0, &data);
        for (pdu, piece) in &pdus[..3] {
            world.send(0, pdu, piece);
        }
        lose(&mut world, &pdus[3].0, loss);
        if loss == Loss::Header {
            assert_eq!(world.pull(0), []);
            world.pass(6);
        }
        assert_eq!(answer_all(&mut world, &data), [(6144, 2048)]);
        assert_eq!(world.complete_data_out(), data);
    }
}

#[test]
fn data_that_was_only_slow_is_taken_and_not_waited_for_twice() {
    let data = pattern(8192);
    let (mut world, _, ttt) = asked_write(1);
    world.pass(6);
    let again = r2t(&world.pull_only(0));
    assert_eq!((again.buffer_offset, again.desired_bytes, again.r2t_sn.0), (0, 8192, 1));
    world.sequence(0, 7, ttt, 0, &data);
    assert_eq!(world.complete_data_out(), data);
    // The answer to the second R2T passes by.
    world.sequence(0, 7, again.ttt, 0, &data);
    assert_eq!(world.pull(0), []);
    assert_eq!(world.events(), []);
}

#[test]
fn a_write_whose_data_never_comes_fails_in_the_end() {
    let (mut world, task, _) = asked_write(1);
    let mut requests = 0;
    for _ in 0..400 {
        world.pass(1);
        world.acknowledge(0);
        requests += world.pull(0).iter().filter(|(pdu, _)| matches!(pdu, TargetPdu::R2t(_))).count();
    }
    assert_eq!(requests, 4);
    assert_eq!(world.events(), [Event::Aborted { task }]);
    world.respond(task, GOOD, 8192);
    let (end, sense) = world.pull_only(0);
    assert!(matches!(end, TargetPdu::ScsiResponse(pdu) if pdu.status == CHECK_CONDITION));
    assert_eq!((sense[2 + 2] & 0x0f, sense[2 + 12], sense[2 + 13]), (0x0b, 0x47, 0x05));
    world.acknowledge(0);
    world.expect_all_buffers_released();
}

#[test]
fn data_for_one_r2t_grants_the_other_four_more_requests() {
    let mut settings = Settings::of_level(1);
    settings.session.max_outstanding_r2t = 2;
    let mut world = World::with_settings(1, settings);
    world.write(0, 7, 2 * 8192, &[], false);
    let task = world.task();
    world.solicit(task, 2 * 8192);
    let requests: Vec<_> = world.pull(0).iter().map(r2t).collect();
    world.pass(4);
    world.sequence(0, 7, requests[0].ttt, 0, &pattern(8192));
    let mut asked_s = Vec::new();
    for second in 5.. {
        world.pass(1);
        world.acknowledge(0);
        asked_s.extend(asked_of(&mut world, 7).iter().map(|_| second));
        let events = world.events();
        if !events.is_empty() {
            assert_eq!((events, second), (vec![Event::Aborted { task }], 159));
            break;
        }
    }
    assert_eq!(asked_s, [9, 19, 39, 79]);
}

#[test]
fn unsolicited_data_that_is_lost_is_asked_for() {
    let data = pattern(4096);
    for lost in 0..2 {
        let mut world = World::of_level(1, 1);
        world.write(0, 7, 4096, &data[..512], true);
        let task = world.task();
        world.solicit(task, 4096);
        for (index, (pdu, piece)) in
            world.sequence_pdus(0, 7, Ttt::NONE, 512, &data[512..]).iter().enumerate()
        {
            if index == lost {
                lose(&mut world, pdu, Loss::Data);
            } else {
                world.send(0, pdu, piece);
            }
        }
        assert_eq!(answer_all(&mut world, &data).len(), 1);
        assert_eq!(world.complete_data_out(), data);
    }
}

#[test]
fn a_lost_answer_to_an_earlier_r2t_is_missed_when_a_later_one_is_answered() {
    let data = pattern(3 * 8192);
    let mut settings = Settings::of_level(1);
    settings.session.max_outstanding_r2t = 3;
    let mut world = World::with_settings(1, settings);
    world.write(0, 7, 3 * 8192, &[], false);
    let task = world.task();
    world.solicit(task, 3 * 8192);
    let requests: Vec<_> = world.pull(0).iter().map(r2t).collect();
    world.sequence(0, 7, requests[1].ttt, 8192, &data[8192..2 * 8192]);
    world.sequence(0, 7, requests[2].ttt, 2 * 8192, &data[2 * 8192..]);
    assert_eq!(answer_all(&mut world, &data), [(0, 8192)]);
    assert_eq!(world.complete_data_out(), data);
}

#[test]
fn no_more_r2ts_are_outstanding_than_were_negotiated_though_data_was_lost() {
    let (mut world, _, ttt) = asked_write(1);
    let data = pattern(8192);
    let pdus = world.sequence_pdus(0, 7, ttt, 0, &data);
    lose(&mut world, &pdus[0].0, Loss::Data);
    // The first R2T is still being answered.
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::DataDigestError);
    for (pdu, piece) in &pdus[1..] {
        world.send(0, pdu, piece);
    }
    assert_eq!(r2t(&world.pull_only(0)).desired_bytes, 2048);
}

#[test]
fn a_command_whose_immediate_data_is_damaged_was_never_there() {
    let mut world = World::of_level(1, 1);
    let command = world.write_command(0, 7, 512, 512, false);
    world.send_damaged(0, &InitiatorPdu::ScsiCommand(command.clone())).unwrap();
    world.expect_nothing_executed();
    world.expect_all_buffers_released();
    let reject = world.pull_only(0);
    assert_eq!(reject_reason(&reject), RejectReason::DataDigestError);
    assert_eq!(reject.1, InitiatorPdu::ScsiCommand(command).emit().bhs());
    world.write(0, 7, 512, &pattern(512), false);
    let task = world.task();
    world.solicit(task, 512);
    assert_eq!(world.complete_data_out(), pattern(512));
}

#[test]
fn damaged_pings_and_texts_leave_their_places_free() {
    let mut world = World::of_level(1, 1);
    for immediate in [true, false] {
        let ping = pdu::NopOut {
            immediate,
            lun: pdu::Lun(0),
            itt: Itt(7),
            ttt: Ttt::NONE,
            cmd_sn: pdu::CmdSn(7),
            exp_stat_sn: world.ack(0),
            data_segment_bytes: 4,
        };
        world.send_damaged(0, &InitiatorPdu::NopOut(ping)).unwrap();
        assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::DataDigestError);
    }
    assert_eq!(world.session.counters().immediate_commands, 0);
    world.nop(0, Itt(7), Ttt::NONE, 7, false, b"ping");
    assert_eq!(world.pull_only(0).1, b"ping");
}

#[test]
fn a_command_sent_twice_is_executed_once() {
    let mut world = World::of_level(1, 1);
    let data = pattern(4096);
    world.write(0, 7, 4096, &data[..512], true);
    let task = world.task();
    world.solicit(task, 4096);
    let pdus = world.sequence_pdus(0, 7, Ttt::NONE, 512, &data[512..]);
    world.send(0, &pdus[0].0, &pdus[0].1);
    world.write(0, 7, 4096, &data[..512], true);
    world.send(0, &pdus[0].0, &pdus[0].1);
    world.send(0, &pdus[1].0, &pdus[1].1);
    assert_eq!(world.complete_data_out(), data);
    world.send(0, &pdus[1].0, &pdus[1].1);
    world.respond(task, GOOD, 4096);
    response(&world.pull_only(0));
    assert_eq!(world.events(), []);
}

#[test]
fn at_level_0_a_damaged_segment_ends_the_connection() {
    let (mut world, _, ttt) = asked_write(0);
    let pdus = world.sequence_pdus(0, 7, ttt, 0, &pattern(8192));
    assert_eq!(world.send_damaged(0, &pdus[0].0), Err(Fault::DataDigest));
    let (mut world, _, ttt) = asked_write(0);
    let pdus = world.sequence_pdus(0, 7, ttt, 0, &pattern(8192));
    assert_eq!(world.send_lost(0, &pdus[0].0), Err(Fault::HeaderDigest));
}

#[test]
fn an_aborted_write_does_not_wait_for_lost_data() {
    let (mut world, task, ttt) = asked_write(1);
    let pdus = world.sequence_pdus(0, 7, ttt, 0, &pattern(8192));
    world.send(0, &pdus[0].0, &pdus[0].1);
    world.session.abort(world.now, task);
    world.respond(task, GOOD, 0);
    world.pass(6);
    assert_eq!(world.session.counters().tasks, 0);
    world.expect_all_buffers_released();
}

/// Which of the R2Ts that are to be sent ask for this task's data.
fn asked_of(world: &mut World, itt: u32) -> Vec<Ttt> {
    let of_task = |(pdu, _)| match pdu {
        TargetPdu::R2t(request) if request.itt == Itt(itt) => Some(request.ttt),
        _ => None,
    };
    world.pull(0).into_iter().filter_map(of_task).collect()
}

/// Starts a write of 8 KiB of this number, and returns its task and R2T.
fn start_write(world: &mut World, number: u32) -> (TaskId, Ttt) {
    world.write(0, number, 8192, &[], false);
    let task = world.task();
    world.solicit(task, 8192);
    let asked = asked_of(world, number);
    (task, asked[0])
}

/// A write of this number that comes and goes.
fn serve_another(world: &mut World, number: u32) {
    let (task, ttt) = start_write(world, number);
    world.sequence(0, number, ttt, 0, &pattern(8192));
    assert_eq!(world.complete_data_out(), pattern(8192));
    world.respond(task, GOOD, 8192);
    response(&world.pull_only(0));
}

#[test]
fn data_is_not_lost_while_the_lane_brings_what_it_was_asked_for_before() {
    let mut world = World::of_level(1, 1);
    let writes: Vec<Ttt> = (7..13).map(|number| start_write(&mut world, number).1).collect();
    let data = pattern(8192);
    // Each of them takes four seconds.
    for (number, ttt) in (7..).zip(writes) {
        for (pdu, piece) in world.sequence_pdus(0, number, ttt, 0, &data) {
            world.pass(1);
            assert_eq!(world.pull(0), []);
            world.send(0, &pdu, &piece);
        }
        assert_eq!(world.complete_data_out(), data);
    }
    assert_eq!(world.session.counters().recovery_r2ts, 0);
}

#[test]
fn nothing_is_lost_while_a_long_segment_is_on_its_way() {
    let (mut world, _, ttt) = asked_write(1);
    let (_, behind) = start_write(&mut world, 8);
    let data = pattern(8192);
    let pdus = world.sequence_pdus(0, 7, ttt, 0, &data);
    let header = pdus[0].0.emit();
    let id = LaneId(0);
    world.session.receive_header(world.now, id, &header, Digest::Good, &mut world.memory).unwrap();
    for _ in 0..128 {
        world.pass(1);
        world.session.heard(world.now, id);
        assert_eq!(world.pull(0), []);
    }
    world.session.receive_data(world.now, id, &[], Digest::Good).unwrap();
    for (pdu, piece) in &pdus[1..] {
        world.send(0, pdu, piece);
    }
    world.events();
    world.sequence(0, 8, behind, 0, &data);
    assert_eq!(world.complete_data_out(), data);
    assert_eq!(world.session.counters().recovery_r2ts, 0);
}

#[test]
fn data_that_was_lost_is_asked_for_again_while_the_lane_goes_on_with_later_tasks() {
    let (mut world, _, _) = asked_write(1);
    let others = (8..100).find(|number| {
        world.pass(1);
        let is_asked_again = !asked_of(&mut world, 7).is_empty();
        serve_another(&mut world, *number);
        is_asked_again
    });
    // Five seconds until it is late; then the lane brings twice what it owed.
    assert_eq!(others, Some(8 + 6));
}

#[test]
fn small_writes_now_and_then_do_not_hide_that_data_was_lost() {
    let (mut world, _, _) = asked_write(1);
    for number in 8..12 {
        world.pass(1);
        assert_eq!(asked_of(&mut world, 7), []);
        world.write(0, number, 512, &pattern(512), false);
        let task = world.task();
        world.respond(task, GOOD, 512);
        response(&world.pull_only(0));
    }
    world.pass(1);
    assert_eq!(asked_of(&mut world, 7).len(), 1);
}

#[test]
fn a_write_that_the_initiator_passes_over_for_ever_fails_in_the_end() {
    let (mut world, task, _) = asked_write(1);
    let mut requests = 0;
    let mut others = 8..1000;
    loop {
        world.pass(1);
        requests += asked_of(&mut world, 7).len();
        let events = world.events();
        if !events.is_empty() {
            assert_eq!(events, [Event::Aborted { task }]);
            break;
        }
        serve_another(&mut world, others.next().expect("it fails"));
    }
    assert_eq!(requests, 4);
}

/// What happens to one PDU after the other.
struct Luck {
    seed: std::vec::IntoIter<u8>,
    /// Since data has arrived.
    losses: u32,
}

impl Luck {
    /// The next PDU's luck, of which these are bad. A write fails if four requests for its data are in vain, and what was
    /// lost before data arrived makes the first of them necessary, so that three losses must be enough.
    fn next(&mut self, bad: &[u8]) -> Option<u8> {
        let luck = self.seed.next().filter(|luck| !bad.contains(luck) || self.losses < 3);
        self.losses += u32::from(luck.is_some_and(|luck| bad.contains(&luck)));
        luck
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn whatever_is_lost_the_data_comes_whole_in_the_end(
        seed in prop::collection::vec(0u8..10, 1..40),
        max_outstanding_r2t in 1u16..5,
        bytes in 1u32..60_000,
        initial_r2t: bool,
    ) {
        let data = pattern(bytes as usize);
        let mut settings = Settings::of_level(1);
        settings.session.max_outstanding_r2t = max_outstanding_r2t;
        settings.session.initial_r2t = initial_r2t;
        let mut world = World::with_settings(1, settings);
        let unsolicited = if initial_r2t { 0 } else { bytes.min(4096) };
        world.write(0, 7, bytes, &[], unsolicited > 0);
        let task = world.task();
        world.solicit(task, bytes);
        let mut luck = Luck { seed: seed.into_iter(), losses: 0 };
        let mut asked = vec![(Ttt::NONE, 0, unsolicited)];
        for _ in 0..4000 {
            for (ttt, offset, bytes) in asked.drain(..).filter(|(.., bytes)| *bytes > 0) {
                let piece = &data[offset as usize..(offset + bytes) as usize];
                for (pdu, piece) in world.sequence_pdus(0, 7, ttt, offset, piece) {
                    match luck.next(&[0, 1]) {
                        Some(0) => { world.send_lost(0, &pdu).unwrap(); }
                        Some(1) => world.send_damaged(0, &pdu).unwrap(),
                        _ => {
                            luck.losses = 0;
                            world.send(0, &pdu, &piece);
                        }
                    }
                }
            }
            for (pdu, _) in world.pull(0) {
                match pdu {
                    // Now and then an R2T is lost, too.
                    TargetPdu::R2t(_) if luck.next(&[2]) == Some(2) => {}
                    TargetPdu::R2t(pdu) => asked.push((pdu.ttt, pdu.buffer_offset, pdu.desired_bytes)),
                    _ => {}
                }
            }
            if asked.is_empty() {
                let events = world.events();
                if let [Event::DataOut(done)] = events[..] {
                    prop_assert_eq!(&world.memory.buffers[&done.buffer.unwrap()][..bytes as usize], &data[..]);
                    world.respond(task, GOOD, bytes);
                    prop_assert_eq!(response(&world.pull_only(0)).status, GOOD);
                    return Ok(());
                }
                prop_assert_eq!(events, []);
                world.pass(1);
                world.acknowledge(0);
            }
        }
        prop_assert!(false, "it takes too long");
    }
}
