//! Who is let in, and what is said to those who are not.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod world;

use pdu::LoginStatus;
use ropewalk_initiator::{Error, LoginError, NetworkError, Session, discover};
use session::chap::{Account, Credentials, Secret};
use session::login::initiator::Failure;
use std::os::unix::fs::PermissionsExt;
use world::{TARGET, World, config, connect};

fn account(name: &str, secret: &str) -> Account {
    Account::new(name, Secret::new(secret.as_bytes()).unwrap()).unwrap()
}

fn credential(user: &str, path: &std::path::Path, secret: &str) -> target::Credential {
    std::fs::write(path, secret).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    target::Credential { user: user.into(), secret_file: Some(path.into()), ..target::Credential::default() }
}

fn refusal(error: &Error) -> Failure {
    match error {
        Error::Login(LoginError::Failed { failure, .. }) => *failure,
        _ => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_portal_tells_its_targets() {
    let world = World::new().await;
    let portal = world.address().into();
    let records = discover(&portal, &config(1)).await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].target_name, TARGET);
    assert!(records[0].target_addresses[0].starts_with(&world.address().to_string()));
}

#[tokio::test]
async fn a_target_that_is_not_there_is_not_found() {
    let world = World::new().await;
    let mut url = world.url();
    url.target_name.push('x');
    let error = Session::connect(&url, config(1)).await.unwrap_err();
    assert_eq!(refusal(&error), Failure::Refused(LoginStatus::NotFound));
}

#[tokio::test]
async fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = Session::connect(&world::url(address), config(1)).await.unwrap_err();
    let Error::Network(cause) = &error else { panic!("{error}") };
    assert!(matches!(**cause, NetworkError::Connect { .. }), "{error}");
}

#[tokio::test]
async fn a_unit_that_is_not_there_is_an_error() {
    let world = World::new().await;
    let (session, _lun) = world.connect(1).await;
    assert!(session.lun(7).await.is_err());
    session.close().await.unwrap();
}

#[tokio::test]
async fn both_ends_prove_themselves() {
    let secrets = tempfile::tempdir().unwrap();
    let world = World::serving("ram:1MiB", |config| {
        let ours = credential("alice", &secrets.path().join("alice"), "alice's secret");
        let theirs = Some(credential("target", &secrets.path().join("target"), "the target's secret"));
        config.targets[0].chap = Some(target::Chap { initiators: vec![ours], target: theirs });
    })
    .await;
    let (alice, target) = (account("alice", "alice's secret"), account("target", "the target's secret"));
    let with = |credentials| {
        let mut config = config(3);
        config.credentials = Some(credentials);
        config
    };
    let both = Credentials::mutual(alice.clone(), target).unwrap();
    let (session, lun) = connect(&world.url(), with(both)).await;
    lun.read(0, 512).await.unwrap();
    assert_eq!(session.report().connections(), 3);
    session.close().await.unwrap();

    let error = Session::connect(&world.url(), config(1)).await.unwrap_err();
    assert_eq!(refusal(&error), Failure::Refused(LoginStatus::AuthenticationFailure));
    let wrong = Credentials::one_way(account("alice", "not her secret"));
    let error = Session::connect(&world.url(), with(wrong)).await.unwrap_err();
    assert_eq!(refusal(&error), Failure::Refused(LoginStatus::AuthenticationFailure));
    let impostor = Credentials::mutual(alice, account("target", "another secret")).unwrap();
    let error = Session::connect(&world.url(), with(impostor)).await.unwrap_err();
    assert!(matches!(refusal(&error), Failure::TargetUnproven(_)), "{error}");
}
