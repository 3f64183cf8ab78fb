//! One connection at the target, from its login to its end.

use super::{PORTAL_GROUP_TAG, Shared};
use crate::client::port_of;
use crate::network::{Arrival, ConnectionId, LoginPdu, LoginStream, Side, Wire, bytes_of};
use device::{Closing, Leading, SessionDriver, SessionState, TargetNode};
use session::login::target::{Access, Denial, Directory, Login, Progress};
use session::parameters::{Established, Offer};
use session::seam::{Endpoint, Fault, LaneLoss, Transmit};
use session::target::Applicant;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORTAL: SocketAddr = SocketAddr::new(PEER, 3260);

struct Anyone;

impl Directory for Anyone {
    fn access(&self, _: &str, _: Option<&str>) -> Result<Access, Denial> {
        Ok(Access::default())
    }
}

/// How a connection came to its end.
enum End {
    /// The session wanted it closed.
    Closed(Closing),
    /// What arrived cannot be accepted.
    Fault(Fault),
    /// The network.
    Lost,
}

/// A connection in login.
struct Visitor {
    shared: Rc<Shared>,
    connection: ConnectionId,
    stream: LoginStream,
    sent_bytes: u64,
}

impl Visitor {
    /// The next login PDU; `None` if there will be none.
    async fn next(&mut self) -> Option<LoginPdu> {
        poll_fn(|cx| {
            loop {
                match self.stream.next_pdu() {
                    Ok(Some(pdu)) => return Poll::Ready(Some(pdu)),
                    Ok(None) => {}
                    Err(_) => return Poll::Ready(None),
                }
                match self.shared.receive(self.connection) {
                    Some(Arrival::Bytes(bytes)) => self.stream.feed(&bytes),
                    Some(Arrival::Closed | Arrival::Reset) => return Poll::Ready(None),
                    None => {
                        self.shared.register(self.connection, cx);
                        return Poll::Pending;
                    }
                }
            }
        })
        .await
    }

    fn send(&mut self, pdu: &Transmit) {
        let bytes = bytes_of(pdu);
        self.sent_bytes += bytes.len() as u64;
        let now = self.shared.clock.now();
        self.shared.network.borrow_mut().send(now, self.connection, Side::Target, &bytes);
    }

    async fn negotiate(&mut self, login: &mut Login) -> Option<Applicant> {
        loop {
            let pdu = self.next().await?;
            match login.receive(&pdu.header, &pdu.data, &Anyone) {
                Progress::Reply(reply) => self.send(&reply),
                Progress::Admit(applicant) => return Some(applicant),
                Progress::Refused { reply, .. } => {
                    reply.iter().for_each(|reply| self.send(reply));
                    return None;
                }
            }
        }
    }
}

impl Shared {
    fn receive(&self, connection: ConnectionId) -> Option<Arrival> {
        self.network.borrow_mut().receive(self.clock.now(), connection, Side::Target)
    }

    fn register(&self, connection: ConnectionId, cx: &Context<'_>) {
        self.doors.borrow_mut().insert(connection, cx.waker().clone());
    }

    fn close(&self, connection: ConnectionId) {
        self.doors.borrow_mut().remove(&connection);
        self.network.borrow_mut().close(self.clock.now(), connection, Side::Target);
    }
}

/// Carries a connection until it ends.
pub(super) async fn serve(shared: Rc<Shared>, node: Rc<TargetNode>, offer: Offer, connection: ConnectionId) {
    let entropy = [9; session::chap::ENTROPY_BYTES];
    let mut login = Login::new(PORTAL_GROUP_TAG, offer, &entropy);
    let stream = LoginStream::default();
    let mut visitor = Visitor { shared: Rc::clone(&shared), connection, stream, sent_bytes: 0 };
    let applicant = visitor.negotiate(&mut login).await;
    let parameters = login.session_parameters().copied();
    if let (Some(applicant), Some((parameters, first))) = (applicant, parameters.zip(login.first_cmd_sn())) {
        let leading = Leading { parameters, first, peer: PEER };
        let placed = node.admit(&applicant, leading).await;
        if let (Ok(driver), Some(port)) = (&placed, port_of(&applicant.identity)) {
            shared.medium.borrow_mut().session_begins(driver.tsih(), port);
        }
        let decision = placed.as_ref().map(|driver| driver.place_for(&applicant)).map_err(|status| *status);
        let (reply, established) = login.admit(decision);
        reply.iter().for_each(|reply| visitor.send(reply));
        match (placed, established) {
            (Ok(driver), Some(established)) => run(&driver, visitor, &established).await,
            (Ok(driver), None) => driver.forget_applicant(&applicant),
            (Err(_), _) => {}
        }
    }
    shared.close(connection);
}

async fn run(driver: &Rc<SessionDriver>, visitor: Visitor, established: &Established) {
    let Visitor { shared, connection, stream, sent_bytes } = visitor;
    let leading = !driver.has_lanes();
    shared.tap.borrow_mut().target_gains(shared.clock.now(), driver.tsih(), leading);
    let lane = driver.add_lane(established, PORTAL);
    let mut wire = Wire::new(connection, Side::Target, lane, &established.connection, sent_bytes);
    let mut rest = Some(stream.into_rest());
    let end = poll_fn(|cx| poll(driver, &shared, &mut wire, &mut rest, cx)).await;
    let loss = match &end {
        End::Closed(closing) => closing.loss,
        End::Fault(_) | End::Lost => {
            driver.state().closing(lane).map_or(LaneLoss::Broken, |closing| closing.loss)
        }
    };
    if !matches!(end, End::Lost) {
        // The last words leave if there is room for them.
        let _ = send(driver, &shared, &mut driver.state(), &mut wire);
    }
    if let (Some(trace), End::Fault(fault)) = (&mut shared.tap.borrow_mut().trace, &end) {
        let now = shared.clock.now().0;
        trace.push(format!("{now:>14} connection {} is given up by the target: {fault}", connection.0));
    }
    shared.close(connection);
    shared.tap.borrow_mut().target_loses(shared.clock.now(), driver.tsih(), connection);
    driver.remove_lane(lane, loss);
    driver.node().lane_closed(driver.tsih(), established.cid);
}

fn poll(
    driver: &Rc<SessionDriver>,
    shared: &Shared,
    wire: &mut Wire,
    rest: &mut Option<Vec<u8>>,
    cx: &Context<'_>,
) -> Poll<End> {
    let mut state = driver.state();
    match receive(driver, shared, &mut state, wire, rest) {
        Ok(true) => {}
        Ok(false) => return Poll::Ready(End::Lost),
        Err(fault) => return Poll::Ready(End::Fault(fault)),
    }
    let is_blocked = match send(driver, shared, &mut state, wire) {
        Ok(is_blocked) => is_blocked,
        Err(fault) => return Poll::Ready(End::Fault(fault)),
    };
    let SessionState { session, wakers, .. } = &mut *state;
    wakers.register(wire.lane, cx.waker(), is_blocked);
    wakers.wake_senders(session, Some(wire.lane));
    if let Some(closing) = state.closing(wire.lane) {
        return Poll::Ready(End::Closed(closing));
    }
    shared.register(wire.connection, cx);
    Poll::Pending
}

/// Reads what has arrived. `false` if the connection is gone.
fn receive(
    driver: &Rc<SessionDriver>,
    shared: &Shared,
    state: &mut SessionState,
    wire: &mut Wire,
    rest: &mut Option<Vec<u8>>,
) -> Result<bool, Fault> {
    loop {
        if state.closing(wire.lane).is_some() {
            return Ok(true);
        }
        let arrival = match rest.take() {
            Some(rest) => Some(Arrival::Bytes(rest)),
            None => shared.receive(wire.connection),
        };
        match arrival {
            Some(Arrival::Bytes(bytes)) => {
                let received = {
                    let SessionState { session, buffers, .. } = &mut *state;
                    let tap = &mut shared.tap.borrow_mut();
                    wire.receive(shared.clock.now(), &bytes, session, buffers, tap)
                };
                driver.drain(state);
                received?;
            }
            Some(Arrival::Closed | Arrival::Reset) => return Ok(false),
            None => return Ok(true),
        }
    }
}

/// More than a lane has to send at once: what is sent meanwhile fills the network, and ends it.
const ROUNDS_MAX: u32 = 1 << 20;

/// Sends until nothing is left or there is no room (`true`). What leaves may make more to send.
fn send(
    driver: &Rc<SessionDriver>,
    shared: &Shared,
    state: &mut SessionState,
    wire: &mut Wire,
) -> Result<bool, Fault> {
    for _ in 0..ROUNDS_MAX {
        let has_room = {
            let SessionState { session, buffers, .. } = &mut *state;
            let (network, tap) = (&mut shared.network.borrow_mut(), &mut shared.tap.borrow_mut());
            wire.send(shared.clock.now(), session, buffers, network, tap)?
        };
        driver.drain(state);
        if !has_room || !state.session.wants_transmit(wire.lane) {
            return Ok(!has_room);
        }
    }
    shared.tap.borrow_mut().violate("a lane of the target wants to send, and sends nothing");
    Ok(true)
}
