//! One iSCSI session, its connections, and its commands.

use super::command_limit::Watch;
use super::connection_recovery::{Recoveries, Vacancy};
use super::lane_sample::Measurement;
use super::slots::{OperationId, RequestId};
use super::tail_probe::Tail;
use crate::durability::{CacheLosses, FlushMark};
use crate::login::{Applicant, Opened};
use crate::path_id::PathId;
use crate::portal_group::PortalGroup;
use crate::report::{ConnectionReport, PathReport, PathState};
use crate::retry::{CommandKind, Ending};
use crate::{Config, TargetError};
use event_listener::Event;
use framing::{Connection, LaneWakers, SocketOptions, Wire};
use futures_channel::oneshot;
use futures_util::lock::Mutex;
use pdu::{Cdb, Cid, Instant, Isid, LaneId, Lun, TaskAttribute, TaskManagementOutcome, Tsih};
use policy::tuner::Law;
use scsi::Extent;
use session::initiator::{self, Data, FunctionId, LaneState, TaskId};
use session::login::initiator::Joining;
use session::parameters::{ConnectionParameters, LaneRole, SessionParameters, SplitLanes};
use session::seam::{Endpoint, LaneLoss};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// A change that a task waits for. Listen before checking, so that no change in between is missed.
pub(crate) type SharedEvent = Arc<Event>;

/// A lock that lets one task at a time do something.
pub(crate) type SharedTurn = Arc<Mutex<()>>;

/// One command of an operation, from its submission until its outcome is known.
#[derive(Clone)]
pub(super) struct Request {
    pub operation: OperationId,
    pub lun: Lun,
    pub kind: CommandKind,
    pub cdb: Cdb,
    pub data: Data,
    pub extent: Extent,
    /// Whether a short transfer is an error.
    pub exact: bool,
    /// The only path that may carry it; `None` for any path to the unit.
    pub path: Option<PathId>,
    /// Whether its write needs a flush to be durable.
    pub dirties: bool,
    pub attribute: TaskAttribute,
    /// The cache losses of its unit that were known when a session took it.
    pub losses: CacheLosses,
    /// Its number in the order in which sessions took commands.
    pub placed: u64,
    /// When a session took it.
    pub placed_at: Instant,
    /// How often it exceeded the command limit.
    pub overdue: u32,
    /// For a SYNCHRONIZE CACHE: the writes that it covers.
    pub flush: Option<FlushMark>,
    /// The time of the target's first decline.
    pub declined_since: Option<Instant>,
    /// How often it was declined or got a unit attention.
    pub attempts: u32,
}

impl Request {
    /// A command without an effect, to be filled in.
    pub fn new(operation: OperationId, lun: Lun) -> Self {
        Self {
            operation,
            lun,
            kind: CommandKind::Read,
            cdb: [0; Cdb::INLINE_BYTES].into(),
            data: Data::None,
            extent: Extent::default(),
            exact: false,
            path: None,
            dirties: false,
            attribute: TaskAttribute::Simple,
            losses: CacheLosses::default(),
            placed: 0,
            placed_at: Instant::ZERO,
            overdue: 0,
            flush: None,
            declined_since: None,
            attempts: 0,
        }
    }

    /// Whether it asks this one path about the unit, or about its reservation.
    pub const fn is_question(&self) -> bool {
        self.path.is_some() && self.flush.is_none()
    }

    /// Whether it is one of several questions whose order matters: it is not sent again, because that would be behind
    /// commands that were sent after it.
    pub fn is_in_order(&self) -> bool {
        self.is_question() && self.attribute == TaskAttribute::Ordered
    }

    /// A conflict ends a command before it begins, but may end EXTENDED COPY amid its segments.
    pub const fn ending_of_conflict(&self) -> Ending {
        match self.kind {
            CommandKind::Once => Ending::Failed,
            _ => Ending::Told,
        }
    }
}

/// The end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    pub loss: LaneLoss,
    /// How long the target has to close a connection that is logged out.
    pub by: Instant,
}

/// A connection of a session, with its socket and its place in the protocol.
pub(super) struct Lane {
    pub id: LaneId,
    pub connection: Connection<Box<dyn Wire + Send>>,
    cid: Cid,
    /// What it carries of its session.
    pub(super) role: LaneRole,
    peer: SocketAddr,
    /// The options with which it logged in.
    pub(super) socket: SocketOptions,
    /// The congestion control in force.
    pub(super) congestion: Option<String>,
    /// The tuner's word for that one.
    pub(super) law: Law,
    pub(super) parameters: ConnectionParameters,
    /// To be closed once the remaining data has been offered to the socket.
    pub closing: Option<Closing>,
    /// The socket accepts no data for now, and will wake the lane's task itself.
    pub blocked: bool,
    /// For a placement policy that wants to know of its path.
    pub measurement: Measurement,
    pub tail: Tail,
    /// Since when it gets no commands, because others do as well without it.
    pub spare_since: Option<Instant>,
}

impl Lane {
    pub fn is_spare(&self) -> bool {
        self.spare_since.is_some()
    }
}

/// One iSCSI session. It keeps its number and its ISID across reinstatements.
pub(crate) struct Path {
    pub id: PathId,
    pub isid: Isid,
    pub portals: PortalGroup,
    pub state: PathState,
    pub core: Option<initiator::Session>,
    pub parameters: Option<SessionParameters>,
    /// Units to which it provably leads.
    pub accepted: Vec<Lun>,
    /// Units to which it provably does not lead.
    pub refused: Vec<(Lun, TargetError)>,
    /// Units that have changed since they were proven, perhaps into others.
    pub doubted: BTreeSet<Lun>,
    /// How often a unit has said that it changed or was not ready, or the session ended: a proof that began before is
    /// worth nothing.
    pub changes_told: u64,
    /// Why there will be no further connections.
    pub ceiling: Option<String>,
    /// The number of connections that it should have, also after a loss.
    pub connections_wanted: usize,
    /// Notified when its supervisor has something to check.
    pub changed: SharedEvent,
    /// The turn to add connections, see [`Self::joiners`].
    pub adding: SharedTurn,
    pub(super) lanes: Vec<Lane>,
    /// Commands that must go over this path.
    pub(super) own: VecDeque<RequestId>,
    /// Commands of those that wait until a unit is proven anew.
    pub(super) held: Vec<RequestId>,
    /// Writes that wait for the proof that the old nexus is dead.
    pub(super) stranded: Vec<RequestId>,
    pub(super) tasks: HashMap<TaskId, RequestId>,
    /// Task management functions that callers requested.
    pub(super) functions: HashMap<FunctionId, oneshot::Sender<TaskManagementOutcome>>,
    pub(super) wakers: LaneWakers,
    /// Connections that broke or could not be made, and have not been replaced.
    pub(super) vacancies: Vec<Vacancy>,
    /// The progress of its oldest command.
    pub(super) watch: Watch,
    /// The repairs of its earlier sessions.
    past: Recoveries,
    pub(super) tsih: Option<Tsih>,
    /// How long the target wants to be left alone, if it has said so beside the negotiation.
    pub(super) time2wait_s: Option<u16>,
    next_cid: u16,
    logging_out: bool,
}

impl Path {
    pub fn new(id: PathId, isid: Isid, portals: PortalGroup) -> Self {
        Self {
            id,
            isid,
            portals,
            state: PathState::Connecting,
            core: None,
            parameters: None,
            accepted: Vec::new(),
            refused: Vec::new(),
            doubted: BTreeSet::new(),
            changes_told: 0,
            ceiling: None,
            connections_wanted: 1,
            changed: SharedEvent::default(),
            adding: SharedTurn::default(),
            lanes: Vec::new(),
            own: VecDeque::new(),
            held: Vec::new(),
            stranded: Vec::new(),
            tasks: HashMap::new(),
            functions: HashMap::new(),
            wakers: LaneWakers::default(),
            vacancies: Vec::new(),
            watch: Watch::default(),
            past: Recoveries::default(),
            tsih: None,
            time2wait_s: None,
            next_cid: 0,
            logging_out: false,
        }
    }

    /// Wakes its supervisor.
    pub fn ring(&self) {
        self.changed.notify(usize::MAX);
    }

    /// Whether it has a session that is not being logged out.
    pub fn is_connected(&self) -> bool {
        self.core.is_some() && !self.logging_out
    }

    /// Whether a logout was requested.
    pub fn is_logging_out(&self) -> bool {
        self.logging_out
    }

    /// Its connections; the bundle of a split session counts as one.
    pub fn connections(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.role.takes_requests() && lane.closing.is_none()).count()
    }

    /// Whether its session is one bundle of connections with roles.
    pub(super) fn is_split(&self) -> bool {
        self.parameters.is_some_and(|parameters| parameters.split != SplitLanes::None)
    }

    /// Its connections, and those that are to be made in the place of others.
    pub fn connections_expected(&self) -> usize {
        let missing = self.connections_wanted.saturating_sub(self.connections());
        self.connections() + self.vacancies.len().min(missing)
    }

    /// The present connections and those still expected.
    pub fn connections_to_be(&self) -> usize {
        match (self.state, &self.ceiling) {
            (PathState::Gone, _) => 0,
            (_, None) => self.connections_wanted.min(self.session_limit()),
            (_, Some(_)) => self.connections_expected(),
        }
    }

    /// The most connections that its session may have, once that was negotiated.
    pub(super) fn session_limit(&self) -> usize {
        match self.parameters {
            Some(_) if self.is_split() => 1,
            Some(parameters) => parameters.max_connections.into(),
            None => usize::MAX,
        }
    }

    /// Whether the session may have one more connection.
    pub fn has_room(&self) -> bool {
        let most = self.parameters.map_or(0, |_| self.session_limit());
        self.is_connected() && self.ceiling.is_none() && self.lanes.len() < most
    }

    /// The parameters of the login that makes this path's session.
    pub fn leader(&mut self, config: &Config, target_name: &str) -> Applicant {
        let cid = self.fresh_cid();
        let leader = self.applicant(config, target_name, cid);
        Applicant { portal_group_tag: self.portals.tag_of_leading(&leader.portal), ..leader }
    }

    /// The parameters of the logins that make `count` further connections of its session at once; `None` without a
    /// session.
    ///
    /// If no connection is left that could log out the broken ones, there is one login, with the CID of the last broken
    /// one, which it reinstates (RFC 7143 §6.3.4). A concurrent login would break the new connection: under the same
    /// CID by reinstating it again, under a fresh CID by logging it out. These logins must therefore end before others
    /// start.
    pub fn joiners(&mut self, config: &Config, target_name: &str, count: usize) -> Option<Vec<Applicant>> {
        let lost = self.vacancies.iter().rev().find_map(|vacancy| vacancy.cid);
        let cids: Vec<Cid> = match lost {
            Some(lost) if self.connections() == 0 => vec![lost],
            _ => (0..count).map(|_| self.fresh_cid()).collect(),
        };
        cids.into_iter().map(|cid| self.joiner(config, target_name, cid)).collect()
    }

    fn joiner(&mut self, config: &Config, target_name: &str, cid: Cid) -> Option<Applicant> {
        let applicant = self.applicant(config, target_name, cid);
        let (tsih, session, core) = (self.tsih?, self.parameters?, self.core.as_ref()?);
        Some(Applicant {
            portal_group_tag: self.portals.tag(),
            joining: Some(Joining { tsih, session, replaced_exp_stat_sn: core.exp_stat_sn(cid) }),
            cmd_sn: core.cmd_sn(),
            ..applicant
        })
    }

    /// The parameters of the logins that complete its session's bundle, at the same portal; none if it is not split, `None`
    /// without a session.
    pub fn companions(&mut self, config: &Config, target_name: &str) -> Option<Vec<Applicant>> {
        let roles = self.parameters?.split.roles().iter().skip(1);
        let companion = |role: &LaneRole| {
            let cid = self.fresh_cid();
            let joiner = self.joiner(config, target_name, cid)?;
            Some(Applicant { portal: self.portals.leading().clone(), role: *role, ..joiner })
        };
        roles.map(companion).collect()
    }

    /// The parameters of a leading login with this CID, at the portal whose turn it is.
    fn applicant(&mut self, config: &Config, target_name: &str, cid: Cid) -> Applicant {
        Applicant {
            portal: self.portals.take_next(),
            portal_group_tag: None,
            target_name: Some(target_name.to_owned()),
            isid: self.isid,
            cid,
            joining: None,
            role: LaneRole::Whole,
            cmd_sn: config.first_cmd_sn,
            offer: config.offer,
        }
    }

    /// A CID that no connection of the session and no vacancy has.
    fn fresh_cid(&mut self) -> Cid {
        loop {
            let cid = Cid(self.next_cid);
            self.next_cid = self.next_cid.wrapping_add(1);
            let is_lost = self.vacancies.iter().any(|vacancy| vacancy.cid == Some(cid));
            if !is_lost && self.lanes.iter().all(|lane| lane.cid != cid) {
                return cid;
            }
        }
    }

    /// Starts the session, for the first time or again, with its leading connection.
    pub fn begin(&mut self, now: Instant, config: &Config, lane: LaneId, opened: Opened) {
        let established = &opened.established;
        self.portals.led(&opened.portal, established.identity.portal_group_tag);
        let core = initiator::Session::new(established.session, config.limits, established.cmd_sn);
        self.core = Some(core.with_tags_from(opened.tags_from));
        self.parameters = Some(established.session);
        self.tsih = Some(established.tsih);
        self.logging_out = false;
        self.ceiling = None;
        self.connections_wanted = self.connections_wanted.min(self.session_limit());
        self.join(now, lane, opened);
    }

    /// Adds a connection to the session.
    pub fn join(&mut self, now: Instant, lane: LaneId, opened: Opened) {
        let Opened { portal, wire, established, peer, socket, congestion, observer, .. } = opened;
        let Some(core) = &mut self.core else { return };
        self.portals.joined(&portal);
        core.add_lane(now, lane, &established);
        let cid = established.cid;
        self.lanes.push(Lane {
            id: lane,
            connection: Connection::new(lane, wire, &established.connection)
                .carrying(established.role)
                .watched_by(observer),
            cid,
            role: established.role,
            peer,
            socket,
            congestion,
            law: Law::Configured,
            parameters: established.connection,
            closing: None,
            blocked: false,
            measurement: Measurement::default(),
            tail: Tail::default(),
            spare_since: None,
        });
        self.fill_vacancy(cid);
        // Those that are being logged out were subtracted.
        self.connections_wanted = self.connections_wanted.max(self.open_connections());
    }

    /// Whether its proof for this unit has ended, in whatever way, or is to be repeated.
    pub(super) fn knows(&self, lun: Lun) -> bool {
        let is_refused = self.refused.iter().any(|(refused, _)| *refused == lun);
        is_refused || self.accepted.contains(&lun) || self.doubted.contains(&lun)
    }

    /// Whether nothing waits for its session, and nothing that it has begun is unfinished.
    pub(super) fn is_at_rest(&self) -> bool {
        let is_waited_for = !self.own.is_empty() || !self.held.is_empty() || !self.stranded.is_empty();
        let is_busy = !self.tasks.is_empty() || !self.functions.is_empty() || !self.vacancies.is_empty();
        self.state == PathState::Up && !is_waited_for && !is_busy && self.doubted.is_empty()
    }

    /// Starts the logout of the session, once.
    pub fn log_out(&mut self, now: Instant) {
        if let Some(core) = &mut self.core
            && !std::mem::replace(&mut self.logging_out, true)
        {
            core.logout(now);
        }
    }

    /// Whether the network has everything that this side will say, logouts included.
    pub fn has_left(&self) -> bool {
        let is_quiet = |lane: &Lane, core: &initiator::Session| {
            lane.closing.is_some() || !lane.connection.is_sending() && !core.wants_transmit(lane.id)
        };
        self.core.as_ref().is_none_or(|core| {
            self.logging_out && core.has_said_goodbye() && self.lanes.iter().all(|lane| is_quiet(lane, core))
        })
    }

    /// Ends the session without a logout, because nothing in it may continue.
    pub(super) fn give_up(&mut self, now: Instant) {
        self.vacancies.clear();
        if let Some(core) = &mut self.core {
            core.close(now);
        }
    }

    /// Connections that are not being logged out.
    pub fn open_connections(&self) -> usize {
        self.open_lanes().count()
    }

    fn open_lanes(&self) -> impl DoubleEndedIterator<Item = LaneId> {
        self.lanes.iter().filter(|lane| self.is_open_lane(lane)).map(|lane| lane.id)
    }

    /// Whether a connection is not being logged out.
    pub(super) fn is_open_lane(&self, lane: &Lane) -> bool {
        lane.closing.is_none() && self.lane_state(lane.id).is_some_and(|state| state.accepts_commands)
    }

    /// Logs out the newest connection, unless it is the last one. `false` if it is.
    pub fn remove_connection(&mut self, now: Instant) -> bool {
        let newest = self.open_lanes().next_back();
        newest.is_some_and(|newest| self.remove_lane(now, newest))
    }

    /// Logs out a connection, unless it is the last one. `false` if it is.
    pub(super) fn remove_lane(&mut self, now: Instant, lane: LaneId) -> bool {
        let is_last = self.open_connections() <= 1;
        let Some(core) = self.core.as_mut().filter(|_| !is_last) else { return false };
        core.logout_lane(now, lane);
        // It counts no more, neither as one that works nor as a spare one.
        self.lanes.iter_mut().filter(|known| known.id == lane).for_each(|lane| lane.spare_since = None);
        // More than the session may have cannot be missed.
        self.connections_wanted = self.connections_wanted.min(self.session_limit()).saturating_sub(1).max(1);
        true
    }

    /// Logs out all connections but one, and makes none in the place of those that are missing.
    pub fn remove_all_but_one(&mut self, now: Instant) {
        while self.remove_connection(now) {}
        self.connections_wanted = 1;
        self.vacancies.clear();
    }

    /// The session and one of its connections, to move bytes between them.
    pub(super) fn core_and_lane(&mut self, lane: LaneId) -> Option<(&mut initiator::Session, &mut Lane)> {
        let lane = self.lanes.iter_mut().find(|known| known.id == lane)?;
        Some((self.core.as_mut()?, lane))
    }

    pub(super) fn lane_state(&self, lane: LaneId) -> Option<LaneState> {
        let known = self.lanes.iter().any(|known| known.id == lane);
        self.core.as_ref().filter(|_| known).map(|core| core.lane_state(lane))
    }

    /// Wakes the tasks of lanes that are in doubt, or that have data to send and a socket that accepts it.
    pub(super) fn wake_senders(&mut self) {
        let Some(core) = &self.core else { return };
        for lane in self.lanes.iter().filter(|lane| lane.closing.is_none()) {
            if core.doubts(lane.id) || !lane.blocked && core.wants_transmit(lane.id) {
                self.wakers.wake(lane.id);
            }
        }
    }

    /// Ends the session: closes its connections and ends their tasks.
    pub(super) fn end(&mut self) {
        self.past = self.recoveries();
        self.core = None;
        self.vacancies.clear();
        self.functions.clear();
        self.watch = Watch::default();
        self.want_no_spare(|_| true);
        self.portals.session_ended();
        self.lanes.clear();
        self.wakers.wake_all();
        self.accepted.clear();
        self.refused.clear();
        self.doubted.clear();
        self.changes_told += 1;
    }

    /// The commands that only this path could have carried.
    pub(super) fn take_own(&mut self) -> Vec<RequestId> {
        self.own.drain(..).chain(self.held.drain(..)).collect()
    }

    /// The repairs in this session and earlier ones.
    pub(super) fn recoveries(&self) -> Recoveries {
        match &self.core {
            Some(core) => self.past.and(&core.counters()),
            None => self.past,
        }
    }

    pub(super) fn report(&self) -> PathReport {
        PathReport {
            path: self.id,
            isid: self.isid,
            tsih: self.tsih.filter(|_| self.core.is_some()),
            portal: self.portals.leading().clone(),
            state: self.state,
            parameters: self.parameters,
            ceiling: self.ceiling.clone(),
            connections_wanted: self.connections_wanted,
            connections: self.lanes.iter().map(|lane| self.report_lane(lane)).collect(),
        }
    }

    fn report_lane(&self, lane: &Lane) -> ConnectionReport {
        let state = self.lane_state(lane.id);
        ConnectionReport {
            lane: lane.id,
            cid: lane.cid,
            role: lane.role,
            is_spare: lane.is_spare(),
            peer: lane.peer,
            parameters: lane.parameters,
            counters: lane.connection.counters(),
            outstanding_commands: state.map_or(0, |state| state.outstanding_commands),
            outstanding_bytes: state.map_or(0, |state| state.outstanding_bytes()),
            congestion: lane.congestion.clone(),
            sample: lane.connection.sample(),
        }
    }
}
