//! Who is let in, and what is said to those who are not.

use crate::world;
use crate::world::{TARGET, World, config, connect};
use pdu::LoginStatus;
use ropewalk_initiator::{Error, LoginError, NetworkError, discover};
use session::chap::{Account, Credentials, Secret};
use session::login::initiator::Failure;
use std::os::unix::fs::PermissionsExt;

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
async fn a_portal_may_be_known_by_its_name() {
    let world = World::new().await;
    let mut url = world.url();
    url.portal.host = "localhost".to_owned();
    ropewalk_initiator::connect(&url, config(1)).await.unwrap().close().await.unwrap();
}

#[tokio::test]
async fn a_target_that_is_not_there_is_not_found() {
    let world = World::new().await;
    let mut url = world.url();
    url.target_name.push('x');
    let error = ropewalk_initiator::connect(&url, config(1)).await.unwrap_err();
    assert_eq!(refusal(&error), Failure::Refused(LoginStatus::NotFound));
}

#[tokio::test]
async fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = ropewalk_initiator::connect(&world::url(address), config(1)).await.unwrap_err();
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

    let error = ropewalk_initiator::connect(&world.url(), config(1)).await.unwrap_err();
    assert_eq!(refusal(&error), Failure::Refused(LoginStatus::AuthenticationFailure));
    let wrong = Credentials::one_way(account("alice", "not her secret"));
    let error = ropewalk_initiator::connect(&world.url(), with(wrong)).await.unwrap_err();
    assert_eq!(refusal(&error), Failure::Refused(LoginStatus::AuthenticationFailure));
    let impostor = Credentials::mutual(alice, account("target", "another secret")).unwrap();
    let error = ropewalk_initiator::connect(&world.url(), with(impostor)).await.unwrap_err();
    assert!(matches!(refusal(&error), Failure::TargetUnproven(_)), "{error}");
}

/// A target that sends every login elsewhere.
async fn redirecting(to: &str) -> World {
    World::serving("ram:1MiB", |config| {
        config.targets[0].redirect = Some(to.parse().unwrap());
        config.discovery.redirect = Some(to.parse().unwrap());
    })
    .await
}

#[tokio::test]
async fn a_login_is_followed_to_where_the_target_is_and_so_is_discovery() {
    let home = World::new().await;
    let old = redirecting(&format!("{},permanent", home.address())).await;
    let older = redirecting(&old.address().to_string()).await;
    let (session, lun) = connect(&older.url(), config(2)).await;
    lun.read(0, 512).await.unwrap();
    session.close().await.unwrap();
    let records = discover(&older.address().into(), &config(1)).await.unwrap();
    assert!(records[0].target_addresses[0].starts_with(&home.address().to_string()));
}

#[tokio::test]
async fn the_login_begins_anew_where_it_is_sent() {
    let secrets = tempfile::tempdir().unwrap();
    let home = World::serving("ram:1MiB", |config| {
        let ours = credential("alice", &secrets.path().join("alice"), "alice's secret");
        config.targets[0].chap = Some(target::Chap { initiators: vec![ours], target: None });
    })
    .await;
    let old = redirecting(&home.address().to_string()).await;
    let mut config = config(1);
    config.credentials = Some(Credentials::one_way(account("alice", "alice's secret")));
    let (session, lun) = connect(&old.url(), config).await;
    lun.read(0, 512).await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_login_that_is_sent_in_circles_or_on_and_on_ends() {
    let first = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = first.local_addr().unwrap();
    drop(first);
    let second = redirecting(&address.to_string()).await;
    let _first = World::serving("ram:1MiB", |config| {
        config.listen = vec![address];
        config.targets[0].redirect = Some(second.address().to_string().parse().unwrap());
    })
    .await;
    let error = ropewalk_initiator::connect(&world::url(address), config(1)).await.unwrap_err();
    assert!(matches!(error, Error::Login(LoginError::Redirection { .. })), "{error}");
    assert!(error.to_string().contains("where it has come from"), "{error}");

    let mut chain = vec![World::new().await];
    for _ in 0..6 {
        let last = chain.last().unwrap().address().to_string();
        chain.push(redirecting(&last).await);
    }
    let error = ropewalk_initiator::connect(&chain.last().unwrap().url(), config(1)).await.unwrap_err();
    assert!(error.to_string().contains("too many"), "{error}");
}

#[tokio::test]
async fn an_initiator_whose_name_is_none_is_told_so_before_it_connects() {
    let mut config = config(1);
    config.initiator_name = "not a name".into();
    let error =
        ropewalk_initiator::connect(&world::url("127.0.0.1:1".parse().unwrap()), config).await.unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error}");
}
