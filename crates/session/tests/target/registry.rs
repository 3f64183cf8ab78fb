//! Which session a login belongs to.

use pdu::{Cid, Isid, LoginStatus, Tsih};
use ropewalk_session::parameters::Identity;
use ropewalk_session::target::{Admission, Applicant, Registry};

fn applicant(host: &str, tsih: u16, cid: u16) -> Applicant {
    Applicant {
        identity: Identity {
            initiator_name: format!("iqn.2026-11.example:{host}"),
            isid: Isid::random([1, 2, 3], 4),
            target_name: "iqn.2026-11.example:disk".into(),
            portal_group_tag: 1,
        },
        tsih: Tsih(tsih),
        user: None,
        cid: Cid(cid),
        max_connections: 2,
    }
}

#[test]
fn every_new_session_gets_a_handle_of_its_own() {
    let mut registry = Registry::new(10);
    assert_eq!(registry.admit(&applicant("a", 0, 0)), Ok(Admission::New(Tsih(1))));
    assert_eq!(registry.admit(&applicant("b", 0, 0)), Ok(Admission::New(Tsih(2))));
    registry.ended(Tsih(1));
    assert_eq!(registry.admit(&applicant("a", 0, 0)), Ok(Admission::New(Tsih(3))));
}

#[test]
fn connections_join_their_session_up_to_its_limit() {
    let mut registry = Registry::new(10);
    registry.admit(&applicant("a", 0, 0)).unwrap();
    assert_eq!(registry.admit(&applicant("a", 1, 1)), Ok(Admission::Join(Tsih(1))));
    assert_eq!(registry.admit(&applicant("a", 1, 2)), Err(LoginStatus::TooManyConnections));
    registry.lane_closed(Tsih(1), Cid(0));
    assert_eq!(registry.admit(&applicant("a", 1, 2)), Ok(Admission::Join(Tsih(1))));
}

#[test]
fn nobody_joins_a_session_that_is_not_theirs() {
    let mut registry = Registry::new(10);
    registry.admit(&applicant("a", 0, 0)).unwrap();
    assert_eq!(registry.admit(&applicant("b", 1, 1)), Err(LoginStatus::SessionDoesNotExist));
    assert_eq!(registry.admit(&applicant("a", 9, 1)), Err(LoginStatus::SessionDoesNotExist));
}

#[test]
fn a_connection_of_a_name_in_use_takes_the_others_place() {
    let mut registry = Registry::new(10);
    registry.admit(&applicant("a", 0, 0)).unwrap();
    registry.admit(&applicant("a", 1, 1)).unwrap();
    assert_eq!(registry.admit(&applicant("a", 1, 1)), Ok(Admission::Join(Tsih(1))));
    // The older one closes; the name is in use still.
    registry.lane_closed(Tsih(1), Cid(1));
    assert_eq!(registry.admit(&applicant("a", 1, 2)), Err(LoginStatus::TooManyConnections));
    registry.lane_closed(Tsih(1), Cid(1));
    assert_eq!(registry.admit(&applicant("a", 1, 2)), Ok(Admission::Join(Tsih(1))));
}

#[test]
fn a_session_is_reinstated_only_when_the_old_one_has_ended() {
    let mut registry = Registry::new(1);
    registry.admit(&applicant("a", 0, 0)).unwrap();
    assert_eq!(registry.admit(&applicant("a", 0, 0)), Ok(Admission::Reinstate(Tsih(1))));
    assert_eq!(registry.admit(&applicant("a", 0, 0)), Ok(Admission::Reinstate(Tsih(1))));
    registry.ended(Tsih(1));
    assert_eq!(registry.admit(&applicant("a", 0, 0)), Ok(Admission::New(Tsih(2))));
}

#[test]
fn there_are_no_more_sessions_than_allowed() {
    let mut registry = Registry::new(1);
    registry.admit(&applicant("a", 0, 0)).unwrap();
    assert_eq!(registry.admit(&applicant("b", 0, 0)), Err(LoginStatus::OutOfResources));
    assert_eq!(registry.sessions(), 1);
}

#[test]
fn no_user_ends_or_joins_the_session_of_another_by_claiming_its_name() {
    let user = |name: &str, applicant: Applicant| Applicant { user: Some(name.into()), ..applicant };
    let mut registry = Registry::new(10);
    let Ok(Admission::New(tsih)) = registry.admit(&user("alice", applicant("a", 0, 0))) else {
        panic!("the first was refused")
    };
    let refused = Err(LoginStatus::AuthorizationFailure);
    assert_eq!(registry.admit(&user("mallory", applicant("a", tsih.0, 1))), refused);
    assert_eq!(registry.admit(&user("alice", applicant("a", tsih.0, 1))), Ok(Admission::Join(tsih)));
    assert_eq!(registry.admit(&user("alice", applicant("a", 0, 0))), Ok(Admission::Reinstate(tsih)));
}

#[test]
fn no_user_keeps_another_out_by_claiming_its_name_first() {
    let user = |name: &str| Applicant { user: Some(name.into()), ..applicant("a", 0, 0) };
    let mut registry = Registry::new(10);
    assert_eq!(registry.admit(&user("mallory")), Ok(Admission::New(Tsih(1))));
    assert_eq!(registry.admit(&user("alice")), Ok(Admission::New(Tsih(2))));
    registry.ended(Tsih(1));
    assert_eq!(registry.admit(&user("alice")), Ok(Admission::Reinstate(Tsih(2))));
}

#[test]
fn one_initiator_has_a_session_with_each_portal_group() {
    let through = |tag, tsih, cid| {
        let applicant = applicant("a", tsih, cid);
        Applicant { identity: Identity { portal_group_tag: tag, ..applicant.identity }, ..applicant }
    };
    let mut registry = Registry::new(10);
    assert_eq!(registry.admit(&through(1, 0, 0)), Ok(Admission::New(Tsih(1))));
    assert_eq!(registry.admit(&through(2, 0, 0)), Ok(Admission::New(Tsih(2))));
    assert_eq!(registry.admit(&through(2, 1, 1)), Err(LoginStatus::SessionDoesNotExist));
    assert_eq!(registry.admit(&through(1, 1, 1)), Ok(Admission::Join(Tsih(1))));
}
