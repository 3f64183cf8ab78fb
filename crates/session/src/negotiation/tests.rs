//! Tests of each key's rule, as the peer sees it.

use super::rule::RULES;
use super::{Negotiation, NegotiationError, Role};
use crate::parameters::{DigestPreference, Offer, SessionType, SplitLanes};
use pdu::{Stage, TextWriter, text_keys};

type Pair<'a> = (&'a str, &'a str);

fn negotiation(role: Role, offer: Offer) -> Negotiation {
    Negotiation::new(role, true, SessionType::Normal, offer)
}

fn target(offer: Offer) -> Negotiation {
    negotiation(Role::Target, offer)
}

/// An initiator that has sent all its proposals.
fn initiator(offer: Offer) -> Negotiation {
    let mut negotiation = negotiation(Role::Initiator, offer);
    let mut text = TextWriter::new();
    negotiation.declare(&mut text);
    negotiation.propose(&mut text);
    negotiation
}

fn hear(
    negotiation: &mut Negotiation,
    pairs: &[Pair<'_>],
) -> Result<Vec<(String, String)>, NegotiationError> {
    let mut answers = TextWriter::new();
    negotiation.receive(Stage::OperationalNegotiation, pairs, &mut answers)?;
    let pairs = text_keys::pairs(answers.bytes()).map(|pair| pair.unwrap());
    Ok(pairs.map(|(key, value)| (key.into(), value.into())).collect())
}

/// The single answer to a single key; empty if there is none.
fn answer(negotiation: &mut Negotiation, key: &str, value: &str) -> String {
    let answers = hear(negotiation, &[(key, value)]).unwrap();
    answers.into_iter().map(|(_, value)| value).collect()
}

const OFFER: Offer = Offer {
    max_connections: 8,
    initial_r2t: false,
    immediate_data: true,
    first_burst_bytes: 131_072,
    max_burst_bytes: 1_048_576,
    max_outstanding_r2t: 4,
    default_time2wait_s: 2,
    default_time2retain_s: 0,
    error_recovery_level: 0,
    receive_segment_bytes_max: 262_144,
    header_digest: DigestPreference::Accepted,
    data_digest: DigestPreference::Never,
    split: SplitLanes::None,
};

#[test]
fn a_proposal_is_answered_as_its_rule_says() {
    let table = [
        ("HeaderDigest", "CRC32C,None", "CRC32C"),
        ("HeaderDigest", "None,CRC32C", "None"),
        ("HeaderDigest", "Y-com.example.digest,CRC32C", "CRC32C"),
        ("HeaderDigest", "Y-com.example.digest", "Reject"),
        ("DataDigest", "CRC32C,None", "None"),
        ("DataDigest", "CRC32C", "Reject"),
        ("MaxConnections", "4", "4"),
        ("MaxConnections", "0x40", "8"),
        ("MaxConnections", "0", "Reject"),
        ("MaxConnections", "65536", "Reject"),
        ("MaxConnections", "1~4", "Reject"),
        ("InitialR2T", "Yes", "Yes"),
        ("InitialR2T", "No", "No"),
        ("InitialR2T", "no", "Reject"),
        ("ImmediateData", "Yes", "Yes"),
        ("ImmediateData", "No", "No"),
        ("MaxBurstLength", "16777215", "1048576"),
        ("MaxBurstLength", "512", "512"),
        ("MaxBurstLength", "511", "Reject"),
        ("MaxBurstLength", "16777216", "Reject"),
        ("FirstBurstLength", "1024", "1024"),
        ("FirstBurstLength", "262144", "131072"),
        ("DefaultTime2Wait", "0", "2"),
        ("DefaultTime2Wait", "3600", "3600"),
        ("DefaultTime2Wait", "3601", "Reject"),
        ("DefaultTime2Retain", "20", "0"),
        ("DataPDUInOrder", "No", "Yes"),
        ("DataSequenceInOrder", "No", "Yes"),
        ("ErrorRecoveryLevel", "2", "0"),
        ("ErrorRecoveryLevel", "3", "Reject"),
        ("MaxOutstandingR2T", "1", "1"),
        ("MaxOutstandingR2T", "65535", "4"),
        ("TaskReporting", "RFC3720,ResponseFence,FastAbort", "RFC3720"),
        ("TaskReporting", "FastAbort,ResponseFence,RFC3720", "ResponseFence"),
        ("TaskReporting", "ResponseFence", "ResponseFence"),
        ("TaskReporting", "FastAbort", "Reject"),
        ("iSCSIProtocolLevel", "2", "1"),
        ("iSCSIProtocolLevel", "0", "0"),
        ("OFMarker", "Yes", "Reject"),
        ("IFMarker", "No", "Reject"),
        ("OFMarkInt", "2048~4096", "Reject"),
        ("IFMarkInt", "2048", "Reject"),
        ("X-com.example.key", "anything", "NotUnderstood"),
        ("SomethingNew", "1", "NotUnderstood"),
        ("X#NodeArchitecture", "Example/1", ""),
        ("MaxRecvDataSegmentLength", "65536", ""),
        ("InitiatorAlias", "a host", ""),
    ];
    for (key, proposal, expected) in table {
        assert_eq!(answer(&mut target(OFFER), key, proposal), expected, "{key}={proposal}");
    }
}

#[test]
fn every_negotiated_key_is_answered_with_something_else_than_incomprehension() {
    for rule in RULES.iter().filter(|rule| rule.kind.is_negotiated()) {
        let answer = answer(&mut target(OFFER), rule.name, "nonsense");
        assert_eq!(answer, "Reject", "{}", rule.name);
    }
}

#[test]
fn in_a_discovery_session_what_has_no_meaning_there_is_irrelevant() {
    for rule in RULES.iter().filter(|rule| rule.kind.is_negotiated() && rule.normal_session_only) {
        let mut target = target(OFFER);
        hear(&mut target, &[("SessionType", "Discovery")]).unwrap();
        assert_eq!(answer(&mut target, rule.name, "1"), "Irrelevant", "{}", rule.name);
    }
}

#[test]
fn a_discovery_session_has_error_recovery_level_0() {
    let mut target = target(Offer { error_recovery_level: 2, ..OFFER });
    hear(&mut target, &[("SessionType", "Discovery")]).unwrap();
    assert_eq!(answer(&mut target, "ErrorRecoveryLevel", "2"), "0");
}

#[test]
fn keys_are_answered_in_the_order_in_which_they_depend_on_each_other() {
    let mut target = target(Offer { error_recovery_level: 2, ..OFFER });
    let answers = hear(
        &mut target,
        &[
            ("MaxOutstandingR2T", "4"),
            ("ErrorRecoveryLevel", "2"),
            ("FirstBurstLength", "65536"),
            ("MaxBurstLength", "8192"),
        ],
    )
    .unwrap();
    let expected = [
        ("MaxBurstLength", "8192"),
        ("FirstBurstLength", "8192"),
        ("ErrorRecoveryLevel", "2"),
        ("MaxOutstandingR2T", "1"),
    ];
    assert_eq!(answers, expected.map(|(key, value)| (key.into(), value.into())));
}

#[test]
fn the_first_burst_is_irrelevant_where_nothing_may_be_unsolicited() {
    let mut target = target(OFFER);
    let pairs = [("InitialR2T", "Yes"), ("ImmediateData", "No"), ("FirstBurstLength", "4096")];
    let answers = hear(&mut target, &pairs).unwrap();
    assert_eq!(answers.last().unwrap().1, "Irrelevant");
}

#[test]
fn a_key_that_comes_twice_ends_the_negotiation() {
    for key in ["MaxBurstLength", "MaxRecvDataSegmentLength", "OFMarker", "X#NodeArchitecture"] {
        let mut target = target(OFFER);
        hear(&mut target, &[(key, "1024")]).unwrap();
        let again = hear(&mut target, &[(key, "2048")]);
        assert!(matches!(again, Err(NegotiationError::Repeated(_))), "{key}");
    }
}

#[test]
fn a_declaration_that_is_repeated_word_for_word_is_heard_once() {
    for (key, value) in [("SessionType", "Normal"), ("MaxRecvDataSegmentLength", "1024")] {
        let mut target = target(OFFER);
        let mut answers = TextWriter::new();
        let pairs = [(key, value), ("ImmediateData", "Yes"), (key, value)];
        let declared = target.receive(Stage::OperationalNegotiation, &pairs, &mut answers).unwrap();
        assert!(declared.len() <= 1, "{declared:?}");
        assert_eq!(target.receive(Stage::OperationalNegotiation, &pairs[..1], &mut answers), Ok(vec![]));
    }
}

#[test]
fn a_declaration_that_contradicts_one_before_ends_the_negotiation() {
    for values in [["Normal", "Discovery", "Normal"], ["Normal", "Normal", "Discovery"]] {
        let heard = hear(&mut target(OFFER), &values.map(|value| ("SessionType", value)));
        assert!(matches!(heard, Err(NegotiationError::Repeated(_))), "{values:?}");
    }
}

#[test]
fn a_proposal_that_is_repeated_ends_the_negotiation() {
    let heard = hear(&mut target(OFFER), &[("MaxBurstLength", "1024"), ("MaxBurstLength", "1024")]);
    assert!(matches!(heard, Err(NegotiationError::Repeated(_))));
}

#[test]
fn a_key_from_the_wrong_side_ends_the_negotiation() {
    for key in ["TargetAlias", "TargetAddress", "TargetPortalGroupTag"] {
        let heard = hear(&mut target(OFFER), &[(key, "1")]);
        assert!(matches!(heard, Err(NegotiationError::WrongSender(_))), "{key}");
    }
    for key in ["InitiatorName", "InitiatorAlias", "TargetName", "SessionType"] {
        let heard = hear(&mut initiator(OFFER), &[(key, "Normal")]);
        assert!(matches!(heard, Err(NegotiationError::WrongSender(_))), "{key}");
    }
}

#[test]
fn a_key_of_another_stage_ends_the_negotiation() {
    for key in ["CHAP_A", "CHAP_N", "SendTargets"] {
        let heard = hear(&mut target(OFFER), &[(key, "CHAP")]);
        assert!(matches!(heard, Err(NegotiationError::WrongStage(_))), "{key}");
    }
    let mut answers = TextWriter::new();
    for rule in RULES.iter().filter(|rule| rule.kind.is_negotiated()) {
        let pairs = [(rule.name, "1")];
        let heard = target(OFFER).receive(Stage::SecurityNegotiation, &pairs, &mut answers);
        assert_eq!(heard, Err(NegotiationError::WrongStage(rule.key)));
    }
}

#[test]
fn answer_words_cannot_be_proposed() {
    for word in ["Reject", "Irrelevant", "NotUnderstood"] {
        let heard = hear(&mut target(OFFER), &[("HeaderDigest", word)]);
        assert!(matches!(heard, Err(NegotiationError::ReservedWord(_))), "{word}");
    }
}

#[test]
fn a_declaration_outside_its_range_ends_the_negotiation() {
    for value in ["511", "16777216", "-1", "many", ""] {
        let heard = hear(&mut target(OFFER), &[("MaxRecvDataSegmentLength", value)]);
        assert!(matches!(heard, Err(NegotiationError::InvalidDeclaration(_))), "{value}");
    }
}

#[test]
fn a_joining_connection_cannot_change_what_holds_for_its_session() {
    let mut target = Negotiation::new(Role::Target, false, SessionType::Normal, OFFER);
    assert_eq!(answer(&mut target, "MaxBurstLength", "512"), "Reject");
    assert_eq!(answer(&mut target, "HeaderDigest", "CRC32C"), "CRC32C");
    assert_eq!(target.finish().unwrap().0.max_burst_bytes, 262_144);
}

#[test]
fn an_initiator_takes_only_answers_that_follow_from_its_proposals() {
    let table = [
        ("MaxBurstLength", "1048577"),
        ("MaxBurstLength", "511"),
        ("MaxConnections", "9"),
        ("HeaderDigest", "Y-com.example.digest"),
        ("DataDigest", "CRC32C"),
        ("DefaultTime2Wait", "1"),
        ("DataPDUInOrder", "No"),
        ("InitialR2T", "Perhaps"),
    ];
    for (key, value) in table {
        let heard = hear(&mut initiator(OFFER), &[(key, value)]);
        assert!(matches!(heard, Err(NegotiationError::InvalidAnswer(_))), "{key}={value}");
    }
}

#[test]
fn what_was_not_answered_keeps_its_default() {
    let (session, connection) = initiator(OFFER).finish().unwrap();
    assert_eq!(session.max_connections, 1);
    assert!(session.initial_r2t);
    assert!(session.immediate_data);
    assert_eq!(session.first_burst_bytes, 65_536);
    assert_eq!(session.max_burst_bytes, 262_144);
    assert_eq!(connection.send_segment_bytes_max, 8192);
    assert_eq!(connection.receive_segment_bytes_max, 262_144);
}

#[test]
fn a_boolean_that_its_proposal_decides_needs_no_answer() {
    let offer = Offer { immediate_data: false, initial_r2t: true, ..OFFER };
    let (session, _) = initiator(offer).finish().unwrap();
    assert!(!session.immediate_data);
    assert!(session.initial_r2t);
}

#[test]
fn a_standard_key_must_be_understood_but_a_later_one_need_not() {
    let heard = hear(&mut initiator(OFFER), &[("MaxBurstLength", "NotUnderstood")]);
    assert!(matches!(heard, Err(NegotiationError::NotUnderstood(_))));
}

#[test]
fn bursts_that_contradict_each_other_end_the_negotiation_at_the_target() {
    let mut target = target(OFFER);
    hear(&mut target, &[("FirstBurstLength", "65536")]).unwrap();
    hear(&mut target, &[("MaxBurstLength", "8192")]).unwrap();
    assert!(matches!(
        target.finish(),
        Err(NegotiationError::NoAgreement(_) | NegotiationError::Contradiction(..))
    ));
}

#[test]
fn an_initiator_keeps_to_the_smaller_of_two_bursts() {
    let mut initiator = initiator(OFFER);
    hear(&mut initiator, &[("FirstBurstLength", "65536"), ("MaxBurstLength", "8192")]).unwrap();
    assert_eq!(initiator.finish().unwrap().0.first_burst_bytes, 8192);
}

#[test]
fn a_target_proposes_what_it_cannot_leave_to_the_default() {
    let offer = Offer {
        first_burst_bytes: 8192,
        max_burst_bytes: 65_536,
        header_digest: DigestPreference::Required,
        ..OFFER
    };
    let mut target = target(offer);
    let mut text = TextWriter::new();
    target.propose(&mut text);
    let proposed: Vec<_> = text_keys::pairs(text.bytes()).map(|pair| pair.unwrap()).collect();
    let expected = [("HeaderDigest", "CRC32C"), ("MaxBurstLength", "65536"), ("FirstBurstLength", "8192")];
    assert_eq!(proposed, expected);
    assert!(target.awaits_answer());
    hear(
        &mut target,
        &[("HeaderDigest", "CRC32C"), ("MaxBurstLength", "65536"), ("FirstBurstLength", "512")],
    )
    .unwrap();
    assert!(target.is_settled());
    assert_eq!(target.finish().unwrap().0.first_burst_bytes, 512);
}

#[test]
fn a_digest_that_one_side_requires_and_the_other_refuses_is_no_agreement() {
    let mut target = target(Offer { header_digest: DigestPreference::Required, ..OFFER });
    assert_eq!(answer(&mut target, "HeaderDigest", "None"), "Reject");
    assert!(matches!(target.finish(), Err(NegotiationError::NoAgreement(_))));
}

#[test]
fn an_offer_outside_the_standard_is_brought_inside() {
    let offer = Offer { max_burst_bytes: 1024, first_burst_bytes: 1 << 30, max_connections: 0, ..OFFER };
    let mut initiator = negotiation(Role::Initiator, offer);
    let mut text = TextWriter::new();
    initiator.propose(&mut text);
    let proposed: Vec<_> = text_keys::pairs(text.bytes()).map(|pair| pair.unwrap()).collect();
    assert!(proposed.contains(&("FirstBurstLength", "1024")));
    assert!(proposed.contains(&("MaxConnections", "1")));
}

#[test]
fn more_keys_than_anyone_needs_end_the_negotiation() {
    let pairs = vec![("X-a", "1"); 129];
    assert_eq!(hear(&mut target(OFFER), &pairs), Err(NegotiationError::TooManyKeys));
}

/// What a target that splits up to three ways answers to an initiator's proposal.
fn split(proposals: &[Pair<'_>]) -> Vec<String> {
    let offer = Offer { split: SplitLanes::Three, error_recovery_level: 2, ..OFFER };
    let answers = hear(&mut target(offer), proposals).unwrap();
    answers.into_iter().map(|(_, value)| value).collect()
}

#[test]
fn a_split_session_has_as_many_connections_as_it_needs_and_recovers_nothing() {
    let key = "X-io.github.ropewalk.SplitLanes";
    assert_eq!(split(&[("MaxConnections", "8"), (key, "3,2,None")]), ["8", "3"]);
    assert_eq!(
        split(&[("ErrorRecoveryLevel", "2"), (key, "2,None"), ("MaxConnections", "2")]),
        ["2", "2", "0"]
    );
    assert_eq!(split(&[("MaxConnections", "2"), (key, "3,2,None")]), ["2", "2"]);
    assert_eq!(split(&[(key, "2,None"), ("ErrorRecoveryLevel", "2")]), ["None", "2"]);
}

#[test]
fn who_does_not_know_split_sessions_has_an_ordinary_one() {
    let mut initiator = initiator(Offer { split: SplitLanes::Two, ..OFFER });
    hear(&mut initiator, &[("X-io.github.ropewalk.SplitLanes", "NotUnderstood")]).unwrap();
    assert_eq!(initiator.finish().unwrap().0.split, SplitLanes::None);
}
