//! Whatever arrives, a login neither panics nor grows without bound nor lets anyone in unproven.

use crate::world;
use crate::world::{Alone, Lonely, config, mutual, one_way, place};
use pdu::{Cid, Header, LoginStatus, Stage, Tsih};
use proptest::prelude::*;
use ropewalk_session::login::{initiator, target};
use ropewalk_session::negotiation::rule::RULES;

/// Text with keys that exist and values that are nearly right.
fn plausible_text() -> impl Strategy<Value = Vec<u8>> {
    let key = (0..RULES.len()).prop_map(|row| RULES[row].name.to_owned());
    let value = prop_oneof![
        Just("Yes".to_owned()),
        Just("No".to_owned()),
        Just("None".to_owned()),
        Just("CHAP".to_owned()),
        Just("CRC32C,None".to_owned()),
        Just("5".to_owned()),
        Just("Discovery".to_owned()),
        Just("Reject".to_owned()),
        Just("NotUnderstood".to_owned()),
        Just("Irrelevant".to_owned()),
        Just(world::TARGET.to_owned()),
        any::<u32>().prop_map(|number| number.to_string()),
        (0_u32..4000).prop_map(|number| number.to_string()),
        "0x[0-9a-f]{0,40}",
        "\\PC{0,40}",
    ];
    let pair = (key, value).prop_map(|(key, value)| format!("{key}={value}\0"));
    proptest::collection::vec(pair, 0..6).prop_map(|pairs| pairs.concat().into_bytes())
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => plausible_text(),
        1 => proptest::collection::vec(any::<u8>(), 0..200),
        1 => Just(world::NAMES.as_bytes().to_vec()),
    ]
}

fn any_stage() -> impl Strategy<Value = Stage> {
    prop_oneof![
        Just(Stage::SecurityNegotiation),
        Just(Stage::OperationalNegotiation),
        Just(Stage::FullFeaturePhase)
    ]
}

/// Most of the time the stage that fits, else any.
type Step = (Option<Stage>, Option<Stage>, bool, Vec<u8>);

fn any_step() -> impl Strategy<Value = Step> {
    let odd_stage = proptest::option::weighted(0.1, any_stage());
    let next = proptest::option::of(any_stage());
    (odd_stage, next, proptest::bool::weighted(0.1), any_text())
}

fn any_bhs() -> impl Strategy<Value = [u8; Header::BHS_BYTES]> {
    proptest::array::uniform32(any::<u8>()).prop_flat_map(|first| {
        proptest::array::uniform16(any::<u8>()).prop_map(move |last| {
            let mut bhs = [0; Header::BHS_BYTES];
            bhs[..32].copy_from_slice(&first);
            bhs[32..].copy_from_slice(&last);
            bhs
        })
    })
}

proptest! {
    #[test]
    fn arbitrary_headers_and_data_are_survived_by_both(
        bhs in any_bhs(),
        opcode in prop_oneof![Just(0x43_u8), Just(0x23_u8), any::<u8>()],
        data in proptest::collection::vec(any::<u8>(), 0..9000),
    ) {
        let mut bhs = bhs;
        bhs[0] = opcode;
        bhs[4] = 0;
        let header = Header::new(bhs);
        let mut alone = Alone::security();
        alone.login.receive(&header, &data, &alone.directory);
        Lonely::new(config()).login.receive(&header, &data);
    }

    #[test]
    fn nobody_gets_past_a_target_that_demands_a_proof(steps in proptest::collection::vec(any_step(), 1..12)) {
        let mut alone = Alone::security();
        alone.exchange(world::NAMES);
        for (odd_stage, next, continued, text) in steps {
            alone.request.current_stage = odd_stage.unwrap_or(Stage::SecurityNegotiation);
            alone.request.next_stage = if continued { None } else { next };
            alone.request.continued = continued;
            match alone.send(&text) {
                target::Progress::Reply(reply) => {
                    prop_assert_eq!(world::read(&reply).0.next_stage, None);
                }
                target::Progress::Admit(_) => prop_assert!(false, "admitted"),
                target::Progress::Refused { .. } => break,
            }
        }
    }

    #[test]
    fn an_open_target_survives_every_initiator(steps in proptest::collection::vec(any_step(), 1..12)) {
        let mut alone = Alone::new();
        let mut stage = Stage::SecurityNegotiation;
        for (odd_stage, next, continued, text) in steps {
            alone.request.current_stage = odd_stage.unwrap_or(stage);
            alone.request.next_stage = if continued { None } else { next };
            alone.request.continued = continued;
            match alone.send(&text) {
                target::Progress::Reply(reply) => {
                    let response = world::read(&reply).0;
                    prop_assert!(response.next_stage.is_none() || alone.request.next_stage.is_some());
                    stage = response.next_stage.unwrap_or(stage);
                }
                target::Progress::Admit(_) => {
                    let (_, established) = alone.login.admit(Ok(place(1)));
                    let session = established.unwrap().session;
                    prop_assert!(session.first_burst_bytes <= session.max_burst_bytes
                        || (session.initial_r2t && !session.immediate_data)
                        || session.session_type == ropewalk_session::parameters::SessionType::Discovery);
                    break;
                }
                target::Progress::Refused { .. } => break,
            }
        }
    }

    #[test]
    fn an_initiator_survives_every_target(
        steps in proptest::collection::vec(any_step(), 1..12),
        (credentials, insists) in
            prop_oneof![Just((None, false)), Just((Some(one_way()), false)), Just((Some(mutual()), true))],
    ) {
        let mut lonely = Lonely::new(initiator::Config { credentials, ..config() });
        for (odd_stage, next, continued, text) in steps {
            let stage = lonely.request.current_stage;
            lonely.response.current_stage = odd_stage.unwrap_or(stage);
            lonely.response.next_stage = if continued { None } else { next };
            lonely.response.continued = continued;
            lonely.response.tsih = Tsih(1);
            let text = String::from_utf8_lossy(&text).into_owned();
            match lonely.answer(&text) {
                initiator::Progress::Send(_) => {
                    let later = lonely.request.current_stage == Stage::OperationalNegotiation;
                    prop_assert!(!(insists && later), "led past the target's proof");
                }
                initiator::Progress::Established(established) => {
                    let session = established.session;
                    prop_assert!(session.first_burst_bytes <= session.max_burst_bytes);
                    break;
                }
                _ => break,
            }
        }
    }
}

#[test]
fn a_refused_login_stays_refused_whatever_comes_after() {
    let mut alone = Alone::security();
    alone.request.current_stage = Stage::OperationalNegotiation;
    alone.request.cid = Cid(1);
    assert_eq!(alone.refused(world::NAMES).0, Some(LoginStatus::AuthenticationFailure));
    alone.request.next_stage = Some(Stage::FullFeaturePhase);
    assert!(matches!(alone.send(b""), target::Progress::Refused { .. }));
    assert_eq!(alone.login.admit(Ok(place(1))).1, None);
}
