//! One connection at the target, from its login to its end.

use super::Shared;
use crate::checker::TargetSession;
use crate::host::{TappedEnd, port_of};
use crate::network::{ConnectionId, Side, Stream};
use crate::portal::PortalId;
use crate::unit::TargetIndex;
use crate::users::Users;
use device::{End, Leading, SessionDriver, TargetNode};
use framing::{Connection, read_pdu, write_pdu};
use pdu::{LoginStatus, StatSn, Tsih};
use session::login::DATA_SEGMENT_BYTES_MAX;
use session::login::target::{Access, Denial, Directory, Login, Progress};
use session::parameters::{Established, Offer, SessionType};
use session::target::Applicant;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Where a connection came in, and on which terms.
pub(super) struct Entrance {
    pub portal: PortalId,
    /// The tag of its portal group.
    pub group: u16,
    pub offer: Offer,
    pub access: Access,
}

/// Anyone may come, on these terms.
struct Anyone(Access);

impl Directory for Anyone {
    fn access(&self, _: &str, _: Option<&str>) -> Result<Access, Denial> {
        Ok(self.0.clone())
    }
}

impl Shared {
    async fn negotiate(
        &self,
        stream: &mut Stream,
        login: &mut Login,
        directory: &dyn Directory,
    ) -> Option<Applicant> {
        loop {
            let (header, data) = read_pdu(stream, DATA_SEGMENT_BYTES_MAX).await.ok()?;
            match login.receive(&header, &data, directory) {
                Progress::Reply(reply) => write_pdu(stream, &reply).await.ok()?,
                Progress::Admit(applicant) => return Some(applicant),
                Progress::Refused { reply, .. } => {
                    if let Some(reply) = reply {
                        write_pdu(stream, &reply).await.ok()?;
                    }
                    return None;
                }
            }
        }
    }
}

/// Carries a connection until it ends.
pub(super) async fn serve(
    shared: Rc<Shared>,
    nodes: Rc<[Rc<TargetNode>]>,
    entrance: Entrance,
    connection: ConnectionId,
) {
    let (first, entropy) = {
        let mut random = shared.random.borrow_mut();
        let first = StatSn(random.near_wrap());
        (first, [(); session::chap::ENTROPY_BYTES].map(|()| random.word().to_le_bytes()[0]))
    };
    let mut login = Login::new(entrance.group, entrance.offer, first, &entropy);
    let mut stream = Stream::new(connection, Side::Target, shared.clock.clone(), shared.network.clone());
    let applicant = shared.negotiate(&mut stream, &mut login, &Anyone(entrance.access)).await;
    let parameters = login.session_parameters().copied();
    let (Some(applicant), Some((parameters, first))) = (applicant, parameters.zip(login.first_cmd_sn()))
    else {
        return;
    };
    // Whoever asks for a target that there is none is not admitted. The first answers those who ask for none.
    let name = &applicant.identity.target_name;
    let target = if name.is_empty() { Some(TargetIndex::FIRST) } else { TargetIndex::from_name(name) };
    let Some(target) = target else { return };
    let Some(node) = nodes.get(target.place()) else { return };
    let session = |tsih| TargetSession { target, tsih };
    if applicant.tsih != Tsih(0) {
        shared.tap.lock().target_is_asked(connection, session(applicant.tsih), &applicant.identity, first);
    }
    // A discovery session has no nexus.
    let port = port_of(&applicant.identity).filter(|_| parameters.session_type == SessionType::Normal);
    let ports = port.map(|port| (port, applicant.identity.portal_group_tag));
    let ports = ports.filter(|_| !Users::is_intruder(applicant.user.as_deref()));
    if let (Some(ports), Tsih(0)) = (ports, applicant.tsih) {
        shared.tap.lock().session_is_asked_for(target, ports, applicant.identity.isid);
    }
    let leading = Leading { parameters, first, peer: PEER };
    shared.claims.borrow_mut().ask(shared.clock.now(), &applicant);
    let placed = node.admit(&applicant, leading).await;
    if let Ok(driver) = &placed {
        let claimed = shared.claims.borrow_mut().place(session(driver.tsih()), &applicant);
        claimed.unwrap_or_else(|problem| shared.tap.lock().violate(&problem));
    }
    if let (Ok(driver), Some(port)) = (&placed, port) {
        let session = session(driver.tsih());
        shared.medium.borrow_mut().session_begins(session, port);
        let mut tap = shared.tap.lock();
        match ports {
            Some(ports) if applicant.tsih == Tsih(0) => {
                tap.session_begins(session, ports, applicant.identity.isid);
            }
            Some(_) => tap.session_joined(session),
            None => {}
        }
    }
    let decision = placed.as_ref().map(|driver| driver.place_for(&applicant)).map_err(|status| *status);
    let (reply, established) = login.admit(decision);
    let sent = match &reply {
        Some(reply) => write_pdu(&mut stream, reply).await.is_ok(),
        None => false,
    };
    match (placed, established) {
        (Ok(driver), Some(established)) if sent => {
            run(&shared, &driver, session(driver.tsih()), stream, &established, entrance.portal).await;
        }
        (Ok(driver), _) => driver.forget_applicant(&applicant),
        (Err(LoginStatus::SessionDoesNotExist), _) => {
            let session = session(applicant.tsih);
            shared.tap.lock().target_does_not_know(shared.clock.now(), session, &applicant.identity);
        }
        (Err(_), _) => {}
    }
}

async fn run(
    shared: &Shared,
    driver: &Rc<SessionDriver>,
    session: TargetSession,
    stream: Stream,
    established: &Established,
    portal: PortalId,
) {
    let leading = !driver.has_lanes();
    let id = stream.connection();
    shared.tap.lock().target_gains(shared.clock.now(), id, session, leading);
    let lane = driver.add_lane(established, portal.address());
    shared.lanes.borrow_mut().insert((session, lane), id);
    let observer = TappedEnd::new(
        id,
        Side::Target,
        &established.connection,
        shared.clock.clone(),
        shared.network.clone(),
        shared.tap.clone(),
    );
    let mut connection =
        Connection::new(lane, stream, &established.connection).watched_by(Some(Box::new(observer)));
    let end = driver.carry(&mut connection).await;
    if let End::Closed(_) = &end {
        let closed = shared.claims.borrow().close(shared.clock.now(), session);
        closed.unwrap_or_else(|problem| shared.tap.lock().violate(&problem));
    }
    if let (Some(trace), End::Failed(error)) = (&mut shared.tap.lock().trace, &end) {
        let now = shared.clock.now().0;
        trace.push(format!("{now:>14} connection {} is given up by the target: {error}", id.0));
    }
    driver.part_with(connection, established.cid, &end).await;
}
