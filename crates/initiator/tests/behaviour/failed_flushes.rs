//! A flush that failed is not made good by the next one.

use crate::world::{Meddler, Meddling, World, config, connect, pattern, url};
use ropewalk_initiator::{Error, Lun, Target};

const SYNCHRONIZE_CACHE_16: u8 = 0x91;
const CHECK_CONDITION: u8 = 0x02;
const BUSY: u8 = 0x08;
const TASK_ABORTED: u8 = 0x40;

const MEDIUM_ERROR: Meddling = Meddling::Sense(0x3, 0x0c, 0);

/// A unit that has been written to, behind a relay that changes what is answered.
async fn written(world: &World) -> (Meddler, Target, Lun) {
    let meddler = Meddler::to(world.address()).await;
    let (session, lun) = connect(&url(meddler.address), config(1)).await;
    lun.write(0, pattern(&lun, 0, 4096, 1), false).await.unwrap();
    (meddler, session, lun)
}

fn is_lost(result: &Result<(), Error>) -> bool {
    matches!(result, Err(Error::WritesLost { .. }))
}

#[tokio::test]
async fn a_flush_that_failed_in_any_way_is_not_repeated_and_every_handle_is_told() {
    let failures = [
        MEDIUM_ERROR,
        Meddling::Sense(0x4, 0x44, 0),
        // A code of the vendor's own.
        Meddling::Sense(0x5, 0x80, 0),
        Meddling::Sense(0xb, 0x44, 0),
        Meddling::Status(CHECK_CONDITION),
        Meddling::Status(TASK_ABORTED),
    ];
    let world = World::new().await;
    for (at, failure) in failures.into_iter().enumerate() {
        let (meddler, session, lun) = written(&world).await;
        let other = lun.clone();
        meddler.once(SYNCHRONIZE_CACHE_16, failure);
        assert!(lun.flush().await.is_err(), "failure {at}");
        assert_eq!(meddler.count(SYNCHRONIZE_CACHE_16), 1, "failure {at} was repeated");
        assert!(is_lost(&other.flush().await), "failure {at}: every handle is told");
        lun.flush().await.unwrap();
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_flush_for_which_the_device_is_too_busy_is_repeated() {
    let world = World::new().await;
    let (meddler, session, lun) = written(&world).await;
    meddler.once(SYNCHRONIZE_CACHE_16, Meddling::Status(BUSY));
    lun.flush().await.unwrap();
    assert_eq!(meddler.count(SYNCHRONIZE_CACHE_16), 2);
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_flush_asked_for_before_another_failed_is_told_through_the_same_handle() {
    let world = World::new().await;
    let (meddler, session, lun) = written(&world).await;
    meddler.once(SYNCHRONIZE_CACHE_16, MEDIUM_ERROR);
    let (first, second) = tokio::join!(lun.flush(), lun.flush());
    assert!(first.is_err());
    assert!(is_lost(&second), "{second:?}");
    session.close().await.unwrap();
}

#[tokio::test]
async fn flushes_asked_for_during_a_flush_share_the_next_one() {
    let world = World::new().await;
    let (meddler, session, lun) = written(&world).await;
    let flushes: Vec<_> = (0..8)
        .map(|_| {
            let lun = lun.clone();
            async move { lun.flush().await }
        })
        .map(tokio::spawn)
        .collect();
    for flush in flushes {
        flush.await.unwrap().unwrap();
    }
    assert_eq!(meddler.count(SYNCHRONIZE_CACHE_16), 2);
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_flush_for_what_others_wrote_is_not_repeated_either() {
    let world = World::new().await;
    let (meddler, session, lun) = written(&world).await;
    lun.flush().await.unwrap();
    meddler.once(SYNCHRONIZE_CACHE_16, Meddling::Sense(0xb, 0x44, 0));
    assert!(lun.flush().await.is_err());
    session.close().await.unwrap();
}
