//! One session: the protocol's state, its buffers, and its commands at the backends.
//!
//! The poll of a connection ([`connection_task`](crate::connection_task)) reads, lets the session interpret the bytes,
//! executes, and sends, all at once. The session's own task keeps its time and waits for memory.

use crate::command;
use crate::ending::{drop_task, start_others};
use crate::environment::{CountedSession, Environment, Host, LocalFuture, Visitor};
use crate::logical_unit::LogicalUnit;
use crate::peer::Peer;
use crate::permit::Permits;
use crate::read_memory::{ReadPermit, WaitingReads, bytes_per_session};
use crate::read_turns::ReadTurns;
use crate::target_node::TargetNode;
use crate::task::Task;
use crate::task_management;
use crate::unit_state::NexusId;
use block::Reservation;
use framing::{BufferTable, LaneWakers};
use pdu::{BufferId, Instant, LaneId, Lun, Tsih, Window};
use session::login::target::Place;
use session::parameters::{Identity, SessionParameters};
use session::seam::{Endpoint, Fault, LaneLoss};
use session::target::{Applicant, Event, SendTargets, Session, TargetRecord, TaskId};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A session and the state that its connections share.
pub struct SessionDriver {
    pub(crate) environment: Rc<Environment>,
    pub(crate) node: Rc<TargetNode>,
    pub(crate) nexus: NexusId,
    identity: Identity,
    /// The CHAP user that its initiator has authenticated as.
    user: Option<String>,
    pub(crate) tsih: Tsih,
    parameters: SessionParameters,
    /// The address of its leading connection.
    peer: IpAddr,
    /// The units that this initiator may use.
    pub(crate) units: Vec<Rc<LogicalUnit>>,
    /// The bytes of its reads; see [`crate::read_memory`].
    pub(crate) read_bytes: Rc<Permits>,
    /// The bounds that it shares with other sessions of its host.
    pub(crate) bounds: Rc<Peer>,
    state: RefCell<SessionState>,
    /// Wakes the session's own task.
    attention: Cell<Option<Waker>>,
    _counted: CountedSession,
    _reserved: Option<Reservation>,
}

/// The mutable state. Borrowed only within one poll of one task.
pub struct SessionState {
    /// The iSCSI session, which consumes and produces PDUs and does no I/O.
    pub session: Session,
    /// The buffers that the protocol names.
    pub buffers: BufferTable,
    /// Wakers of the tasks that poll its connections.
    pub wakers: LaneWakers,
    /// Commands that were handed out and not answered.
    pub(crate) tasks: HashMap<TaskId, Task>,
    /// Those of them whose turn has come because others have ended.
    pub(crate) startable: VecDeque<TaskId>,
    /// Pieces of reads in transit, each with its permit.
    pub(crate) pieces: HashMap<BufferId, ReadPermit>,
    /// Reads that wait for memory.
    pub(crate) waiting_reads: WaitingReads,
    pub(crate) read_turns: ReadTurns,
    lanes: Vec<Lane>,
    next_lane: u32,
    /// The session waits for room in the buffer budget.
    starved: bool,
    /// The time at which the session's own task will wake by itself.
    armed: Option<Instant>,
    ended: Option<bool>,
}

struct Lane {
    id: LaneId,
    portal: SocketAddr,
    closing: Option<Closing>,
}

/// The session's order to close a lane.
#[derive(Clone, Debug)]
pub struct Closing {
    /// The kind of loss that the closing is.
    pub loss: LaneLoss,
    /// The peer's fault, if it has one.
    pub fault: Option<Fault>,
}

/// The parts of a new session.
pub(crate) struct SessionParts {
    pub tsih: Tsih,
    pub identity: Identity,
    pub user: Option<String>,
    pub parameters: SessionParameters,
    pub session: Session,
    pub reserved: Option<Reservation>,
    /// The address of the leading connection.
    pub peer: IpAddr,
}

impl SessionDriver {
    pub(crate) fn new(node: &Rc<TargetNode>, parts: SessionParts) -> Rc<Self> {
        let environment = Rc::clone(&node.environment);
        let transfers = &environment.memory.transfers;
        let reserved_bytes = if parts.reserved.is_some() { parts.parameters.first_burst_bytes } else { 0 };
        let bounds = environment.peers.at(environment.host_of(parts.peer), &environment.memory);
        let visitor = Visitor {
            initiator_name: &parts.identity.initiator_name,
            address: parts.peer,
            user: parts.user.as_deref(),
        };
        let visible =
            |unit: &&Rc<LogicalUnit>| environment.visibility.shows_unit(&visitor, node.name(), unit.number);
        let state = SessionState {
            session: parts.session,
            buffers: BufferTable::with_quota(transfers.clone(), bounds.writes.clone(), reserved_bytes),
            wakers: LaneWakers::default(),
            tasks: HashMap::new(),
            startable: VecDeque::new(),
            pieces: HashMap::new(),
            waiting_reads: WaitingReads::default(),
            read_turns: ReadTurns::default(),
            lanes: Vec::new(),
            next_lane: 0,
            starved: false,
            armed: None,
            ended: None,
        };
        Rc::new(Self {
            units: node.units().iter().filter(visible).cloned().collect(),
            node: Rc::clone(node),
            nexus: environment.next_nexus(),
            peer: parts.peer,
            identity: parts.identity,
            user: parts.user,
            tsih: parts.tsih,
            parameters: parts.parameters,
            read_bytes: Permits::new(bytes_per_session(&environment.memory)),
            state: RefCell::new(state),
            attention: Cell::new(None),
            bounds,
            _counted: CountedSession::new(&environment.gauges),
            _reserved: parts.reserved,
            environment,
        })
    }

    /// The address of its leading connection.
    pub(crate) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// The unit behind a LUN, if this initiator may use it.
    pub(crate) fn unit(&self, lun: Lun) -> Option<&Rc<LogicalUnit>> {
        let number = lun.index()?;
        self.units.iter().find(|unit| unit.number == number)
    }

    /// Whether all its units may be used from this address.
    pub(crate) fn may_be_used_from(&self, address: IpAddr) -> bool {
        let visitor =
            Visitor { initiator_name: &self.identity.initiator_name, address, user: self.user.as_deref() };
        let shows = |number| self.environment.visibility.shows_unit(&visitor, self.node.name(), number);
        self.units.iter().all(|unit| shows(unit.number))
    }

    /// Whether the initiators of both sessions may use a common unit.
    pub(crate) fn shares_units_with(&self, other: &Self) -> bool {
        self.units.iter().any(|unit| other.units.iter().any(|its| Rc::ptr_eq(unit, its)))
    }

    /// The identity of its initiator.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The CHAP user that its initiator has authenticated as.
    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The target's part of the session's identity (RFC 7143 §11.12.6).
    #[must_use]
    pub fn tsih(&self) -> Tsih {
        self.tsih
    }

    /// The parameters of its leading login.
    #[must_use]
    pub fn parameters(&self) -> &SessionParameters {
        &self.parameters
    }

    /// The target that its initiator logged in to; for a discovery session, the home of discovery sessions.
    #[must_use]
    pub fn node(&self) -> &Rc<TargetNode> {
        &self.node
    }

    pub(crate) fn now(&self) -> Instant {
        self.environment.now()
    }

    /// The place that the last login response reports to the admitted `applicant`. Closes the connection that it
    /// replaces.
    #[must_use]
    pub fn place_for(self: &Rc<Self>, applicant: &Applicant) -> Place {
        let counters = self.resume(|state| {
            state.session.make_way(self.now(), applicant.cid);
            state.session.counters()
        });
        Place {
            tsih: self.tsih,
            window: Window { exp_cmd_sn: counters.exp_cmd_sn, max_cmd_sn: counters.max_cmd_sn },
            joined: (applicant.tsih != Tsih::NEW_SESSION).then_some(self.parameters),
        }
    }

    /// Withdraws the place of `applicant`, which went away before its login was answered.
    pub fn forget_applicant(self: &Rc<Self>, applicant: &Applicant) {
        self.node.lane_closed(self.tsih, applicant.cid);
        if applicant.tsih == Tsih::NEW_SESSION {
            self.close();
        }
    }

    /// Whether the initiator has asked for the logout of this lane, and need not wait for the answer.
    #[must_use]
    pub fn is_leaving(&self, lane: LaneId) -> bool {
        self.state().session.is_leaving(lane)
    }

    /// Whether a connection is or was part of it.
    #[must_use]
    pub fn has_lanes(&self) -> bool {
        self.state.borrow().next_lane > 0
    }

    /// Makes a lane for a connection after its login, which came through `portal`.
    pub fn add_lane(
        self: &Rc<Self>,
        established: &session::parameters::Established,
        portal: SocketAddr,
    ) -> LaneId {
        self.resume(|state| {
            let id = LaneId(state.next_lane);
            state.next_lane += 1;
            state.lanes.push(Lane { id, portal, closing: None });
            state.session.add_lane(self.now(), id, established);
            id
        })
    }

    /// Removes a lane. The session decides how to continue without it.
    pub fn remove_lane(self: &Rc<Self>, lane: LaneId, loss: LaneLoss) {
        self.environment.tell(|observer| observer.lane_ends(self.tsih, lane));
        self.resume(|state| {
            state.lanes.retain(|known| known.id != lane);
            state.wakers.remove(lane);
            state.session.lane_lost(self.now(), lane, loss);
        });
    }

    /// Ends the session: reinstatement, reset or shutdown.
    pub fn close(self: &Rc<Self>) {
        self.resume(|state| state.session.close(self.now()));
    }

    /// Asks the initiator to end the session within `seconds`.
    pub fn request_logout(self: &Rc<Self>, seconds: u16) {
        self.resume(|state| state.session.request_logout(self.now(), seconds));
    }

    /// Changes the state from outside a connection's poll, and carries out the consequences.
    pub(crate) fn resume<R>(self: &Rc<Self>, change: impl FnOnce(&mut SessionState) -> R) -> R {
        let mut state = self.state.borrow_mut();
        let result = change(&mut state);
        self.drain(&mut state);
        let SessionState { session, wakers, .. } = &mut *state;
        wakers.wake_senders(session, None);
        result
    }

    /// The state. Who changes it must call [`Self::drain`].
    pub fn state(&self) -> std::cell::RefMut<'_, SessionState> {
        self.state.borrow_mut()
    }

    /// Carries out the consequences of a change of the state.
    pub fn drain(self: &Rc<Self>, state: &mut SessionState) {
        self.carry_out_events(state);
        self.keep_time(state);
    }

    /// Carries out the session's events, and starts commands whose turn has come, until there are no more. [`Self::keep_time`] must follow before others run.
    pub(crate) fn carry_out_events(self: &Rc<Self>, state: &mut SessionState) {
        while let Some(task) = state.startable.pop_front() {
            command::start(self, state, task);
        }
        while let Some(event) = state.session.poll_event() {
            self.handle(state, event);
        }
    }

    /// Wakes the session's own task if it has to wait for less time, or for something else, than it knows.
    pub(crate) fn keep_time(&self, state: &mut SessionState) {
        let starves = state.buffers.take_refused() && !std::mem::replace(&mut state.starved, true);
        let timeout = state.session.poll_timeout();
        let sooner = timeout.is_some_and(|timeout| state.armed.is_none_or(|armed| timeout < armed));
        if sooner || starves || state.ended.is_some() {
            self.attend();
        }
    }

    fn handle(self: &Rc<Self>, state: &mut SessionState, event: Event) {
        match event {
            Event::Command(command) => command::begin(self, state, command),
            Event::DataOut(data) => command::data_arrived(self, state, data),
            Event::Aborted { task } => command::abort(self, state, task),
            Event::Release(buffer) => {
                state.buffers.remove(buffer);
                state.pieces.remove(&buffer);
            }
            Event::TaskManagement(function) => task_management::begin(self, function),
            Event::CommandsCleared { lun } => {
                if let Some(unit) = self.unit(lun) {
                    unit.state.borrow_mut().commands_cleared_by_protocol_event(self.nexus);
                }
            }
            Event::SendTargets(request) => self.send_targets(state, &request),
            Event::CloseLane { lane, loss, fault } => {
                if let Some(known) = state.lanes.iter_mut().find(|known| known.id == lane) {
                    known.closing.get_or_insert(Closing { loss, fault });
                    state.wakers.wake(lane);
                }
            }
            Event::NexusLost => self.abandon(state),
            Event::Ended { orderly } => state.ended = Some(orderly),
        }
    }

    fn send_targets(&self, state: &mut SessionState, request: &SendTargets) {
        let Some(lane) = state.lanes.iter().find(|lane| lane.id == request.lane) else { return };
        let portal = lane.portal;
        let name = request.target_name.as_deref().map(|name| match name {
            "" => self.identity.target_name.as_str(),
            name => name,
        });
        let records = self.visible_targets(portal, name);
        state.session.send_targets(self.now(), request, &records);
    }

    /// The answer of SendTargets: in a discovery session the targets that the initiator may use, otherwise its own
    /// target.
    fn visible_targets(&self, portal: SocketAddr, only: Option<&str>) -> Vec<TargetRecord> {
        let own = Some(self.node.name()).filter(|name| !name.is_empty());
        match (own, only) {
            (Some(own), Some(name)) if !session::name::is_same(own, name) => Vec::new(),
            (own, only) => {
                let visitor = Visitor {
                    initiator_name: &self.identity.initiator_name,
                    address: self.peer,
                    user: self.user.as_deref(),
                };
                self.environment.visibility.targets(&visitor, portal, own.or(only))
            }
        }
    }

    /// The nexus is lost, and every task with it. Tasks that have not started are answered at once (nobody receives
    /// it); the others when their writes have come to rest, and they start no further pieces. Then the session can end.
    fn abandon(self: &Rc<Self>, state: &mut SessionState) {
        for unit in &self.units {
            let cleared = unit.state.borrow_mut().lose(self.nexus);
            cleared.dropped.iter().for_each(|task| drop_task(self, state, task.task));
            for started in &cleared.started {
                if let Some(task) = state.tasks.get_mut(&started.task) {
                    task.abort();
                }
            }
            start_others(&self.node, cleared.startable);
        }
    }

    fn attend(&self) {
        if let Some(waker) = self.attention.take() {
            waker.wake();
        }
    }

    /// The session's own task: keeps its time, waits for memory for it, and detects its end. Returns whether it ended
    /// by logout.
    pub(crate) async fn run(self: Rc<Self>) -> bool {
        let mut alarm = Alarm::default();
        poll_fn(|cx| {
            self.attention.set(Some(cx.waker().clone()));
            if let Some(orderly) = self.state.borrow().ended {
                return Poll::Ready(orderly);
            }
            self.feed(cx);
            loop {
                let timeout = self.state.borrow().session.poll_timeout();
                self.state.borrow_mut().armed = timeout;
                let Some(timeout) = timeout else { return Poll::Pending };
                if alarm.poll_at(timeout, &*self.environment.host, cx).is_pending() {
                    return Poll::Pending;
                }
                self.resume(|state| state.session.handle_timeout(self.now()));
            }
        })
        .await
    }

    /// Offers the session the room in the buffer budget, if it is starved.
    fn feed(self: &Rc<Self>, cx: &Context<'_>) {
        if !self.state.borrow().starved {
            return;
        }
        self.environment.memory.transfers.wake_on_release(cx.waker());
        self.resume(|state| {
            let SessionState { session, buffers, .. } = state;
            session.buffers_available(self.now(), buffers);
            state.starved = buffers.take_refused();
        });
    }
}

impl SessionState {
    /// Sets whether the response of a task is fenced (RFC 7143 §4.2.2.3.4).
    pub(crate) fn fence(&mut self, id: TaskId, is_fenced: bool) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.is_fenced = is_fenced;
        }
    }

    /// The order to close a lane, if there is one.
    #[must_use]
    pub fn closing(&self, lane: LaneId) -> Option<Closing> {
        self.lanes.iter().find(|known| known.id == lane)?.closing.clone()
    }
}

/// A timer that is reset when its deadline changes.
#[derive(Default)]
struct Alarm(Option<(Instant, LocalFuture)>);

impl Alarm {
    /// Ready when `time` has come.
    fn poll_at(&mut self, time: Instant, host: &dyn Host, cx: &mut Context<'_>) -> Poll<()> {
        let (_, sleep) = match &mut self.0 {
            Some(set) if set.0 == time => set,
            other => other.insert((time, host.sleep_until(time))),
        };
        let rings = sleep.as_mut().poll(cx);
        if rings.is_ready() {
            self.0 = None;
        }
        rings
    }
}
