//! One iSCSI session, its connections, and its commands.

use super::command_limit::Watch;
use super::connection_recovery::{Recoveries, Vacancy};
use super::lane_sample::Measurement;
use super::slots::RequestId;
use super::tail_probe::Tail;
use crate::login::Opened;
use crate::path_id::PathId;
use crate::portal_group::PortalGroup;
use crate::report::{ConnectionReport, PathReport, PathState};
use crate::{Config, TargetError};
use event_listener::Event;
use framing::{Connection, LaneWakers, SocketOptions, Wire};
use futures_channel::oneshot;
use futures_util::lock::Mutex;
use pdu::{Cid, Instant, Isid, LaneId, Lun, TaskManagementOutcome, Tsih};
use policy::tuner::Law;
use session::initiator::{self, FunctionId, LaneState, TaskId};
use session::parameters::{ConnectionParameters, LaneRole, SessionParameters, SplitLanes};
use session::seam::{Endpoint, LaneLoss};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// A change that a task waits for. Listen before checking, so that no change in between is missed.
pub(crate) type SharedEvent = Arc<Event>;

/// A lock that lets one task at a time do something.
pub(crate) type SharedTurn = Arc<Mutex<()>>;

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
    pub(super) cid: Cid,
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
    pub(super) next_cid: u16,
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

    pub(super) fn lane(&self, lane: LaneId) -> Option<&Lane> {
        self.lanes.iter().find(|known| known.id == lane)
    }

    pub(super) fn lane_mut(&mut self, lane: LaneId) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|known| known.id == lane)
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
        if let Some(lane) = self.lane_mut(lane) {
            lane.spare_since = None;
        }
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
        self.lane(lane)?;
        self.core.as_ref().map(|core| core.lane_state(lane))
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
            path: lane.connection.measure(),
        }
    }
}
