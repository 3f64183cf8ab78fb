//! The end of a login on the target's shard: its place, its last answer, and the connection from then on.

use crate::connection_task;
use crate::counters::{Counted, CountedHost};
use crate::shard::Shard;
use device::{Leading, SessionDriver};
use pdu::{CmdSn, LoginStatus};
use session::login::target::Login;
use session::parameters::{Established, SessionParameters, SessionType};
use session::target::Applicant;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use transport::Socket;

/// A login that lacks only its place, on its way to its target's shard.
pub(crate) struct Arrival {
    pub stream: std::net::TcpStream,
    pub login: Login,
    pub applicant: Applicant,
    /// The session's parameters, as this connection negotiated them.
    pub parameters: SessionParameters,
    /// The CmdSN of the session's first command, if it leads one.
    pub first: CmdSn,
    pub peer: SocketAddr,
    pub counted: (Counted, CountedHost),
}

/// The longest time for the last login response to leave.
const REPLY_TIME: Duration = Duration::from_secs(5);

/// Finds a login's place, answers it, and serves the connection until its end.
pub(crate) async fn serve(shard: Rc<Shard>, arrival: Arrival) {
    let Arrival { stream, mut login, applicant, parameters, first, peer, counted: _counted } = arrival;
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    let mut socket = Socket::from(stream);
    let leading = Leading { parameters, first, peer: peer.ip() };
    let placed = match shard.node(&applicant.identity.target_name) {
        Some(node) => node.admit(&applicant, leading).await,
        None => Err(LoginStatus::NotFound),
    };
    let decision = placed.as_ref().map(|driver| driver.place_for(&applicant));
    let (reply, established) = login.admit(decision.map_err(|status| *status));
    let sent = match &reply {
        Some(reply) => {
            timeout(REPLY_TIME, framing::write_pdu(&mut socket, reply)).await.is_ok_and(|sent| sent.is_ok())
        }
        None => false,
    };
    let initiator = &applicant.identity.initiator_name;
    match (placed, established) {
        (Ok(driver), Some(established)) if sent => {
            log_admission(&driver, &established, peer);
            connection_task::run(&shard, driver, socket.into_inner(), established, peer).await;
        }
        (Ok(driver), _) => {
            tracing::warn!(%peer, initiator, reason = "it went away at the end of its login", "connection lost");
            driver.forget_applicant(&applicant);
        }
        (Err(status), _) => {
            shard.refused(peer, Some(initiator), &status);
        }
    }
}

fn log_admission(driver: &SessionDriver, established: &Established, peer: SocketAddr) {
    let (initiator, target) = (&established.identity.initiator_name, &established.identity.target_name);
    let (tsih, cid, isid) = (established.tsih, established.cid, established.identity.isid);
    let event = match (driver.parameters().session_type, driver.has_lanes()) {
        (SessionType::Discovery, _) => "discovery session started",
        (SessionType::Normal, false) => "session started",
        (SessionType::Normal, true) => "connection joined its session",
    };
    tracing::info!(%peer, initiator, target, %tsih, %cid, %isid, "{event}");
}
