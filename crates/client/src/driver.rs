//! The state that all connections of a [`crate::Target`] share: the protocol's sessions, the buffers, and the commands.
//!
//! The path of a command, top to bottom: [`plan`] cuts an operation into commands; [`operation`] keeps the state that
//! its caller waits for; the fence of its [`unit_state`] admits writes; [`dispatch`] gives each command a lane as late
//! as possible, chosen by the placement policy, which [`lane_sample`] shows all lanes, and [`cut`] shortens it to what
//! that lane should carry; [`lane`] moves its bytes;
//! [`completion`] ends it or sends it again; [`flush`] waits for earlier writes; [`task_management`] ends the commands
//! of a unit; [`command_limit`] aborts commands that are never answered. [`connection_recovery`] lists the connections
//! to replace, and [`unit_doubt`] holds up the commands of a changed unit. [`path`] holds one iSCSI session, [`timer`]
//! all deadlines. [`looks`] watches what the sessions wait for, and [`tuning`] how many connections should work.
//!
//! One lock guards all of it. A lane's task holds the lock while it moves bytes: one thread, the runtime's, drives a
//! session, and the others only submit. Wake-ups and completions are delivered outside the lock.

mod applicants;
mod command_limit;
mod completion;
mod connection_recovery;
mod cut;
mod dispatch;
mod flush;
pub(crate) mod lane;
mod lane_sample;
mod looks;
mod operation;
mod path;
mod path_life;
mod plan;
mod queue;
mod request;
mod slots;
mod tail_probe;
mod task_management;
pub(crate) mod timer;
mod tuning;
mod unit_doubt;
mod unit_state;

pub(crate) use operation::{Outcome, Sink};
pub(crate) use path::{Path, SharedTurn};
pub(crate) use plan::{Piece, Plan};
pub(crate) use unit_state::UnitState;

use crate::early_dials;
use crate::path_id::PathId;
use crate::portal_group::PortalGroup;
use crate::report::{PathReport, PathState, Report};
use crate::reservation::{Reservation, Witness};
use crate::{Config, Environment, Error, NetworkError, UsageError};
use block::Slab;
use connection_recovery::Recoveries;
pub(crate) use connection_recovery::Vacancies;
use event_listener::Event;
use framing::{BufferTable, Scratch};
use futures_channel::oneshot;
use looks::Looks;
use operation::Finished;
use pdu::{BufferId, Instant, Isid, LaneId, Lun};
use policy::{LaneSample, Placement};
use scsi::ReservationKey;
use session::seam::Endpoint;
use slots::{OperationId, Operations, Paths, RequestId, Requests};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use timer::Pauses;
pub(crate) use tuning::Growth;
use tuning::Tuning;

/// The most outstanding operations over all units. Each costs a few hundred bytes besides its buffer; the memory for
/// buffers is the tighter bound.
pub const OPERATIONS_MAX: usize = 1 << 16;

/// Memory for probes: the longest answer, 64 KiB, for each of 64 paths.
const PAGES_BYTES: usize = 4 << 20;

/// The state that the handles, connection tasks and supervisors of one [`crate::Target`] share.
pub(crate) struct Shared {
    pub config: Config,
    pub target_name: String,
    /// The ISID of the first session; those of the others share its random part.
    isid: Isid,
    pub slab: Slab,
    /// Memory for probing untrusted paths. Separate, because a lost path must come back even when the writes that wait
    /// for it hold the whole budget.
    pub pages: Slab,
    pub environment: Environment,
    /// Notified when the deadline moves before the one that the timer's task knows.
    pub deadline_moved: Event,
    /// Notified when a path has ended for good, or come up.
    pub paths_changed: Event,
    driver: Mutex<Driver>,
}

/// The state behind the lock.
pub(crate) struct Driver {
    pub buffers: BufferTable,
    pub paths: Paths,
    pub units: BTreeMap<Lun, UnitState>,
    operations: Operations,
    requests: Requests,
    pauses: Pauses,
    placement: Box<dyn Placement>,
    /// The samples shown to the policy last. Kept, so that a command costs no allocation.
    lanes_shown: Vec<LaneSample>,
    /// When the policy is to be asked again, because it held a command back and its measurements are out of date.
    look_again: Option<Instant>,
    /// When the next lane is to be probed, if it stays silent.
    next_probe: Option<Instant>,
    /// The target bears probes.
    probes_tails: bool,
    /// What the sessions wait for.
    looks: Looks,
    /// How many connections work.
    tuning: Tuning,
    /// Payload of the commands that have been answered, in both directions.
    answered_bytes: u64,
    /// Which unit's turn it is.
    turn: usize,
    scratch: Scratch,
    /// The operation to which each named buffer belongs.
    borrowers: HashMap<BufferId, OperationId>,
    /// Commands to be ended because no path is left to their unit: later, since one that ends may admit many others.
    doomed: Vec<RequestId>,
    finished: Vec<Finished>,
    next_lane: u32,
    closing: bool,
    /// The first connections still log in. Nothing is logged out before they have: a session that ends while one of its
    /// connections logs in does not end in order.
    is_beginning: bool,
    /// Until then, further connections are expected at any moment.
    growing_until: Instant,
    paths_changed: bool,
    sessions_max: usize,
    /// When the first one had logged in.
    began: Instant,
    decline_patience: pdu::Duration,
    command_limit: pdu::Duration,
    /// The next check of the oldest commands.
    next_check: Instant,
    /// Commands given to sessions so far.
    placed: u64,
    retries: u64,
    pub reinstatements: u64,
    retired_sessions: u64,
    retired_connections: u64,
    /// The error of every operation once no path is left.
    everything_lost: Option<Arc<NetworkError>>,
}

impl Shared {
    pub fn new(config: Config, target_name: String, isid: Isid, environment: Environment) -> Arc<Self> {
        let slab = Slab::new(config.buffer_budget_bytes);
        let tuning = Tuning::new(&config, &environment);
        let driver = Driver {
            buffers: BufferTable::new(slab.clone()),
            paths: Paths::default(),
            units: BTreeMap::new(),
            operations: Operations::default(),
            requests: Requests::default(),
            pauses: Pauses::default(),
            placement: (environment.placement)(),
            lanes_shown: Vec::new(),
            look_again: None,
            next_probe: None,
            probes_tails: true,
            looks: Looks::new(Arc::clone(&environment.host)),
            answered_bytes: 0,
            turn: 0,
            scratch: Scratch::default(),
            borrowers: HashMap::new(),
            doomed: Vec::new(),
            finished: Vec::new(),
            next_lane: 0,
            closing: false,
            is_beginning: false,
            growing_until: Instant::ZERO,
            paths_changed: false,
            tuning,
            sessions_max: config.sessions_max(),
            began: Instant::ZERO,
            decline_patience: config.decline_patience,
            command_limit: config.command_limit,
            next_check: Instant::ZERO,
            placed: 0,
            retries: 0,
            reinstatements: 0,
            retired_sessions: 0,
            retired_connections: 0,
            everything_lost: None,
        };
        Arc::new(Self {
            slab,
            pages: Slab::new(PAGES_BYTES),
            config,
            target_name,
            isid,
            environment,
            deadline_moved: Event::new(),
            paths_changed: Event::new(),
            driver: Mutex::new(driver),
        })
    }

    /// Changes the state, carries out the consequences, and delivers the results outside the lock.
    pub fn with<R>(&self, act: impl FnOnce(&mut Driver, Instant) -> R) -> R {
        let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        // The time is read within the lock, so the state never sees it go back.
        let now = self.environment.now();
        driver.look_if_due(now);
        let result = act(&mut driver, now);
        driver.settle(now);
        let finished = std::mem::take(&mut driver.finished);
        let deadline_moved = driver.arm_timer();
        let paths_changed = std::mem::take(&mut driver.paths_changed);
        drop(driver);
        if deadline_moved {
            self.deadline_moved.notify(usize::MAX);
        }
        if paths_changed {
            self.paths_changed.notify(usize::MAX);
        }
        finished.into_iter().for_each(Finished::deliver);
        result
    }

    /// Reads the state.
    pub fn read<R>(&self, look: impl FnOnce(&Driver) -> R) -> R {
        look(&self.driver.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until this can be said of the paths.
    pub async fn until(&self, is_so: impl Fn(&Driver) -> bool) {
        loop {
            let changed = self.paths_changed.listen();
            if self.read(&is_so) {
                return;
            }
            changed.await;
        }
    }

    /// A sample of everything.
    pub fn report(&self) -> Report {
        self.read(|driver| driver.report(&self.target_name))
    }

    /// Adds a path that is to have this many connections.
    pub fn add_path(&self, portals: PortalGroup, connections: usize) -> PathId {
        self.with(|driver, _| driver.add_path(portals, self.isid, connections))
    }

    /// Starts an operation and waits for its end. Once polled, it runs to its end even if this future is dropped.
    pub async fn execute(&self, plan: Plan) -> Outcome {
        let (sender, receiver) = oneshot::channel();
        self.with(|driver, _| driver.submit(plan, Sink::Caller(sender)));
        receiver.await.unwrap_or_else(|_| Outcome::failed(UsageError::SessionClosed.into()))
    }
}

impl Driver {
    /// Processes the protocol's events, dispatches commands, and wakes the lanes that have something to send.
    fn settle(&mut self, now: Instant) {
        for at in self.paths.ids() {
            self.drain_events(at, now);
        }
        self.dispatch(now);
        self.end_doomed();
        if self.closing && self.operations.is_empty() && !self.is_logging_in() {
            self.log_out(now);
        }
        self.probe_tails(now);
        self.begin_to_look(now);
        self.tune(now);
        for path in self.paths.iter_mut() {
            path.wake_senders();
        }
    }

    /// Refuses new operations, and logs out when the last one has ended.
    pub fn close(&mut self) {
        (self.closing, self.paths_changed) = (true, true);
        self.paths.iter().for_each(Path::ring);
    }

    /// Whether the network has everything that this initiator will ever say.
    pub fn has_left(&self) -> bool {
        let is_idle = self.operations.is_empty() && !self.is_logging_in();
        self.closing && is_idle && self.paths.iter().all(Path::has_left)
    }

    /// Whether new operations are refused.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// The first connection has logged in, and the others begin to.
    pub fn begin(&mut self, now: Instant) {
        self.is_beginning = true;
        self.began = now;
        self.growing_until = now + early_dials::LIFE;
    }

    /// Whether the first connections still log in.
    pub fn is_beginning(&self) -> bool {
        self.is_beginning
    }

    /// The first connections have logged in or failed to.
    pub fn begun(&mut self) {
        self.is_beginning = false;
        self.paths_changed = true;
    }

    fn log_out(&mut self, now: Instant) {
        for path in self.paths.iter_mut() {
            path.log_out(now);
            if path.core.is_none() && path.state != PathState::Gone {
                path.state = PathState::Gone;
                path.ring();
                self.paths_changed = true;
            }
        }
    }

    /// Whether nothing is left to do, ever.
    pub fn is_over(&self) -> bool {
        self.closing && !self.is_logging_in() && self.paths.living().next().is_none()
    }

    /// Where no path is left that could lead to a unit, everything that waits for it ends.
    fn end_if_unreachable(&mut self, lun: Lun) {
        let mut refusal = None;
        for path in self.paths.living() {
            let Some((_, error)) = path.refused.iter().find(|(refused, _)| *refused == lun) else { return };
            refusal = Some(error.clone());
        }
        // If all paths are gone, that is the reason instead.
        let Some((unit, error)) = self.units.get_mut(&lun).zip(refusal) else { return };
        let waiting = unit.queue.take_all();
        unit.refused = Some(error.clone());
        waiting.for_each(|key| self.end_request(key, Err(error.clone().into())));
    }

    /// Called when a path is gone that may have been the last to lead to some unit.
    fn end_unreachable(&mut self) {
        let luns: Vec<Lun> = self.units.keys().copied().collect();
        luns.into_iter().for_each(|lun| self.end_if_unreachable(lun));
    }

    pub fn path(&self, id: PathId) -> Option<&Path> {
        self.paths.get(id)
    }

    /// A path that carries a unit's I/O now.
    pub fn path_to(&self, lun: Lun) -> Option<PathId> {
        let carries = |path: &&Path| path.is_connected() && path.accepted.contains(&lun);
        self.paths.iter().find(carries).map(|path| path.id)
    }

    /// All paths that carry a unit's I/O now.
    pub fn paths_to(&self, lun: Lun) -> Vec<PathId> {
        let carries = |path: &&Path| path.is_connected() && path.accepted.contains(&lun);
        self.paths.iter().filter(carries).map(|path| path.id).collect()
    }

    /// The reservation that this initiator has made at a unit.
    pub fn reservation(&self, lun: Lun) -> Option<Reservation> {
        self.units.get(&lun).and_then(|unit| unit.reservation)
    }

    /// A path saw the unit reserved with this key.
    pub fn saw_reservation(&mut self, lun: Lun, key: ReservationKey, witness: Witness) {
        let unit = self.units.get_mut(&lun);
        if let Some(reservation) = unit.and_then(|unit| unit.reservation.as_mut()).filter(|r| r.key == key) {
            reservation.seen = Some(witness);
        }
    }

    pub fn path_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths.get_mut(id)
    }

    /// A lane number that was never used.
    fn new_lane(&mut self) -> LaneId {
        self.next_lane += 1;
        LaneId(self.next_lane)
    }

    /// A path is gone for good. Gives up the commands that only its return could settle, and all commands if it was the
    /// last path.
    pub fn path_gone(&mut self, id: PathId, last: &str, target: &str, now: Instant) {
        let Some(path) = self.path_mut(id) else { return };
        path.state = PathState::Gone;
        path.log_out(now);
        let stranded = std::mem::take(&mut path.stranded);
        let own = path.take_own();
        self.paths_changed = true;
        for key in stranded {
            self.give_up_unknown(key);
        }
        let reason = NetworkError::PathsLost { target: target.to_owned(), last: last.to_owned() };
        let reason = Arc::new(reason);
        for key in own {
            self.end_request(key, Err(Error::Network(Arc::clone(&reason))));
        }
        if self.paths.living().next().is_none() {
            self.lose_everything(reason);
        }
        self.end_unreachable();
    }

    fn lose_everything(&mut self, reason: Arc<NetworkError>) {
        let waiting = self.units.values_mut().flat_map(|unit| unit.queue.take_all());
        self.doomed.extend(waiting);
        self.doomed.extend(self.pauses.take_all());
        self.everything_lost = Some(reason);
    }

    fn end_doomed(&mut self) {
        while let Some(key) = self.doomed.pop() {
            let reason = self.requests.get(key).and_then(|request| self.end_of(request.lun));
            if let Some(reason) = reason {
                self.end_request(key, Err(reason));
            }
        }
    }

    /// Why nothing more can be done at a unit, ever.
    fn end_of(&self, lun: Lun) -> Option<Error> {
        let lost = self.everything_lost.clone().map(Error::Network);
        lost.or_else(|| Some(self.units.get(&lun)?.refused.clone()?.into()))
    }

    /// A sample of everything.
    pub fn report(&self, target_name: &str) -> Report {
        let recoveries =
            self.paths.iter().map(Path::recoveries).fold(Recoveries::default(), Recoveries::plus);
        Report {
            target_name: target_name.to_owned(),
            paths: self.paths.iter().map(Path::report).collect::<Vec<PathReport>>(),
            retries: self.retries,
            reinstatements: self.reinstatements,
            retired_sessions: self.retired_sessions,
            retired_connections: self.retired_connections,
            recovered_connections: recoveries.connections,
            reassigned_tasks: recoveries.tasks,
            retransmitted_pdus: recoveries.pdus,
            operations: self.operations.len(),
            diagnosis: self.looks.diagnose(),
            began: self.began,
            decisions: self.tuning.decisions().to_vec(),
            experience: self.tuning.experience(),
        }
    }

    fn core_deadline(&self) -> Option<Instant> {
        self.paths.iter().filter_map(|path| path.core.as_ref()?.poll_timeout()).min()
    }
}
