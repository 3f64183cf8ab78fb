//! Both logins against each other.

use crate::world::{Configured, INITIATOR, PORTAL_GROUP, TARGET, config, log_in, place};
use pdu::{Cid, CmdSn, LoginStatus, StatSn, Tsih};
use ropewalk_session::login::initiator::{Config, Failure, Joining, Remedy};
use ropewalk_session::login::target::Place;
use ropewalk_session::parameters::{DigestPreference, Established, Offer, SessionParameters, SessionType};

fn joining(session: SessionParameters) -> Config {
    let joining = Some(Joining { tsih: Tsih(9), session, replaced_exp_stat_sn: StatSn(77) });
    Config { joining, cid: Cid(8), cmd_sn: CmdSn(500), ..config() }
}

fn leading() -> Established {
    log_in(config(), Offer::default(), &Configured::default(), Ok(place(9))).agreed().0
}

#[test]
fn without_credentials_a_login_takes_one_round_trip() {
    let outcome = log_in(config(), Offer::default(), &Configured::default(), Ok(place(9)));
    assert_eq!(outcome.requests, 1);
    let (initiator, target) = outcome.agreed();
    assert_eq!(initiator.identity, target.identity);
    assert_eq!(initiator.identity.initiator_name, INITIATOR);
    assert_eq!(initiator.identity.target_name, TARGET);
    assert_eq!(initiator.identity.portal_group_tag, PORTAL_GROUP);
    assert_eq!((initiator.tsih, target.tsih), (Tsih(9), Tsih(9)));
    assert_eq!((initiator.cid, target.cid), (Cid(7), Cid(7)));
    assert_eq!((initiator.cmd_sn, target.cmd_sn), (CmdSn(100), CmdSn(100)));
    assert_eq!(initiator.stat_sn, target.stat_sn);
    assert_eq!(initiator.session, target.session);
}

#[test]
fn the_defaults_agree_on_what_fills_a_long_fat_network() {
    let session = leading().session;
    let offer = Offer::default();
    assert_eq!(session.max_connections, 64);
    assert!(!session.initial_r2t);
    assert!(session.immediate_data);
    assert_eq!(session.first_burst_bytes, offer.first_burst_bytes);
    assert_eq!(session.max_burst_bytes, offer.max_burst_bytes);
    assert_eq!(session.max_outstanding_r2t, offer.max_outstanding_r2t);
}

#[test]
fn each_end_sends_segments_as_long_as_the_other_takes() {
    let config =
        Config { offer: Offer { receive_segment_bytes_max: 65_536, ..Offer::default() }, ..config() };
    let offer = Offer { receive_segment_bytes_max: 1 << 20, ..Offer::default() };
    let (initiator, target) = log_in(config, offer, &Configured::default(), Ok(place(9))).agreed();
    assert_eq!(initiator.connection.send_segment_bytes_max, 1 << 20);
    assert_eq!(initiator.connection.receive_segment_bytes_max, 65_536);
    assert_eq!(target.connection.send_segment_bytes_max, 65_536);
    assert_eq!(target.connection.receive_segment_bytes_max, 1 << 20);
}

#[test]
fn digests_are_used_where_both_wishes_allow_it() {
    use DigestPreference::{Accepted, Never, Preferred, Required};
    let table = [
        (Accepted, Accepted, Some(false)),
        (Preferred, Accepted, Some(true)),
        (Required, Accepted, Some(true)),
        (Accepted, Required, Some(true)),
        (Never, Preferred, Some(false)),
        (Preferred, Never, Some(false)),
        (Required, Never, None),
        (Never, Required, None),
    ];
    for (ours, theirs, expected) in table {
        let wish = |digest| Offer { header_digest: digest, data_digest: digest, ..Offer::default() };
        let config = Config { offer: wish(ours), ..config() };
        let outcome = log_in(config, wish(theirs), &Configured::default(), Ok(place(9)));
        match expected {
            Some(expected) => {
                let (initiator, target) = outcome.agreed();
                assert_eq!(initiator.connection.header_digest, expected, "{ours:?} {theirs:?}");
                assert_eq!(target.connection.data_digest, expected, "{ours:?} {theirs:?}");
            }
            None => assert!(outcome.initiator.is_err(), "{ours:?} {theirs:?}"),
        }
    }
}

#[test]
fn a_discovery_session_names_no_target() {
    let config = Config { target_name: None, ..config() };
    let (initiator, target) = log_in(config, Offer::default(), &Configured::default(), Ok(place(4))).agreed();
    assert_eq!(initiator.session.session_type, SessionType::Discovery);
    assert_eq!(target.session, initiator.session);
    assert_eq!(target.session.max_connections, 1);
    assert_eq!(target.identity.target_name, "");
}

#[test]
fn a_connection_joins_with_its_own_digests_and_segments_and_the_sessions_bursts() {
    let session = leading().session;
    let mut config = joining(session);
    config.offer.header_digest = DigestPreference::Required;
    config.offer.receive_segment_bytes_max = 8192;
    config.offer.max_burst_bytes = 512;
    let place = Place { joined: Some(session), ..place(9) };
    let (initiator, target) = log_in(config, Offer::default(), &Configured::default(), Ok(place)).agreed();
    assert_eq!(initiator.session, session);
    assert_eq!(target.session, session);
    assert_eq!(target.replaced_exp_stat_sn, StatSn(77));
    assert!(initiator.connection.header_digest && target.connection.header_digest);
    assert_eq!(target.connection.send_segment_bytes_max, 8192);
    assert_eq!((initiator.tsih, target.tsih), (Tsih(9), Tsih(9)));
    assert_eq!(target.cid, Cid(8));
}

#[test]
fn an_initiator_finds_out_that_its_connection_did_not_join() {
    let outcome = log_in(joining(leading().session), Offer::default(), &Configured::default(), Ok(place(10)));
    let failure = outcome.initiator.unwrap_err();
    assert_eq!(failure, Failure::NotJoined { wanted: Tsih(9), found: Tsih(10) });
    assert_eq!(failure.remedy(), Remedy::NoMoreConnections);
}

#[test]
fn an_initiator_finds_out_that_its_portal_is_of_another_group() {
    let config = |wanted| Config { portal_group_tag: Some(wanted), ..joining(leading().session) };
    let log_in = |wanted| log_in(config(wanted), Offer::default(), &Configured::default(), Ok(place(9)));
    assert!(log_in(PORTAL_GROUP).initiator.is_ok());
    let failure = log_in(PORTAL_GROUP + 1).initiator.unwrap_err();
    assert_eq!(failure, Failure::OtherPortalGroup { wanted: PORTAL_GROUP + 1, found: PORTAL_GROUP });
    assert_eq!(failure.remedy(), Remedy::NewSession);
}

#[test]
fn the_registrys_refusal_reaches_the_initiator_with_its_remedy() {
    let table = [
        (LoginStatus::TooManyConnections, Remedy::NoMoreConnections),
        (LoginStatus::SessionDoesNotExist, Remedy::NewSession),
        (LoginStatus::OutOfResources, Remedy::RetryLater),
    ];
    for (status, remedy) in table {
        let outcome =
            log_in(joining(leading().session), Offer::default(), &Configured::default(), Err(status));
        let failure = outcome.initiator.unwrap_err();
        assert_eq!(failure, Failure::Refused(status));
        assert_eq!(failure.remedy(), remedy);
        assert!(outcome.target.is_err());
    }
}

#[test]
fn what_the_directory_refuses_reaches_the_initiator() {
    let elsewhere = Config { target_name: Some("iqn.2026-11.org.example:other".into()), ..config() };
    let outcome = log_in(elsewhere, Offer::default(), &Configured::default(), Ok(place(9)));
    assert_eq!(outcome.initiator.unwrap_err(), Failure::Refused(LoginStatus::NotFound));
    let closed = Configured { closed: true, ..Configured::default() };
    let outcome = log_in(config(), Offer::default(), &closed, Ok(place(9)));
    assert_eq!(outcome.initiator.unwrap_err(), Failure::Refused(LoginStatus::AuthorizationFailure));
}

#[test]
fn a_target_with_small_buffers_gets_small_bursts() {
    let offer =
        Offer { first_burst_bytes: 4096, max_burst_bytes: 8192, immediate_data: false, ..Offer::default() };
    let (initiator, target) = log_in(config(), offer, &Configured::default(), Ok(place(9))).agreed();
    assert_eq!(initiator.session, target.session);
    assert_eq!(target.session.first_burst_bytes, 4096);
    assert_eq!(target.session.max_burst_bytes, 8192);
    assert!(!target.session.immediate_data);
}

#[test]
fn error_recovery_and_many_outstanding_r2ts_exclude_each_other() {
    let offer = Offer { error_recovery_level: 2, ..Offer::default() };
    let config = Config { offer, ..config() };
    let (initiator, target) = log_in(config, offer, &Configured::default(), Ok(place(9))).agreed();
    assert_eq!(initiator.session, target.session);
    assert_eq!(target.session.error_recovery_level, 2);
    assert_eq!(target.session.max_outstanding_r2t, 1);
}
