//! Persistent reservations outlive the death of the target: who was shut out stays shut out, who holds it goes on.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use initiator::{Config, Connections, Error, Lun, Target, Transfer, Url};
use pdu::Cdb;
use ropewalk_interop::{IQN, Image, Ropewalk};
use scsi::client::persistent_reserve_out;
use scsi::{PersistentReserveOut, Register, ReservationKey, ReservationType, ReserveAction, Status};

const IMAGE_MIB: u64 = 1;
const BLOCK_BYTES: usize = 4096;
const KEY: ReservationKey = ReservationKey(0x0123_4567_89ab_cdef);

/// A session of the host of this name, with one connection.
async fn connect(target: &Ropewalk, host: &str) -> (Target, Lun) {
    let url = Url {
        user: None,
        portal: target.address().into(),
        target_name: IQN.into(),
        lun: 0,
        congestion: None,
    };
    let initiator_name = format!("iqn.2026-11.org.example:{host}");
    let config = Config { initiator_name, connections: Connections::Fixed(1), ..Config::default() };
    let session = initiator::connect(&url, config).await.unwrap();
    let lun = session.lun(0).await.unwrap();
    (session, lun)
}

async fn ask(lun: &Lun, key: ReservationKey, action: ReserveAction) {
    let (cdb, list) = persistent_reserve_out(&PersistentReserveOut { key, action });
    let mut buffer = lun.allocate(list.len()).unwrap();
    buffer[..list.len()].copy_from_slice(&list);
    let list = block::Payload::from(buffer).slice(0..list.len()).unwrap();
    lun.execute(Cdb::new(&cdb).unwrap(), Transfer::Out(list)).await.unwrap();
}

async fn write(lun: &Lun) -> Result<(), Error> {
    lun.write(0, lun.allocate(BLOCK_BYTES).unwrap(), false).await
}

#[tokio::test]
async fn a_reservation_survives_the_death_of_the_target() {
    let image = Image::random(IMAGE_MIB).unwrap();
    let state = image.beside("state");
    let lun = format!("0=file:{}", image.name());
    let mut target = Ropewalk::serve_with(&[&lun], 1, &["--state-directory", &state]).unwrap();
    let (_holding, holder) = connect(&target, "holder").await;
    let register = Register {
        new_key: KEY,
        ignore_existing_key: false,
        persist: true,
        all_target_ports: false,
        others: Vec::new(),
    };
    ask(&holder, ReservationKey::NONE, ReserveAction::Register(register)).await;
    ask(&holder, KEY, ReserveAction::Reserve(ReservationType::WriteExclusive)).await;

    target.kill_and_restart().unwrap();

    let (_shut_out, other) = connect(&target, "other").await;
    assert_eq!(other.reservation_holder().await.unwrap().unwrap().key, KEY);
    let refused = write(&other).await.unwrap_err();
    let conflict = Some(Status::ReservationConflict.code());
    assert!(
        matches!(refused, Error::Target(initiator::TargetError::Status { status, .. }) if status == conflict)
    );
    write(&holder).await.unwrap();
    assert!(target.stop().unwrap().success());
}
