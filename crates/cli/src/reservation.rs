//! Persistent reservations of others (SPC-4 §6.15).

use crate::exit::{Failed, Status};
use crate::remote::Remote;
use initiator::Transfer;
use pdu::Cdb;

/// PERSISTENT RESERVE IN, service action READ RESERVATION.
const READ_RESERVATION: [u8; 2] = [0x5e, 0x01];

/// The header and one reservation.
const ANSWER_BYTES: u8 = 24;

/// Refuses a disk that somebody has reserved: this command never reserves, so it is somebody else.
///
/// # Errors
/// [`Status::Refused`]. A disk that does not know reservations has none.
pub(crate) async fn check(remote: &Remote) -> Result<(), Failed> {
    let mut cdb = [0; 10];
    cdb[..2].copy_from_slice(&READ_RESERVATION);
    cdb[8] = ANSWER_BYTES;
    let answer = remote.lun.allocate(ANSWER_BYTES.into())?;
    let command = remote.lun.execute(Cdb::new(&cdb)?, Transfer::In(answer));
    let Ok(executed) = command.await else { return Ok(()) };
    let received = usize::try_from(executed.data_in_bytes).unwrap_or(0);
    let reserved = executed.data.as_deref().and_then(|data| data.get(..received)).is_some_and(is_reserved);
    if !reserved {
        return Ok(());
    }
    let error = anyhow::anyhow!(
        "refused: {} is reserved by another initiator, which relies on nobody else writing: stop it, or say \
         --overwrite",
        remote.url
    );
    let consequence = Some(transfer::DestinationState::Untouched.to_string());
    Err(Failed { status: Status::Refused, error, consequence })
}

/// ADDITIONAL LENGTH is zero if there is no reservation.
fn is_reserved(answer: &[u8]) -> bool {
    answer.get(4..8).is_some_and(|length| length != [0; 4])
}

#[cfg(test)]
mod tests {
    use super::is_reserved;

    #[test]
    fn an_answer_with_a_descriptor_means_a_reservation() {
        assert!(!is_reserved(&[0, 0, 0, 7, 0, 0, 0, 0]));
        assert!(is_reserved(&[0, 0, 0, 7, 0, 0, 0, 16, 1]));
        assert!(!is_reserved(&[0, 0]));
    }
}
