//! A connection in login, on the shard that accepted it.

use crate::arrival::Arrival;
use crate::catalog::Doorkeeper;
use crate::counters::{Counted, CountedHost, Gauges};
use crate::shard::Shard;
use pdu::StatSn;
use session::login::DATA_SEGMENT_BYTES_MAX;
use session::login::target::{Login, Progress, Refusal};
use session::parameters::Offer;
use session::target::Applicant;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;
use transport::Socket;

/// The reason why a connection never belonged to a session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginFailure {
    #[error("it did not log in within {0} seconds")]
    Late(u64),
    #[error("it closed before it had logged in")]
    Closed,
    #[error("{0}")]
    Socket(io::Error),
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("no random numbers: {0}")]
    Entropy(String),
    #[error("the server is stopping")]
    Stopping,
}

impl From<io::Error> for LoginFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Socket(error),
        }
    }
}

/// A new connection's login.
pub(crate) fn begin(shard: &Shard, portal_group_tag: u16) -> Result<Login, LoginFailure> {
    let fill = |to: &mut [u8]| getrandom::fill(to).map_err(|error| LoginFailure::Entropy(error.to_string()));
    let (mut entropy, mut first) = ([0; session::chap::ENTROPY_BYTES], [0; size_of::<u32>()]);
    fill(&mut entropy)?;
    fill(&mut first)?;
    let least = shard.memories.iter().map(device::first_burst_bytes_max).min();
    let first_burst_bytes =
        least.map_or(shard.offer.first_burst_bytes, |least| least.min(shard.offer.first_burst_bytes));
    let offer = Offer { first_burst_bytes, ..shard.offer };
    Ok(Login::new(portal_group_tag, offer, first_stat_sn(u32::from_ne_bytes(first)), &entropy))
}

/// The StatSN of a connection's first response, from a random number.
///
/// The standard leaves the start to the target (RFC 7143 §11.13.4); one that moves shows early which peers compare the
/// numbers wrongly. It stays in the lower half of the range because libiscsi expects the first response after 0: a
/// number of the upper half is before 0 (RFC 1982 §3.2), so libiscsi would never acknowledge a response.
const fn first_stat_sn(random: u32) -> StatSn {
    StatSn(random >> 1)
}

/// Reads and answers login PDUs until the login lacks only its place.
pub(crate) async fn negotiate(
    shard: &Shard,
    login: &mut Login,
    socket: &mut Socket,
    doorkeeper: &Doorkeeper<'_>,
) -> Result<Applicant, LoginFailure> {
    let host = shard.host_of(doorkeeper.peer);
    loop {
        let (header, data) = framing::read_pdu(socket, DATA_SEGMENT_BYTES_MAX).await?;
        if login.awaits_proof() {
            let wait = shard.failed_logins.borrow().wait(host, Instant::now());
            tokio::time::sleep(wait).await;
        }
        match login.receive(&header, &data, doorkeeper) {
            Progress::Reply(reply) => framing::write_pdu(socket, &reply).await?,
            Progress::Admit(applicant) => return Ok(applicant),
            Progress::Refused { reply, reason } => {
                if matches!(reason, Refusal::Authentication(_)) {
                    shard.failed_logins.borrow_mut().note(host, Instant::now());
                }
                if let Some(reply) = reply {
                    framing::write_pdu(socket, &reply).await?;
                }
                return Err(reason.into());
            }
        }
    }
}

/// Packs a login that lacks only its place for the way to its target's shard.
pub(crate) fn pack(
    shard: &Shard,
    login: Login,
    socket: Socket,
    applicant: Applicant,
    (peer, host): (SocketAddr, CountedHost),
) -> Result<Arrival, LoginFailure> {
    let parameters = login.session_parameters().copied();
    let (parameters, first) = parameters.zip(login.first_cmd_sn()).ok_or(Refusal::Stage)?;
    let counted = (Counted::new(&shard.gauges, |gauges: &Gauges| &gauges.connections), host);
    Ok(Arrival {
        stream: socket.into_inner().into_std()?,
        login,
        applicant,
        parameters,
        first,
        peer,
        counted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_first_response_is_before_the_one_that_libiscsi_expects() {
        for random in [0, 1, u32::MAX / 2, u32::MAX / 2 + 1, u32::MAX] {
            assert!(!first_stat_sn(random).precedes(StatSn(0)), "{random}");
        }
    }
}
