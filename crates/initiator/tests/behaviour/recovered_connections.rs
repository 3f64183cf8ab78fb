//! Connections break at error recovery level 2: their session lives on, and so does every command.

use crate::world::{PIECE, Relay, World, config, connect, expect_pattern, pattern, url, write_carefully};
use ropewalk_initiator::{Compared, Config, Lun, Report, Target};
use std::time::Duration;
use target::Negotiation;

/// In a PDU's header, between PDUs, inside data, far into it.
const CUTS_BYTES: [u64; 7] = [1, 47, 48, 5_000, 131_000, 600_123, 3_000_001];

/// Nothing was lost that had to be sent again, and the session is the one that it was.
fn assert_nothing_lost(before: &Report, after: &Report) {
    assert_eq!(after.reinstatements, 0, "{after:?}");
    assert_eq!(after.retries, 0, "{after:?}");
    let session = |report: &Report| report.paths.iter().map(|path| path.tsih).collect::<Vec<_>>();
    assert_eq!(session(before), session(after));
}

/// Reads give the runtime turns until every connection is there.
async fn wait_for_connections(session: &Target, lun: &Lun, connections: usize) {
    while session.report().connections() < connections {
        lun.read(0, 4096).await.unwrap();
    }
}

async fn survive_a_cut(connections: u16, cut: impl Fn(&Relay)) {
    let world = World::new().await;
    let relay = Relay::to(world.address()).await;
    let (session, lun) = connect(&url(relay.address), config(connections)).await;
    let before = session.report();
    cut(&relay);
    assert_eq!(write_carefully(&lun, 64).await, 0, "the flush knows of no loss");
    for at in 0..64 {
        expect_pattern(&lun, at * PIECE as u64, PIECE, 9).await;
    }
    assert_eq!(relay.cuts(), 1);
    wait_for_connections(&session, &lun, connections.into()).await;
    let after = session.report();
    assert_nothing_lost(&before, &after);
    assert!(after.recovered_connections > 0, "{after:?}");
    session.close().await.unwrap();
}

/// Otherwise a target that saw a half-open connection break would forget its commands before the initiator knows of it.
#[test]
fn commands_are_kept_for_longer_than_a_silent_peer_goes_unnoticed() {
    let initiator = Config::default();
    let agreed_s = initiator.offer.default_time2retain_s.min(Negotiation::default().time2retain);
    // A quarter more, if the peer's host still acknowledges.
    let unnoticed = initiator.limits.ping_after + initiator.limits.ping_timeout * 5 / 4;
    assert!(Duration::from_secs(agreed_s.into()) > unnoticed, "{agreed_s} s, {unnoticed:?}");
}

#[tokio::test]
async fn one_of_four_connections_breaks_at_any_byte_and_is_replaced() {
    for bytes in CUTS_BYTES {
        survive_a_cut(4, |relay| relay.cut_one_after(bytes)).await;
    }
}

#[tokio::test]
async fn all_connections_break_at_once_at_any_byte_and_are_replaced() {
    for bytes in CUTS_BYTES {
        for connections in [1, 4] {
            survive_a_cut(connections, |relay| relay.cut_after(bytes)).await;
        }
    }
}

#[tokio::test]
async fn connections_that_are_added_while_none_is_left_do_not_break_one_another() {
    for _ in 0..20 {
        let world = World::new().await;
        let relay = Relay::to(world.address()).await;
        let (session, lun) = connect(&url(relay.address), config(4)).await;
        wait_for_connections(&session, &lun, 4).await;
        relay.cut_after(131_000);
        let adding = async {
            while session.report().connections() > 0 {
                tokio::task::yield_now().await;
            }
            tokio::join!(session.add_connection(), session.add_connection())
        };
        let (losses, added) = tokio::join!(write_carefully(&lun, 64), adding);
        assert_eq!((losses, relay.cuts()), (0, 1));
        assert!(added.0.is_ok() && added.1.is_ok(), "{added:?}");
        wait_for_connections(&session, &lun, 4).await;
        let report = session.report();
        assert_eq!((report.reinstatements, report.recovered_connections), (0, 4), "{report:#?}");
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn what_must_happen_once_happens_once() {
    let world = World::new().await;
    let relay = Relay::to(world.address()).await;
    let (session, lun) = connect(&url(relay.address), config(1)).await;
    let (old, new) = ([0; 512], [1; 512]);
    relay.cut_after(600);
    assert_eq!(lun.compare_and_write(0, &old, &new).await.unwrap(), Compared::Written);
    assert_eq!(session.report().reinstatements, 0);
    lun.write(0, pattern(&lun, 0, 512, 1), false).await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_flush_after_a_broken_connection_has_nothing_to_tell() {
    let world = World::new().await;
    let relay = Relay::to(world.address()).await;
    let (session, lun) = connect(&url(relay.address), config(1)).await;
    let generation = lun.generation();
    lun.write(0, pattern(&lun, 0, 4096, 1), false).await.unwrap();
    relay.cut_after(1);
    lun.flush().await.unwrap();
    assert_eq!(lun.generation(), generation);
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_target_that_does_less_gets_what_it_can_do() {
    for level in [0, 1] {
        let world =
            World::serving("ram:64MiB", |config| config.negotiation.error_recovery_level = level).await;
        let relay = Relay::to(world.address()).await;
        let (session, lun) = connect(&url(relay.address), config(2)).await;
        relay.cut_after(600_123);
        write_carefully(&lun, 64).await;
        for at in 0..64 {
            expect_pattern(&lun, at * PIECE as u64, PIECE, 9).await;
        }
        let report = session.report();
        assert_eq!(report.paths[0].parameters.unwrap().error_recovery_level, level);
        assert_eq!((report.reinstatements, report.recovered_connections), (1, 0));
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_first_login_that_breaks_is_tried_again() {
    let world = World::new().await;
    let relay = Relay::to(world.address()).await;
    relay.cut_after(20);
    let (session, lun) = connect(&url(relay.address), config(2)).await;
    assert_eq!(relay.cuts(), 1);
    lun.read(0, 4096).await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_connection_that_breaks_while_a_unit_is_opened_delays_that_only() {
    for level in [0, 2] {
        let world = World::new().await;
        let relay = Relay::to(world.address()).await;
        let mut config = config(1);
        config.offer.error_recovery_level = level;
        let url = url(relay.address);
        let session = ropewalk_initiator::connect(&url, config).await.unwrap();
        relay.cut_after(100);
        let lun = session.lun(url.lun).await.unwrap();
        assert_eq!(relay.cuts(), 1);
        lun.read(0, 4096).await.unwrap();
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn wherever_a_connection_breaks_while_a_session_is_opened_all_are_there_in_the_end() {
    // Four logins and the questions to the unit take 1400 bytes or more.
    for bytes in (20..1_200).step_by(67) {
        let world = World::new().await;
        let relay = Relay::to(world.address()).await;
        relay.cut_one_after(bytes);
        let (session, lun) = connect(&url(relay.address), config(4)).await;
        wait_for_connections(&session, &lun, 4).await;
        assert_eq!(relay.cuts(), 1, "after {bytes} bytes");
        session.close().await.unwrap();
    }
}
