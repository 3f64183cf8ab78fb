//! The machine that has the targets: it runs the device server that a real one runs, over simulated connections and
//! simulated disks.

mod connection;
mod kept_reservations;
mod machine;

use crate::checker::{Claims, MediumWatch, NumberMap, ReservationHistory, Tap, TargetSession};
use crate::clock::Clock;
use crate::disk::Disk;
use crate::executor::Executor;
use crate::network::{ConnectionId, Network, Notice, Side};
use crate::portal::Portals;
use crate::random::Random;
use crate::shared_cell::SharedCell;
use crate::unit::{self, TargetIndex, UnitIndex, UnitPlan};
use block::{Backend, BlockError, Volatile};
use connection::Entrance;
use device::{
    Environment, Gauges, LogicalUnit, Memory, Observer, SessionLimits, SessionState, TargetNode,
    UnitDescription, Visibility, Visitor,
};
use kept_reservations::KeptReservations;
use machine::Machine;
use pdu::{Instant, LaneId, Lun, Tsih};
use scsi::{Identity, Outcome, TargetPort};
use session::chap::Authentication;
use session::login::target::Access;
use session::parameters::Offer;
use session::target::{AsyncMessage, Command, TargetRecord, TaskId};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

/// More than any world has hosts' sessions.
const SESSIONS_MAX: u16 = 256;

/// The time that an initiator is given to log out, or must stay away.
const NOTICE_SECONDS_MAX: u16 = 8;

/// What a target is to be like.
#[derive(Clone, Debug)]
pub struct TargetPlan {
    /// What it offers and accepts.
    pub offer: Offer,
    /// Where it listens.
    pub portals: Portals,
    /// What initiators must prove, and what it can prove to them.
    pub authentication: Option<Arc<Authentication>>,
    /// Window and patience.
    pub limits: SessionLimits,
    /// Memory for data on its way.
    pub memory_bytes: usize,
}

/// What the target's connections share with the world.
pub(crate) struct Shared {
    pub clock: Clock,
    pub network: SharedCell<Network>,
    pub tap: SharedCell<Tap>,
    pub medium: RefCell<MediumWatch>,
    pub claims: RefCell<Claims>,
    /// The logical units by their places.
    units: NumberMap<(TargetIndex, Lun), UnitIndex>,
    /// Which connection each lane is.
    pub lanes: RefCell<NumberMap<(TargetSession, LaneId), ConnectionId>>,
    /// Decides what the target decides at random.
    pub random: RefCell<Random>,
}

/// Listens to the device server of one target.
struct Listener {
    target: TargetIndex,
    shared: Rc<Shared>,
}

impl Listener {
    fn session(&self, tsih: Tsih) -> TargetSession {
        TargetSession { target: self.target, tsih }
    }

    fn unit(&self, command: &Command) -> Option<UnitIndex> {
        self.shared.units.get(&(self.target, command.lun)).copied()
    }
}

impl Observer for Listener {
    fn command_begins(&self, session: Tsih, command: &Command) {
        let (session, unit) = (self.session(session), self.unit(command));
        self.shared.tap.lock().command_begins(session, unit, command);
        if let Some(unit) = unit {
            self.shared.medium.borrow_mut().command_begins(session, unit, command);
        }
    }

    fn command_refused(&self, session: Tsih, command: &Command, outcome: &Outcome) {
        if let Some(unit) = self.unit(command) {
            self.shared.tap.lock().command_refused(self.session(session), unit, outcome);
        }
    }

    fn command_starts(&self, session: Tsih, task: TaskId) {
        self.shared.medium.borrow_mut().command_starts(self.session(session), task);
    }

    fn command_ends(&self, session: Tsih, task: TaskId) {
        self.shared.medium.borrow_mut().command_ends(self.session(session), task);
    }

    fn lane_ends(&self, session: Tsih, lane: LaneId) {
        let session = self.session(session);
        if let Some(connection) = self.shared.lanes.borrow_mut().remove(&(session, lane)) {
            let usable = {
                let network = self.shared.network.lock();
                let (_, unread_bytes) = network.sent_bytes(connection, Side::Initiator);
                network.is_open(connection, Side::Initiator) && unread_bytes == 0
            };
            self.shared.tap.lock().target_loses(self.shared.clock.now(), session, connection, usable);
        }
    }
}

/// Targets that crash, and are started again, together.
pub struct Target {
    plan: TargetPlan,
    /// Kept through crashes: whatever a dead target does not give back is missing at the end.
    memory: Memory,
    targets: u16,
    units: Vec<Served>,
    machine: Rc<Machine>,
    shared: Rc<Shared>,
    running: Option<Running>,
}

/// What a logical unit has that outlives crashes.
struct Served {
    plan: UnitPlan,
    disk: Arc<Disk>,
    reservations: Rc<KeptReservations>,
}

struct Running {
    nodes: Rc<[Rc<TargetNode>]>,
    memory: Memory,
    gauges: Arc<Gauges>,
}

/// Everybody sees everything, through every portal.
struct Everything {
    targets: u16,
    portals: Portals,
}

impl Visibility for Everything {
    fn shows_unit(&self, _: &Visitor<'_>, _: &str, _: u16) -> bool {
        true
    }

    fn targets(&self, _: &Visitor<'_>, _: SocketAddr, _: Option<&str>) -> Vec<TargetRecord> {
        let record = |target| TargetRecord {
            target_name: TargetIndex(target).name(),
            target_addresses: self.portals.target_addresses(),
        };
        (0..self.targets).map(record).collect()
    }
}

impl Served {
    /// The SCSI target port that a portal group is (RFC 7143 §4.4.2).
    fn port_of(&self, portal_group_tag: u16) -> TargetPort {
        let target_name = self.plan.target.name();
        TargetPort { target_name, portal_group_tag, relative_identifier: portal_group_tag }
    }

    fn bring_up(&self, portals: &Portals, memory: &Memory) -> Result<LogicalUnit, BlockError> {
        let UnitPlan { target, number, transfer_blocks_max, write_back_bytes, .. } = self.plan;
        let mut ports = portals.groups().into_iter().map(|tag| self.port_of(tag));
        let description = UnitDescription {
            number,
            identity: Identity::from_name(&format!("sim {} {number}", target.0)),
            target_port: ports.next().unwrap_or_else(|| self.port_of(0)),
            other_ports: ports.collect(),
            physical_bytes: None,
            removable: false,
            read_only: false,
            threshold_percent: None,
            write_same_to_end: false,
        };
        let disk: Arc<dyn Backend> = match write_back_bytes {
            Some(bytes) => Arc::new(Volatile::new(Arc::new(Arc::clone(&self.disk).attach()), bytes)),
            None => Arc::clone(&self.disk) as Arc<dyn Backend>,
        };
        let kept = Rc::clone(&self.reservations);
        let last = kept.last();
        let unit = LogicalUnit::new(description, disk, memory)?.keep_reservations(kept, last);
        let bytes_max = transfer_blocks_max.map(|blocks| blocks.saturating_mul(self.plan.disk.block_bytes));
        Ok(unit.limit_transfers(bytes_max.unwrap_or(u32::MAX)))
    }
}

impl Target {
    /// A target that is not running.
    #[must_use]
    pub fn new(
        plan: TargetPlan,
        units: &[UnitPlan],
        disks: &[Arc<Disk>],
        clock: Clock,
        network: SharedCell<Network>,
        tap: SharedCell<Tap>,
        random: Random,
    ) -> Self {
        let machine = Rc::new(Machine {
            clock: clock.clone(),
            executor: Executor::default(),
            timers: SharedCell::default(),
        });
        let (medium, claims, lanes) = (RefCell::default(), RefCell::default(), RefCell::default());
        let indices = units.iter().map(UnitPlan::place).zip((0..).map(UnitIndex));
        let targets = unit::targets_of(units);
        let (places, random) = (indices.collect(), RefCell::new(random));
        let shared = Shared { clock, network, tap, medium, claims, units: places, lanes, random };
        let shared = Rc::new(shared);
        let serve = |(unit, disk): (&UnitPlan, &Arc<Disk>)| Served {
            plan: unit.clone(),
            disk: Arc::clone(disk),
            reservations: Rc::new(KeptReservations::new(Rc::clone(&machine))),
        };
        let units = units.iter().zip(disks).map(serve).collect();
        let memory = Memory::new(plan.memory_bytes);
        Self { plan, memory, targets, units, machine, shared, running: None }
    }

    /// Starts all of them, with nothing in memory.
    pub fn start(&mut self) {
        let memory = self.memory.clone();
        let gauges = Arc::new(Gauges::default());
        let nodes = (0..self.targets).map(|target| self.bring_up(TargetIndex(target), &memory, &gauges));
        let nodes = nodes.collect();
        self.running = Some(Running { nodes, memory, gauges });
    }

    /// One target. Its environment is its own, because an observer is told of sessions by their numbers, which each target
    /// counts by itself.
    fn bring_up(&self, target: TargetIndex, memory: &Memory, gauges: &Arc<Gauges>) -> Rc<TargetNode> {
        let environment = Environment::new(
            Rc::clone(&self.machine) as Rc<dyn device::Host>,
            Arc::new(Everything { targets: self.targets, portals: self.plan.portals.clone() }),
            memory.clone(),
            self.plan.limits,
            Arc::clone(gauges),
        );
        environment.observe(Rc::new(Listener { target, shared: Rc::clone(&self.shared) }));
        let units = self.units.iter().filter(|unit| unit.plan.target == target);
        // A disk of blocks that no disk has would be this crate's own mistake: the target then lacks the unit.
        let units =
            units.filter_map(|unit| unit.bring_up(&self.plan.portals, memory).ok().map(Rc::new)).collect();
        TargetNode::new(&environment, target.name(), units, SESSIONS_MAX)
    }

    /// Its memory is gone, with every session and every command.
    pub fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            running.nodes.iter().for_each(|node| node.forget_sessions());
        }
        self.machine.executor.clear();
        self.machine.timers.lock().clear();
        self.shared.medium.borrow_mut().crash();
        self.shared.claims.borrow_mut().crash();
        self.shared.lanes.borrow_mut().clear();
        self.shared.tap.lock().crash();
    }

    /// Judges what has begun and ended at the medium of a unit with these reservations, right after it has.
    ///
    /// # Errors
    /// What went on that should not have.
    pub fn judge_medium(&self, unit: UnitIndex, reservations: &mut ReservationHistory) -> Result<(), String> {
        self.shared.medium.borrow_mut().judge(unit, reservations)
    }

    /// Whether it runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Sessions that the target has now; none while it is down.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.running.as_ref().map_or(0, |running| running.gauges.sessions())
    }

    /// Bytes of its buffers that are in use.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.running.as_ref().map_or(0, |running| {
            running.memory.transfers.in_use_bytes() + running.memory.working.in_use_bytes()
        })
    }

    /// The memory that it holds beyond its budgets, in words, if there is any.
    #[must_use]
    pub fn excess_memory(&self) -> Option<String> {
        let Memory { transfers, working, .. } = &self.running.as_ref()?.memory;
        let (transfer_bytes, working_bytes) = (transfers.in_use_bytes(), working.in_use_bytes());
        let exceeds = transfer_bytes > self.plan.memory_bytes || working_bytes > working.budget_bytes();
        exceeds.then(|| {
            let (transfers_max, working_max) = (self.plan.memory_bytes, working.budget_bytes());
            format!("{transfer_bytes} of {transfers_max} bytes and {working_bytes} of {working_max}")
        })
    }

    /// Something happened to a connection.
    pub fn on_notice(&self, connection: ConnectionId, notice: Notice) {
        match (notice, &self.running) {
            (Notice::Accept, Some(running)) => {
                let Some(portal) = self.shared.network.lock().portal_of(connection) else { return };
                let (shared, nodes) = (Rc::clone(&self.shared), Rc::clone(&running.nodes));
                let plan = &self.plan;
                let access = Access { authentication: plan.authentication.clone(), alias: None };
                let entrance =
                    Entrance { portal, group: plan.portals.group(portal), offer: plan.offer, access };
                self.machine.executor.spawn(Box::pin(connection::serve(shared, nodes, entrance, connection)));
            }
            (Notice::Accept, None) => {
                self.shared.network.lock().reset(self.shared.clock.now(), connection);
            }
            _ => {
                let waiting = self.shared.network.lock().take_waiting(connection, Side::Target);
                waiting.into_iter().for_each(Waker::wake);
            }
        }
    }

    /// Tells the initiator of one session that it is to end: asks it to log out, or says that it is dropped
    /// (RFC 7143 §11.9.1). Whether there is a session.
    pub fn give_notice(&self, random: &mut Random) -> bool {
        let nodes = self.running.iter().flat_map(|running| running.nodes.iter());
        let sessions = (0..)
            .map(TargetIndex)
            .zip(nodes)
            .flat_map(|(target, node)| node.sessions().into_iter().map(move |session| (target, session)));
        let sessions: Vec<_> = sessions.collect();
        let Some((target, session)) = sessions.get(random.index(sessions.len())) else { return false };
        self.shared.tap.lock().target_ends(TargetSession { target: *target, tsih: session.tsih() });
        let seconds = random.between(0_u16, NOTICE_SECONDS_MAX);
        if random.one_in(2) {
            session.request_logout(seconds);
            return true;
        }
        let mut state = session.state();
        let SessionState { session: core, wakers, .. } = &mut *state;
        core.async_message(self.shared.clock.now(), &AsyncMessage::SessionDrop { wait_seconds: seconds });
        wakers.wake_senders(core, None);
        true
    }

    /// When a timer ends.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.machine.timers.lock().next_at()
    }

    /// Wakes those whose time has come.
    pub fn wake_due(&self, now: Instant) {
        loop {
            let waker = self.machine.timers.lock().pop_due(now);
            let Some(waker) = waker else { return };
            waker.wake();
        }
    }

    /// Lets everything run that can.
    pub fn run(&self) {
        if self.machine.executor.run().is_err() {
            self.shared.tap.lock().violate("the target is busy without end");
        }
    }
}
