//! A unit that says it has changed carries no I/O until it is proven to be the same.

use crate::world::{Meddler, Meddling, World, config, connect, pattern, url};
use ropewalk_initiator::{Error, Lun, Target, TargetError};

const READ_16: u8 = 0x88;
const WRITE_16: u8 = 0x8a;
const SYNCHRONIZE_CACHE_16: u8 = 0x91;
const SERVICE_ACTION_IN: u8 = 0x9e;
const INQUIRY: u8 = 0x12;

const UNIT_ATTENTION: u8 = 6;
const CHANGES: [(u8, u8); 5] = [(0x28, 0x00), (0x2a, 0x09), (0x3f, 0x03), (0x3f, 0x05), (0x3f, 0x0e)];

/// One session of one connection, through a relay that changes what is answered.
async fn meddled(world: &World) -> (Meddler, Target, Lun) {
    let meddler = Meddler::to(world.address()).await;
    let (session, lun) = connect(&url(meddler.address), config(1)).await;
    (meddler, session, lun)
}

/// The next command is told that the unit changed; then every page and capacity passes through `patch`.
fn change(meddler: &Meddler, (code, qualifier): (u8, u8), operation_code: u8, patch: fn(&mut [u8])) {
    let mut told = false;
    meddler.meddle(move |cdb| match cdb[0] {
        _ if !std::mem::replace(&mut told, true) => Meddling::Sense(UNIT_ATTENTION, code, qualifier),
        seen if seen == operation_code => Meddling::Patch(patch),
        _ => Meddling::Nothing,
    });
}

/// Another serial number in every name of the unit.
fn rename(page: &mut [u8]) {
    const DEVICE_IDENTIFICATION: u8 = 0x83;
    if page[1] == DEVICE_IDENTIFICATION {
        // The last bytes of the first name, which is the best one.
        let end = 8 + usize::from(page[7]);
        page[end - 1] ^= 1;
    }
}

fn shrink(capacity: &mut [u8]) {
    capacity[7] -= 1;
}

fn grow(capacity: &mut [u8]) {
    capacity[6] += 1;
}

fn is_changed(error: &Error) -> bool {
    matches!(error, Error::Target(TargetError::Changed { .. }))
}

#[tokio::test]
async fn a_unit_that_changed_into_another_is_not_read_or_written_again() {
    for told in CHANGES {
        let world = World::new().await;
        let (meddler, _session, lun) = meddled(&world).await;
        change(&meddler, told, INQUIRY, rename);
        let error = lun.read(0, 4096).await.unwrap_err();
        assert!(is_changed(&error), "{error}");
        assert_eq!(meddler.count(READ_16), 1, "the one that was told");
        let error = lun.write(0, pattern(&lun, 0, 4096, 1), false).await.unwrap_err();
        assert!(is_changed(&error), "{error}");
        assert_eq!(meddler.count(WRITE_16), 0);
    }
}

#[tokio::test]
async fn a_unit_that_changed_and_is_the_same_carries_on_after_its_proof() {
    for told in CHANGES {
        let world = World::new().await;
        let (meddler, session, lun) = meddled(&world).await;
        let proofs = meddler.count(SERVICE_ACTION_IN);
        change(&meddler, told, INQUIRY, |_| {});
        lun.read(0, 4096).await.unwrap();
        assert_eq!(
            meddler.count(SERVICE_ACTION_IN),
            proofs + 1,
            "{told:x?}: its capacity was asked for again"
        );
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_unit_that_shrank_is_given_up_and_one_that_grew_is_not() {
    let world = World::new().await;
    let (meddler, _session, lun) = meddled(&world).await;
    change(&meddler, (0x2a, 0x09), SERVICE_ACTION_IN, shrink);
    let error = lun.read(0, 4096).await.unwrap_err();
    assert!(is_changed(&error) && error.to_string().contains("blocks"), "{error}");
    let (meddler, session, lun) = meddled(&world).await;
    change(&meddler, (0x2a, 0x09), SERVICE_ACTION_IN, grow);
    lun.read(0, 4096).await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_flush_of_a_unit_that_changed_into_another_promises_nothing() {
    let world = World::new().await;
    let (meddler, _session, lun) = meddled(&world).await;
    let generation = lun.generation();
    lun.write(0, pattern(&lun, 0, 4096, 1), false).await.unwrap();
    change(&meddler, (0x3f, 0x03), INQUIRY, rename);
    let error = lun.flush().await.unwrap_err();
    assert!(is_changed(&error), "{error}");
    assert_eq!(meddler.count(SYNCHRONIZE_CACHE_16), 1, "the one that was told");
    assert_ne!(lun.generation(), generation, "what was written is lost");
}

#[tokio::test]
async fn a_change_during_the_proof_is_proven_again() {
    let world = World::new().await;
    let (meddler, session, lun) = meddled(&world).await;
    let before = meddler.count(SERVICE_ACTION_IN);
    let mut commands = 0;
    meddler.meddle(move |cdb| {
        commands += 1;
        match cdb[0] {
            READ_16 if commands == 1 => Meddling::Sense(UNIT_ATTENTION, 0x3f, 0x0e),
            SERVICE_ACTION_IN if commands < 6 => Meddling::Sense(UNIT_ATTENTION, 0x2a, 0x09),
            _ => Meddling::Nothing,
        }
    });
    lun.read(0, 4096).await.unwrap();
    assert!(meddler.count(SERVICE_ACTION_IN) >= before + 3, "told, asked again, and looked at anew");
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_unit_is_asked_everything_without_waiting_between_the_questions() {
    let world = World::new().await;
    let meddler = Meddler::to(world.address()).await;
    // Twice whether it is ready, five pages and modes, its capacity, its reservations and what it can do with them.
    meddler.gather(10);
    let (session, lun) = connect(&url(meddler.address), config(1)).await;
    lun.read(0, 4096).await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_unit_that_was_not_ready_is_asked_again_when_it_is() {
    const TEST_UNIT_READY: u8 = 0x00;
    const NOT_READY: u8 = 0x02;
    let world = World::new().await;
    let meddler = Meddler::to(world.address()).await;
    let mut asked = 0;
    meddler.meddle(move |cdb| match cdb[0] {
        TEST_UNIT_READY => {
            asked += 1;
            if asked <= 3 { Meddling::Sense(NOT_READY, 0x04, 0x01) } else { Meddling::Nothing }
        }
        // Another capacity as long as it is not ready.
        SERVICE_ACTION_IN if asked <= 3 => Meddling::Patch(shrink),
        _ => Meddling::Nothing,
    });
    let (session, lun) = connect(&url(meddler.address), config(1)).await;
    assert_eq!(lun.unit().capacity_bytes(), 64 << 20);
    session.close().await.unwrap();
}
