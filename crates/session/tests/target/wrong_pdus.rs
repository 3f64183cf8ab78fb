//! Each way in which a PDU can be wrong has its answer.

use crate::world::*;
use pdu::{Header, InitiatorPdu, LaneId, Opcode, RejectReason, Ttt};
use ropewalk_session::peer_fault::PeerFault;
use ropewalk_session::seam::{Digest, Endpoint, Fault};

#[test]
fn a_bad_header_digest_ends_the_connection_without_an_answer() {
    let mut world = World::with_connections(1);
    let header = world.command(0, 7).emit();
    let received =
        world.session.receive_header(world.now, LaneId(0), &header, Digest::Bad, &mut world.memory);
    assert_eq!(received, Err(Fault::HeaderDigest));
    world.expect_nothing_sent();
}

#[test]
fn a_bad_data_digest_is_rejected_and_ends_the_connection() {
    let mut world = World::with_connections(1);
    let header = world.write_command(0, 7, 512, 512, false).emit();
    world.session.receive_header(world.now, LaneId(0), &header, Digest::Good, &mut world.memory).unwrap();
    let received = world.session.receive_data(world.now, LaneId(0), &[], Digest::Bad);
    assert_eq!(received, Err(Fault::DataDigest));
    let reject = world.pull_only(0);
    assert_eq!(reject_reason(&reject), RejectReason::DataDigestError);
    assert_eq!(reject.1, header.bhs());
    world.expect_nothing_executed();
    world.expect_all_buffers_released();
}

#[test]
fn a_data_segment_longer_than_was_declared_ends_the_connection() {
    let mut world = World::with_connections(1);
    let header = world.write_command(0, 7, 4096, 2049, false).emit();
    assert_eq!(world.try_send(0, &header, &[]), Err(PeerFault::SegmentTooLong.into()));
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::ProtocolError);
}

#[test]
fn a_login_request_has_no_place_in_full_feature_phase() {
    let mut world = World::with_connections(1);
    let header = Header::new(raw(Opcode::LoginRequest));
    assert_eq!(world.try_send(0, &header, &[]), Err(PeerFault::LoginInFullFeature.into()));
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::ProtocolError);
}

#[test]
fn pdus_that_only_a_target_sends_are_rejected_with_their_header() {
    for opcode in Opcode::ALL.into_iter().filter(|opcode| !opcode.is_from_initiator()) {
        let mut world = World::with_connections(1);
        world.try_send(0, &Header::new(raw(opcode)), &[]).unwrap();
        let reject = world.pull_only(0);
        assert_eq!(reject_reason(&reject), RejectReason::CommandNotSupported);
        assert_eq!(reject.1, raw(opcode));
    }
}

#[test]
fn nothing_is_sent_again_at_this_error_recovery_level() {
    let mut world = World::with_connections(1);
    let snack = pdu::Snack {
        kind: pdu::SnackKind::Status { begin: FIRST_STAT_SN, count: 1 },
        lun: UNIT,
        exp_stat_sn: FIRST_STAT_SN,
    };
    world.send(0, &InitiatorPdu::Snack(snack), &[]);
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::SnackReject);
}

#[test]
fn an_initiator_that_reads_no_rejects_is_given_up() {
    let mut world = World::with_connections(1);
    let header = Header::new(raw(Opcode::NopIn));
    let faults = (0..100).filter(|_| world.try_send(0, &header, &[]).is_err()).count();
    assert_eq!(faults, 1);
    assert!(world.pull(0).len() < 20);
}

#[test]
fn ping_data_that_waits_to_be_returned_is_bounded() {
    let mut settings = Settings::default();
    settings.limits.window_commands = 10_000;
    settings.connection.receive_segment_bytes_max = 256 << 10;
    settings.connection.send_segment_bytes_max = 256 << 10;
    let mut world = World::with_settings(1, settings);
    let data = pattern(256 << 10);
    let limit = (8..100).find(|cmd_sn| {
        let ping = pdu::NopOut {
            immediate: false,
            lun: pdu::Lun(0),
            itt: pdu::Itt(*cmd_sn),
            ttt: Ttt::NONE,
            cmd_sn: pdu::CmdSn(*cmd_sn),
            exp_stat_sn: FIRST_STAT_SN,
            data_segment_bytes: 256 << 10,
        };
        matches!(world.try_send(0, &ping.emit(), &data), Err(Fault::Limit(_)))
    });
    assert_eq!(limit, Some(12));
}
