//! One world: a target, its disk, hosts, the network between them, and what goes wrong.

use crate::checker::{BlockHistory, ReservationHistory, Stamp, Tap, Violation};
use crate::client::{Context, Excuses, Host, MEMORY_BYTES, Tally};
use crate::clock::Clock;
use crate::disk::Disk;
use crate::fault::{Fault, FaultCounts, FaultKind};
use crate::network::{ConnectionId, Network, Part, Side};
use crate::random::Random;
use crate::reached::{Reached, Way};
use crate::scenario::Scenario;
use crate::target::Target;
use pdu::{Duration, Instant};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// When faults have stopped, everything that was begun must have ended after so long: half-open connections must be
/// noticed, logins be given up, commands that somebody else aborted be missed, several times over.
const PATIENCE: Duration = Duration::from_secs(1800);

/// A fault that finds nothing to break waits for so many more operations.
const POSTPONED_OPERATIONS: u32 = 20;

/// Steps of one run; a world that takes more turns round and round.
const STEPS_MAX: u64 = 1_000_000;

/// How often memory is looked at.
const STEPS_BETWEEN_AUDITS: u64 = 64;

/// PDUs that one fault damages.
const DAMAGED_PDUS_MAX: u32 = 4;

/// Of a hundred crashes of a target whose disk has a volatile cache, so many wait for the end of a flush.
const CRASHES_AFTER_FLUSH_PERCENT: u64 = 60;

/// How long after it was noticed a short fault may be felt.
const AFTERMATH: Duration = Duration::from_secs(1);

/// What came of one run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Of which seed.
    pub seed: u64,
    /// What was broken, if anything was.
    pub violation: Option<Violation>,
    /// What was counted.
    pub tally: Tally,
    /// What went wrong.
    pub faults: FaultCounts,
    /// Ways that were taken.
    pub reached: Reached,
    /// PDUs of both sides in full feature phase.
    pub pdus: u64,
    /// How long it took in the world.
    pub virtual_time: Duration,
    /// Connections that the hosts wanted to have.
    pub connections_wanted: u32,
    /// The history, if it was asked for.
    pub trace: Option<Vec<String>>,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Commands and faults.
    Work,
    /// No more faults, no more new commands.
    Quiet,
    /// Every host reads the whole disk.
    ReadBack,
    /// Sessions are logged out.
    Farewell,
    /// Over.
    Done,
}

struct World {
    scenario: Scenario,
    clock: Clock,
    network: Rc<RefCell<Network>>,
    tap: Rc<RefCell<Tap>>,
    disk: Arc<Disk>,
    target: Target,
    hosts: Vec<Host>,
    /// When each host has something to do by itself.
    hosts_at: Vec<Option<Instant>>,
    /// The host of each connection.
    owners: Vec<Option<usize>>,
    history: BlockHistory,
    reservations: ReservationHistory,
    excuses: Excuses,
    guesses: Vec<Stamp>,
    tally: Tally,
    random: Random,
    budget: u32,
    faults: VecDeque<Fault>,
    counts: FaultCounts,
    restart_at: Option<Instant>,
    /// A crash that waits until a host is told that a flush is done: of so many.
    crash_after_flush: Option<(u64, Random)>,
    phase: Phase,
    phase_until: Instant,
    violation: Option<Violation>,
}

/// Runs a world to its end, or to the first violation.
#[must_use]
pub fn run(scenario: Scenario, traced: bool) -> Outcome {
    let mut world = World::new(scenario, traced);
    world.run();
    let mut tap = world.tap.borrow_mut();
    let mut reached = world.tally.reached;
    reached.add(&tap.reached);
    reached.count_many(Way::BlockLostAtCrash, world.disk.lost_blocks());
    Outcome {
        seed: world.scenario.seed,
        violation: world.violation,
        tally: world.tally,
        faults: world.counts,
        reached,
        pdus: tap.pdus,
        virtual_time: world.clock.now().saturating_duration_since(Instant::ZERO),
        connections_wanted: world.scenario.connections(),
        trace: tap.trace.take(),
    }
}

impl World {
    fn new(scenario: Scenario, traced: bool) -> Self {
        let seed = scenario.seed;
        let clock = Clock::default();
        let network = Network::new(scenario.network.clone(), Random::new(seed, "network"));
        let network = Rc::new(RefCell::new(network));
        let mut tap = Tap::default();
        tap.trace = traced.then(Vec::new);
        let tap = Rc::new(RefCell::new(tap));
        let disk = Disk::new(scenario.disk.clone(), clock.clone(), Random::new(seed, "disk"));
        let disk = Arc::new(disk);
        let mut target = Target::new(
            scenario.target.clone(),
            Arc::clone(&disk),
            clock.clone(),
            Rc::clone(&network),
            Rc::clone(&tap),
        );
        target.start();
        let blocks = scenario.disk.blocks;
        let host = |(index, plan): (usize, _)| {
            let random = Random::new(seed, &format!("host {index}"));
            Host::new(u16::try_from(index).unwrap_or(u16::MAX), plan, blocks, random)
        };
        let hosts: Vec<Host> = scenario.hosts.iter().enumerate().map(host).collect();
        Self {
            hosts_at: vec![Some(Instant::ZERO); hosts.len()],
            hosts,
            owners: Vec::new(),
            history: BlockHistory::new(blocks, scenario.disk.volatile_cache),
            reservations: ReservationHistory::default(),
            excuses: Excuses::default(),
            guesses: (0..blocks).map(|_| Stamp::ZERO).collect(),
            tally: Tally::default(),
            random: Random::new(seed, "world"),
            budget: scenario.operations,
            faults: scenario.faults.iter().map(|(_, fault)| fault.clone()).collect(),
            counts: FaultCounts::default(),
            restart_at: None,
            crash_after_flush: None,
            phase: Phase::Work,
            phase_until: Instant(u64::MAX),
            violation: None,
            scenario,
            clock,
            network,
            tap,
            disk,
            target,
        }
    }

    fn run(&mut self) {
        for step in 0..STEPS_MAX {
            self.step();
            if step % STEPS_BETWEEN_AUDITS == 0 {
                self.check_bounds();
            }
            if self.violation.is_none() {
                self.violation = self.tap.borrow_mut().take_violation();
            }
            if self.violation.is_some() {
                return;
            }
            self.advance_phase();
            if self.phase == Phase::Done {
                return;
            }
        }
        self.violation = Some(Violation(format!("no end after {STEPS_MAX} steps")));
    }

    /// Lets the next thing happen.
    fn step(&mut self) {
        let network_at = self.network.borrow().next_at();
        let hosts_at = self.hosts_at.iter().flatten().min().copied();
        let times = [network_at, self.disk.next_at(), self.target.next_at(), hosts_at, self.restart_at];
        let Some(at) = times.into_iter().flatten().min() else {
            return self.stuck("nothing more will happen");
        };
        if at > self.phase_until {
            return self.stuck("no progress after the faults stopped");
        }
        self.clock.advance(at);
        if network_at == Some(at) {
            self.deliver(at);
        } else if hosts_at == Some(at) {
            self.wake_hosts(at);
        } else if self.restart_at == Some(at) {
            self.restart_at = None;
            self.note("the target is started");
            self.target.start();
        } else {
            self.disk.run(at);
            self.target.wake_due(at);
        }
        self.target.run();
        if let Err(problem) = self.target.judge_medium(&mut self.reservations) {
            self.violation.get_or_insert(Violation(problem));
        }
        self.strike();
    }

    fn stuck(&mut self, why: &str) {
        let hosts: Vec<String> = self.hosts.iter().map(Host::describe).collect();
        let what = format!("{why} ({:?}): {}", self.phase, hosts.join(" | "));
        self.violation.get_or_insert(Violation(what));
    }

    fn note(&self, what: &str) {
        if let Some(trace) = &mut self.tap.borrow_mut().trace {
            trace.push(format!("{:>14} {what}", self.clock.now().0));
        }
    }

    /// What is due on the network.
    fn deliver(&mut self, now: Instant) {
        let event = self.network.borrow_mut().pop_due(now);
        let Some(event) = event else { return };
        match event.side {
            Side::Target => self.target.on_notice(event.connection, event.notice),
            Side::Initiator => {
                if let Some(host) = self.owner(event.connection) {
                    self.with_host(host, |host, context| {
                        host.on_notice(context, event.connection, event.notice);
                    });
                }
            }
        }
    }

    fn owner(&mut self, connection: ConnectionId) -> Option<usize> {
        let place = connection.0 as usize;
        if self.owners.len() <= place {
            self.owners.resize(place + 1, None);
        }
        if self.owners[place].is_none() {
            self.owners[place] = self.hosts.iter().position(|host| host.owns(connection));
        }
        self.owners[place]
    }

    fn wake_hosts(&mut self, now: Instant) {
        for host in 0..self.hosts.len() {
            if self.hosts_at[host].is_some_and(|at| at <= now) {
                self.with_host(host, Host::on_time);
            }
        }
    }

    fn with_host<R>(&mut self, host: usize, act: impl FnOnce(&mut Host, &mut Context<'_>) -> R) -> R {
        let mut context = Context {
            now: self.clock.now(),
            network: &mut self.network.borrow_mut(),
            tap: &mut self.tap.borrow_mut(),
            history: &mut self.history,
            tally: &mut self.tally,
            random: &mut self.random,
            budget: &mut self.budget,
            ping_after: self.scenario.ping_after,
            ping_timeout: self.scenario.ping_timeout,
            excuses: &mut self.excuses,
            reservations: &mut self.reservations,
            guesses: &mut self.guesses,
            violation: &mut self.violation,
        };
        let result = act(&mut self.hosts[host], &mut context);
        self.hosts_at[host] = self.hosts[host].next_at();
        result
    }

    fn advance_phase(&mut self) {
        let idle = || self.hosts.iter().all(Host::is_idle);
        match self.phase {
            Phase::Work if self.budget == 0 => {
                self.faults.clear();
                self.disk.heal();
                self.network.borrow_mut().stop_refusing();
                self.enter(Phase::Quiet);
            }
            Phase::Quiet if idle() && self.reservations.may_be_held() => {
                self.with_host(0, Host::clear_reservations);
            }
            Phase::Quiet if idle() => {
                self.enter(Phase::ReadBack);
                (0..self.hosts.len()).for_each(|host| self.with_host(host, Host::read_back));
            }
            Phase::ReadBack if idle() => {
                self.enter(Phase::Farewell);
                (0..self.hosts.len()).for_each(|host| self.with_host(host, Host::log_out));
            }
            Phase::Farewell
                if self.hosts.iter().all(Host::is_over)
                    && (self.target.sessions() == 0 || !self.target.is_running()) =>
            {
                self.check_memory();
                self.phase = Phase::Done;
            }
            _ => {}
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.note(&format!("{phase:?}"));
        self.phase = phase;
        self.phase_until = self.clock.now() + PATIENCE;
    }

    /// Nobody uses more memory than it was given.
    fn check_bounds(&mut self) {
        if let Some(excess) = self.target.excess_memory() {
            self.violation.get_or_insert(Violation(format!("the target uses {excess}")));
        }
        if let Some(host) = self.hosts.iter().find(|host| host.buffer_bytes() > MEMORY_BYTES) {
            let what = format!("an initiator uses {} of {MEMORY_BYTES} bytes", host.buffer_bytes());
            self.violation.get_or_insert(Violation(what));
        }
    }

    /// Everybody has gone: nothing may be left.
    fn check_memory(&mut self) {
        let left = self.target.buffer_bytes();
        if left > 0 {
            let what = format!("{left} bytes of the target's buffers are in use after the last session");
            self.violation.get_or_insert(Violation(what));
        }
        for host in &self.hosts {
            let left = host.buffer_bytes();
            if left > 0 {
                let what =
                    format!("{left} bytes of an initiator's buffers are in use after its last session");
                self.violation.get_or_insert(Violation(what));
            }
        }
    }

    /// Lets the faults happen whose time has come.
    fn strike(&mut self) {
        let begun = self.scenario.operations - self.budget;
        while self.phase == Phase::Work
            && self.faults.front().is_some_and(|fault| fault.at_operation <= begun)
            && let Some(fault) = self.faults.pop_front()
        {
            self.happen(fault);
        }
        if self.phase == Phase::Work
            && let Some((_, mut random)) =
                self.crash_after_flush.take_if(|(flushes, _)| self.tally.flushes > *flushes)
        {
            let open: Vec<ConnectionId> = self.network.borrow().open_connections().collect();
            self.note("fault: crash, just when all was safe");
            if self.crash(&mut random, &open) {
                self.counts.count(FaultKind::Crash);
            }
        }
    }

    fn happen(&mut self, fault: Fault) {
        let Fault { kind, mut random, .. } = fault.clone();
        let now = self.clock.now();
        let open: Vec<ConnectionId> = self.network.borrow().open_connections().collect();
        let connection = open.get(random.index(open.len())).copied();
        let side = *random.choose(&[Side::Initiator, Side::Target]);
        self.note(&format!("fault: {} {connection:?} {side:?}", kind.name()));
        let happened = match (kind, connection) {
            (FaultKind::Reset, Some(connection)) => {
                self.disturb(connection, now);
                self.network.borrow_mut().reset(now, connection);
                true
            }
            (FaultKind::HalfOpen, Some(connection)) => {
                self.disturb(connection, now);
                self.network.borrow_mut().half_open(now, connection, side);
                true
            }
            (FaultKind::Stall, Some(connection)) => {
                let until = now + Duration::from_millis(random.between(1, 6_000));
                self.disturb(connection, until);
                self.network.borrow_mut().stall(connection, side, until);
                true
            }
            (FaultKind::CorruptHeader | FaultKind::CorruptData, Some(connection)) => {
                if !self.corrupt(kind, &open, side, random.between(1, DAMAGED_PDUS_MAX)) {
                    // Nothing would notice the damage: the connection breaks instead.
                    self.disturb(connection, now);
                    self.network.borrow_mut().reset(now, connection);
                    return self.counts.count(FaultKind::Reset);
                }
                true
            }
            (FaultKind::Refusal, _) => {
                let until = now + Duration::from_millis(random.between(10, 3_000));
                let mut network = self.network.borrow_mut();
                network.refuse_until(until);
                connection.into_iter().for_each(|connection| network.reset(now, connection));
                self.excuses.disturbed_until = self.excuses.disturbed_until.max(until);
                true
            }
            (FaultKind::DiskError, _) => {
                self.disk.fail(random.between(1, 4));
                true
            }
            (FaultKind::DiskStall, _) => {
                let until = now + Duration::from_millis(random.between(1, 5_000));
                self.disk.stall(until, *random.choose(&[50, 100]));
                // A session is replaced best while its writes are still on the disk.
                if let Some(connection) = connection.filter(|_| random.one_in(2)) {
                    self.disturb(connection, now);
                    self.network.borrow_mut().reset(now, connection);
                }
                self.excuses.disturbed_until = self.excuses.disturbed_until.max(until);
                true
            }
            // What a flush promised is tested best right after it.
            (FaultKind::Crash, _)
                if self.scenario.disk.volatile_cache
                    && self.crash_after_flush.is_none()
                    && random.percent(CRASHES_AFTER_FLUSH_PERCENT) =>
            {
                self.crash_after_flush = Some((self.tally.flushes, random));
                return;
            }
            (FaultKind::Crash, _) => self.crash(&mut random, &open),
            (_, None) => false,
        };
        if happened {
            self.counts.count(kind);
        } else {
            // There is nothing that could break: a little later.
            let at_operation = fault.at_operation + POSTPONED_OPERATIONS;
            self.faults.push_front(Fault { at_operation, ..fault });
        }
    }

    fn disturb(&mut self, connection: ConnectionId, until: Instant) {
        let until = until + AFTERMATH;
        self.hosts.iter_mut().for_each(|host| host.disturb(connection, until));
    }

    /// Damages PDUs on the first connection where that will be noticed.
    fn corrupt(&mut self, kind: FaultKind, open: &[ConnectionId], from: Side, pdus: u32) -> bool {
        let part = if kind == FaultKind::CorruptHeader { Part::Header } else { Part::Data };
        let hosts = &mut self.hosts;
        let mut covered = |connection| hosts.iter_mut().any(|host| host.covers(connection, part));
        let Some(connection) = open.iter().copied().find(|connection| covered(*connection)) else {
            return false;
        };
        self.network.borrow_mut().damage_next(connection, from, part, pdus);
        self.disturb(connection, self.clock.now());
        true
    }

    fn crash(&mut self, random: &mut Random, open: &[ConnectionId]) -> bool {
        if !self.target.is_running() {
            return false;
        }
        let now = self.clock.now();
        self.target.crash();
        self.disk.crash();
        self.history.crash();
        match self.reservations.persists() {
            Some(true) => self.tally.reached.count(Way::RegistrationsKept),
            Some(false) => self.tally.reached.count(Way::RegistrationsLost),
            None => {}
        }
        self.reservations.crash();
        let silent = random.one_in(2);
        let mut network = self.network.borrow_mut();
        for connection in open {
            if silent {
                network.silence(*connection);
            } else {
                network.reset(now, *connection);
            }
        }
        let restart_at = now + Duration::from_millis(random.between(1, 5_000));
        drop(network);
        self.restart_at = Some(restart_at);
        self.excuses.disturbed_until = self.excuses.disturbed_until.max(restart_at);
        self.excuses.crashed_at = Some(restart_at);
        true
    }
}
