//! A device that does not know WRITE SAME is sent zeroes instead.

use crate::world::{Meddler, Meddling, PIECE, World, config, connect, pattern, url};
use ropewalk_initiator::{Error, TargetError};

const WRITE_16: u8 = 0x8a;
const WRITE_SAME_16: u8 = 0x93;
const ILLEGAL_REQUEST: u8 = 5;
const INVALID_COMMAND_OPERATION_CODE: u8 = 0x20;
const BLOCK: u32 = 512;

#[tokio::test]
async fn a_write_of_zeroes_that_is_taken_in_part_is_a_failure() {
    let world = World::new().await;
    let meddler = Meddler::to(world.address()).await;
    let (session, lun) = connect(&url(meddler.address), config(1)).await;
    lun.write(0, pattern(&lun, 0, PIECE, 1), false).await.unwrap();
    meddler.meddle(|cdb| match cdb[0] {
        WRITE_SAME_16 => Meddling::Sense(ILLEGAL_REQUEST, INVALID_COMMAND_OPERATION_CODE, 0),
        WRITE_16 => Meddling::Underflow(BLOCK),
        _ => Meddling::Nothing,
    });
    let error = lun.write_zeroes(0, PIECE as u64, false).await.unwrap_err();
    assert!(matches!(error, Error::Target(TargetError::Short { .. })), "{error}");
    session.close().await.unwrap();
}
