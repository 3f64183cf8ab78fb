//! A unit that is reserved for one [`Target`](ropewalk_initiator::Target), over all of its paths.

use crate::world::{
    Meddler, Meddling, PIECE, Relay, World, config, connect, expect_pattern, pattern, url, write_carefully,
};
use ropewalk_initiator::{Error, Lun, Reserved, TargetError, Transfer};
use scsi::ReserveIn;
use scsi::client::{RegisteredNexus, persistent_reserve_in, registered_nexuses};
use std::net::SocketAddr;
use std::time::Duration;

async fn registered(lun: &Lun) -> Vec<RegisteredNexus> {
    let answer = lun.allocate(4096).unwrap();
    let cdb = pdu::Cdb::from(persistent_reserve_in(ReserveIn::FullStatus, 4096));
    let executed = lun.execute(cdb, Transfer::In(answer)).await.unwrap();
    registered_nexuses(&executed.data.unwrap()[..executed.data_in_bytes as usize])
}

async fn write(lun: &Lun) -> Result<(), Error> {
    lun.write(0, pattern(lun, 0, PIECE, 3), false).await
}

#[tokio::test]
async fn only_one_of_two_sessions_holds_a_unit() {
    let world = World::new().await;
    let (one, first) = world.connect(1).await;
    let (other, second) = world.connect(1).await;
    assert!(first.reserve(false).await.unwrap().is_held());
    let refused = second.reserve(false).await.unwrap_err();
    let Error::Target(TargetError::Reserved { holder, .. }) = &refused else { panic!("{refused}") };
    assert!(holder.is_ropewalk() && holder.port.is_some(), "{holder}");
    assert!(write(&second).await.unwrap_err().is_reservation_conflict());
    write(&first).await.unwrap();
    first.release().await.unwrap();
    assert_eq!(registered(&first).await, []);
    assert!(second.reserve(false).await.unwrap().is_held());
    one.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test]
async fn a_unit_that_nobody_holds_is_reserved_and_released_without_waiting_between_the_commands() {
    let world = World::new().await;
    let meddler = Meddler::to(world.address()).await;
    let (session, lun) = connect(&url(meddler.address), config(1)).await;
    // Register, reserve, look.
    meddler.gather(3);
    assert!(lun.reserve(false).await.unwrap().is_held());
    write(&lun).await.unwrap();
    // Release, end the registration, look.
    meddler.gather(3);
    lun.release().await.unwrap();
    assert_eq!(registered(&lun).await, []);
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_unit_that_was_reserved_after_it_was_opened_is_refused_and_no_registration_is_left() {
    let world = World::new().await;
    let (one, first) = world.connect(1).await;
    let (other, second) = world.connect(1).await;
    assert!(first.reserve(false).await.unwrap().is_held());
    let refused = second.reserve(false).await.unwrap_err();
    assert!(matches!(refused, Error::Target(TargetError::Reserved { .. })), "{refused}");
    assert_eq!(registered(&first).await.len(), 1);
    assert!(second.reserve(true).await.unwrap().is_held());
    one.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test]
async fn a_unit_is_reserved_step_by_step_if_a_command_of_a_burst_would_have_to_be_sent_again() {
    const PERSISTENT_RESERVE_OUT: u8 = 0x5f;
    const UNIT_ATTENTION: u8 = 0x06;
    const BUSY: u8 = 0x08;
    for (burst_command, is_busy) in [(0, false), (1, false), (0, true), (1, true)] {
        let world = World::new().await;
        let meddler = Meddler::to(world.address()).await;
        let (session, lun) = connect(&url(meddler.address), config(1)).await;
        let mut seen = 0;
        meddler.meddle(move |cdb| {
            let is_next = cdb[0] == PERSISTENT_RESERVE_OUT && seen == burst_command;
            seen += usize::from(cdb[0] == PERSISTENT_RESERVE_OUT);
            match (is_next, is_busy) {
                (true, true) => Meddling::Status(BUSY),
                (true, false) => Meddling::Sense(UNIT_ATTENTION, 0x29, 0x00),
                (false, _) => Meddling::Nothing,
            }
        });
        assert_eq!(lun.reserve(false).await.unwrap(), Reserved::Stepwise);
        write(&lun).await.unwrap();
        lun.release().await.unwrap();
        assert_eq!(registered(&lun).await, []);
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn every_path_writes_those_that_join_later_too() {
    let world = World::serving("ram:64MiB", |config| config.negotiation.max_connections = 1).await;
    let (session, lun) = world.connect(2).await;
    assert!(lun.reserve(false).await.unwrap().is_held());
    assert_eq!(registered(&lun).await.len(), 2);
    session.add_connection().await.unwrap();
    assert_eq!(session.report().sessions(), 3);
    let nexuses = registered(&lun).await;
    assert_eq!(nexuses.len(), 3);
    assert!(nexuses.iter().all(|nexus| nexus.key == nexuses[0].key));
    write_carefully(&lun, 64).await;
    expect_pattern(&lun, 0, PIECE, 9).await;
    lun.release().await.unwrap();
    assert_eq!(registered(&lun).await, []);
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_target_that_fails_to_keep_a_reservation_is_used_without_one() {
    const PERSISTENT_RESERVE_OUT: u8 = 0x5f;
    const NOT_READY: u8 = 0x02;
    const COMMUNICATION_FAILURE: u8 = 0x08;
    let world = World::new().await;
    let meddler = Meddler::to(world.address()).await;
    let (session, lun) = connect(&url(meddler.address), config(1)).await;
    let refused = || Meddling::Sense(NOT_READY, COMMUNICATION_FAILURE, 0);
    meddler.meddle(move |cdb| if cdb[0] == PERSISTENT_RESERVE_OUT { refused() } else { Meddling::Nothing });
    assert!(!lun.reserve(false).await.unwrap().is_held());
    write(&lun).await.unwrap();
    lun.release().await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_session_that_was_lost_still_holds_the_unit_when_it_is_back() {
    let world = World::new().await;
    let relay = Relay::to(world.address()).await;
    let mut config = config(1);
    config.offer.error_recovery_level = 0;
    let (session, lun) = connect(&url(relay.address), config).await;
    let (other, intruder) = world.connect(1).await;
    assert!(lun.reserve(false).await.unwrap().is_held());
    relay.cut_after(1 << 20);
    write_carefully(&lun, 32).await;
    assert!(session.report().reinstatements > 0);
    assert!(write(&intruder).await.unwrap_err().is_reservation_conflict());
    lun.release().await.unwrap();
    write(&intruder).await.unwrap();
    session.close().await.unwrap();
    other.close().await.unwrap();
}

/// A file of 1 MiB, and a place for its target to store reservations.
struct Stored(tempfile::TempDir);

impl Stored {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::File::create(folder.path().join("image")).unwrap().set_len(1 << 20).unwrap();
        Self(folder)
    }

    async fn serve(&self, listen: Option<SocketAddr>) -> World {
        let image = format!("file:{}", self.0.path().join("image").display());
        World::serving(&image, |target| {
            target.state_directory = Some(self.0.path().join("state"));
            if let Some(address) = listen {
                target.listen = vec![address];
            }
        })
        .await
    }
}

#[tokio::test]
async fn a_restarted_target_that_stores_reservations_lets_nobody_else_in_before_the_holder_is_back() {
    let stored = Stored::new();
    let world = stored.serve(None).await;
    let address = world.address();
    let relay = Relay::to(address).await;
    let (session, lun) = connect(&url(relay.address), config(1)).await;
    assert!(lun.reserve(false).await.unwrap().is_held());
    write(&lun).await.unwrap();
    relay.close();
    world.server.shutdown(Duration::ZERO).await;
    let world = stored.serve(Some(address)).await;
    let (other, intruder) = world.connect(1).await;
    assert!(write(&intruder).await.unwrap_err().is_reservation_conflict());
    other.close().await.unwrap();
    drop(session);
}

#[tokio::test]
async fn a_write_after_the_reservation_was_broken_fails_and_says_who_broke_it() {
    let world = World::new().await;
    let (one, first) = world.connect(1).await;
    let (other, second) = world.connect(1).await;
    assert!(first.reserve(false).await.unwrap().is_held());
    assert!(second.reserve(true).await.unwrap().is_held());
    let error = write(&first).await.unwrap_err();
    let Error::Target(TargetError::Reserved { holder, .. }) = &error else { panic!("{error}") };
    assert_eq!(Some(holder), second.reservation_holder().await.unwrap().as_ref());
    write(&second).await.unwrap();
    one.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test]
async fn a_reservation_that_was_broken_and_given_back_is_not_taken_again_as_if_nobody_had_written() {
    let stored = Stored::new();
    let world = stored.serve(None).await;
    let (one, first) = world.connect(1).await;
    let (other, second) = world.connect(1).await;
    assert!(first.reserve(false).await.unwrap().is_held());
    assert!(second.reserve(true).await.unwrap().is_held());
    second.release().await.unwrap();
    let error = write(&first).await.unwrap_err();
    assert!(matches!(error, Error::Target(TargetError::ReservationLost { .. })), "{error}");
    one.close().await.unwrap();
    other.close().await.unwrap();
}
