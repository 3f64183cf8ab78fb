//! Who may use what.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod world;

use pdu::{InitiatorPdu, Itt, LoginRequest, LoginStatus, Lun, Stage, TargetPdu, TextRequest, Ttt};
use ropewalk_target::{Chap, Config, Credential, InvalidConfig, Mask, TargetConfig};
use session::chap::{Account, Algorithm, Challenge, Secret};
use std::os::unix::fs::PermissionsExt;
use world::*;

fn only(initiator: &str) -> Mask {
    Mask { initiators: vec![initiator.into()], ..Mask::default() }
}

fn from_network(network: &str) -> Mask {
    Mask { addresses: vec![network.parse().unwrap()], ..Mask::default() }
}

fn two_luns() -> TargetConfig {
    target(TARGET, &["0=ram:1M", "5=ram:1M"])
}

#[test]
fn a_target_that_is_not_there_is_not_found() {
    let world = World::with_lun("0=ram:1M");
    assert_eq!(world.connect().login("iqn.2026-01.net.example:none", 1), Err(LoginStatus::NotFound));
}

#[test]
fn a_target_is_closed_to_initiators_of_other_names_and_addresses() {
    for mask in [only("iqn.2026-01.net.example:friend"), from_network("192.0.2.0/24")] {
        let world = World::with_config(config(vec![TargetConfig { mask, ..two_luns() }]));
        assert_eq!(world.connect().login(TARGET, 1), Err(LoginStatus::AuthorizationFailure));
    }
}

#[test]
fn a_lun_that_is_masked_is_not_there() {
    for mask in [only("iqn.2026-01.net.example:friend"), from_network("192.0.2.0/24")] {
        let mut served = two_luns();
        served.luns[1].mask = mask;
        let world = World::with_config(config(vec![served]));
        let mut peer = world.initiator(1);
        let refused = peer.command_to(5, &[0], &[], 0);
        assert_eq!((refused.status, refused.additional()), (2, (0x25, 0)));
        let luns = peer.command(&[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0], &[], 64).data;
        assert_eq!(luns[..4], 8u32.to_be_bytes());
    }
}

#[test]
fn a_lun_shows_to_whom_its_mask_admits() {
    let mut served = two_luns();
    served.luns[1].mask = only("iqn.2026-01.net.example:*");
    let world = World::with_config(config(vec![served]));
    let mut peer = world.initiator(1);
    while peer.command_to(5, &[0], &[], 0).status != 0 {}
}

const SECRET: &str = "correct horse battery";

/// A target that asks for a user and secret.
fn world_with_chap() -> (World, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let secret_file = folder.path().join("secret");
    std::fs::write(&secret_file, format!("{SECRET}\n")).unwrap();
    std::fs::set_permissions(&secret_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let host = Credential { user: "host".into(), secret_file: Some(secret_file), ..Credential::default() };
    let chap = Some(Chap { initiators: vec![host], target: None });
    (World::with_config(config(vec![TargetConfig { chap, ..two_luns() }])), folder)
}

/// Answers the target's challenge with `secret`; the status of the last response.
fn authenticate(peer: &mut Peer, secret: &str) -> LoginStatus {
    let request = LoginRequest { current_stage: Stage::SecurityNegotiation, ..peer.login_request(1, 0) };
    let mut step = |text: String, next_stage| {
        let data_segment_bytes = u32::try_from(text.len()).unwrap();
        let request = LoginRequest { next_stage, data_segment_bytes, ..request };
        peer.send(&InitiatorPdu::LoginRequest(request), text.as_bytes());
        match peer.receive().unwrap() {
            (TargetPdu::LoginResponse(response), text) => (response.status, String::from_utf8(text).unwrap()),
            (other, _) => panic!("{other:?}"),
        }
    };
    step(
        format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0SessionType=Normal\0AuthMethod=CHAP\0"),
        None,
    );
    let (_, asked) = step("CHAP_A=5\0".into(), None);
    let value = |key: &str| asked.split('\0').find_map(|pair| pair.strip_prefix(key)).unwrap();
    let account = Account::new("host", Secret::new(secret.as_bytes()).unwrap()).unwrap();
    let challenge = Challenge::parse(value("CHAP_I="), value("CHAP_C="), None).unwrap();
    let response = pdu::text_value::hexadecimal_text(&challenge.answer(Algorithm::Md5, &account));
    step(format!("CHAP_N=host\0CHAP_R={response}\0"), Some(Stage::OperationalNegotiation)).0
}

#[test]
fn the_right_secret_opens_a_target() {
    let (world, _folder) = world_with_chap();
    assert_eq!(authenticate(&mut world.connect(), SECRET), LoginStatus::Success);
}

#[test]
fn a_wrong_secret_or_none_at_all_is_refused() {
    let (world, _folder) = world_with_chap();
    assert_eq!(authenticate(&mut world.connect(), "incorrect horse"), LoginStatus::AuthenticationFailure);
    assert_eq!(world.connect().login(TARGET, 1), Err(LoginStatus::AuthenticationFailure));
}

#[test]
fn discovery_shows_an_initiator_what_it_may_use_at_the_portal_it_came_through() {
    let hidden = target("iqn.2026-01.net.example:hidden", &["0=ram:1M"]);
    let hidden = TargetConfig { mask: only("iqn.2026-01.net.example:friend"), ..hidden };
    let world = World::with_config(config(vec![two_luns(), hidden]));
    let mut peer = world.connect();
    let text = format!("InitiatorName={INITIATOR}\0SessionType=Discovery\0");
    peer.login_with(&text, |request| request, 1).unwrap();
    let question = b"SendTargets=All\0";
    let request = TextRequest {
        immediate: false,
        final_: true,
        continued: false,
        lun: Lun::default(),
        itt: Itt(1),
        ttt: Ttt::NONE,
        cmd_sn: peer.cmd_sn,
        exp_stat_sn: peer.exp_stat_sn,
        data_segment_bytes: u32::try_from(question.len()).unwrap(),
    };
    peer.send(&InitiatorPdu::TextRequest(request), question);
    let (answer, list) = peer.receive().unwrap();
    assert!(matches!(answer, TargetPdu::TextResponse(_)), "{answer:?}");
    let expected = format!("TargetName={TARGET}\0TargetAddress={},1\0", world.address());
    assert_eq!(String::from_utf8(list).unwrap(), expected);
}

#[test]
fn listening_beyond_loopback_needs_chap_an_address_mask_or_an_explicit_word() {
    let open = Config { listen: vec!["0.0.0.0:0".parse().unwrap()], ..config(vec![two_luns()]) };
    let refusal = open.validate().unwrap_err();
    assert!(matches!(refusal, InvalidConfig::Insecure { .. }));
    assert!(refusal.to_string().contains("CHAP"), "{refusal}");

    let named = TargetConfig { mask: only(INITIATOR), ..two_luns() };
    assert!(Config { targets: vec![named], ..open.clone() }.validate().is_err());
    let masked = TargetConfig { mask: from_network("10.0.0.0/8"), ..two_luns() };
    assert!(Config { targets: vec![masked], ..open.clone() }.validate().is_ok());
    let everywhere = TargetConfig { mask: from_network("0.0.0.0/0"), ..two_luns() };
    assert!(Config { targets: vec![everywhere], ..open.clone() }.validate().is_err());
    assert!(Config { allow_insecure: true, ..open }.validate().is_ok());
}
