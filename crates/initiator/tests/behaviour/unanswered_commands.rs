//! A target that answers pings, and commands late or never.

use crate::world::{
    Meddler, Meddling, PIECE, World, config, connect, expect_pattern, pattern, url, write_carefully,
};
use ropewalk_initiator::{Error, Reset, TargetError, Transfer};
use scsi::client::test_unit_ready;
use std::time::{Duration, Instant};

fn is_unanswered(error: &Error) -> bool {
    matches!(error, Error::Target(TargetError::Unanswered { .. }))
}

#[tokio::test]
async fn a_command_that_is_never_answered_is_aborted_sent_again_and_given_up() {
    for level in [0, 2] {
        let world = World::serving("ram:1MiB,latency=1500ms", |_| {}).await;
        let mut config = config(2);
        config.offer.error_recovery_level = level;
        config.command_limit = Duration::from_millis(160);
        let (session, lun) = connect(&url(world.address()), config).await;
        let error = lun.read(0, 512).await.unwrap_err();
        assert!(is_unanswered(&error), "{error}");
        let buffer = lun.allocate(512).unwrap();
        let error = lun.write(0, buffer, false).await.unwrap_err();
        assert!(is_unanswered(&error), "{error}");
        assert!(session.report().reinstatements > 0, "the write is known to be dead");
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn commands_that_the_target_has_forgotten_are_sent_again_after_one_limit() {
    const READS: u64 = 16;
    let world = World::serving("ram:1MiB,latency=3000ms", |_| {}).await;
    let mut config = config(1);
    config.command_limit = Duration::from_secs(4);
    let (session, lun) = connect(&url(world.address()), config).await;
    let (other, same) = world.connect(1).await;
    let begin = Instant::now();
    let reads = futures_util::future::join_all((0..READS).map(|block| lun.read(block * 512, 512)));
    let reset = async {
        // On one connection, this is answered after the target has begun the reads.
        lun.execute(pdu::Cdb::from(test_unit_ready()), Transfer::None).await.unwrap();
        same.reset(Reset::LogicalUnit).await.unwrap();
    };
    let (ended, ()) = tokio::join!(reads, reset);
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    let report = session.report();
    assert_eq!((report.reinstatements, report.retries), (0, READS));
    assert!(begin.elapsed() < Duration::from_secs(4 * READS), "not one limit each");
    session.close().await.unwrap();
    other.close().await.unwrap();
}

const SYNCHRONIZE_CACHE_16: u8 = 0x91;

/// Of any command but a flush, which has five times as long.
const COMMAND_LIMIT: Duration = Duration::from_millis(160);

#[tokio::test]
async fn a_flush_may_take_longer_than_other_commands() {
    let world = World::new().await;
    let meddler = Meddler::to(world.address()).await;
    let mut config = config(1);
    config.command_limit = COMMAND_LIMIT;
    let (session, lun) = connect(&url(meddler.address), config).await;
    lun.write(0, pattern(&lun, 0, 512, 1), false).await.unwrap();
    meddler.once(SYNCHRONIZE_CACHE_16, Meddling::Delay(COMMAND_LIMIT * 3));
    lun.flush().await.unwrap();
    let report = session.report();
    assert_eq!((report.reinstatements, report.retries, meddler.count(SYNCHRONIZE_CACHE_16)), (0, 0, 1));
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_flush_that_is_never_answered_says_so_and_the_next_one_that_writes_may_be_lost() {
    let world = World::new().await;
    let meddler = Meddler::to(world.address()).await;
    let mut config = config(1);
    config.offer.error_recovery_level = 0;
    config.command_limit = COMMAND_LIMIT;
    let (session, lun) = connect(&url(meddler.address), config).await;
    lun.write(0, pattern(&lun, 0, 512, 1), false).await.unwrap();
    meddler.once(SYNCHRONIZE_CACHE_16, Meddling::Swallow);
    let begin = Instant::now();
    let error = lun.flush().await.unwrap_err();
    assert!(is_unanswered(&error), "{error}");
    assert!(begin.elapsed() >= COMMAND_LIMIT * 5, "not before its own limit");
    assert_eq!(
        meddler.count(SYNCHRONIZE_CACHE_16),
        1,
        "what it would say through another session is something else"
    );
    let error = lun.flush().await.unwrap_err();
    assert!(matches!(error, Error::WritesLost { .. }), "{error}");
    lun.flush().await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn commands_that_wait_for_those_before_them_may_take_their_time() {
    let world = World::serving("ram:64MiB,rate=2M", |_| {}).await;
    let mut config = config(2);
    // All of it takes twice as long.
    config.command_limit = Duration::from_secs(2);
    let (session, lun) = connect(&url(world.address()), config).await;
    write_carefully(&lun, 64).await;
    expect_pattern(&lun, 0, PIECE, 9).await;
    let report = session.report();
    assert_eq!((report.reinstatements, report.retries), (0, 0));
    session.close().await.unwrap();
}
