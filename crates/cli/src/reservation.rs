//! Persistent reservations of others.

use crate::exit::{Failed, Status};
use crate::remote::Remote;

/// Refuses a disk that somebody has reserved: this command never reserves, so it is somebody else.
///
/// # Errors
/// [`Status::Refused`]; or that the disk does not say.
pub(crate) async fn check(remote: &Remote) -> Result<(), Failed> {
    if !remote.lun.is_reserved().await? {
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
