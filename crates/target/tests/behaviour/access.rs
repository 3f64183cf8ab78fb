//! Who may use what.

use crate::world::*;
use pdu::{Cid, InitiatorPdu, LoginRequest, LoginStatus, Stage, TargetPdu};
use ropewalk_target::{
    Chap, ChapAlgorithms, Config, Credential, DiscoveryConfig, InvalidConfig, Mask, PortalGroupConfig,
    TargetConfig,
};
use scsi::client;
use scsi::{PersistentReserveOut, Register, ReservationKey, ReservationType, ReserveAction, Status};
use session::chap::{Account, Algorithms, Challenge, Secret};
use std::os::unix::fs::PermissionsExt;

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

#[test]
fn no_connection_joins_a_session_from_an_address_that_may_not_use_one_of_its_luns() {
    let mut served = two_luns();
    served.luns[1].mask = from_network("127.0.0.1/32");
    let world = World::with_config(config(vec![served]));
    let mut leading = world.connect();
    let tsih = leading.login(TARGET, 1).unwrap();
    let numbers = (leading.cmd_sn, leading.itt);
    let joins = |mut peer: Peer| (peer.join(numbers, tsih, Cid(1)), peer);
    assert_eq!(joins(world.connect_from(ELSEWHERE)).0, Err(LoginStatus::AuthorizationFailure));
    assert_eq!(joins(world.connect()).0, Ok(tsih));
    // A session of its own has the LUN that is left.
    assert_eq!(world.initiator_from(ELSEWHERE, 2).read(0, 1).status, 0);
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
    let names = format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0SessionType=Normal\0");
    let outcome = authenticate_as(peer, &names, "host", secret, "5");
    outcome.err().unwrap_or(LoginStatus::Success)
}

/// The security stage of a login as this user, to its end.
fn authenticate_as(
    peer: &mut Peer,
    names: &str,
    user: &str,
    secret: &str,
    algorithms: &str,
) -> Result<(), LoginStatus> {
    let request = LoginRequest { current_stage: Stage::SecurityNegotiation, ..peer.login_request(1, 0) };
    let mut step = |text: String, next_stage| {
        let data_segment_bytes = u32::try_from(text.len()).unwrap();
        let request = LoginRequest { next_stage, data_segment_bytes, ..request };
        peer.send(&InitiatorPdu::LoginRequest(request), text.as_bytes());
        match peer.receive().unwrap() {
            (TargetPdu::LoginResponse(response), text) if response.status.is_success() => {
                Ok(String::from_utf8(text).unwrap())
            }
            (TargetPdu::LoginResponse(response), _) => Err(response.status),
            (other, _) => panic!("{other:?}"),
        }
    };
    step(format!("{names}AuthMethod=CHAP\0"), None)?;
    let asked = step(format!("CHAP_A={algorithms}\0"), None)?;
    let value = |key: &str| asked.split('\0').find_map(|pair| pair.strip_prefix(key)).unwrap();
    let account = Account::new(user, Secret::new(secret.as_bytes()).unwrap()).unwrap();
    let algorithm = Algorithms::default().chosen(value("CHAP_A=")).unwrap();
    let challenge = Challenge::parse(value("CHAP_I="), value("CHAP_C="), None).unwrap();
    let response = pdu::text_value::hexadecimal_text(&challenge.answer(algorithm, &account));
    step(format!("CHAP_N={user}\0CHAP_R={response}\0"), Some(Stage::OperationalNegotiation)).map(drop)
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

/// The targets that SendTargets tells in a session that is established.
fn listed(peer: &mut Peer) -> String {
    let question = b"SendTargets=All\0";
    peer.send(&InitiatorPdu::TextRequest(peer.text_request(question)), question);
    let (answer, list) = peer.receive().unwrap();
    assert!(matches!(answer, TargetPdu::TextResponse(_)), "{answer:?}");
    String::from_utf8(list).unwrap()
}

/// The same in a discovery session without a proof.
fn discovered(mut peer: Peer) -> String {
    let text = format!("InitiatorName={INITIATOR}\0SessionType=Discovery\0");
    peer.login_with(&text, |request| request, 1).unwrap();
    listed(&mut peer)
}

#[test]
fn discovery_shows_an_initiator_what_it_may_use_at_the_portal_it_came_through() {
    let hidden = target("iqn.2026-01.net.example:hidden", &["0=ram:1M"]);
    let hidden = TargetConfig { mask: only("iqn.2026-01.net.example:friend"), ..hidden };
    let world = World::with_config(config(vec![two_luns(), hidden]));
    let expected = format!("TargetName={TARGET}\0TargetAddress={},1\0", world.address());
    assert_eq!(discovered(world.connect()), expected);
}

fn group(tag: u16, portals: &[&str]) -> PortalGroupConfig {
    PortalGroupConfig { tag, portals: portals.iter().map(|portal| portal.parse().unwrap()).collect() }
}

const OTHER: &str = "iqn.2026-01.net.example:other";

/// Group 1 with two portals, group 2 with one; one target in both, one in the second only.
fn two_groups() -> World {
    let other = TargetConfig { portal_groups: vec![2], ..target(OTHER, &["0=ram:1M"]) };
    let portal_groups = vec![group(1, &["127.0.0.1:0", "127.0.0.2:0"]), group(2, &["127.0.0.3:0"])];
    let listen = Config::default().listen;
    World::with_config(Config { listen, portal_groups, ..config(vec![two_luns(), other]) })
}

#[test]
fn discovery_tells_all_portals_of_a_target_with_their_groups_the_one_of_arrival_first() {
    let world = two_groups();
    let [first, second, third] = *world.addresses() else { panic!("three portals") };
    let expected = |order: [String; 3]| {
        let [a, b, c] = order.map(|address| format!("TargetAddress={address}\0"));
        format!("TargetName={TARGET}\0{a}{b}{c}TargetName={OTHER}\0TargetAddress={third},2\0")
    };
    let (one, two, three) = (format!("{first},1"), format!("{second},1"), format!("{third},2"));
    assert_eq!(discovered(world.connect()), expected([one.clone(), two.clone(), three.clone()]));
    assert_eq!(discovered(world.connect_to(third)), expected([three, one, two]));
}

#[test]
fn a_target_is_not_found_at_a_portal_whose_group_does_not_serve_it() {
    let world = two_groups();
    assert_eq!(world.connect().login(OTHER, 1), Err(LoginStatus::NotFound));
    assert!(world.connect_to(world.addresses()[2]).login(OTHER, 1).is_ok());
}

#[test]
fn a_session_belongs_to_the_portal_group_through_which_it_came() {
    let world = two_groups();
    let two = world.addresses()[2];
    let mut leading = world.connect();
    let tsih = leading.login(TARGET, 1).unwrap();
    let text = format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0");
    let join =
        |peer: &mut Peer| peer.login_with(&text, |request| LoginRequest { tsih, cid: Cid(1), ..request }, 1);
    // The same identity in another group is another session, and does not end the first.
    let mut elsewhere = world.connect_to(two);
    assert_ne!(elsewhere.login(TARGET, 1).unwrap(), tsih);
    assert_eq!(join(&mut world.connect_to(two)), Err(LoginStatus::SessionDoesNotExist));
    let mut second = world.connect_to(world.addresses()[1]);
    assert_eq!(join(&mut second), Ok(tsih));
    leading.learn_attentions();
    assert_eq!(leading.read(0, 1).status, 0);
}

/// The relative identifier of the port that INQUIRY says the command came through, and all target port groups.
fn ports_told(peer: &mut Peer) -> (u16, Vec<u16>) {
    peer.learn_attentions();
    let identification = peer.command(&[0x12, 1, 0x83, 4, 0, 0], &[], 1024).data;
    let is_relative_port = |designator: &&[u8]| designator[..4] == [0x51, 0x94, 0, 4];
    let port = identification.windows(8).find(is_relative_port).unwrap();
    let groups = peer.command(&[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0], &[], 1024).data;
    let groups = client::target_port_groups(&groups).unwrap();
    (u16::from_be_bytes([port[6], port[7]]), groups.iter().map(|group| group.group).collect())
}

#[test]
fn a_unit_names_the_port_of_the_session_and_all_groups_that_serve_it() {
    let world = two_groups();
    for (portal, target, expected) in
        [(0, TARGET, (1, vec![1, 2])), (2, TARGET, (2, vec![1, 2])), (2, OTHER, (2, vec![2]))]
    {
        let mut peer = world.connect_to(world.addresses()[portal]);
        peer.login(target, 1).unwrap();
        assert_eq!(ports_told(&mut peer), expected);
    }
}

#[test]
fn names_are_compared_without_regard_to_case() {
    let world = World::with_lun("0=ram:1M");
    let mut first = world.connect();
    let upper = INITIATOR.to_uppercase();
    first.login_as(&upper, &TARGET.to_uppercase(), 1).unwrap();
    // It is the same initiator, so its session is reinstated.
    let mut again = world.connect();
    again.login(TARGET, 1).unwrap();
    first.expect_closed();
}

#[test]
fn a_target_that_is_elsewhere_says_where() {
    for (word, status) in
        [("", LoginStatus::TargetMovedTemporarily), (",permanent", LoginStatus::TargetMovedPermanently)]
    {
        let redirect = Some(format!("192.0.2.1:3260{word}").parse().unwrap());
        let moved = TargetConfig { redirect: redirect.clone(), ..TargetConfig::new(TARGET.parse().unwrap()) };
        let discovery = DiscoveryConfig { redirect, chap: None };
        let world = World::with_config(Config { discovery, ..config(vec![moved]) });
        for names in [format!("TargetName={TARGET}\0"), "SessionType=Discovery\0".into()] {
            let text = format!("InitiatorName={INITIATOR}\0{names}");
            let mut peer = world.connect();
            let request = peer.login_request(1, u32::try_from(text.len()).unwrap());
            peer.send(&InitiatorPdu::LoginRequest(request), text.as_bytes());
            let (answer, data) = peer.receive().unwrap();
            assert!(matches!(answer, TargetPdu::LoginResponse(response) if response.status == status));
            assert_eq!(data, b"TargetAddress=192.0.2.1:3260\0");
            peer.expect_closed();
        }
    }
}

fn user(name: &str) -> Credential {
    Credential { user: name.into(), secret: Some(secret_of(name).as_str().into()), ..Credential::default() }
}

fn secret_of(name: &str) -> String {
    format!("{name} knows this secret")
}

fn users(names: &[&str]) -> Option<Chap> {
    Some(Chap { initiators: names.iter().map(|name| user(name)).collect(), target: None })
}

#[test]
fn each_of_several_users_opens_a_target_and_sees_its_own_luns() {
    let mut served = TargetConfig { chap: users(&["alice", "bob"]), ..two_luns() };
    served.luns[1].mask = Mask { users: vec!["bob".into()], ..Mask::default() };
    let world = World::with_config(config(vec![served]));
    for (name, sees) in [("alice", false), ("bob", true)] {
        let mut peer = world.connect();
        let names = format!("InitiatorName={INITIATOR}-{name}\0TargetName={TARGET}\0");
        authenticate_as(&mut peer, &names, name, &secret_of(name), "8,7,6,5").unwrap();
        peer.finish_login(1);
        peer.learn_attentions();
        let mut status = peer.command_to(5, &[0], &[], 0);
        while sees && status.status != 0 {
            status = peer.command_to(5, &[0], &[], 0);
        }
        assert_eq!(status.status == 0, sees, "{name}");
    }
}

#[test]
fn who_claims_the_name_of_another_user_gets_neither_its_session_nor_its_reservation() {
    let world =
        World::with_config(config(vec![TargetConfig { chap: users(&["alice", "mallory"]), ..two_luns() }]));
    let names = format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0");
    let log_in = |name: &str| {
        let mut peer = world.connect();
        authenticate_as(&mut peer, &names, name, &secret_of(name), "5").unwrap();
        peer.finish_login(1);
        peer.learn_attentions();
        peer
    };
    let mut alice = log_in("alice");
    let key = ReservationKey(7);
    let action = ReserveAction::Register(Register {
        new_key: key,
        ignore_existing_key: false,
        persist: false,
        all_target_ports: false,
        others: Vec::new(),
    });
    for request in [
        PersistentReserveOut { key: ReservationKey::NONE, action },
        PersistentReserveOut { key, action: ReserveAction::Reserve(ReservationType::WriteExclusive) },
    ] {
        let (cdb, list) = client::persistent_reserve_out(&request);
        assert_eq!(alice.command(&cdb, &list, 0).status, 0);
    }
    let mut mallory = log_in("mallory");
    assert_eq!(mallory.write(0, &[1; BLOCK]).status, Status::ReservationConflict.code());
    assert_eq!(alice.write(0, &[1; BLOCK]).status, 0);
    // Alice herself takes the place of her own session.
    assert_eq!(log_in("alice").write(0, &[1; BLOCK]).status, 0);
    alice.expect_closed();
    assert_eq!(mallory.write(0, &[1; BLOCK]).status, Status::ReservationConflict.code());
}

#[test]
fn an_initiator_that_skips_security_says_so_in_the_operational_stage() {
    let names = format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0AuthMethod=None\0");
    let open = World::with_config(config(vec![two_luns()]));
    assert!(open.connect().login_with(&names, |request| request, 1).is_ok());
    let (closed, _folder) = world_with_chap();
    let refused = closed.connect().login_with(&names, |request| request, 1);
    assert_eq!(refused, Err(LoginStatus::AuthenticationFailure));
}

#[test]
fn a_proven_user_is_shown_its_own_targets_and_the_open_ones() {
    let named = |name: &str, chap| TargetConfig { chap, ..target(name, &["0=ram:1M"]) };
    let targets = vec![
        named("iqn.2026-01.net.example:of-alice", users(&["alice"])),
        named("iqn.2026-01.net.example:of-bob", users(&["bob"])),
        named("iqn.2026-01.net.example:of-both", users(&["alice", "bob"])),
        named("iqn.2026-01.net.example:open", None),
    ];
    let discovery = DiscoveryConfig { chap: users(&["alice", "bob", "looker"]), redirect: None };
    let world = World::with_config(Config { discovery, ..config(targets) });
    for (name, expected) in [
        ("alice", &["of-alice", "of-both", "open"][..]),
        ("bob", &["of-bob", "of-both", "open"]),
        ("looker", &["of-alice", "of-bob", "of-both", "open"]),
    ] {
        let mut peer = world.connect();
        let names = format!("InitiatorName={INITIATOR}\0SessionType=Discovery\0");
        authenticate_as(&mut peer, &names, name, &secret_of(name), "5").unwrap();
        peer.finish_login(1);
        let list = listed(&mut peer);
        let shown: Vec<_> = list.split('\0').filter_map(|pair| pair.strip_prefix("TargetName=")).collect();
        let shown: Vec<_> = shown.iter().filter_map(|name| name.rsplit(':').next()).collect();
        assert_eq!(shown, expected, "{name}");
    }
}

#[test]
fn a_policy_without_md5_refuses_who_offers_nothing_else() {
    let chap_algorithms = ChapAlgorithms("sha3-256,sha256".parse().unwrap());
    let served = TargetConfig { chap: users(&["alice"]), ..two_luns() };
    let world = World::with_config(Config { chap_algorithms, ..config(vec![served]) });
    let names = format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0");
    let login =
        |offered| authenticate_as(&mut world.connect(), &names, "alice", &secret_of("alice"), offered);
    assert_eq!(login("5,6"), Err(LoginStatus::AuthenticationFailure));
    assert_eq!(login("5,6,7"), Ok(()));
}

#[test]
fn one_secret_for_both_directions_is_refused_wherever_it_stands() {
    let both = |ours: &str| Some(Chap { initiators: vec![user("alice")], target: Some(user(ours)) });
    let same = Credential { user: "disk".into(), ..user("alice") };
    let served = |chap| TargetConfig { chap, ..two_luns() };
    let chap = both("disk").map(|chap| Chap { target: Some(same.clone()), ..chap });
    let refused = World::start(config(vec![served(chap)])).err().unwrap().to_string();
    assert!(refused.contains("different CHAP secrets"), "{refused}");
    // The target's secret here is an initiator's elsewhere.
    let discovery = DiscoveryConfig { chap: users(&["disk"]), redirect: None };
    let refused = World::start(Config { discovery, ..config(vec![served(both("disk"))]) }).err().unwrap();
    let refused = refused.to_string();
    assert!(refused.contains("have the same secret") && !refused.contains("knows"), "{refused}");
}

#[test]
fn who_guesses_waits_and_the_right_secret_still_opens() {
    let (world, _folder) = world_with_chap();
    for _ in 0..5 {
        let refused = authenticate(&mut world.connect(), "incorrect horse");
        assert_eq!(refused, LoginStatus::AuthenticationFailure);
    }
    assert_eq!(authenticate(&mut world.connect(), SECRET), LoginStatus::Success);
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
