//! All connections of a session lead to portals of one portal group; the initiator learns from logins which these are.

use crate::world::{Relay, World, config, connect, expect_pattern, pattern, write_carefully};
use ropewalk_initiator::{Config, PathReport, Portal, Report, Target};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const PIECE: usize = 128 << 10;

fn at<const N: usize>(connections: u16, portals: [SocketAddr; N]) -> Config {
    Config { portals: portals.map(Portal::from).into(), ..config(connections) }
}

/// How many connections of a session lead to a portal.
fn count_at(path: &PathReport, portal: SocketAddr) -> usize {
    path.connections.iter().filter(|connection| connection.peer == portal).count()
}

/// A report that shows this, sooner or later.
async fn wait_for(session: &Target, is_so: impl Fn(&Report) -> bool) -> Report {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let report = session.report();
        if is_so(&report) {
            return report;
        }
        assert!(Instant::now() < until, "{report:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_portals_of_one_group_share_one_session() {
    let world = World::with_portal_groups([2], |_| {}).await;
    let [first, second] = *world.server.local_addrs() else { panic!("two portals") };
    let (session, lun) = connect(&world.url(), at(4, [first, second])).await;
    let report = session.report();
    assert_eq!((report.connections(), report.sessions()), (4, 1));
    assert_eq!([first, second].map(|portal| count_at(&report.paths[0], portal)), [2, 2]);
    for at in 0..32 {
        let offset = at * PIECE as u64;
        lun.write(offset, pattern(&lun, offset, PIECE, 1), false).await.unwrap();
    }
    lun.flush().await.unwrap();
    expect_pattern(&lun, 31 * PIECE as u64, PIECE, 1).await;
    session.close().await.unwrap();
}

#[tokio::test]
async fn every_portal_group_has_a_session_for_the_connections_at_its_portals() {
    let world = World::with_portal_groups([2, 2], |_| {}).await;
    let [a, b, c, d] = *world.server.local_addrs() else { panic!("four portals") };
    let (session, lun) = connect(&world.url(), at(9, [a, c, b, d])).await;
    let report = session.report();
    assert_eq!((report.connections(), report.sessions()), (9, 2));
    assert_eq!([a, b, c, d].map(|portal| count_at(&report.paths[0], portal)), [3, 2, 0, 0]);
    assert_eq!([a, b, c, d].map(|portal| count_at(&report.paths[1], portal)), [0, 0, 2, 2]);
    lun.write(0, pattern(&lun, 0, PIECE, 1), false).await.unwrap();
    expect_pattern(&lun, 0, PIECE, 1).await;
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_single_session_has_all_connections_at_the_portals_of_its_group() {
    let world = World::with_portal_groups([1, 1], |_| {}).await;
    let [first, second] = *world.server.local_addrs() else { panic!("two portals") };
    let (session, _lun) = connect(&world.url(), Config { sessions: Some(1), ..at(4, [first, second]) }).await;
    let report = session.report();
    assert_eq!((report.sessions(), count_at(&report.paths[0], first)), (1, 4));
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_group_that_refuses_its_session_leaves_its_connections_to_the_first() {
    let world = World::with_portal_groups([1, 1], |config| config.limits.sessions_per_target = 1).await;
    let [first, second] = *world.server.local_addrs() else { panic!("two portals") };
    let (session, _lun) = connect(&world.url(), at(4, [first, second])).await;
    let report = session.report();
    assert_eq!((report.sessions(), count_at(&report.paths[0], first)), (1, 4));
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_portal_that_is_down_leaves_its_connections_to_the_others() {
    let world = World::with_portal_groups([1], |_| {}).await;
    let relay = Relay::to(world.address()).await;
    relay.close();
    let (session, _lun) = connect(&world.url(), at(4, [world.address(), relay.address])).await;
    let report = wait_for(&session, |report| report.connections() == 4).await;
    assert_eq!((report.sessions(), count_at(&report.paths[0], world.address())), (1, 4));
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_first_portal_that_is_down_leaves_the_session_to_the_next() {
    let world = World::with_portal_groups([1], |_| {}).await;
    let relay = Relay::to(world.address()).await;
    relay.close();
    let (session, _lun) = connect(&world.url(), at(1, [relay.address, world.address()])).await;
    assert_eq!(session.report().paths[0].portal, world.address().into());
    session.close().await.unwrap();
}

#[tokio::test]
async fn lost_connections_are_replaced_at_a_portal_that_works() {
    let world = World::with_portal_groups([1], |_| {}).await;
    let relay = Relay::to(world.address()).await;
    let (session, lun) = connect(&world.url(), at(4, [relay.address, world.address()])).await;
    assert_eq!(count_at(&session.report().paths[0], relay.address), 2);
    relay.close();
    write_carefully(&lun, 64).await;
    let report = wait_for(&session, |report| count_at(&report.paths[0], world.address()) == 4).await;
    assert_eq!((report.sessions(), report.reinstatements), (1, 0));
    expect_pattern(&lun, 63 * PIECE as u64, PIECE, 9).await;
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_lost_session_comes_back_at_another_portal_of_its_group() {
    let world = World::with_portal_groups([1, 1], |config| config.negotiation.error_recovery_level = 0).await;
    let [first, other_group] = *world.server.local_addrs() else { panic!("two portals") };
    let relay = Relay::to(first).await;
    let (session, lun) = connect(&world.url(), at(1, [relay.address, other_group, first])).await;
    relay.close();
    write_carefully(&lun, 8).await;
    let report = wait_for(&session, |report| report.connections() == 1).await;
    assert_eq!((report.sessions(), count_at(&report.paths[0], first)), (1, 1));
    session.close().await.unwrap();
}
