//! A target that stops asks for a logout, gets it, and is called again.

use crate::world::{Meddler, Meddling, World, config, connect, expect_pattern, pattern, url};
use std::time::{Duration, Instant};

/// A target never waits for so long if its initiators log out.
const GRACE: Duration = Duration::from_secs(600);

/// Far less than that, and far more than it takes.
const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_target_that_stops_need_not_wait_for_idle_initiators_and_gets_them_back() {
    for level in [0, 2] {
        for connections in [1, 4] {
            let world = World::new().await;
            let address = world.address();
            let mut config = config(connections);
            config.offer.error_recovery_level = level;
            let (session, lun) = connect(&url(address), config).await;
            expect_zeroes(&lun).await;
            let begin = Instant::now();
            let report = world.server.shutdown(GRACE).await;
            assert!(begin.elapsed() < LIMIT, "{connections} connections at level {level}");
            assert_eq!((report.sessions_cut, report.unflushed.len()), (0, 0));
            let again = World::serving("ram:64MiB", |target| target.listen = vec![address]).await;
            lun.write(0, pattern(&lun, 0, 4096, 1), false).await.unwrap();
            expect_pattern(&lun, 0, 4096, 1).await;
            assert_eq!(session.report().reinstatements, 1);
            session.close().await.unwrap();
            drop(again);
        }
    }
}

#[tokio::test]
async fn a_target_that_drops_the_session_is_left_alone_for_as_long_as_it_says() {
    const SESSION_DROP: u8 = 3;
    const CONNECTION_DROP: u8 = 2;
    const READ_16: u8 = 0x88;
    const CID: u16 = 0;
    const TIME2WAIT_S: u16 = 1;
    for event in [SESSION_DROP, CONNECTION_DROP] {
        let world = World::new().await;
        let meddler = Meddler::to(world.address()).await;
        let mut config = config(1);
        config.offer.error_recovery_level = 0;
        let (session, lun) = connect(&url(meddler.address), config).await;
        let begin = Instant::now();
        meddler.once(READ_16, Meddling::Message(event, [CID, TIME2WAIT_S, 0]));
        expect_zeroes(&lun).await;
        assert!(begin.elapsed() >= Duration::from_secs(TIME2WAIT_S.into()), "the negotiated time is none");
        assert_eq!(session.report().reinstatements, 1);
        session.close().await.unwrap();
    }
}

async fn expect_zeroes(lun: &ropewalk_initiator::Lun) {
    assert!(lun.read(0, 4096).await.unwrap().iter().all(|byte| *byte == 0));
}
