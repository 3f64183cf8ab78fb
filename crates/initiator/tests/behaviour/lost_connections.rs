//! Connections break, and with them their session, below error recovery level 2: what may be repeated safely is.

use crate::world;
use crate::world::{PIECE, Relay, World, connect, expect_pattern, pattern, url, write_carefully};
use ropewalk_initiator::{Compared, Config, Error, Lun, NetworkError, TargetError};
use std::time::Duration;

/// Where a lost connection is the end of its session.
fn config(connections: u16) -> Config {
    let mut config = world::config(connections);
    config.offer.error_recovery_level = 0;
    config
}

#[tokio::test]
async fn a_cut_at_any_byte_of_a_copy_is_survived() {
    let world = World::new().await;
    for cut_at in [1, 47, 48, 5_000, 131_000, 600_123, 3_000_001] {
        for connections in [1, 4] {
            let relay = Relay::to(world.address()).await;
            let (session, lun) = connect(&url(relay.address), config(connections)).await;
            relay.cut_after(cut_at);
            write_carefully(&lun, 64).await;
            for at in 0..64 {
                expect_pattern(&lun, at * PIECE as u64, PIECE, 9).await;
            }
            assert_eq!(relay.cuts(), 1, "cut after {cut_at} bytes");
            let report = session.report();
            assert_eq!(report.reinstatements, 1, "cut after {cut_at} bytes of {connections} connections");
            session.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn all_connections_come_back() {
    let world = World::new().await;
    let relay = Relay::to(world.address()).await;
    let (session, lun) = connect(&url(relay.address), config(4)).await;
    relay.cut_after(1);
    expect_zeroes(&lun).await;
    // They are added one by one after the first; each read gives the runtime a turn.
    while session.report().connections() < 4 {
        expect_zeroes(&lun).await;
    }
    session.close().await.unwrap();
}

async fn expect_zeroes(lun: &Lun) {
    let found = lun.read(0, 4096).await.unwrap();
    assert!(found.iter().all(|byte| *byte == 0));
}

#[tokio::test]
async fn a_flush_after_a_loss_says_once_that_answered_writes_may_be_gone() {
    let world = World::new().await;
    let relay = Relay::to(world.address()).await;
    let (session, lun) = connect(&url(relay.address), config(1)).await;
    let (other, generation) = (lun.clone(), lun.generation());
    lun.write(0, pattern(&lun, 0, 4096, 1), false).await.unwrap();
    relay.cut_after(1);
    let error = lun.flush().await.unwrap_err();
    assert!(matches!(error, Error::WritesLost { .. }), "{error}");
    assert_ne!(lun.generation(), generation);
    lun.flush().await.unwrap();
    assert!(other.flush().await.is_err(), "each handle is told");
    assert!(lun.clone().flush().await.is_ok(), "a clone of one that was told is not");
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_loss_with_everything_flushed_loses_nothing() {
    let world = World::new().await;
    let relay = Relay::to(world.address()).await;
    let (session, lun) = connect(&url(relay.address), config(1)).await;
    lun.write(0, pattern(&lun, 0, 4096, 1), false).await.unwrap();
    lun.flush().await.unwrap();
    relay.cut_after(1);
    expect_pattern(&lun, 0, 4096, 1).await;
    lun.flush().await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn compare_and_write_is_not_repeated_when_its_outcome_is_unknown() {
    let world = World::new().await;
    let relay = Relay::to(world.address()).await;
    let (session, lun) = connect(&url(relay.address), config(1)).await;
    relay.cut_after(600);
    let (old, new) = ([0; 512], [1; 512]);
    let error = lun.compare_and_write(0, &old, &new).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error}");
    assert_eq!(lun.compare_and_write(512, &old, &new).await.unwrap(), Compared::Written);
    assert!(lun.write(0, pattern(&lun, 0, 512, 1), false).await.is_err(), "its blocks stay closed");
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_target_that_stays_away_is_given_up() {
    let world = World::new().await;
    let relay = Relay::to(world.address()).await;
    let mut config = config(2);
    config.reconnect.give_up_after = Duration::from_millis(50);
    let (session, lun) = connect(&url(relay.address), config).await;
    let written = lun.write(0, pattern(&lun, 0, 4096, 1), false).await;
    written.unwrap();
    relay.close();
    let error = lun.read(0, 4096).await.unwrap_err();
    let Error::Network(cause) = &error else { panic!("{error}") };
    assert!(matches!(**cause, NetworkError::PathsLost { .. }), "{error}");
    assert!(lun.flush().await.is_err());
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_target_that_lost_its_cache_gets_everything_again() {
    let mut world = World::serving("ram:64MiB,id=same", |_| {}).await;
    let address = world.address();
    let (session, lun) = connect(&url(address), world::config(2)).await;
    lun.write(0, pattern(&lun, 0, PIECE, 9), false).await.unwrap();
    world.server.shutdown(Duration::ZERO).await;
    world = World::serving("ram:64MiB,id=same", |config| config.listen = vec![address]).await;
    assert!(write_carefully(&lun, 16).await > 0, "the flush tells");
    for at in 0..16 {
        expect_pattern(&lun, at * PIECE as u64, PIECE, 9).await;
    }
    session.close().await.unwrap();
    drop(world);
}

#[tokio::test]
async fn another_disk_behind_the_same_name_is_not_touched() {
    let world = World::serving("ram:64MiB,id=right", |_| {}).await;
    let address = world.address();
    let (session, lun) = connect(&url(address), config(1)).await;
    world.server.shutdown(Duration::ZERO).await;
    let world = World::serving("ram:64MiB,id=wrong", |config| config.listen = vec![address]).await;
    let error = lun.write(0, pattern(&lun, 0, 512, 1), false).await.unwrap_err();
    assert!(matches!(error, Error::Target(TargetError::Changed { .. })), "{error}");
    session.close().await.unwrap();
    let (session, lun) = world.connect(1).await;
    expect_zeroes(&lun).await;
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_lost_path_comes_back_though_all_memory_is_in_use() {
    let world = World::new().await;
    let relay = Relay::to(world.address()).await;
    let mut config = config(2);
    config.buffer_budget_bytes = 8 * PIECE;
    let (session, lun) = connect(&url(relay.address), config).await;
    let buffers: Vec<_> = (0..8).map(|at| pattern(&lun, at * PIECE as u64, PIECE, 2)).collect();
    relay.cut_after(100_000);
    let writes: Vec<_> = (0..8u64)
        .zip(buffers)
        .map(|(at, buffer)| {
            let lun = lun.clone();
            tokio::spawn(async move { lun.write(at * PIECE as u64, buffer, false).await })
        })
        .collect();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    assert_eq!(relay.cuts(), 1);
    session.close().await.unwrap();
}
