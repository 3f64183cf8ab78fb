//! The end of a login on the target's shard: its place, its last answer, and the connection from then on.

use crate::counters::{Counted, CountedHost};
use crate::shard::Shard;
use device::{Closing, End, Leading, SessionDriver};
use framing::{Connection, InForce, group_of};
use pdu::{Cid, CmdSn, LaneId, LoginStatus};
use session::login::target::Login;
use session::parameters::{Established, SessionParameters, SessionType};
use session::seam::LaneLoss;
use session::target::Applicant;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
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
            if let Err(error) = carry(&shard, &driver, socket, &established, peer).await {
                tracing::error!(%peer, initiator, %error, "a connection could not begin");
                driver.forget_applicant(&applicant);
            }
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

/// Carries a connection until it ends.
///
/// # Errors
/// It could not begin: it is closed already, or the system has no threads or descriptors for it.
async fn carry(
    shard: &Shard,
    driver: &Rc<SessionDriver>,
    socket: Socket,
    established: &Established,
    peer: SocketAddr,
) -> io::Result<()> {
    let cid = established.cid;
    let stream = socket.into_inner();
    let portal = stream.local_addr()?;
    if let Some(congestion) = &shard.socket.congestion {
        let session = (&established.identity.target_name, driver.tsih());
        let group = group_of(session, (portal, peer.ip()));
        // The connection works without its group, too.
        if let Err(error) = transport::choose(congestion, group, &stream) {
            tracing::warn!(%peer, %error, "a socket option was refused");
        }
    }
    log_admission(driver, established, peer, &transport::in_force(&stream));
    let observer = shard.observer.as_ref();
    let watched = observer.map(|_| stream.as_fd().try_clone_to_owned()).transpose()?;
    let wire = transport::wire(stream, shard.socket.threads)?;
    let observer =
        observer.zip(watched).map(|(observer, socket)| observer.connected(socket.as_fd(), established));
    let lane = driver.add_lane(established, portal);
    let mut connection =
        Connection::new(lane, wire, &established.connection).carrying(established.role).watched_by(observer);
    let end = driver.carry(&mut connection).await;
    log_end(driver, (lane, cid), peer, &end);
    driver.part_with(connection, cid, &end).await;
    Ok(())
}

fn log_end(driver: &SessionDriver, (lane, cid): (LaneId, Cid), peer: SocketAddr, end: &End) {
    let initiator = &driver.identity().initiator_name;
    match end {
        End::Closed(Closing { loss: LaneLoss::LoggedOut, .. }) => {
            tracing::info!(%peer, initiator, %cid, "connection logged out");
        }
        End::Closed(Closing { fault: Some(fault), .. }) => {
            tracing::warn!(%peer, initiator, %cid, reason = %fault, "connection closed");
        }
        End::Closed(Closing { fault: None, .. }) => {
            tracing::info!(%peer, initiator, %cid, reason = "its session ends", "connection closed");
        }
        End::Failed(_) if driver.is_leaving(lane) => {
            tracing::info!(%peer, initiator, %cid, "connection logged out, without waiting for the answer");
        }
        End::Failed(error) => tracing::warn!(%peer, initiator, %cid, reason = %error, "connection lost"),
    }
}

fn log_admission(driver: &SessionDriver, established: &Established, peer: SocketAddr, in_force: &InForce) {
    let (initiator, target) = (&established.identity.initiator_name, &established.identity.target_name);
    let (tsih, cid, isid) = (established.tsih, established.cid, established.identity.isid);
    let event = match (driver.parameters().session_type, driver.has_lanes()) {
        (SessionType::Discovery, _) => "discovery session started",
        (SessionType::Normal, false) => "session started",
        (SessionType::Normal, true) => "connection joined its session",
    };
    let congestion = in_force.congestion.as_deref();
    tracing::info!(%peer, initiator, target, %tsih, %cid, %isid, congestion, "{event}");
}
