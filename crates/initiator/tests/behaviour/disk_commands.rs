//! What else a disk can do.

use crate::world::{World, expect_pattern, pattern};
use block::{Backend, BlockErrorKind, ExtentState, Operation};
use ropewalk_initiator::{Compared, Error, Transfer, UsageError};

const PIECE: usize = 1 << 20;

async fn zeroes(lun: &ropewalk_initiator::Lun, offset: u64, bytes: usize) -> bool {
    lun.read(offset, bytes).await.unwrap().iter().all(|byte| *byte == 0)
}

#[tokio::test]
async fn a_unit_describes_itself() {
    let world = World::serving("ram:64MiB,bs=4096,id=me", |_| {}).await;
    let (session, lun) = world.connect(1).await;
    let unit = lun.unit();
    assert_eq!((unit.capacity_bytes(), unit.block_bytes()), (64 << 20, 4096));
    assert!(unit.designator.as_ref().unwrap().to_string().starts_with("naa.6"));
    assert!(unit.unmapped_reads_zero() && unit.mode.fua && !unit.mode.write_protected);
    assert_eq!(session.report_luns().await.unwrap(), [pdu::Lun::from_index(0)]);
    session.close().await.unwrap();
}

#[tokio::test]
async fn zeroes_are_written_without_sending_them() {
    let world = World::new().await;
    let (session, lun) = world.connect(2).await;
    lun.write(0, pattern(&lun, 0, PIECE, 1), false).await.unwrap();
    lun.write_zeroes(0, PIECE as u64 / 2, true).await.unwrap();
    assert!(zeroes(&lun, 0, PIECE / 2).await);
    expect_pattern(&lun, PIECE as u64 / 2, PIECE / 2, 1).await;
    session.close().await.unwrap();
}

#[tokio::test]
async fn extents_tell_what_is_allocated() {
    let world = World::new().await;
    let (session, lun) = world.connect(2).await;
    lun.write(0, pattern(&lun, 0, PIECE, 1), true).await.unwrap();
    lun.unmap(0, PIECE as u64 / 2).await.unwrap();
    let extents = lun.extents(0, 4 << 20).await.unwrap();
    let states: Vec<_> =
        extents.iter().map(|extent| (extent.range.offset, extent.range.bytes, extent.state)).collect();
    let half = PIECE as u64 / 2;
    let expected = [
        (0, half, ExtentState::Zero),
        (half, half, ExtentState::Data),
        (2 * half, (4 << 20) - 2 * half, ExtentState::Zero),
    ];
    assert_eq!(states, expected);
    session.close().await.unwrap();
}

#[tokio::test]
async fn compare_and_write_writes_only_what_was_expected() {
    let world = World::new().await;
    let (session, lun) = world.connect(2).await;
    let (old, new) = ([0; 512], [1; 512]);
    assert_eq!(lun.compare_and_write(512, &old, &new).await.unwrap(), Compared::Written);
    let different = lun.compare_and_write(512, &old, &new).await.unwrap();
    assert_eq!(different, Compared::Different { at: Some(0) });
    session.close().await.unwrap();
}

#[tokio::test]
async fn wrong_ranges_are_the_callers_fault() {
    let world = World::new().await;
    let (session, lun) = world.connect(1).await;
    let misaligned = lun.read(1, 512).await.unwrap_err();
    assert!(matches!(misaligned, Error::Usage(UsageError::Misaligned { .. })), "{misaligned}");
    let beyond = lun.read(64 << 20, 512).await.unwrap_err();
    assert!(matches!(beyond, Error::Usage(UsageError::OutOfRange { .. })), "{beyond}");
    assert_eq!(lun.read(64 << 20, 0).await.unwrap().len(), 0);
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_refused_command_brings_its_sense_data() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let world = World::serving(&format!("file:{},ro", file.path().display()), |_| {}).await;
    let (session, lun) = world.connect(1).await;
    let error = lun.write(0, pattern(&lun, 0, 512, 1), false).await.unwrap_err();
    assert_eq!(error.sense().unwrap().additional, scsi::AdditionalSense::WRITE_PROTECTED);
    assert_eq!(error.to_string(), "WRITE at logical unit 0 failed: DATA PROTECT: WRITE PROTECTED (27h/00h)");
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_unit_that_knows_no_reservations_has_none() {
    let world = World::new().await;
    let (session, lun) = world.connect(1).await;
    assert_eq!(lun.reservation_holder().await.unwrap(), None);
    session.close().await.unwrap();
}

#[tokio::test]
async fn any_command_can_be_sent() {
    let world = World::new().await;
    let (session, lun) = world.connect(1).await;
    let buffer = lun.allocate(96).unwrap();
    let cdb = pdu::Cdb::from(scsi::client::inquiry(96));
    let executed = lun.execute(cdb, Transfer::In(buffer)).await.unwrap();
    assert!(executed.data_in_bytes >= 36);
    assert_eq!(&executed.data.unwrap()[8..16], b"ROPEWALK");
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_unit_is_a_block_device_among_others() {
    let world = World::new().await;
    let (session, lun) = world.connect(2).await;
    let device: Box<dyn Backend> = Box::new(lun.clone());
    assert_eq!(device.properties().bytes(), 64 << 20);
    let payload = pattern(&lun, 0, PIECE, 4).share();
    device.submit(Operation::Write { offset: 0, payload, fua: false }).await.result.unwrap();
    device.submit(Operation::WriteZeroes { offset: 0, bytes: 4096, may_unmap: false }).await.result.unwrap();
    device.submit(Operation::Flush).await.result.unwrap();
    let buffer = lun.allocate(8192).unwrap();
    let read = device.submit(Operation::Read { offset: 0, buffer }).await.into_buffer().unwrap();
    assert!(read[..4096].iter().all(|byte| *byte == 0) && read[4096..].iter().any(|byte| *byte != 0));
    let extents =
        device.submit(Operation::Extents { offset: 0, bytes: 1 << 20 }).await.into_extents().unwrap();
    assert_eq!(extents.last().unwrap().range.end(), 1 << 20);
    let buffer = lun.allocate(512).unwrap();
    let refused = device.submit(Operation::Read { offset: 64 << 20, buffer }).await;
    assert!(refused.buffer.is_some());
    assert_eq!(refused.result.unwrap_err().kind(), BlockErrorKind::OutOfRange);
    session.close().await.unwrap();
}
