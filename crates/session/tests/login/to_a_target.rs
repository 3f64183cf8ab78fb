//! What an initiator makes of targets that are right, odd or hostile.

use crate::world;
use crate::world::{Lonely, config, one_way, value};
use pdu::{Header, Itt, LoginStatus, Stage, Tsih};
use ropewalk_session::login::PDUS_MAX;
use ropewalk_session::login::initiator::{Config, Failure, Progress, Remedy};
use ropewalk_session::negotiation::NegotiationError;

fn final_response(mut lonely: Lonely) -> Lonely {
    lonely.response.next_stage = Some(Stage::FullFeaturePhase);
    lonely.response.tsih = Tsih(1);
    lonely
}

fn lonely() -> Lonely {
    Lonely::new(config())
}

#[test]
fn the_first_request_says_everything() {
    let lonely = lonely();
    assert_eq!(lonely.request.current_stage, Stage::OperationalNegotiation);
    assert_eq!(lonely.request.next_stage, Some(Stage::FullFeaturePhase));
    for (key, expected) in [
        ("InitiatorName", world::INITIATOR),
        ("TargetName", world::TARGET),
        ("SessionType", "Normal"),
        ("HeaderDigest", "None,CRC32C"),
        ("MaxConnections", "64"),
        ("InitialR2T", "No"),
        ("ImmediateData", "Yes"),
        ("MaxRecvDataSegmentLength", "262144"),
    ] {
        assert_eq!(value(&lonely.text, key), Some(expected), "{key}");
    }
}

#[test]
fn a_login_with_credentials_begins_with_security() {
    let lonely = Lonely::new(Config { credentials: Some(one_way()), ..config() });
    assert_eq!(lonely.request.current_stage, Stage::SecurityNegotiation);
    assert_eq!(value(&lonely.text, "AuthMethod"), Some("CHAP,None"));
    assert!(!lonely.text.contains("MaxBurstLength"));
}

#[test]
fn a_target_may_say_in_the_operational_stage_that_it_asks_for_no_proof_but_not_ask_for_one() {
    let progress = final_response(lonely()).answer("AuthMethod=None\0");
    assert!(matches!(progress, Progress::Established(_)), "{progress:?}");
    assert_eq!(lonely().fails("AuthMethod=CHAP\0"), Failure::AuthMethod);
}

#[test]
fn every_key_that_the_target_proposes_is_answered() {
    let mut lonely = lonely();
    lonely.answer("TaskReporting=FastAbort,RFC3720\0IFMarker=No\0X-com.example.a=1\0OFMarkInt=1~2\0");
    for (key, expected) in [
        ("TaskReporting", "RFC3720"),
        ("IFMarker", "Reject"),
        ("OFMarkInt", "Reject"),
        ("X-com.example.a", "NotUnderstood"),
    ] {
        assert_eq!(value(&lonely.text, key), Some(expected), "{key}");
    }
    assert_eq!(lonely.request.next_stage, Some(Stage::FullFeaturePhase));
}

#[test]
fn a_target_that_never_comes_to_an_end_is_given_up() {
    let mut lonely = lonely();
    for _ in 0..PDUS_MAX {
        assert!(matches!(lonely.answer(""), Progress::Send(_)));
    }
    assert!(matches!(lonely.fails(""), Failure::Exchange(_)));
}

#[test]
fn an_answer_in_pieces_is_put_together() {
    let mut lonely = lonely();
    lonely.response.continued = true;
    lonely.answer("MaxBurst");
    assert_eq!((lonely.request.next_stage, lonely.text.as_str()), (None, ""));
    lonely.response.continued = false;
    lonely.answer("Length=8192\0");
    assert_eq!(lonely.request.next_stage, Some(Stage::FullFeaturePhase));
    let Progress::Established(established) = final_response(lonely).answer("") else { panic!() };
    assert_eq!(established.session.max_burst_bytes, 8192);
}

#[test]
fn a_redirection_gives_the_address() {
    for (status, permanent) in
        [(LoginStatus::TargetMovedTemporarily, false), (LoginStatus::TargetMovedPermanently, true)]
    {
        let mut lonely = lonely();
        lonely.response.status = status;
        let progress = lonely.answer("TargetAddress=[2001:db8::1]:3260\0");
        assert_eq!(progress, Progress::Redirected { address: "[2001:db8::1]:3260".into(), permanent });
    }
}

#[test]
fn a_redirection_to_nowhere_is_a_refusal() {
    for text in ["", "TargetAddress=\0", "TargetAddress=a b\0", "TargetAddress"] {
        let mut lonely = lonely();
        lonely.response.status = LoginStatus::TargetMovedTemporarily;
        assert_eq!(lonely.fails(text), Failure::Refused(LoginStatus::TargetMovedTemporarily), "{text}");
    }
}

#[test]
fn a_refusal_says_what_would_help() {
    for (status, remedy) in [
        (LoginStatus::NotFound, Remedy::Reconfigure),
        (LoginStatus::AuthenticationFailure, Remedy::Reconfigure),
        (LoginStatus::ServiceUnavailable, Remedy::RetryLater),
        (LoginStatus::Unassigned { class: 3, detail: 9 }, Remedy::RetryLater),
    ] {
        let mut lonely = lonely();
        lonely.response.status = status;
        assert_eq!(lonely.fails("").remedy(), remedy, "{status}");
    }
}

#[test]
fn a_new_session_without_a_handle_is_none() {
    let mut lonely = final_response(lonely());
    lonely.response.tsih = Tsih(0);
    assert_eq!(lonely.fails(""), Failure::NoHandle);
}

#[test]
fn a_stage_that_was_not_asked_for_is_refused() {
    let mut lonely = Lonely::new(Config { credentials: Some(one_way()), ..config() });
    lonely.response.next_stage = Some(Stage::FullFeaturePhase);
    assert_eq!(lonely.fails("AuthMethod=None\0"), Failure::Stage);
}

#[test]
fn the_last_response_must_not_ask_anything() {
    let mut asking = final_response(lonely());
    assert_eq!(asking.fails("TaskReporting=RFC3720\0"), Failure::Stage);
    let mut telling = final_response(lonely());
    assert!(matches!(telling.answer("X-com.example.build=7\0"), Progress::Established(_)));
}

#[test]
fn answers_that_nobody_gave_leave_the_defaults() {
    let Progress::Established(established) = final_response(lonely()).answer("") else { panic!() };
    assert_eq!(established.session.max_connections, 1);
    assert_eq!(established.connection.send_segment_bytes_max, 8192);
    assert!(established.session.initial_r2t);
}

#[test]
fn an_answer_against_the_rules_is_refused() {
    let failure = lonely().fails("MaxConnections=65\0");
    assert!(matches!(failure, Failure::Negotiation(NegotiationError::InvalidAnswer(_))));
    assert_eq!(failure.remedy(), Remedy::None);
    assert!(matches!(lonely().fails("MaxBurstLength=512\0MaxBurstLength=512\0"), Failure::Negotiation(_)));
}

#[test]
fn another_pdu_and_another_task_are_refused() {
    let mut bhs = [0; Header::BHS_BYTES];
    bhs[0] = 0x25;
    let progress = lonely().login.receive(&Header::new(bhs), &[]);
    assert_eq!(progress, Progress::Refused(Failure::NotALogin));
    let mut lonely = lonely();
    lonely.response.itt = Itt(3);
    assert_eq!(lonely.fails(""), Failure::Tag);
}

#[test]
fn a_version_that_was_not_offered_is_refused() {
    let mut lonely = lonely();
    lonely.response.version_active = 1;
    assert_eq!(lonely.fails(""), Failure::Version(1));
}

#[test]
fn the_alias_is_told() {
    let mut lonely = lonely();
    lonely.answer("TargetPortalGroupTag=1\0TargetAlias=a disk\0");
    assert_eq!(lonely.login.target_alias(), Some("a disk"));
}
