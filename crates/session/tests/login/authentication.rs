//! CHAP between both logins, and against peers that cheat.

use crate::world::{
    Alone, Configured, Lonely, NAMES, Outcome, account, config, log_in, mutual, one_way, place, value,
};
use pdu::{LoginStatus, Stage};
use ropewalk_session::chap::{Algorithm, Algorithms, ChapError, Credentials};
use ropewalk_session::login::initiator::{Config, Failure, Remedy};
use ropewalk_session::login::target::Refusal;
use ropewalk_session::parameters::Offer;

fn authenticate(initiator: Option<Credentials>, target: Option<Credentials>) -> Outcome {
    let config = Config { credentials: initiator, ..config() };
    let directory = Configured { credentials: target, ..Configured::default() };
    log_in(config, Offer::default(), &directory, Ok(place(9)))
}

const REFUSED: Failure = Failure::Refused(LoginStatus::AuthenticationFailure);

#[test]
fn an_initiator_that_knows_the_secret_is_let_in() {
    let outcome = authenticate(Some(one_way()), Some(one_way()));
    assert_eq!(outcome.requests, 4);
    outcome.agreed();
}

#[test]
fn both_prove_themselves_where_both_can() {
    authenticate(Some(mutual()), Some(mutual())).agreed();
}

#[test]
fn a_target_that_can_prove_itself_does_not_insist_on_being_asked() {
    authenticate(Some(one_way()), Some(mutual())).agreed();
}

#[test]
fn a_wrong_secret_or_name_is_refused() {
    for wrong in [account("alice", "what bob has heard"), account("bob", "what alice knows")] {
        let outcome = authenticate(Some(Credentials::one_way(wrong)), Some(one_way()));
        assert_eq!(outcome.initiator.unwrap_err(), REFUSED);
        assert_eq!(outcome.target.unwrap_err(), Some(Refusal::Authentication(ChapError::WrongResponse)));
    }
}

#[test]
fn an_initiator_without_credentials_is_refused_where_they_are_demanded() {
    let outcome = authenticate(None, Some(one_way()));
    assert_eq!(outcome.initiator.unwrap_err(), REFUSED);
    assert_eq!(outcome.target.unwrap_err(), Some(Refusal::AuthenticationSkipped));
}

#[test]
fn one_way_credentials_are_not_needed_where_nothing_is_demanded() {
    let outcome = authenticate(Some(one_way()), None);
    assert_eq!(outcome.requests, 2);
    outcome.agreed();
}

#[test]
fn an_initiator_that_insists_on_the_targets_proof_takes_no_less() {
    assert_eq!(authenticate(Some(mutual()), None).initiator.unwrap_err(), Failure::AuthMethod);
    let outcome = authenticate(Some(mutual()), Some(one_way()));
    assert_eq!(outcome.initiator.unwrap_err(), REFUSED);
    assert_eq!(outcome.target.unwrap_err(), Some(Refusal::Authentication(ChapError::NoAccount)));
}

#[test]
fn a_target_with_another_secret_is_found_out() {
    let impostor =
        Credentials::mutual(account("alice", "what alice knows"), account("disk", "a mere guess of it"));
    let failure = authenticate(Some(mutual()), Some(impostor.unwrap())).initiator.unwrap_err();
    assert_eq!(failure, Failure::TargetUnproven(ChapError::WrongResponse));
    assert_eq!(failure.remedy(), Remedy::Reconfigure);
}

fn challenged(credentials: Credentials) -> (Alone, String) {
    let mut alone = Alone::security();
    alone.directory.credentials = Some(credentials);
    alone.exchange(&format!("{NAMES}AuthMethod=CHAP,None\0"));
    let (_, text) = alone.exchange("CHAP_A=9,5\0");
    assert_eq!(value(&text, "CHAP_A"), Some("5"));
    (alone, text)
}

#[test]
fn a_reflected_challenge_is_refused() {
    let (mut alone, text) = challenged(mutual());
    let (identifier, challenge) = (value(&text, "CHAP_I").unwrap(), value(&text, "CHAP_C").unwrap());
    // Even a right response does not help; it is made as an initiator would.
    let theirs = ropewalk_session::chap::Challenge::parse(identifier, challenge, None).unwrap();
    let response = theirs.answer(Algorithm::Md5, &account("alice", "what alice knows"));
    let response = pdu::text_value::hexadecimal_text(&response);
    let (status, reason) =
        alone.refused(&format!("CHAP_N=alice\0CHAP_R={response}\0CHAP_I={identifier}\0CHAP_C={challenge}\0"));
    assert_eq!(status, Some(LoginStatus::AuthenticationFailure));
    assert_eq!(reason, Refusal::Authentication(ChapError::Reflected));
}

#[test]
fn the_targets_own_response_sent_back_is_refused() {
    let (mut alone, text) = challenged(mutual());
    let (identifier, challenge) = (value(&text, "CHAP_I").unwrap(), value(&text, "CHAP_C").unwrap());
    let theirs = ropewalk_session::chap::Challenge::parse(identifier, challenge, None).unwrap();
    let response = theirs.answer(Algorithm::Md5, &account("disk", "what the disk knows"));
    let response = pdu::text_value::hexadecimal_text(&response);
    let (status, _) = alone.refused(&format!("CHAP_N=disk\0CHAP_R={response}\0"));
    assert_eq!(status, Some(LoginStatus::AuthenticationFailure));
}

#[test]
fn steps_out_of_turn_are_refused() {
    let table: [&[&str]; 6] = [
        &["CHAP_N=alice\0CHAP_R=0x00\0"],
        &["CHAP_A=5\0"],
        &["AuthMethod=CHAP\0", "CHAP_N=alice\0CHAP_R=0x00\0"],
        &["AuthMethod=CHAP\0", "CHAP_A=5\0CHAP_N=alice\0CHAP_R=0x00\0"],
        &["AuthMethod=CHAP\0", "CHAP_A=5\0", "CHAP_N=alice\0"],
        &["AuthMethod=CHAP\0", "CHAP_A=9\0"],
    ];
    for steps in table {
        let mut alone = Alone::security();
        let (last, first) = steps.split_last().unwrap();
        alone.exchange(NAMES);
        for step in first {
            alone.exchange(step);
        }
        assert_eq!(alone.refused(last).0, Some(LoginStatus::AuthenticationFailure), "{steps:?}");
    }
}

#[test]
fn the_stage_cannot_be_left_before_the_proof() {
    let mut alone = Alone::security();
    alone.exchange(&format!("{NAMES}AuthMethod=CHAP\0"));
    alone.request.next_stage = Some(Stage::FullFeaturePhase);
    assert_eq!(alone.exchange("").0.next_stage, None);
    alone.exchange("CHAP_A=5\0");
    assert_eq!(alone.exchange("").0.next_stage, None);
    let mut alone = Alone::security();
    alone.request.next_stage = Some(Stage::OperationalNegotiation);
    assert_eq!(alone.refused(NAMES).1, Refusal::AuthenticationSkipped);
}

#[test]
fn a_target_that_demands_a_proof_takes_no_other_method() {
    for methods in ["None", "KRB5,SRP", "Z-com.example.magic", "chap", ""] {
        let mut alone = Alone::security();
        let (status, _) = alone.refused(&format!("{NAMES}AuthMethod={methods}\0"));
        assert_eq!(status, Some(LoginStatus::AuthenticationFailure), "{methods}");
    }
}

#[test]
fn a_target_that_demands_a_proof_is_not_talked_out_of_it_in_the_operational_stage() {
    for method in ["None", "CHAP", "CHAP,None"] {
        let mut alone = Alone::security();
        alone.request.current_stage = Stage::OperationalNegotiation;
        let (status, _) = alone.refused(&format!("{NAMES}AuthMethod={method}\0"));
        assert_eq!(status, Some(LoginStatus::AuthenticationFailure), "{method}");
    }
}

#[test]
fn a_method_is_negotiated_in_one_stage_only() {
    let mut alone = Alone::new();
    alone.request.current_stage = Stage::SecurityNegotiation;
    alone.request.next_stage = Some(Stage::OperationalNegotiation);
    alone.exchange(&format!("{NAMES}AuthMethod=None\0"));
    alone.request.current_stage = Stage::OperationalNegotiation;
    assert_eq!(alone.refused("AuthMethod=None\0").0, Some(LoginStatus::InitiatorError));
}

#[test]
fn an_initiator_does_not_let_itself_be_led_past_the_targets_proof() {
    let config = || Config { credentials: Some(mutual()), ..config() };
    let mut lonely = Lonely::new(config());
    assert_eq!(value(&lonely.text, "AuthMethod"), Some("CHAP"));
    lonely.response.next_stage = Some(Stage::OperationalNegotiation);
    assert_eq!(lonely.fails(""), Failure::TargetUnproven(ChapError::Incomplete));

    let mut lonely = Lonely::new(config());
    lonely.answer("AuthMethod=CHAP\0");
    lonely.answer("CHAP_A=5\0CHAP_I=1\0CHAP_C=0x00112233445566778899aabbccddeeff\0");
    assert!(value(&lonely.text, "CHAP_C").is_some());
    lonely.response.next_stage = Some(Stage::OperationalNegotiation);
    assert_eq!(lonely.fails(""), Failure::TargetUnproven(ChapError::Incomplete));
}

#[test]
fn an_initiator_does_not_take_its_own_response_for_the_targets() {
    let mut lonely = Lonely::new(Config { credentials: Some(mutual()), ..config() });
    lonely.answer("AuthMethod=CHAP\0");
    lonely.answer("CHAP_A=5\0CHAP_I=1\0CHAP_C=0x00112233445566778899aabbccddeeff\0");
    let (identifier, challenge) =
        (value(&lonely.text, "CHAP_I").unwrap(), value(&lonely.text, "CHAP_C").unwrap());
    let own = ropewalk_session::chap::Challenge::parse(identifier, challenge, None).unwrap();
    let response = own.answer(Algorithm::Md5, &account("alice", "what alice knows"));
    let response = pdu::text_value::hexadecimal_text(&response);
    let failure = lonely.fails(&format!("CHAP_N=disk\0CHAP_R={response}\0"));
    assert_eq!(failure, Failure::TargetUnproven(ChapError::WrongResponse));
}

#[test]
fn an_initiator_refuses_its_own_challenge() {
    let mut lonely = Lonely::new(Config { credentials: Some(mutual()), ..config() });
    lonely.answer("AuthMethod=CHAP\0");
    let own = pdu::text_value::hexadecimal_text(&config().entropy[1..17]);
    let failure = lonely.fails(&format!("CHAP_A=5\0CHAP_I=1\0CHAP_C={own}\0"));
    assert_eq!(failure, Failure::TargetUnproven(ChapError::Reflected));
}

fn algorithms(text: &str) -> Algorithms {
    text.parse().unwrap()
}

#[test]
fn the_strongest_algorithm_that_both_allow_proves_both_ends() {
    let table = [
        ("sha3-256,sha256,sha1,md5", "sha3-256,sha256,sha1,md5", "8"),
        ("sha3-256,sha256,sha1,md5", "sha256,md5", "7"),
        ("sha1,md5", "sha3-256,md5,sha1", "6"),
        ("md5", "sha3-256,sha256,sha1,md5", "5"),
    ];
    for (offered, allowed, chosen) in table {
        let mut alone = Alone::security();
        alone.directory.credentials = Some(mutual().offering(algorithms(allowed)));
        alone.exchange(&format!("{NAMES}AuthMethod=CHAP\0"));
        let (_, text) = alone.exchange(&format!("CHAP_A={}\0", algorithms(offered).offer()));
        assert_eq!(value(&text, "CHAP_A"), Some(chosen));
        let ours = mutual().offering(algorithms(offered));
        authenticate(Some(ours), Some(mutual().offering(algorithms(allowed)))).agreed();
    }
}

#[test]
fn an_algorithm_that_the_targets_policy_forbids_is_not_used() {
    let strict = one_way().offering(algorithms("sha3-256,sha256"));
    let outcome = authenticate(Some(one_way().offering(algorithms("sha1,md5"))), Some(strict));
    assert_eq!(outcome.initiator.unwrap_err(), REFUSED);
    assert_eq!(outcome.target.unwrap_err(), Some(Refusal::Authentication(ChapError::Algorithm)));
}

#[test]
fn an_initiator_takes_no_algorithm_that_it_did_not_offer() {
    for answer in ["5", "7,8", "9"] {
        let credentials = one_way().offering(algorithms("sha3-256,sha256"));
        let mut lonely = Lonely::new(Config { credentials: Some(credentials), ..config() });
        lonely.answer("AuthMethod=CHAP\0");
        assert_eq!(value(&lonely.text, "CHAP_A"), Some("8,7"));
        let failure = lonely.fails(&format!("CHAP_A={answer}\0CHAP_I=1\0CHAP_C=0x0011223344556677\0"));
        assert_eq!(failure, Failure::TargetUnproven(ChapError::Algorithm), "{answer}");
    }
}

#[test]
fn an_initiator_knows_which_algorithm_a_refusal_was_about() {
    let mut lonely = Lonely::new(Config { credentials: Some(one_way()), ..config() });
    lonely.answer("AuthMethod=CHAP\0");
    assert_eq!(lonely.login.chap_algorithm(), None);
    lonely.answer("CHAP_A=7\0CHAP_I=1\0CHAP_C=0x0011223344556677\0");
    assert_eq!(lonely.login.chap_algorithm(), Some(Algorithm::Sha256));
}

#[test]
fn the_user_is_known_when_it_is_proven_and_not_before() {
    let (mut alone, text) = challenged(mutual());
    assert!(alone.login.awaits_proof());
    assert_eq!(alone.login.user(), None);
    let (identifier, challenge) = (value(&text, "CHAP_I").unwrap(), value(&text, "CHAP_C").unwrap());
    let theirs = ropewalk_session::chap::Challenge::parse(identifier, challenge, None).unwrap();
    let response = theirs.answer(Algorithm::Md5, &account("alice", "what alice knows"));
    let response = pdu::text_value::base64_text(&response);
    alone.exchange(&format!("CHAP_N=alice\0CHAP_R={response}\0"));
    assert_eq!(alone.login.user(), Some("alice"));
    assert!(!alone.login.awaits_proof());
}

#[test]
fn an_unknown_user_and_a_wrong_secret_get_the_same_answer() {
    let answers = ["alice", "nobody"].map(|user| {
        let (mut alone, _) = challenged(mutual());
        let response = "0x00112233445566778899aabbccddeeff";
        alone.refused(&format!("CHAP_N={user}\0CHAP_R={response}\0"))
    });
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].1, Refusal::Authentication(ChapError::WrongResponse));
}

#[test]
fn a_discovery_session_is_authenticated_like_any_other() {
    for (ours, accepted) in [(Some(mutual()), true), (Some(one_way()), true), (None, false)] {
        let config = Config { target_name: None, credentials: ours, ..config() };
        let directory = Configured { credentials: Some(mutual()), ..Configured::default() };
        let outcome = log_in(config, Offer::default(), &directory, Ok(place(9)));
        assert_eq!(outcome.initiator.is_ok(), accepted);
        assert_eq!(outcome.target.is_ok(), accepted);
    }
}
