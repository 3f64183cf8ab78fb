//! One session of many connections carries a disk's I/O.

use crate::world::{World, config, connect, expect_pattern, mute_relay, pattern, stingy_relay, url};
use ropewalk_initiator::{Error, Policies, TargetError, UsageError};
use std::time::Duration;

const PIECE: usize = 256 << 10;

#[tokio::test]
async fn what_was_written_over_many_connections_is_read_back() {
    let world = World::new().await;
    let (session, lun) = world.connect(4).await;
    let writes: Vec<_> = (0..64u64)
        .map(|at| {
            let lun = lun.clone();
            let offset = at * PIECE as u64;
            tokio::spawn(async move { lun.write(offset, pattern(&lun, offset, PIECE, 1), false).await })
        })
        .collect();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    lun.flush().await.unwrap();
    for at in 0..64 {
        expect_pattern(&lun, at * PIECE as u64, PIECE, 1).await;
    }
    let report = session.report();
    assert_eq!((report.connections(), report.sessions(), report.retries), (4, 1, 0));
    assert!(report.paths[0].connections.iter().all(|connection| connection.counters.sent_bytes > 1 << 20));
    session.close().await.unwrap();
}

#[tokio::test]
async fn connections_come_and_go_while_commands_are_under_way() {
    let world = World::new().await;
    let (session, lun) = world.connect(1).await;
    let writer = tokio::spawn({
        let lun = lun.clone();
        async move {
            for at in 0..200u64 {
                let offset = at * PIECE as u64;
                lun.write(offset, pattern(&lun, offset, PIECE, 3), false).await.unwrap();
            }
        }
    });
    for _ in 0..7 {
        session.add_connection().await.unwrap();
    }
    assert_eq!(session.report().connections(), 8);
    for _ in 0..7 {
        session.remove_connection().unwrap();
    }
    writer.await.unwrap();
    expect_pattern(&lun, 199 * PIECE as u64, PIECE, 3).await;
    let report = session.report();
    assert_eq!((report.reinstatements, report.retries), (0, 0));
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_disk_is_used_while_further_connections_log_in() {
    let world = World::new().await;
    let session = ropewalk_initiator::begin(&world.url(), config(4), Policies::default()).await.unwrap();
    let lun = session.lun(0).await.unwrap();
    lun.write(0, pattern(&lun, 0, PIECE, 1), false).await.unwrap();
    session.complete().await;
    let report = session.report();
    assert_eq!((report.connections(), report.sessions(), report.reinstatements), (4, 1, 0));
    expect_pattern(&lun, 0, PIECE, 1).await;
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_session_that_is_closed_while_further_connections_log_in_ends_in_order() {
    let world = World::serving("ram:64MiB", |config| config.negotiation.max_connections = 2).await;
    for _ in 0..20 {
        let session = ropewalk_initiator::begin(&world.url(), config(6), Policies::default()).await.unwrap();
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_session_is_closed_although_logins_of_further_connections_hang() {
    let world = World::new().await;
    let relay = mute_relay(world.address()).await;
    let mut config = config(4);
    config.login_timeout = Duration::from_secs(3600);
    let session = ropewalk_initiator::begin(&url(relay), config, Policies::default()).await.unwrap();
    let lun = session.lun(0).await.unwrap();
    lun.write(0, pattern(&lun, 0, PIECE, 1), false).await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn all_connections_but_one_are_removed_while_commands_are_under_way() {
    let world = World::new().await;
    let (session, lun) = world.connect(4).await;
    let writes: Vec<_> = (0..32u64)
        .map(|at| {
            let lun = lun.clone();
            let offset = at * PIECE as u64;
            tokio::spawn(async move { lun.write(offset, pattern(&lun, offset, PIECE, 4), false).await })
        })
        .collect();
    tokio::task::yield_now().await;
    session.remove_all_but_one();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    lun.flush().await.unwrap();
    let report = session.report();
    assert_eq!((report.paths[0].connections_wanted, report.reinstatements, report.retries), (1, 0, 0));
    session.close().await.unwrap();
}

#[tokio::test]
async fn every_connection_that_is_removed_is_another_one() {
    let world = World::new().await;
    let (session, _lun) = world.connect(4).await;
    for _ in 0..3 {
        session.remove_connection().unwrap();
    }
    assert!(session.remove_connection().is_err(), "three of four are being logged out");
    assert_eq!(session.report().paths[0].connections_wanted, 1);
    session.close().await.unwrap();
}

#[tokio::test]
async fn the_last_connection_stays() {
    let world = World::new().await;
    let (session, _lun) = world.connect(1).await;
    assert!(session.remove_connection().is_err());
}

#[tokio::test]
async fn digests_and_small_segments_change_nothing() {
    use session::parameters::DigestPreference;
    let world = World::new().await;
    let mut config = config(2);
    config.offer.header_digest = DigestPreference::Required;
    config.offer.data_digest = DigestPreference::Required;
    config.offer.receive_segment_bytes_max = 8192;
    config.offer.first_burst_bytes = 4096;
    config.offer.max_burst_bytes = 32 << 10;
    let (session, lun) = connect(&world.url(), config).await;
    lun.write(0, pattern(&lun, 0, 1 << 20, 5), false).await.unwrap();
    expect_pattern(&lun, 0, 1 << 20, 5).await;
    assert!(session.report().paths[0].connections.iter().all(|connection| connection.parameters.data_digest));
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_transfer_longer_than_the_unit_takes_is_cut() {
    let world = World::new().await;
    let (session, lun) = world.connect(2).await;
    let bytes = block::BUFFER_BYTES_MAX;
    lun.write(0, pattern(&lun, 0, bytes, 7), false).await.unwrap();
    expect_pattern(&lun, 0, bytes, 7).await;
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_closed_session_refuses_operations() {
    let world = World::new().await;
    let (session, lun) = world.connect(1).await;
    session.close().await.unwrap();
    let error = lun.read(0, 512).await.unwrap_err();
    assert!(matches!(error, Error::Usage(UsageError::SessionClosed)), "{error}");
}

#[tokio::test]
async fn a_dropped_write_is_carried_out_and_a_later_one_wins() {
    let world = World::new().await;
    let (session, lun) = world.connect(4).await;
    for _ in 0..50 {
        let mut dropped = Box::pin(lun.write(0, pattern(&lun, 0, PIECE, 1), false));
        std::future::poll_fn(|cx| {
            let _ = dropped.as_mut().poll(cx);
            std::task::Poll::Ready(())
        })
        .await;
        drop(dropped);
        lun.write(0, pattern(&lun, 0, PIECE, 2), false).await.unwrap();
        expect_pattern(&lun, 0, PIECE, 2).await;
    }
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_write_of_which_the_target_took_less_is_no_success() {
    let world = World::new().await;
    let relay = stingy_relay(world.address()).await;
    let (session, lun) = connect(&url(relay), config(1)).await;
    let error = lun.write(0, pattern(&lun, 0, 4096, 1), false).await.unwrap_err();
    let Error::Target(TargetError::Short { found, expected, .. }) = error else { panic!("{error}") };
    assert_eq!((found, expected), (3584, 4096));
    session.close().await.unwrap();
}
