//! The end of a login, on the target's shard: its place in a session, and the session if it is a new one.

use crate::connection_task;
use crate::counters::Counted;
use crate::session_driver::{SessionDriver, SessionParts};
use crate::shard::Shard;
use crate::target_node::TargetNode;
use block::Reservation;
use pdu::{CmdSn, LoginStatus, Tsih};
use session::login::target::{Login, Place};
use session::parameters::{Established, SessionParameters, SessionType, TargetLimits};
use session::target::{Admission, Applicant, Session};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

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
    pub counted: Counted,
}

/// What a login brings to the session that it leads.
#[derive(Clone, Copy)]
struct Leading {
    parameters: SessionParameters,
    first: CmdSn,
    peer: IpAddr,
}

/// How long a login waits for the writes of the session that it replaces to come to rest. A disk that takes longer
/// is broken; the initiator tries again.
const REINSTATEMENT_TIME: Duration = Duration::from_secs(20);

/// How long the last login response may take to leave.
const REPLY_TIME: Duration = Duration::from_secs(5);

/// Immediate commands that one session may have in execution. They bypass the window, so each has its own share of
/// the memory; what initiators send so (TEST UNIT READY, task management) comes one at a time.
const IMMEDIATE_COMMANDS_MAX: u32 = 4;

/// The smallest window that a session is granted: with less, a long path is not worth its login.
const WINDOW_COMMANDS_MIN: u32 = 4;

/// A session takes no more than this part of the memory that is not yet set aside, so that later ones get theirs.
const SHARE_DIVISOR: usize = 8;

/// Finds a login's place, answers it, and serves the connection until its end.
pub(crate) async fn serve(shard: Rc<Shard>, arrival: Arrival) {
    let Arrival { stream, mut login, applicant, parameters, first, peer, counted: _counted } = arrival;
    let Ok(mut stream) = TcpStream::from_std(stream) else { return };
    let leading = Leading { parameters, first, peer: peer.ip() };
    let placed = match shard.node(&applicant.identity.target_name) {
        Some(node) => place(&shard, &node, &applicant, leading).await,
        None => Err(LoginStatus::NotFound),
    };
    let decision = placed.as_ref().map(|driver| Place {
        tsih: driver.tsih,
        window: driver.window(),
        joined: (applicant.tsih != Tsih::NEW_SESSION).then_some(driver.parameters),
    });
    let (reply, established) = login.admit(decision.map_err(|status| *status));
    let sent = match &reply {
        Some(reply) => {
            timeout(REPLY_TIME, transport::write_pdu(&mut stream, reply)).await.is_ok_and(|sent| sent.is_ok())
        }
        None => false,
    };
    let initiator = &applicant.identity.initiator_name;
    match (placed, established) {
        (Ok(driver), Some(established)) if sent => {
            log_admission(&driver, &established, peer);
            connection_task::run(driver, stream, established, peer).await;
        }
        (Ok(driver), _) => {
            tracing::warn!(%peer, initiator, reason = "it went away at the end of its login", "connection lost");
            driver.node.lane_closed(driver.tsih, applicant.cid);
            if applicant.tsih == Tsih::NEW_SESSION {
                driver.close();
            }
        }
        (Err(status), _) => {
            shard.count_refusal();
            tracing::warn!(%peer, initiator, reason = %status, "connection refused");
        }
    }
}

fn log_admission(driver: &SessionDriver, established: &Established, peer: SocketAddr) {
    let (initiator, target) = (&established.identity.initiator_name, &established.identity.target_name);
    let (tsih, cid, isid) = (established.tsih, established.cid, established.identity.isid);
    let event = match (driver.parameters.session_type, driver.has_lanes()) {
        (SessionType::Discovery, _) => "discovery session started",
        (SessionType::Normal, false) => "session started",
        (SessionType::Normal, true) => "connection joined its session",
    };
    tracing::info!(%peer, initiator, target, %tsih, %cid, %isid, "{event}");
}

async fn place(
    shard: &Rc<Shard>,
    node: &Rc<TargetNode>,
    applicant: &Applicant,
    leading: Leading,
) -> Result<Rc<SessionDriver>, LoginStatus> {
    loop {
        if shard.is_stopping() {
            return Err(LoginStatus::ServiceUnavailable);
        }
        let ended = node.session_ended.notified();
        let admission = node.registry.borrow_mut().admit(applicant)?;
        match admission {
            Admission::New(tsih) => return lead(shard, node, applicant, tsih, leading),
            Admission::Join(tsih) => {
                return node.session_with(tsih).ok_or(LoginStatus::SessionDoesNotExist);
            }
            Admission::Reinstate(tsih) => {
                let old = node.session_with(tsih).ok_or(LoginStatus::TargetError)?;
                old.close();
                timeout(REINSTATEMENT_TIME, ended).await.map_err(|_| LoginStatus::ServiceUnavailable)?;
            }
        }
    }
}

/// Makes the session that this login leads.
fn lead(
    shard: &Rc<Shard>,
    node: &Rc<TargetNode>,
    applicant: &Applicant,
    tsih: Tsih,
    leading: Leading,
) -> Result<Rc<SessionDriver>, LoginStatus> {
    let Leading { parameters, first, peer } = leading;
    let Some((window_commands, reserved)) = reserve_window(shard, &parameters) else {
        node.registry.borrow_mut().ended(tsih);
        return Err(LoginStatus::OutOfResources);
    };
    let limits = TargetLimits {
        window_commands,
        immediate_commands_max: IMMEDIATE_COMMANDS_MAX,
        transfer_bytes_max: crate::logical_unit::TRANSFER_BYTES_MAX,
        ping_after: Duration::from_secs(shard.limits.ping_after_seconds),
        ping_timeout: Duration::from_secs(shard.limits.ping_timeout_seconds),
    };
    let parts = SessionParts {
        tsih,
        identity: applicant.identity.clone(),
        parameters,
        session: Session::new(parameters, limits, first),
        reserved,
        peer,
    };
    let driver = SessionDriver::new(shard, node, parts);
    node.run_session(&driver);
    Ok(driver)
}

/// Sets memory aside for all the data that may come unasked: as many commands' as the window admits. It is halved
/// until it fits; `None` if not even the smallest does.
fn reserve_window(shard: &Shard, parameters: &SessionParameters) -> Option<(u32, Option<Reservation>)> {
    let mut window = shard.limits.window_commands.max(WINDOW_COMMANDS_MIN);
    if !parameters.immediate_data && parameters.initial_r2t {
        return Some((window, None));
    }
    let slab = &shard.memory.transfers;
    let share_bytes = slab.unreserved_bytes() / SHARE_DIVISOR;
    let burst_bytes = parameters.first_burst_bytes as usize;
    loop {
        let buffers = (window + IMMEDIATE_COMMANDS_MAX) as usize;
        let smallest = window == WINDOW_COMMANDS_MIN;
        let affordable = smallest || burst_bytes.next_power_of_two().saturating_mul(buffers) <= share_bytes;
        if affordable && let Some(reservation) = slab.reserve(buffers, burst_bytes) {
            return Some((window, Some(reservation)));
        }
        if smallest {
            return None;
        }
        window = (window / 2).max(WINDOW_COMMANDS_MIN);
    }
}
