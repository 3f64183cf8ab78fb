//! One world: a target, its disks, hosts, the network between them, and what goes wrong.

use crate::checker::{AttentionWatch, Tap, Violation};
use crate::clock::Clock;
use crate::disk::Disk;
use crate::fault::{Fault, FaultCounts, FaultKind};
use crate::host::{HostWorld, Hosts, Ledger, MEMORY_BYTES, Phase, Tally};
use crate::network::{ConnectionId, Meddling, Network, Part, Side};
use crate::portal::{Outage, Trouble};
use crate::random::Random;
use crate::reached::{Reached, Way};
use crate::scenario::Scenario;
use crate::shared_cell::SharedCell;
use crate::target::Target;
use crate::unit::{UnitIndex, UnitPlan};
use event_listener::Event;
use pdu::{Duration, Instant};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

/// When faults have stopped, everything that was begun must have ended after so long: half-open connections must be
/// noticed, logins be given up, commands that somebody else aborted be missed, several times over.
const PATIENCE: Duration = Duration::from_secs(1800);

/// A fault that finds nothing to break is tried again after this many operations.
const POSTPONED_OPERATIONS: u32 = 20;

/// Steps of one run; a world that takes more turns round and round.
const STEPS_MAX: u64 = 1_000_000;

/// How often memory is looked at.
const STEPS_BETWEEN_AUDITS: u64 = 64;

/// PDUs that one fault damages.
const DAMAGED_PDUS_MAX: u32 = 4;

/// How many stalls are hangs, and how long a hang lasts: perhaps longer than hosts wait for any command.
const DISK_HANGS_PERCENT: u64 = 25;
const DISK_HANG_MS_MAX: u64 = 240_000;

/// How many crashes of a target whose disk has a volatile cache wait for the end of a flush.
const CRASHES_AFTER_FLUSH_PERCENT: u64 = 60;

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
    /// SCSI commands that the hosts sent, those sent again included.
    pub commands: u64,
    /// PDUs of both sides in full feature phase.
    pub pdus: u64,
    /// How long it took in the world.
    pub virtual_time: Duration,
    /// Connections that the hosts wanted to have.
    pub connections_wanted: u32,
    /// The history, if it was asked for.
    pub trace: Option<Vec<String>>,
}

struct World {
    scenario: Scenario,
    clock: Clock,
    network: SharedCell<Network>,
    tap: SharedCell<Tap>,
    /// Those of the units, in their order.
    disks: Vec<Arc<Disk>>,
    target: Target,
    hosts: Hosts,
    ledger: Rc<RefCell<Ledger>>,
    phase_changed: Rc<Event>,
    faults: VecDeque<Fault>,
    counts: FaultCounts,
    restart_at: Option<Instant>,
    /// A crash that waits for the end of one more flush; the flushes that had ended when it was drawn.
    crash_after_flush: Option<(u64, Random)>,
    phase_until: Instant,
    /// The last outage of a portal: its end, and the operations that had succeeded before it.
    outage: Option<(Instant, u64)>,
}

/// Runs a world to its end, or to the first violation.
#[must_use]
pub fn run(scenario: Scenario, traced: bool) -> Outcome {
    let mut world = World::new(scenario, traced);
    world.run();
    let (retries, reinstatements) = world.hosts.repairs();
    let mut ledger = world.ledger.borrow_mut();
    let mut tap = world.tap.lock();
    ledger.tally.retries = retries;
    let mut reached = ledger.tally.reached;
    reached.add(&tap.reached);
    reached.count_many(Way::SessionReinstated, reinstatements);
    let (sessions, connections) = world.hosts.retired();
    reached.count_many(Way::SessionRetired, sessions);
    reached.count_many(Way::ConnectionRetired, connections);
    let (fewer, more) = world.hosts.decisions();
    reached.count_many(Way::FewerConnections, fewer);
    reached.count_many(Way::MoreConnections, more);
    reached.count_many(Way::BlockLost, world.disks.iter().map(|disk| disk.lost_blocks()).sum());
    Outcome {
        seed: world.scenario.seed,
        violation: ledger.violation.take(),
        tally: ledger.tally.clone(),
        faults: world.counts,
        reached,
        commands: tap.commands,
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
        let network = SharedCell::new(network);
        let mut tap = Tap::default();
        tap.trace = traced.then(Vec::new);
        tap.attentions = AttentionWatch::new(scenario.units.iter().map(UnitPlan::place).collect());
        let block_bytes = scenario.units.iter().map(|unit| (unit.place(), unit.disk.block_bytes));
        tap.block_bytes = block_bytes.collect();
        let tap = SharedCell::new(tap);
        let disks: Vec<Arc<Disk>> = (0..)
            .map(UnitIndex)
            .zip(&scenario.units)
            .map(|(index, unit)| {
                let part = match index {
                    UnitIndex::FIRST => "disk".to_owned(),
                    UnitIndex(other) => format!("disk {other}"),
                };
                Arc::new(Disk::new(unit.disk.clone(), clock.clone(), Random::new(seed, &part)))
            })
            .collect();
        let mut target = Target::new(
            scenario.target.clone(),
            &scenario.units,
            &disks,
            clock.clone(),
            network.clone(),
            tap.clone(),
            Random::new(seed, "target"),
        );
        target.start();
        let ledger = Ledger::new(&scenario, tap.clone());
        let ledger = Rc::new(RefCell::new(ledger));
        let phase_changed = Rc::new(Event::new());
        let hosts = Hosts::new(
            &scenario.hosts,
            &scenario.units,
            &HostWorld {
                clock: clock.clone(),
                network: network.clone(),
                portals: scenario.target.portals.clone(),
                tap: tap.clone(),
                ping: (scenario.ping_after, scenario.ping_timeout),
                seed,
                ledger: Rc::clone(&ledger),
                phase_changed: Rc::clone(&phase_changed),
            },
        );
        hosts.run();
        Self {
            hosts,
            ledger,
            phase_changed,
            faults: scenario.faults.iter().map(|(_, fault)| fault.clone()).collect(),
            counts: FaultCounts::default(),
            restart_at: None,
            crash_after_flush: None,
            phase_until: Instant(u64::MAX),
            outage: None,
            scenario,
            clock,
            network,
            tap,
            disks,
            target,
        }
    }

    fn run(&mut self) {
        for step in 0..STEPS_MAX {
            self.step();
            if step % STEPS_BETWEEN_AUDITS == 0 {
                self.check_bounds();
            }
            if let Some(Violation(problem)) = self.tap.lock().take_violation() {
                self.violate(problem);
            }
            if self.ledger.borrow().violation.is_some() {
                return;
            }
            self.advance_phase();
            if self.phase() == Phase::Done {
                return;
            }
        }
        self.violate(format!("no end after {STEPS_MAX} steps"));
    }

    fn phase(&self) -> Phase {
        self.ledger.borrow().phase
    }

    fn violate(&self, what: String) {
        self.ledger.borrow_mut().violate(what);
    }

    /// Lets the next thing happen.
    fn step(&mut self) {
        let network_at = self.network.lock().next_at();
        let hosts_at = self.hosts.next_at();
        let disks_at = self.disks.iter().filter_map(|disk| disk.next_at()).min();
        let times = [network_at, disks_at, self.target.next_at(), hosts_at, self.restart_at];
        let Some(at) = times.into_iter().flatten().min() else {
            return self.stuck("nothing more will happen");
        };
        if at > self.phase_until.min(self.ledger.borrow().progress_at + PATIENCE) {
            return self.stuck("no progress");
        }
        self.clock.advance(at);
        if network_at == Some(at) {
            self.deliver(at);
        } else if hosts_at == Some(at) {
            self.hosts.wake_due(at);
        } else if self.restart_at == Some(at) {
            self.restart_at = None;
            self.note("the target is started");
            self.target.start();
        } else {
            self.run_disks(at);
            self.target.wake_due(at);
        }
        self.target.run();
        self.judge_media();
        self.hosts.run();
        let left = self.network.lock().take_left();
        self.tap.lock().initiators_leave(&left);
        self.strike();
    }

    fn run_disks(&self, now: Instant) {
        for (unit, disk) in (0..).map(UnitIndex).zip(&self.disks) {
            disk.run(now);
            if disk.take_cache_loss() {
                self.note(&format!("the cache of unit {} is lost", unit.0));
                let mut ledger = self.ledger.borrow_mut();
                ledger.unit(unit).history.lose_cache();
                ledger.tally.reached.count(Way::CacheLost);
            }
        }
    }

    fn judge_media(&self) {
        let mut ledger = self.ledger.borrow_mut();
        let mut units = (0..).map(UnitIndex).zip(&mut ledger.units);
        let judged =
            units.try_for_each(|(unit, books)| self.target.judge_medium(unit, &mut books.reservations));
        if let Err(problem) = judged {
            ledger.violate(problem);
        }
    }

    fn stuck(&mut self, why: &str) {
        let what = format!("{why} ({:?}): {}", self.phase(), self.hosts.describe());
        self.violate(what);
    }

    fn note(&self, what: &str) {
        if let Some(trace) = &mut self.tap.lock().trace {
            trace.push(format!("{:>14} {what}", self.clock.now().0));
        }
    }

    /// What is due on the network.
    fn deliver(&mut self, now: Instant) {
        let event = self.network.lock().pop_due(now);
        let Some(event) = event else { return };
        match event.side {
            Side::Target => self.target.on_notice(event.connection, event.notice),
            Side::Initiator => {
                let waiting = self.network.lock().take_waiting(event.connection, event.side);
                waiting.into_iter().for_each(Waker::wake);
            }
        }
    }

    fn advance_phase(&mut self) {
        let phase = self.phase();
        match phase {
            Phase::Work if self.ledger.borrow().budget == 0 => {
                self.faults.clear();
                self.disks.iter().for_each(|disk| disk.heal());
                self.network.lock().heal();
                self.enter(Phase::Quiet);
            }
            Phase::Quiet if self.hosts.are_done(Phase::Work) && self.hosts.are_whole() => {
                self.ledger.borrow_mut().units.iter_mut().for_each(|unit| unit.reservations.lay_ghosts());
                self.enter(Phase::Unreserve);
            }
            Phase::Unreserve if self.hosts.are_done(phase) => self.enter(Phase::ReadBack),
            Phase::ReadBack if self.hosts.are_done(phase) => self.enter(Phase::Farewell),
            Phase::Farewell
                if self.hosts.are_done(phase)
                    && (self.target.sessions() == 0 || !self.target.is_running()) =>
            {
                self.check_memory();
                self.enter(Phase::Done);
            }
            _ => {}
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.note(&format!("{phase:?}"));
        self.ledger.borrow_mut().phase = phase;
        self.phase_until = self.clock.now() + PATIENCE;
        self.phase_changed.notify(usize::MAX);
        self.hosts.run();
    }

    /// Nobody uses more memory than it was given.
    fn check_bounds(&self) {
        if let Some(excess) = self.target.excess_memory() {
            self.violate(format!("the target uses {excess}"));
        }
        let used = self.hosts.buffer_bytes();
        if used > MEMORY_BYTES {
            self.violate(format!("an initiator uses {used} of {MEMORY_BYTES} bytes"));
        }
    }

    /// Everybody has gone: nothing may be left.
    fn check_memory(&self) {
        let ends = [("the target", self.target.buffer_bytes()), ("an initiator", self.hosts.buffer_bytes())];
        for (who, left) in ends.into_iter().filter(|(_, left)| *left > 0) {
            self.violate(format!("{left} bytes of buffers of {who} are in use after the last session"));
        }
    }

    /// Lets the faults happen whose time has come.
    fn strike(&mut self) {
        let begun = self.scenario.operations - self.ledger.borrow().budget;
        while self.phase() == Phase::Work
            && self.faults.front().is_some_and(|fault| fault.at_operation <= begun)
            && let Some(fault) = self.faults.pop_front()
        {
            self.happen(fault);
        }
        if self.phase() == Phase::Work
            && let Some((_, mut random)) =
                self.crash_after_flush.take_if(|(flushes, _)| self.ledger.borrow().tally.flushes > *flushes)
        {
            let open: Vec<ConnectionId> = self.network.lock().open_connections().collect();
            self.note("fault: crash, just when all was safe");
            if self.crash(&mut random, &open) {
                self.counts.count(FaultKind::Crash);
            }
        }
        self.crash_after_copy();
        self.watch_outage();
    }

    /// A copy that has succeeded is durable.
    fn crash_after_copy(&mut self) {
        let wanted = self.ledger.borrow_mut().crash_wanted.take();
        if let Some(mut random) = wanted.filter(|_| self.phase() == Phase::Work) {
            let open: Vec<ConnectionId> = self.network.lock().open_connections().collect();
            self.note("fault: crash, just when a copy has succeeded");
            if self.crash(&mut random, &open) {
                self.counts.count(FaultKind::Crash);
            }
        }
    }

    fn happen(&mut self, fault: Fault) {
        let Fault { kind, mut random, .. } = fault.clone();
        let now = self.clock.now();
        let open: Vec<ConnectionId> = self.network.lock().open_connections().collect();
        let connection = open.get(random.index(open.len())).copied();
        let side = *random.choose(&[Side::Initiator, Side::Target]);
        self.note(&format!("fault: {} {connection:?} {side:?}", kind.name()));
        let happened = match (kind, connection) {
            (FaultKind::Reset, Some(connection)) => {
                self.network.lock().reset(now, connection);
                true
            }
            (FaultKind::HalfOpen, Some(connection)) => {
                self.network.lock().half_open(now, connection, side);
                true
            }
            (FaultKind::Stall, Some(connection)) => {
                let until = now + Duration::from_millis(random.between(1, 6_000));
                self.network.lock().stall(connection, side, until);
                true
            }
            (FaultKind::CorruptHeader | FaultKind::CorruptData, Some(connection)) => {
                if !self.corrupt(kind, &open, side, random.between(1, DAMAGED_PDUS_MAX)) {
                    // Nothing would notice the damage: the connection breaks instead.
                    self.network.lock().reset(now, connection);
                    return self.counts.count(FaultKind::Reset);
                }
                true
            }
            (FaultKind::Refusal, _) => {
                let until = now + Duration::from_millis(random.between(10, 3_000));
                let mut network = self.network.lock();
                network.refuse_until(until);
                connection.into_iter().for_each(|connection| network.reset(now, connection));
                true
            }
            (FaultKind::Notice, _) => self.target.give_notice(&mut random),
            (FaultKind::Meddling, _) => {
                let meddling = Meddling::draw(&mut random, self.scenario.least_recovery_level());
                self.note(&format!("{meddling:?}"));
                self.network.lock().meddler.want(meddling);
                true
            }
            (FaultKind::Outage, _) => self.strike_portal(&mut random),
            (FaultKind::DiskError, _) => {
                let operations = random.between(1, 4);
                let disk = self.one_disk(&fault);
                if disk.is_volatile() && random.one_in(2) {
                    disk.fail_forced(operations);
                } else {
                    disk.fail(operations);
                }
                true
            }
            (FaultKind::DiskStall, _) => {
                let hangs = random.percent(DISK_HANGS_PERCENT);
                let longest_ms = if hangs { DISK_HANG_MS_MAX } else { 5_000 };
                let until = now + Duration::from_millis(random.between(1, longest_ms));
                self.one_disk(&fault).stall(until, *random.choose(&[50, 100]));
                // A session is replaced best while its writes are still on the disk.
                if let Some(connection) = connection.filter(|_| random.one_in(2)) {
                    self.network.lock().reset(now, connection);
                }
                true
            }
            // What a flush promised is tested best right after it.
            (FaultKind::Crash, _)
                if self.scenario.units.iter().any(UnitPlan::is_volatile)
                    && self.crash_after_flush.is_none()
                    && random.percent(CRASHES_AFTER_FLUSH_PERCENT) =>
            {
                self.crash_after_flush = Some((self.ledger.borrow().tally.flushes, random));
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

    /// The disk that a fault strikes.
    fn one_disk(&self, fault: &Fault) -> &Disk {
        // With a generator of its own, so that the rest of the fault is what it would be with one disk.
        let mut random = Random::new(fault.random.clone().word(), "disk");
        &self.disks[random.index(self.disks.len())]
    }

    /// One portal gets into trouble.
    fn strike_portal(&mut self, random: &mut Random) -> bool {
        let now = self.clock.now();
        let Some(outage) = Outage::draw(&self.scenario.target.portals, now, random) else { return false };
        self.note(&format!("{outage:?}"));
        self.network.lock().strike(now, outage);
        if outage.trouble != Trouble::Stalls {
            self.outage = Some((outage.until, self.ledger.borrow().tally.succeeded));
        }
        true
    }

    /// While one portal is away, operations go on over others.
    fn watch_outage(&mut self) {
        let now = self.clock.now();
        if let Some((_, before)) = self.outage.take_if(|(until, _)| *until <= now) {
            let mut ledger = self.ledger.borrow_mut();
            if ledger.tally.succeeded > before {
                ledger.tally.reached.count(Way::CarriedOn);
            }
        }
    }

    /// Damages PDUs on the first connection where that will be noticed.
    fn corrupt(&mut self, kind: FaultKind, open: &[ConnectionId], from: Side, pdus: u32) -> bool {
        let part = if kind == FaultKind::CorruptHeader { Part::Header } else { Part::Data };
        let mut network = self.network.lock();
        let Some(connection) = open.iter().copied().find(|connection| network.covers(*connection, part))
        else {
            return false;
        };
        network.damage_next(connection, from, part, pdus);
        true
    }

    fn crash(&mut self, random: &mut Random, open: &[ConnectionId]) -> bool {
        if !self.target.is_running() {
            return false;
        }
        let now = self.clock.now();
        self.target.crash();
        self.disks.iter().for_each(|disk| disk.crash());
        self.ledger.borrow_mut().crash();
        let silent = random.one_in(2);
        let mut network = self.network.lock();
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
        true
    }
}
