//! What a target answers to initiators that are right, odd or hostile.

use crate::world;
use crate::world::{Alone, Configured, NAMES, place, read, target_login, value};
use pdu::{Cid, CmdSn, Header, Isid, Itt, LoginStatus, Stage, Tsih};
use ropewalk_session::login::target::{Progress, Redirection, Refusal};
use ropewalk_session::login::{PDUS_MAX, TEXT_BYTES_MAX};
use ropewalk_session::parameters::Offer;

fn leaving(mut alone: Alone) -> Alone {
    alone.request.next_stage = Some(Stage::FullFeaturePhase);
    alone
}

fn refusal_of(text: &str) -> (Option<LoginStatus>, Refusal) {
    Alone::new().refused(text)
}

#[test]
fn the_first_response_tells_the_portal_group_and_the_alias() {
    let mut alone = Alone::with(Configured { alias: Some("a disk".into()), ..Configured::default() });
    let (_, text) = alone.exchange(NAMES);
    assert_eq!(value(&text, "TargetPortalGroupTag"), Some("3"));
    assert_eq!(value(&text, "TargetAlias"), Some("a disk"));
    assert!(!alone.exchange("").1.contains("TargetPortalGroupTag"));
}

#[test]
fn the_names_are_known_after_the_first_text() {
    let mut alone = Alone::new();
    assert_eq!(alone.login.initiator_name(), None);
    alone.exchange(NAMES);
    assert_eq!(alone.login.initiator_name(), Some(world::INITIATOR));
    assert_eq!(alone.login.target_name(), Some(world::TARGET));
}

#[test]
fn a_login_can_move_to_another_thread() {
    fn assert_send<T: Send>(_: &T) {}
    assert_send(&Alone::new().login);
}

#[test]
fn without_its_names_a_login_is_refused_as_lacking_a_parameter() {
    let texts =
        ["", "InitiatorName=iqn.2026-11.org.example:a\0", "TargetName=iqn.2026-11.org.example:disk\0"];
    for text in texts {
        assert_eq!(refusal_of(text).0, Some(LoginStatus::MissingParameter), "{text}");
    }
    let (response, _) =
        Alone::new().exchange("InitiatorName=iqn.2026-11.org.example:a\0SessionType=Discovery\0");
    assert_eq!(response.status, LoginStatus::Success);
}

#[test]
fn names_that_could_harm_are_refused() {
    for name in ["../../etc/passwd", "a b", "a\u{1b}[2J", "", "a,b", ".hidden", &"a".repeat(224)] {
        let text = format!("InitiatorName=iqn.2026-11.org.example:a\0TargetName={name}\0");
        assert_eq!(refusal_of(&text).0, Some(LoginStatus::InitiatorError), "{name}");
    }
}

#[test]
fn names_are_not_declared_anew() {
    let mut alone = Alone::new();
    alone.exchange(NAMES);
    assert_eq!(
        alone.refused("TargetName=iqn.2026-11.org.example:other\0").0,
        Some(LoginStatus::InitiatorError)
    );
    let mut alone = Alone::new();
    alone.exchange(NAMES);
    assert!(matches!(alone.refused("SessionType=Discovery\0").1, Refusal::Late(_)));
}

#[test]
fn nothing_is_said_to_what_does_not_begin_with_a_login() {
    for first_byte in 0..=u8::MAX {
        let mut bhs = [0; Header::BHS_BYTES];
        bhs[0] = first_byte;
        bhs[19] = 1;
        let progress = Alone::new().header(&Header::new(bhs));
        if first_byte & 0x3f != 0x03 {
            assert_eq!(progress, Progress::Refused { reply: None, reason: Refusal::Stranger });
        }
    }
}

#[test]
fn another_pdu_during_login_is_refused_as_invalid() {
    let mut alone = Alone::new();
    alone.exchange(NAMES);
    let mut bhs = [0; Header::BHS_BYTES];
    bhs[0] = 0x01;
    let Progress::Refused { reply, reason } = alone.header(&Header::new(bhs)) else { panic!() };
    assert_eq!(reason, Refusal::NotALogin);
    assert_eq!(read(&reply.unwrap()).0.status, LoginStatus::InvalidDuringLogin);
}

#[test]
fn a_version_that_does_not_exist_is_refused() {
    let mut alone = Alone::new();
    alone.request.version_min = 1;
    alone.request.version_max = 2;
    assert_eq!(alone.refused(NAMES).0, Some(LoginStatus::UnsupportedVersion));
}

#[test]
fn what_names_a_login_must_not_change_during_it() {
    let changes: [fn(&mut Alone); 6] = [
        |alone| alone.request.itt = Itt(2),
        |alone| alone.request.isid = Isid([0; 6]),
        |alone| alone.request.tsih = Tsih(1),
        |alone| alone.request.cid = Cid(8),
        |alone| alone.request.version_max = 1,
        |alone| alone.request.current_stage = Stage::SecurityNegotiation,
    ];
    for change in changes {
        let mut alone = Alone::new();
        alone.exchange(NAMES);
        change(&mut alone);
        assert_eq!(alone.refused("").0, Some(LoginStatus::InitiatorError));
    }
}

#[test]
fn stages_only_go_forward() {
    let mut alone = Alone::new();
    alone.request.next_stage = Some(Stage::SecurityNegotiation);
    assert_eq!(alone.refused(NAMES).1, Refusal::Stage);
    let mut alone = Alone::new();
    alone.request.current_stage = Stage::FullFeaturePhase;
    assert_eq!(alone.refused(NAMES).1, Refusal::Stage);
}

#[test]
fn a_text_may_come_in_pieces_cut_anywhere() {
    for cut in 0..NAMES.len() {
        let mut alone = Alone::new();
        alone.request.continued = true;
        let (response, text) = alone.exchange(&NAMES[..cut]);
        assert_eq!((response.next_stage, text.as_str()), (None, ""));
        alone.request.continued = false;
        let (_, text) = alone.exchange(&NAMES[cut..]);
        assert_eq!(value(&text, "TargetPortalGroupTag"), Some("3"));
    }
}

#[test]
fn a_long_answer_goes_out_in_pieces_that_the_initiator_asks_for() {
    let mut alone = Alone::new();
    alone.exchange(NAMES);
    let unknown: String = (0..127).map(|number| format!("X-{number:061}=1\0")).collect();
    alone.request.continued = true;
    alone.exchange(&unknown[..8000]);
    alone.request.continued = false;
    alone.request.next_stage = Some(Stage::FullFeaturePhase);
    let (response, first) = alone.exchange(&unknown[8000..]);
    assert!(response.continued);
    assert_eq!(response.next_stage, None);
    let (response, rest) = alone.exchange("");
    assert_eq!((response.continued, response.next_stage), (false, None));
    assert!(matches!(alone.send(b""), Progress::Admit(_)));
    assert_eq!((first + &rest).matches("NotUnderstood").count(), 127);
}

#[test]
fn text_in_the_middle_of_the_targets_own_is_refused() {
    let mut alone = Alone::new();
    alone.exchange(NAMES);
    let unknown: String = (0..127).map(|number| format!("X-{number:061}=1\0")).collect();
    alone.request.continued = true;
    alone.exchange(&unknown[..8000]);
    alone.request.continued = false;
    assert!(alone.exchange(&unknown[8000..]).0.continued);
    assert_eq!(alone.refused("MaxBurstLength=1024\0").0, Some(LoginStatus::InitiatorError));
}

#[test]
fn an_endless_login_ends() {
    let mut alone = Alone::new();
    alone.exchange(NAMES);
    for _ in 1..PDUS_MAX {
        alone.exchange("");
    }
    assert_eq!(alone.refused("").0, Some(LoginStatus::InitiatorError));
}

#[test]
fn an_endless_text_ends() {
    let mut alone = Alone::new();
    alone.request.continued = true;
    let piece = "a".repeat(4096);
    for _ in 0..TEXT_BYTES_MAX / 4096 {
        alone.exchange(&piece);
    }
    assert_eq!(alone.refused(&piece).0, Some(LoginStatus::InitiatorError));
    let mut alone = Alone::new();
    assert_eq!(alone.refused(&"a".repeat(8193)).0, Some(LoginStatus::InitiatorError));
}

#[test]
fn security_may_be_skipped_where_nothing_is_demanded() {
    let mut alone = Alone::new();
    alone.request.current_stage = Stage::SecurityNegotiation;
    alone.request.next_stage = Some(Stage::OperationalNegotiation);
    let (response, text) = alone.exchange(&format!("{NAMES}AuthMethod=CHAP,None\0"));
    assert_eq!(response.next_stage, Some(Stage::OperationalNegotiation));
    assert_eq!(value(&text, "AuthMethod"), Some("None"));
    alone.request.current_stage = Stage::OperationalNegotiation;
    alone.request.next_stage = Some(Stage::FullFeaturePhase);
    assert!(matches!(alone.send(b"MaxBurstLength=65536\0"), Progress::Admit(_)));
}

#[test]
fn an_initiator_that_skips_security_is_told_that_it_need_not_prove_anything() {
    for (offered, answer) in [("None", "None"), ("CHAP,None", "None"), ("CHAP", "Reject")] {
        let mut alone = Alone::new();
        let (_, text) = alone.exchange(&format!("{NAMES}AuthMethod={offered}\0"));
        assert_eq!(value(&text, "AuthMethod"), Some(answer), "{offered}");
        alone.request.next_stage = Some(Stage::FullFeaturePhase);
        assert!(matches!(alone.send(b""), Progress::Admit(_)), "{offered}");
    }
}

#[test]
fn at_error_recovery_level_2_a_session_of_one_connection_has_room_for_one_that_cleans_up() {
    let mut alone = leaving(Alone::new());
    alone.login = target_login(Offer { error_recovery_level: 2, ..Offer::default() });
    let keys = format!("{NAMES}ErrorRecoveryLevel=2\0MaxConnections=1\0");
    let Progress::Admit(applicant) = alone.send(keys.as_bytes()) else { panic!() };
    assert_eq!(applicant.max_connections, 2);
}

#[test]
fn a_login_may_go_from_security_to_full_feature_phase_where_the_defaults_do() {
    let mut alone = leaving(Alone::new());
    alone.request.current_stage = Stage::SecurityNegotiation;
    let Progress::Admit(applicant) = alone.send(NAMES.as_bytes()) else { panic!() };
    assert_eq!(applicant.max_connections, 1);
    let (_, established) = alone.login.admit(Ok(place(1)));
    assert_eq!(established.unwrap().connection.receive_segment_bytes_max, 8192);
}

#[test]
fn operational_keys_do_not_belong_to_the_security_stage() {
    let mut alone = Alone::new();
    alone.request.current_stage = Stage::SecurityNegotiation;
    let (status, _) = alone.refused(&format!("{NAMES}MaxBurstLength=1024\0"));
    assert_eq!(status, Some(LoginStatus::InitiatorError));
}

#[test]
fn a_proposal_of_the_target_keeps_the_login_open_until_it_is_answered() {
    let mut alone = leaving(Alone::new());
    let offer = Offer { first_burst_bytes: 4096, ..Default::default() };
    alone.login = target_login(offer);
    let (response, text) = alone.exchange(NAMES);
    assert_eq!(response.next_stage, None);
    assert_eq!(value(&text, "FirstBurstLength"), Some("4096"));
    assert_eq!(alone.exchange("").0.next_stage, None);
    let Progress::Admit(_) = alone.send(b"FirstBurstLength=2048\0") else { panic!() };
    let (_, established) = alone.login.admit(Ok(place(1)));
    assert_eq!(established.unwrap().session.first_burst_bytes, 2048);
}

#[test]
fn the_last_response_carries_the_handle_and_the_window() {
    let mut alone = leaving(Alone::new());
    let Progress::Admit(applicant) = alone.send(NAMES.as_bytes()) else { panic!() };
    assert_eq!(applicant.tsih, Tsih::NEW_SESSION);
    let (reply, established) = alone.login.admit(Ok(place(5)));
    let (response, _) = read(&reply.unwrap());
    assert_eq!(response.tsih, Tsih(5));
    assert_eq!(response.window, place(5).window);
    let established = established.unwrap();
    assert_eq!(established.cmd_sn, CmdSn(100));
    assert_eq!(established.stat_sn, response.stat_sn.next());
}

#[test]
fn responses_are_numbered_one_by_one() {
    let mut alone = Alone::new();
    let first = alone.exchange(NAMES).0.stat_sn;
    assert_eq!(alone.exchange("").0.stat_sn, first.next());
}

#[test]
fn a_login_is_never_admitted_by_mistake() {
    assert_eq!(Alone::new().login.admit(Ok(place(5))), (None, None));
    for decision in [Ok(place(0)), Err(LoginStatus::Success)] {
        let mut alone = leaving(Alone::new());
        alone.send(NAMES.as_bytes());
        let (reply, established) = alone.login.admit(decision);
        assert_eq!(read(&reply.unwrap()).0.status, LoginStatus::TargetError);
        assert_eq!(established, None);
        assert_eq!(alone.login.admit(Ok(place(5))).1, None);
    }
}

#[test]
fn a_connection_cannot_join_a_discovery_session() {
    let mut alone = Alone::new();
    alone.request.tsih = Tsih(4);
    let (status, _) = alone.refused("InitiatorName=iqn.2026-11.org.example:a\0SessionType=Discovery\0");
    assert_eq!(status, Some(LoginStatus::SessionTypeNotSupported));
}

#[test]
fn text_that_is_no_text_is_refused() {
    for text in [&b"InitiatorName"[..], b"InitiatorName=\xff\0", b"=x\0", b"A=1", b"\x01=1\0"] {
        let progress = Alone::new().send(text);
        let Progress::Refused { reply, .. } = progress else { panic!("{text:?}") };
        assert_eq!(read(&reply.unwrap()).0.status, LoginStatus::InitiatorError, "{text:?}");
    }
}

#[test]
fn a_key_sent_twice_is_an_initiator_error() {
    let (status, _) = refusal_of(&format!("{NAMES}MaxBurstLength=1024\0MaxBurstLength=1024\0"));
    assert_eq!(status, Some(LoginStatus::InitiatorError));
    let mut alone = Alone::new();
    alone.exchange(&format!("{NAMES}MaxBurstLength=1024\0"));
    assert_eq!(alone.refused("MaxBurstLength=2048\0").0, Some(LoginStatus::InitiatorError));
}

#[test]
fn names_may_be_repeated_as_libiscsi_does_and_not_changed() {
    let mut alone = Alone::new();
    alone.request.current_stage = Stage::SecurityNegotiation;
    alone.request.next_stage = Some(Stage::OperationalNegotiation);
    alone.exchange(&format!("{NAMES}SessionType=Normal\0AuthMethod=CHAP,None\0"));
    alone.request.current_stage = Stage::OperationalNegotiation;
    alone.request.next_stage = Some(Stage::FullFeaturePhase);
    let again = format!("{NAMES}SessionType=Normal\0MaxConnections=1\0");
    assert!(matches!(alone.send(again.as_bytes()), Progress::Admit(_)));
    let other = "InitiatorName=iqn.2026-11.org.example:other\0";
    assert_eq!(refusal_of(&format!("{NAMES}{other}")).0, Some(LoginStatus::InitiatorError));
}

#[test]
fn names_are_compared_in_lower_case() {
    let mut alone = Alone::new();
    alone.exchange(&NAMES.replace("iqn.2026-11.org.example", "IQN.2026-11.Org.EXAMPLE"));
    assert_eq!(alone.login.initiator_name(), Some(world::INITIATOR));
    assert_eq!(alone.login.target_name(), Some(world::TARGET));
}

#[test]
fn a_name_may_have_223_bytes_and_no_more() {
    let named = |bytes: usize| {
        let name = format!("iqn.2026-11.org.example:{}", "a".repeat(bytes - 24));
        format!("InitiatorName={name}\0TargetName={}\0", world::TARGET)
    };
    assert_eq!(Alone::new().exchange(&named(223)).0.status, LoginStatus::Success);
    assert_eq!(refusal_of(&named(224)).0, Some(LoginStatus::InitiatorError));
}

#[test]
fn a_target_that_is_elsewhere_says_where_before_it_asks_for_anything() {
    for (permanent, status) in
        [(false, LoginStatus::TargetMovedTemporarily), (true, LoginStatus::TargetMovedPermanently)]
    {
        let redirection = Redirection { address: "[2001:db8::1]:3260".into(), permanent };
        let mut alone = Alone::security();
        alone.directory.redirection = Some(redirection);
        let Progress::Refused { reply: Some(reply), reason } =
            alone.send(format!("{NAMES}AuthMethod=CHAP\0").as_bytes())
        else {
            panic!("it was let in")
        };
        assert_eq!(reason.status(), Some(status));
        let (response, text) = read(&reply);
        assert_eq!((response.status, response.next_stage), (status, None));
        assert_eq!(text, "TargetAddress=[2001:db8::1]:3260\0");
    }
}
