//! A target that allows one connection per session is reached over several sessions.

use crate::world;
use crate::world::{Meddler, Meddling, Relay, World, config, connect, expect_pattern, pattern, url};
use futures_util::future::join_all;
use ropewalk_initiator::{Config, Connections, Error, PathState, TargetError};
use std::time::{Duration, Instant};

const PIECE: usize = 128 << 10;

async fn one_connection_each(lun: &str) -> World {
    World::serving(lun, |config| config.negotiation.max_connections = 1).await
}

#[tokio::test]
async fn one_connection_per_session_means_more_sessions() {
    let world = one_connection_each("ram:64MiB").await;
    let (session, lun) = world.connect(4).await;
    let report = session.report();
    assert_eq!((report.connections(), report.sessions()), (4, 4));
    let isids: std::collections::HashSet<_> = report.paths.iter().map(|path| path.isid).collect();
    assert_eq!(isids.len(), 4);
    let writes = (0..64).map(|at| {
        let offset = at * PIECE as u64;
        lun.write(offset, pattern(&lun, offset, PIECE, 1), false)
    });
    for written in join_all(writes).await {
        written.unwrap();
    }
    lun.flush().await.unwrap();
    expect_pattern(&lun, 63 * PIECE as u64, PIECE, 1).await;
    let report = session.report();
    let busy = report.paths.iter().filter(|path| path.connections[0].counters.sent_bytes > PIECE as u64);
    assert_eq!(busy.count(), 4, "every session carried some of them");
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_forced_number_of_sessions_shares_the_connections() {
    let world = World::new().await;
    let mut config = config(4);
    config.sessions = Some(2);
    let (session, _lun) = connect(&world.url(), config).await;
    let report = session.report();
    assert_eq!((report.connections(), report.sessions()), (4, 2));
    assert!(report.paths.iter().all(|path| path.connections.len() == 2));
    session.close().await.unwrap();
}

#[tokio::test]
async fn tuned_connections_have_sessions_of_their_own_where_one_would_end_its_session() {
    for (level, sessions, connections) in [(0, 8, 8), (1, 8, 8), (2, 1, 16)] {
        let world =
            World::serving("ram:64MiB", |config| config.negotiation.error_recovery_level = level).await;
        let config = Config { connections: Connections::Auto, ..config(1) };
        let (session, lun) = connect(&world.url(), config).await;
        session.complete().await;
        let report = session.report();
        assert_eq!((report.sessions(), report.connections()), (sessions, connections), "level {level}");
        lun.write(0, pattern(&lun, 0, 4096, 1), false).await.unwrap();
        expect_pattern(&lun, 0, 4096, 1).await;
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn one_session_forbids_more() {
    let world = one_connection_each("ram:64MiB").await;
    let mut config = config(4);
    config.sessions = Some(1);
    let (session, _lun) = connect(&world.url(), config).await;
    assert_eq!((session.report().connections(), session.report().sessions()), (1, 1));
    assert!(session.add_connection().await.is_err());
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_refused_session_lowers_the_ceiling() {
    let world = World::serving("ram:64MiB", |config| {
        config.negotiation.max_connections = 1;
        config.limits.sessions_per_target = 2;
    })
    .await;
    let (session, lun) = world.connect(4).await;
    assert_eq!(session.report().sessions(), 2);
    lun.write(0, pattern(&lun, 0, 4096, 1), false).await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_session_whose_unit_cannot_be_proven_is_logged_out() {
    const TEST_UNIT_READY: u8 = 0x00;
    let world = one_connection_each("ram:64MiB").await;
    let meddler = Meddler::to(world.address()).await;
    let mut config = config(1);
    config.portals = vec![world.address().into(), meddler.address.into()];
    let (session, _lun) = connect(&world.url(), config).await;
    meddler.meddle(|cdb| match cdb[0] {
        TEST_UNIT_READY => Meddling::Sense(2, 0x3a, 0),
        _ => Meddling::Nothing,
    });
    assert!(session.add_connection().await.is_err());
    let until = Instant::now() + Duration::from_secs(20);
    while world.server.counters().sessions > 1 {
        assert!(Instant::now() < until, "the target keeps the session as one that was lost");
        tokio::task::yield_now().await;
    }
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_target_that_lies_about_joining_is_found_out() {
    let (world, other) = (World::new().await, World::new().await);
    // So that the other target's next handle is not by chance the one that is expected.
    let (occupant, _lun) = other.connect(1).await;
    let relay = world::lying_relay(world.address(), other.address()).await;
    let (session, lun) = connect(&url(relay), config(4)).await;
    let report = session.report();
    assert_eq!((report.connections(), report.sessions()), (4, 4));
    let reason = report.paths[0].ceiling.as_ref().unwrap();
    assert!(reason.starts_with("the connection did not join session"), "{reason}");
    lun.write(0, pattern(&lun, 0, PIECE, 1), false).await.unwrap();
    expect_pattern(&lun, 0, PIECE, 1).await;
    session.close().await.unwrap();
    occupant.close().await.unwrap();
}

#[tokio::test]
async fn a_path_that_leads_to_another_disk_carries_nothing() {
    let right = one_connection_each("ram:64MiB,id=right").await;
    let wrong = one_connection_each("ram:64MiB,id=wrong").await;
    let mut config = config(2);
    config.portals = vec![right.address().into(), wrong.address().into()];
    let (session, lun) = connect(&right.url(), config).await;
    for at in 0..32 {
        let offset = at * PIECE as u64;
        lun.write(offset, pattern(&lun, offset, PIECE, 1), false).await.unwrap();
    }
    lun.flush().await.unwrap();
    expect_pattern(&lun, 0, PIECE, 1).await;
    let (other, untouched) = wrong.connect(1).await;
    assert!(untouched.read(0, PIECE).await.unwrap().iter().all(|byte| *byte == 0));
    session.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test]
async fn a_path_that_shows_another_size_carries_nothing() {
    let right = one_connection_each("ram:64MiB,id=same").await;
    let wrong = one_connection_each("ram:32MiB,id=same").await;
    let mut config = config(2);
    config.portals = vec![right.address().into(), wrong.address().into()];
    let (session, lun) = connect(&right.url(), config).await;
    lun.write(48 << 20, pattern(&lun, 48 << 20, 4 << 20, 1), false).await.unwrap();
    expect_pattern(&lun, 48 << 20, 4 << 20, 1).await;
    session.close().await.unwrap();
}

#[tokio::test]
async fn when_no_path_leads_to_the_disk_any_more_its_users_are_told() {
    let right = one_connection_each("ram:64MiB,id=right").await;
    let address = right.address();
    let (session, lun) = connect(&url(address), config(3)).await;
    right.server.shutdown(Duration::ZERO).await;
    let _wrong = World::serving("ram:64MiB,id=wrong", |config| {
        config.listen = vec![address];
        config.negotiation.max_connections = 1;
    })
    .await;
    let error = lun.read(0, 4096).await.unwrap_err();
    assert!(matches!(error, Error::Target(TargetError::Changed { .. })), "{error}");
    session.close().await.unwrap();
}

#[tokio::test]
async fn overlapping_writes_over_many_sessions_end_in_their_order() {
    let world = one_connection_each("ram:64MiB").await;
    let (session, lun) = world.connect(4).await;
    for _ in 0..20 {
        let writes: Vec<_> = (1..=8u8)
            .map(|seed| {
                let mut write = Box::pin({
                    let lun = lun.clone();
                    async move { lun.write(0, pattern(&lun, 0, PIECE, seed), false).await }
                });
                // Starts it, in this order.
                let _ = write.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
                write
            })
            .collect();
        for write in writes {
            write.await.unwrap();
        }
        expect_pattern(&lun, 0, PIECE, 8).await;
    }
    session.close().await.unwrap();
}

#[tokio::test]
async fn the_other_sessions_go_on_while_one_is_lost() {
    let world = World::with_portal_groups([1, 1], |_| {}).await;
    let [first, second] = *world.server.local_addrs() else { panic!("two portals") };
    let relay = Relay::to(second).await;
    let mut config = config(2);
    config.portals = vec![first.into(), relay.address.into()];
    config.reconnect.give_up_after = Duration::from_millis(50);
    let (session, lun) = connect(&world.url(), config).await;
    relay.close();
    let mut lost = 0;
    for at in 0..256 {
        let offset = at * PIECE as u64;
        match lun.write(offset, pattern(&lun, offset, PIECE, 1), false).await {
            Ok(()) => {}
            // It was on the path that never came back.
            Err(Error::OutcomeUnknown { .. }) => lost += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(lost <= 1);
    while session.report().paths[1].state != PathState::Gone {
        expect_pattern(&lun, 255 * PIECE as u64, PIECE, 1).await;
    }
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_cut_session_is_reinstated_and_its_writes_are_repeated() {
    let world = one_connection_each("ram:64MiB").await;
    let relay = Relay::to(world.address()).await;
    let session = ropewalk_initiator::connect(&url(relay.address), config(4)).await.unwrap();
    let lun = session.lun(0).await.unwrap();
    relay.cut_after(1_000_000);
    for _ in 0..2 {
        let writes: Vec<_> = (0..128u64)
            .map(|at| {
                let lun = lun.clone();
                let offset = at * PIECE as u64;
                tokio::spawn(async move { lun.write(offset, pattern(&lun, offset, PIECE, 6), false).await })
            })
            .collect();
        for write in writes {
            write.await.unwrap().unwrap();
        }
        let _ = lun.flush().await;
    }
    lun.flush().await.unwrap();
    for at in 0..128 {
        expect_pattern(&lun, at * PIECE as u64, PIECE, 6).await;
    }
    assert_eq!(relay.cuts(), 1);
    session.close().await.unwrap();
}
