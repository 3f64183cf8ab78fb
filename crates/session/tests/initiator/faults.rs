//! A target that breaks the standard is found out, and nothing that it sends does harm.

use crate::world::{NoBuffers, UNIT, World};
use pdu::{
    AsyncEvent, AsyncMessage, CollapsedStatus, DataIn, Header, Itt, LaneId, LogoutOutcome, LogoutResponse,
    NopIn, Residual, StatSn, TaskManagementOutcome, TaskManagementResponse, TextResponse, Ttt,
};
use proptest::prelude::*;
use ropewalk_session::initiator::SendTargets;
use ropewalk_session::peer_fault::{PeerFault, Question};
use ropewalk_session::seam::{Digest, Endpoint, Fault, LaneLoss};

fn fault(world: &mut World, lane: usize, header: &Header) -> Fault {
    world.receive(lane, header, &[]).expect_err("a fault")
}

#[test]
fn an_r2t_that_may_not_be_is_a_fault() {
    let cases = [
        (0, 1000, 5001, PeerFault::R2tBeyondData),
        (0, u32::MAX, u32::MAX, PeerFault::R2tBeyondData),
        (1, 0, 100, PeerFault::R2tOutOfOrder),
    ];
    for (number, offset, bytes, expected) in cases {
        let mut world = World::with_connections(1);
        let task = world.write(0, 6000);
        let r2t = world.r2t(task, number, offset, bytes);
        assert_eq!(fault(&mut world, 0, &r2t.emit()), expected.into());
    }
}

#[test]
fn an_r2t_for_more_than_a_burst_is_a_fault() {
    let mut world = World::with_connections(1);
    let task = world.write(0, 20_000);
    let r2t = world.r2t(task, 0, 4096, 8193);
    assert_eq!(fault(&mut world, 0, &r2t.emit()), PeerFault::R2tTooLong.into());
}

#[test]
fn one_r2t_more_than_may_be_outstanding_is_a_fault() {
    let mut world = World::with_connections(1);
    let task = world.write(0, 20_000);
    for number in 0..2 {
        let r2t = world.r2t(task, number, 4096 + number * 100, 100);
        world.receive(0, &r2t.emit(), &[]).unwrap();
    }
    let r2t = world.r2t(task, 2, 4296, 100);
    assert_eq!(fault(&mut world, 0, &r2t.emit()), PeerFault::TooManyR2ts.into());
}

#[test]
fn an_r2t_for_a_read_is_a_fault() {
    let mut world = World::with_connections(1);
    let task = world.read(0, 6000);
    let r2t = world.r2t(task, 0, 0, 100);
    assert_eq!(fault(&mut world, 0, &r2t.emit()), PeerFault::R2tBeyondData.into());
}

#[test]
fn data_in_that_does_not_fit_where_it_must_go_is_a_fault() {
    let cases = [
        (1, 500, 500, PeerFault::DataSnOutOfOrder),
        (0, 1, 500, PeerFault::DataInOutOfOrder),
        (0, 0, 1001, PeerFault::DataInBeyondData),
    ];
    for (number, offset, bytes, expected) in cases {
        let mut world = World::with_connections(1);
        let task = world.read(0, 1000);
        let data_in = world.data_in(task, number, offset, bytes);
        assert_eq!(fault(&mut world, 0, &data_in.emit()), expected.into());
    }
}

#[test]
fn data_in_for_a_write_is_a_fault() {
    let mut world = World::with_connections(1);
    let task = world.write(0, 1000);
    let data_in = world.data_in(task, 0, 0, 1);
    let expected = PeerFault::DataInForbidden.into();
    assert_eq!(fault(&mut world, 0, &data_in.emit()), expected);
}

#[test]
fn a_gap_in_stat_sn_is_a_fault() {
    let mut world = World::with_connections(1);
    let task = world.write(0, 100);
    world.take_stat_sn(0);
    let response = world.response(0, task);
    assert_eq!(fault(&mut world, 0, &response.emit()), PeerFault::StatSnOutOfOrder.into());
}

#[test]
fn a_collapsed_status_has_a_number_too() {
    let mut world = World::with_connections(1);
    let task = world.read(0, 100);
    let status = CollapsedStatus { stat_sn: StatSn(5), status: 0, residual: Residual::None };
    let data_in = DataIn { status: Some(status), ..world.data_in(task, 0, 0, 100) };
    assert_eq!(fault(&mut world, 0, &data_in.emit()), PeerFault::StatSnOutOfOrder.into());
}

#[test]
fn a_task_is_answered_on_its_own_connection() {
    let mut world = World::with_connections(2);
    let task = world.write(0, 100);
    let response = world.response(1, task);
    assert_eq!(fault(&mut world, 1, &response.emit()), PeerFault::TaskElsewhere.into());
}

#[test]
fn a_command_that_has_not_left_cannot_be_answered() {
    let mut world = World::with_connections(1);
    let task = world.submit_write(100);
    let response = world.response(0, task);
    assert_eq!(fault(&mut world, 0, &response.emit()), PeerFault::TaskNotSent.into());
    world.session.start(world.now, LaneId(0)).unwrap();
    assert_eq!(fault(&mut world, 0, &response.emit()), PeerFault::TaskNotSent.into());
}

#[test]
fn a_response_that_counts_more_data_than_came_is_a_fault() {
    let mut world = World::with_connections(1);
    let task = world.read(0, 100);
    let mut response = world.response(0, task);
    response.exp_data_sn = pdu::DataSn(1);
    let expected = PeerFault::DataMissing.into();
    assert_eq!(fault(&mut world, 0, &response.emit()), expected);
}

#[test]
fn an_answer_to_what_was_not_asked_is_a_fault() {
    let mut world = World::with_connections(1);
    let (window, itt) = (world.window, Itt(0x8000_0000));
    let headers = [
        NopIn { itt, ttt: Ttt::NONE, stat_sn: StatSn(100), ..world.nop_in(Ttt::NONE) }.emit(),
        TaskManagementResponse {
            outcome: TaskManagementOutcome::FunctionComplete,
            itt,
            stat_sn: StatSn(101),
            window,
        }
        .emit(),
        LogoutResponse {
            outcome: LogoutOutcome::Closed,
            itt,
            stat_sn: StatSn(102),
            window,
            wait_seconds: 0,
            retain_seconds: 0,
        }
        .emit(),
        TextResponse {
            final_: true,
            continued: false,
            lun: UNIT,
            itt,
            ttt: Ttt::NONE,
            stat_sn: StatSn(103),
            window,
            data_segment_bytes: 0,
        }
        .emit(),
    ];
    let questions = [Question::Ping, Question::TaskManagement, Question::Logout, Question::Text];
    for (header, question) in headers.iter().zip(questions) {
        assert_eq!(fault(&mut world, 0, header), PeerFault::AnswerUnasked(question).into());
    }
}

#[test]
fn a_flood_of_pings_that_are_not_read_is_a_fault() {
    let mut world = World::with_connections(1);
    let faults = (0..1000).filter_map(|number| {
        let nop_in = world.nop_in(Ttt(number));
        world.receive(0, &nop_in.emit(), &[]).err()
    });
    assert_eq!(faults.take(1).collect::<Vec<_>>(), [Fault::Limit("pings that wait for an answer")]);
}

#[test]
fn a_text_without_end_is_a_fault() {
    let mut world = World::with_connections(1);
    world.session.send_targets(world.now, LaneId(0), &SendTargets::Own).unwrap();
    for bytes in [0_usize, 2048] {
        let mut world = World::with_connections(1);
        world.session.send_targets(world.now, LaneId(0), &SendTargets::Own).unwrap();
        let end = (0..10_000).find_map(|_| {
            let Some((pdu::InitiatorPdu::TextRequest(request), _)) = world.pull(0) else { panic!() };
            let response = TextResponse {
                final_: false,
                continued: true,
                lun: UNIT,
                itt: request.itt,
                ttt: Ttt(1),
                stat_sn: world.take_stat_sn(0),
                window: world.window,
                data_segment_bytes: bytes as u32,
            };
            world.receive(0, &response.emit(), &vec![b'x'; bytes]).err()
        });
        assert!(matches!(end, Some(Fault::Limit(_))));
    }
}

#[test]
fn a_segment_longer_than_was_declared_is_a_fault() {
    let mut world = World::with_connections(1);
    let task = world.read(0, 5000);
    let data_in = world.data_in(task, 0, 0, 2049);
    let expected = PeerFault::SegmentTooLong.into();
    assert_eq!(fault(&mut world, 0, &data_in.emit()), expected);
}

#[test]
fn a_bad_digest_is_a_fault() {
    let mut world = World::with_connections(1);
    let task = world.read(0, 100);
    let header = world.data_in(task, 0, 0, 100).emit();
    let lane = LaneId(0);
    let bad_header = world.session.receive_header(world.now, lane, &header, Digest::Bad, &mut NoBuffers);
    assert_eq!(bad_header, Err(Fault::HeaderDigest));
    world.receive_header(0, &header).unwrap();
    assert_eq!(world.session.receive_data(world.now, lane, &[], Digest::Bad), Err(Fault::DataDigest));
}

#[test]
fn a_malformed_sense_segment_is_a_fault() {
    let mut world = World::with_connections(1);
    let message = AsyncMessage {
        event: AsyncEvent::Scsi,
        lun: UNIT,
        stat_sn: world.take_stat_sn(0),
        window: world.window,
        data_segment_bytes: 3,
    };
    let fault = world.receive(0, &message.emit(), &[0, 9, 1]).expect_err("a fault");
    assert!(matches!(fault, Fault::Peer(PeerFault::Format(_))));
}

/// A header of any bytes, more often than not with the opcode of a target and the tag of a live task.
fn any_header() -> impl Strategy<Value = ([u8; 48], u8, bool)> {
    (any::<[u8; 24]>(), any::<[u8; 24]>(), 0x20_u8..0x42, any::<bool>()).prop_map(
        |(first, last, opcode, live)| {
            let mut bhs = [0; 48];
            bhs[..24].copy_from_slice(&first);
            bhs[24..].copy_from_slice(&last);
            (bhs, opcode, live)
        },
    )
}

proptest! {
    #[test]
    fn no_header_makes_a_session_panic(
        headers in proptest::collection::vec((any_header(), any::<bool>(), any::<[u8; 60]>()), 1..40),
    ) {
        let mut world = World::with_connections(2);
        let tasks = [world.write(0, 9000), world.read(1, 9000)];
        world.session.ping(world.now, LaneId(0));
        world.session.send_targets(world.now, LaneId(1), &SendTargets::Own).unwrap();
        for ((mut bhs, opcode, live), is_small, data) in headers {
            bhs[0] = opcode;
            bhs[4] = 0;
            let bytes = bhs[7] % 60;
            bhs[5..8].copy_from_slice(&[0, 0, bytes]);
            let lane = usize::from(bhs[1] & 1);
            if live {
                bhs[16..20].copy_from_slice(&tasks[lane].0.to_be_bytes());
            }
            if is_small {
                // Numbers near those that are expected.
                bhs[24..28].copy_from_slice(&world.stat_sn[lane].0.to_be_bytes());
                bhs[36..46].fill(0);
            }
            let header = Header::new(bhs);
            let bytes = header.data_segment_bytes() as usize;
            let _ = world.receive(lane, &header, &data[..bytes]);
            world.pull_all(lane);
        }
        for lane in [LaneId(0), LaneId(1)] {
            world.session.lane_lost(world.now, lane, LaneLoss::Broken);
        }
        let events = world.events();
        let is_over = matches!(events.last(), Some(ropewalk_session::initiator::Event::Ended { .. }));
        prop_assert!(is_over);
    }
}
