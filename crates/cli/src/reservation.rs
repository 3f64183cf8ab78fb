//! Reservations at a copy's destination: those of others, which refuse the copy, and its own.

use crate::exit::{Failed, Status};
use crate::remote::{self, Remote};
use initiator::{Error, ReservationHolder, Reserved, TargetError, Url};
use transfer::DestinationState;

/// Refuses a disk that somebody has reserved by a persistent reservation.
///
/// # Errors
/// [`Status::Refused`]; or that the disk does not say.
pub(crate) async fn check(remote: &Remote, may_break: bool) -> Result<(), Failed> {
    match remote.lun.reservation_holder().await {
        Ok(Some(holder)) if !may_break => Err(refused(&reserved_by(&remote.url, &holder))),
        Ok(_) => Ok(()),
        Err(error) => Err(refused_if_reserved(&remote.url, error.into())),
    }
}

/// Reserves a disk for this copy, so that neither another host nor another copy on this host writes to it. A disk
/// without persistent reservations is used as it is.
///
/// # Errors
/// [`Status::Refused`] if somebody else has reserved it.
pub(crate) async fn take(remote: &Remote, may_break: bool) -> Result<Reserved, Failed> {
    let reserved = remote.lun.reserve(may_break).await;
    reserved.map_err(|error| refused_if_reserved(&remote.url, error.into()))
}

/// Ends the reservation of this copy, if it holds one.
pub(crate) async fn release(remote: &Remote) {
    let released = tokio::time::timeout(remote::GOODBYE, remote.lun.release()).await;
    let problem = match released {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the target does not answer".to_owned(),
    };
    tracing::warn!(url = %remote.url, problem, "the reservation may remain: --break-reservation takes it away");
}

/// The failure of a disk to open: [`Status::Refused`] if somebody has reserved it.
pub(crate) fn refused_if_reserved(url: &Url, error: anyhow::Error) -> Failed {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<Error>());
    match cause {
        Some(Error::Target(TargetError::Reserved { holder, .. })) => refused(&reserved_by(url, holder)),
        Some(cause) if cause.is_reservation_conflict() => refused(&format!(
            "{url} is reserved by another initiator: wait until that releases it, or end its session"
        )),
        _ => error.into(),
    }
}

fn reserved_by(url: &Url, holder: &ReservationHolder) -> String {
    let advice = if holder.is_ropewalk() {
        "another copy to it is under way, or was killed; if you are sure that it has ended, say --break-reservation"
    } else {
        "it relies on nobody else writing; stop it, or say --break-reservation"
    };
    format!("{url} is reserved by {holder}: {advice}")
}

fn refused(reason: &str) -> Failed {
    Failed {
        status: Status::Refused,
        error: anyhow::anyhow!("refused: {reason}"),
        consequence: Some(DestinationState::Untouched.to_string()),
    }
}
