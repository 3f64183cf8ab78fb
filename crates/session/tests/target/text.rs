//! Text in full feature phase: finding targets, and declaring a segment length anew.

use crate::world::*;
use pdu::{RejectReason, TargetPdu, TextResponse, Ttt};
use ropewalk_session::parameters::SessionType;
use ropewalk_session::target::{Event, SendTargets, TargetRecord};

fn discovery() -> World {
    let mut settings = Settings::default();
    settings.session.session_type = SessionType::Discovery;
    World::with_settings(1, settings)
}

fn answer(received: &Received) -> (TextResponse, String) {
    match received.0 {
        TargetPdu::TextResponse(pdu) => (pdu, String::from_utf8_lossy(&received.1).into_owned()),
        other => panic!("{other:?} instead of a Text Response"),
    }
}

fn wanted(world: &mut World) -> SendTargets {
    match world.events().as_slice() {
        [Event::SendTargets(request)] => request.clone(),
        other => panic!("{other:?}"),
    }
}

fn records(count: usize) -> Vec<TargetRecord> {
    let record = |number| TargetRecord {
        target_name: format!("iqn.2026-11.example:disk{number}"),
        target_addresses: vec!["192.0.2.1:3260,1".into(), "[2001:db8::1]:3260,1".into()],
    };
    (0..count).map(record).collect()
}

#[test]
fn all_targets_are_named_with_all_their_addresses() {
    let mut world = discovery();
    world.text(0, 7, 1, Ttt::NONE, "SendTargets=All\0");
    let request = wanted(&mut world);
    assert_eq!(request.target_name, None);
    world.expect_nothing_sent();
    world.session.send_targets(world.now, &request, &records(1));
    let (pdu, text) = answer(&world.pull_only(0));
    assert!(pdu.final_ && pdu.ttt.is_none());
    assert_eq!(
        text,
        "TargetName=iqn.2026-11.example:disk0\0TargetAddress=192.0.2.1:3260,1\0TargetAddress=[2001:db8::1]:3260,1\0"
    );
}

#[test]
fn a_long_answer_is_asked_for_piece_by_piece() {
    let mut world = discovery();
    world.text(0, 7, 1, Ttt::NONE, "SendTargets=All\0");
    let request = wanted(&mut world);
    world.session.send_targets(world.now, &request, &records(100));
    let mut whole = String::new();
    let mut cmd_sn = 8;
    loop {
        let (pdu, text) = answer(&world.pull_only(0));
        assert!(text.len() <= 1024);
        whole.push_str(&text);
        assert_eq!(pdu.continued, !pdu.final_);
        if pdu.final_ {
            break;
        }
        world.text(0, cmd_sn, 1, pdu.ttt, "");
        cmd_sn += 1;
    }
    assert_eq!(whole.matches("TargetName=").count(), 100);
}

#[test]
fn a_question_may_come_in_pieces() {
    let mut world = discovery();
    world.text_part(0, 7, 1, Ttt::NONE, "SendTar", true);
    let (pdu, text) = answer(&world.pull_only(0));
    assert!(!pdu.final_ && text.is_empty());
    world.text(0, 8, 1, pdu.ttt, "gets=iqn.2026-11.example:disk\0");
    assert_eq!(wanted(&mut world).target_name.as_deref(), Some(TARGET));
}

#[test]
fn a_normal_session_names_only_its_own_target() {
    let mut world = World::with_connections(1);
    world.text(0, 7, 1, Ttt::NONE, "SendTargets=\0");
    assert_eq!(wanted(&mut world).target_name.as_deref(), Some(TARGET));
    world.text(0, 8, 2, Ttt::NONE, "SendTargets=All\0");
    assert_eq!(answer(&world.pull_only(0)).1, "SendTargets=Reject\0");
    world.text(0, 9, 3, Ttt::NONE, "SendTargets=iqn.2026-11.example:other\0");
    assert_eq!(answer(&world.pull_only(0)).1, "SendTargets=Reject\0");
}

#[test]
fn unknown_keys_are_not_understood_and_login_keys_are_rejected() {
    let mut world = World::with_connections(1);
    world.text(0, 7, 1, Ttt::NONE, "X-com.example.Colour=blue\0MaxBurstLength=512\0InitiatorAlias=me\0");
    let (_, text) = answer(&world.pull_only(0));
    assert_eq!(text, "X-com.example.Colour=NotUnderstood\0MaxBurstLength=Reject\0");
}

#[test]
fn a_segment_length_declared_anew_holds_from_then_on() {
    let mut world = World::with_connections(1);
    world.text(0, 7, 1, Ttt::NONE, "MaxRecvDataSegmentLength=4096\0");
    let (pdu, text) = answer(&world.pull_only(0));
    assert!(pdu.final_ && text.is_empty());
    world.read(0, 8, 8192);
    let task = world.task();
    world.data_in(task, &pattern(8192));
    assert_eq!(world.pull(0).len(), 2);
}

#[test]
fn a_segment_length_that_cannot_be_is_rejected() {
    let mut world = World::with_connections(1);
    for (cmd_sn, value) in (7..).zip(["511", "16777216", "-1", "many"]) {
        world.text(0, cmd_sn, cmd_sn, Ttt::NONE, &format!("MaxRecvDataSegmentLength={value}\0"));
        assert_eq!(answer(&world.pull_only(0)).1, "MaxRecvDataSegmentLength=Reject\0");
    }
}

#[test]
fn a_new_exchange_takes_the_place_of_the_old() {
    let mut world = discovery();
    world.text(0, 7, 1, Ttt::NONE, "SendTargets=All\0");
    let forgotten = wanted(&mut world);
    world.text(0, 8, 2, Ttt::NONE, "SendTargets=All\0");
    let request = wanted(&mut world);
    world.session.send_targets(world.now, &forgotten, &records(3));
    world.expect_nothing_sent();
    world.session.send_targets(world.now, &request, &records(1));
    assert_eq!(answer(&world.pull_only(0)).0.itt, pdu::Itt(2));
    assert_eq!(world.session.counters().max_cmd_sn, pdu::CmdSn(7 + 8 - 1 + 2));
}

#[test]
fn an_exchange_that_is_not_known_cannot_go_on() {
    let mut world = World::with_connections(1);
    world.text(0, 7, 1, Ttt(99), "");
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::InvalidPduField);
}

#[test]
fn a_question_without_end_is_cut_off() {
    let mut world = World::with_connections(1);
    let mut ttt = Ttt::NONE;
    let part = "X".repeat(2048);
    for cmd_sn in 7.. {
        world.text_part(0, cmd_sn, 1, ttt, &part, true);
        match world.pull_only(0) {
            (TargetPdu::TextResponse(pdu), _) => ttt = pdu.ttt,
            reject => {
                assert_eq!(reject_reason(&reject), RejectReason::LongOperationReject);
                assert!(cmd_sn < 7 + 10);
                break;
            }
        }
    }
}

#[test]
fn text_that_is_none_is_rejected() {
    let mut world = World::with_connections(1);
    world.text(0, 7, 1, Ttt::NONE, "no value here\0");
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::ProtocolError);
}

#[test]
fn an_empty_continued_text_does_no_harm() {
    let mut world = World::with_connections(1);
    world.text_part(0, 7, 1, Ttt::NONE, "", true);
    let (pdu, _) = answer(&world.pull_only(0));
    world.text_part(0, 8, 1, pdu.ttt, "", true);
    world.text(0, 9, 1, pdu.ttt, "");
    assert_eq!(world.pull(0).len(), 2);
}

#[test]
fn a_discovery_session_takes_no_commands() {
    let mut world = discovery();
    let command = world.command(0, 7);
    world.try_send(0, &command.emit(), &[]).unwrap();
    assert_eq!(reject_reason(&world.pull_only(0)), RejectReason::ProtocolError);
    world.expect_nothing_executed();
}
