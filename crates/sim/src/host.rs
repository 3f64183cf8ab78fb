//! The initiators: hosts that run the client that ships, in virtual time, over the simulated network.
//!
//! Each host has one [`client::Target`] for each target and as many workers as operations outstanding. What a worker asks for and is told
//! goes to the checker through the [`Ledger`]; the protocol between is the tap's business.

mod copying;
mod discovering;
mod intruder;
mod ledger;
mod mismatch;
mod network;
mod operation;
mod placement;
mod reserving;
mod runtime;
mod tuner;
mod work;
mod workload;

pub use copying::{Area, Contest, CopyPlan};
pub(crate) use copying::{plan as plan_copies, plan_contest};
pub use ledger::{Ledger, Phase, Tally, UnitBooks};
pub(crate) use network::TappedEnd;
pub use tuner::HostTuner;
pub use workload::Mix;

use crate::checker::Port;
use crate::executor::Executor;
use crate::network::Network;
use crate::portal::{PortalId, Portals};
use crate::random::Random;
use crate::unit::{self, TargetIndex, UnitIndex, UnitPlan};
use crate::{Clock, SharedCell};
use client::{
    Config, Connections, Credentials, Environment, Lun, PathReport, PathState, Portal, Reconnect, Report,
    Target, Tuning,
};
use copying::{Contender, Copier};
use event_listener::Event;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use intruder::Intruder;
use network::SimulatedNetwork;
use pdu::{CmdSn, Duration, Instant};
use placement::{Astray, Wrongs};
use policy::PlacementPolicy;
use runtime::Runtime;
use session::parameters::{InitiatorLimits, Offer, SplitLanes};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;
use work::Worker;

/// Memory for the data of one host's commands.
pub const MEMORY_BYTES: usize = 16 << 20;

/// Of hosts; their numbers follow.
const NAME_PREFIX: &str = "iqn.2026-01.org.ropewalk:host-";

/// A lost target comes back within minutes; a host that gives up before has lost what it need not have lost.
const GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The pause before a host that could not log in at all tries again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// What a session is to be like.
#[derive(Clone, Debug)]
pub struct PathPlan {
    /// Connections that it should have, if the target takes as many.
    pub connections: u16,
    /// What its logins propose.
    pub offer: Offer,
}

/// What a host is to be like.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Its sessions with the first target.
    pub paths: Vec<PathPlan>,
    /// Its one session with each of the other targets.
    pub elsewhere: Vec<PathPlan>,
    /// It has one session with the first target for each portal group, as needed.
    pub by_portal_group: bool,
    /// The portals over which they go, in turn.
    pub portals: Vec<PortalId>,
    /// Whom it proves to be, if it must.
    pub credentials: Option<Credentials>,
    /// What it must find if it asks for targets before it logs in.
    pub discovers: Option<Portals>,
    /// Operations that it keeps outstanding.
    pub depth: usize,
    /// What they are.
    pub mix: Mix,
    /// The copies that it makes meanwhile.
    pub copies: Option<CopyPlan>,
    /// The unit that it and all other hosts copy to.
    pub contested: Option<UnitIndex>,
    /// Where its commands go.
    pub placement: PlacementPolicy,
    /// What changes the number of its connections, if anything does.
    pub tuner: Option<HostTuner>,
    /// How many of a hundred commands go to a connection at random instead of the policy's.
    pub astray_percent: u64,
    /// How often of a hundred times its policy holds a command back that it could place.
    pub held_back_percent: u64,
}

impl HostPlan {
    /// Its sessions with one target.
    fn paths_to(&self, target: TargetIndex) -> &[PathPlan] {
        match target.place().checked_sub(1) {
            None => &self.paths,
            Some(other) => self.elsewhere.get(other).map_or(&[], std::slice::from_ref),
        }
    }

    /// Its connections to one target at first.
    fn connections_to(&self, target: TargetIndex) -> u16 {
        self.paths_to(target).iter().map(|path| path.connections).sum()
    }

    /// All sessions are to be split in this way.
    pub fn ask_for_split(&mut self, split: SplitLanes) {
        self.paths.iter_mut().chain(&mut self.elsewhere).for_each(|path| path.offer.split = split);
    }

    /// The offer of each session, of as many as there may be; sessions with one target offer the same.
    pub fn offers(&self) -> impl Iterator<Item = &Offer> {
        let first = self.paths.first().map(|path| &path.offer);
        let elsewhere = self.elsewhere.iter().map(|path| &path.offer);
        first.into_iter().cycle().take(self.sessions_max()).chain(elsewhere)
    }

    /// The most sessions with the first target. A tuned host that has them by portal group may open one for each
    /// connection.
    fn sessions_max(&self) -> usize {
        match (self.by_portal_group, self.tuner) {
            (false, _) => self.paths.len(),
            (true, None) => self.portals.len(),
            (true, Some(_)) => self.portals.len().max(tuner::CONNECTIONS_MAX as usize),
        }
    }

    /// All of its sessions.
    pub fn all_paths(&self) -> impl Iterator<Item = &PathPlan> {
        self.paths.iter().chain(&self.elsewhere)
    }
}

/// Which host's which path a session belongs to.
#[must_use]
pub fn port_of(identity: &session::parameters::Identity) -> Option<Port> {
    let host = identity.initiator_name.strip_prefix(NAME_PREFIX)?.parse().ok()?;
    let [.., high, low] = identity.isid.0;
    Some(Port::of(host, u16::from_be_bytes([high, low])))
}

/// All hosts of one world.
pub struct Hosts {
    runtime: Runtime,
    executor: Executor,
    hosts: Vec<Rc<Host>>,
}

/// One initiator: its workload, and the client's code that carries it out.
pub(crate) struct Host {
    pub index: u16,
    plan: HostPlan,
    /// The logical units of the world.
    units: Rc<[UnitPlan]>,
    pub ledger: Rc<RefCell<Ledger>>,
    pub runtime: Runtime,
    phase_changed: Rc<Event>,
    /// The phase whose work is done.
    done: Cell<Option<Phase>>,
    /// The targets that it has logged in to.
    targets: RefCell<Vec<Target>>,
}

/// What a host needs to know of the world that it lives in.
pub struct HostWorld {
    /// The time of the world.
    pub clock: Clock,
    /// The network that its connections cross.
    pub network: SharedCell<Network>,
    /// Where the target listens.
    pub portals: Portals,
    /// Listens to every connection.
    pub tap: SharedCell<crate::checker::Tap>,
    /// Silence after which a connection is probed, and how long an answer may take.
    pub ping: (Duration, Duration),
    /// Decides everything that is random.
    pub seed: u64,
    /// What the hosts do and learn.
    pub ledger: Rc<RefCell<Ledger>>,
    /// Rung when the phase changes.
    pub phase_changed: Rc<Event>,
}

impl Hosts {
    /// Hosts that have not begun.
    #[must_use]
    pub fn new(plans: &[HostPlan], units: &[UnitPlan], world: &HostWorld) -> Self {
        let units: Rc<[UnitPlan]> = units.into();
        let runtime = Runtime::new(world.clock.clone(), world.seed);
        let executor = Executor::default();
        let network = Arc::new(SimulatedNetwork {
            clock: world.clock.clone(),
            network: world.network.clone(),
            tap: world.tap.clone(),
            portals: world.portals.clone(),
        });
        let host = |(index, plan): (usize, &HostPlan)| {
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            let host = Rc::new(Host {
                index,
                plan: plan.clone(),
                units: Rc::clone(&units),
                ledger: Rc::clone(&world.ledger),
                runtime: runtime.clone(),
                phase_changed: Rc::clone(&world.phase_changed),
                done: Cell::new(None),
                targets: RefCell::default(),
            });
            let logins = (0..unit::targets_of(&units)).map(TargetIndex);
            let logins = logins.map(|target| host.login(target, world, &network)).collect();
            let living = Rc::clone(&host);
            executor.spawn(Box::pin(living.live(logins, world.seed)));
            host
        };
        let hosts: Vec<Rc<Host>> = plans.iter().enumerate().map(host).collect();
        if plans.iter().any(|plan| plan.credentials.is_some()) {
            let random = Random::new(world.seed, "intruder");
            let (hosts, runtime) = (hosts.clone(), runtime.clone());
            executor.spawn(Box::pin(Intruder { hosts, runtime, network, random }.live()));
        }
        Self { hosts, runtime, executor }
    }

    /// When a timer ends.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.runtime.timers.lock().next_at()
    }

    /// Wakes those whose time has come.
    pub fn wake_due(&self, now: Instant) {
        loop {
            let waker = self.runtime.timers.lock().pop_due(now);
            let Some(waker) = waker else { return };
            waker.wake();
        }
    }

    /// Lets everything run that can.
    pub fn run(&self) {
        loop {
            if self.executor.run().is_err() {
                return self.hosts.iter().for_each(|host| host.violate("it is busy without end"));
            }
            let spawned = self.runtime.take_spawned();
            if spawned.is_empty() {
                return;
            }
            spawned.into_iter().for_each(|task| self.executor.spawn(task));
        }
    }

    /// Whether all hosts have done what a phase wants of them.
    #[must_use]
    pub fn are_done(&self, phase: Phase) -> bool {
        self.hosts.iter().all(|host| host.done.get() == Some(phase))
    }

    /// Whether every session that was lost is back, with every connection that it should have and may.
    #[must_use]
    pub fn are_whole(&self) -> bool {
        let is_whole = |path: &PathReport| {
            let most = path.parameters.map_or(0, |parameters| usize::from(parameters.max_connections));
            let bundle = path.parameters.map_or(1, |parameters| parameters.split.roles().len());
            // A split session has these and no more.
            let wanted = if bundle > 1 { bundle } else { path.connections_wanted.min(most) };
            let has_all = path.connections.len() >= wanted;
            path.state == PathState::Gone
                || path.state == PathState::Up && (has_all || path.ceiling.is_some())
        };
        self.hosts.iter().flat_map(|host| host.reports()).all(|report| report.paths.iter().all(is_whole))
    }

    /// Bytes of buffers in use, of the host that uses most.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.hosts.iter().map(|host| host.buffer_bytes()).max().unwrap_or_default()
    }

    /// Commands sent again, and sessions reinstated.
    #[must_use]
    pub fn repairs(&self) -> (u64, u64) {
        self.hosts.iter().flat_map(|host| host.reports()).fold((0, 0), |(retries, reinstatements), report| {
            (retries + report.retries, reinstatements + report.reinstatements)
        })
    }

    /// Sessions logged out because they were spare for long, and single connections.
    #[must_use]
    pub fn retired(&self) -> (u64, u64) {
        let reports = self.hosts.iter().flat_map(|host| host.reports());
        reports.fold((0, 0), |(sessions, connections), report| {
            (sessions + report.retired_sessions, connections + report.retired_connections)
        })
    }

    /// Decisions of tuners for fewer connections, and for more.
    #[must_use]
    pub fn decisions(&self) -> (u64, u64) {
        let reports = self.hosts.iter().flat_map(|host| host.reports());
        reports.flat_map(|report| report.decisions).fold((0, 0), |(fewer, more), decision| {
            match decision.connections.cmp(&decision.connections_before) {
                Ordering::Less => (fewer + 1, more),
                Ordering::Equal => (fewer, more),
                Ordering::Greater => (fewer, more + 1),
            }
        })
    }

    /// What hinders their end, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let host = |host: &Rc<Host>| {
            let targets: Vec<String> = host.reports().iter().map(describe).collect();
            format!("host {} done with {:?}: {}", host.index, host.done.get(), targets.join(", "))
        };
        self.hosts.iter().map(host).collect::<Vec<_>>().join(" | ")
    }
}

fn describe(target: &Report) -> String {
    let path = |path: &PathReport| {
        let outstanding: u32 =
            path.connections.iter().map(|connection| connection.outstanding_commands).sum();
        let (state, open, wanted) = (&path.state, path.connections.len(), path.connections_wanted);
        format!("{state:?} {open} of {wanted} connections, {outstanding} commands, {:?}", path.ceiling)
    };
    let paths: Vec<String> = target.paths.iter().map(path).collect();
    format!("{}: {} operations; {}", target.target_name, target.operations, paths.join("; "))
}

fn config(
    index: u16,
    plan: &HostPlan,
    target: TargetIndex,
    ping: (Duration, Duration),
    random: &mut Random,
) -> Config {
    let paths = plan.paths_to(target);
    let connections = match plan.tuner {
        Some(_) => Connections::Auto,
        None => Connections::Fixed(plan.connections_to(target)),
    };
    let by_portal_group = plan.by_portal_group && target == TargetIndex::FIRST;
    let sessions = u16::try_from(paths.len()).ok().filter(|_| !by_portal_group);
    let offer = paths.first().map(|path| path.offer).unwrap_or_default();
    Config {
        initiator_name: format!("{NAME_PREFIX}{index}"),
        connections,
        tuning: Tuning { bbr: plan.tuner.map(|_| "bbr".to_owned()), ..Tuning::default() },
        sessions,
        portals: plan.portals.iter().map(|portal| portal_at(*portal)).collect(),
        credentials: plan.credentials.clone(),
        offer,
        first_cmd_sn: CmdSn(random.near_wrap()),
        limits: InitiatorLimits { commands_max: 1024, ping_after: ping.0, ping_timeout: ping.1 },
        buffer_budget_bytes: MEMORY_BYTES,
        login_timeout: Duration::from_secs(40),
        reconnect: Reconnect {
            pause_min: Duration::from_millis(random.between(20, 500)),
            pause_max: Duration::from_secs(5),
            give_up_after: GIVE_UP_AFTER,
        },
        command_limit: Duration::from_secs(random.between(20, 120)),
        decline_patience: Duration::from_secs(600),
        ..Config::default()
    }
}

fn portal_at(portal: PortalId) -> Portal {
    let address = portal.address();
    Portal { host: address.ip().to_string(), port: address.port() }
}

/// Operations at units chosen at random, until there are no more to begin.
async fn work(workers: &[Worker], choice: &RefCell<Random>) {
    loop {
        let worker = &workers[choice.borrow_mut().index(workers.len())];
        if !worker.work().await {
            return;
        }
    }
}

/// How a host logs in to one target.
struct Login {
    target: TargetIndex,
    environment: Environment,
    config: Config,
    /// It waits until all connections have logged in.
    is_patient: bool,
}

impl Host {
    fn buffer_bytes(&self) -> usize {
        self.targets.borrow().iter().map(|target| target.slab().in_use_bytes()).max().unwrap_or_default()
    }

    fn reports(&self) -> Vec<Report> {
        self.targets.borrow().iter().map(Target::report).collect()
    }

    fn login(&self, target: TargetIndex, world: &HostWorld, network: &Arc<SimulatedNetwork>) -> Login {
        let Self { index, plan, .. } = self;
        let part = |what: &str| match target {
            TargetIndex::FIRST => format!("{what} {index}"),
            TargetIndex(other) => format!("{what} {index} target {other}"),
        };
        let mut random = Random::new(world.seed, &part("client"));
        let config = config(*index, plan, target, world.ping, &mut random);
        let wrongs =
            Wrongs { astray_percent: plan.astray_percent, held_back_percent: plan.held_back_percent };
        let whims = SharedCell::new(Random::new(world.seed, &part("holding back")));
        let random = SharedCell::new(random);
        let tuning = SharedCell::new(Random::new(world.seed, &part("tuning")));
        let (policy, connections) = (plan.placement, plan.connections_to(target));
        let tuner = plan.tuner.unwrap_or_default();
        let environment = Environment {
            host: Arc::new(self.runtime.clone()),
            network: Arc::clone(network) as Arc<dyn client::Dial>,
            placement: Arc::new(move || {
                Box::new(Astray::new(policy.begin(), wrongs, random.clone(), whims.clone()))
            }),
            tuner: Arc::new(move |_| tuner.begin(connections.into(), &tuning)),
        };
        let is_patient = Random::new(world.seed, &part("patience")).one_in(2);
        Login { target, environment, config, is_patient }
    }

    /// From the first login to the last logout.
    async fn live(self: Rc<Self>, logins: Vec<Login>, seed: u64) {
        if let (Some(portals), Some(login)) = (&self.plan.discovers, logins.first()) {
            self.discover(login, portals).await;
        }
        for login in &logins {
            let target = self.connect(login).await;
            self.targets.borrow_mut().push(target);
        }
        let workers = self.workers(seed).await;
        let choice = RefCell::new(Random::new(seed, &format!("choices of host {}", self.index)));
        // It polls them in the order in which they are woken, so the checker is told what they are told in its order.
        let mut busy: FuturesUnordered<LocalBoxFuture<'_, ()>> = (0..self.plan.depth)
            .map(|_| Box::pin(work(&workers, &choice)) as LocalBoxFuture<'_, ()>)
            .collect();
        if let Some(plan) = self.plan.copies {
            let random = Random::new(seed, &format!("copies of host {}", self.index));
            let copier = Copier::new(Rc::clone(&self), Rc::clone(&workers), plan, random);
            busy.push(Box::pin(copier.work()));
        }
        if let Some(unit) = self.plan.contested {
            let random = Random::new(seed, &format!("contest of host {}", self.index));
            busy.push(Box::pin(Contender::new(Rc::clone(&self), unit, random).work()));
        }
        while busy.next().await.is_some() {}
        drop(busy);
        self.phase(Phase::Quiet).await;
        for worker in &*workers {
            worker.clear_reservation().await;
        }
        self.done.set(Some(Phase::Work));
        self.phase(Phase::Unreserve).await;
        if self.index == 0 {
            for worker in &*workers {
                worker.clear_reservations().await;
            }
        }
        self.done.set(Some(Phase::Unreserve));
        self.phase(Phase::ReadBack).await;
        for (worker, unit) in workers.iter().zip(&*self.units) {
            worker.read_back(0..unit.disk.blocks).await;
        }
        self.done.set(Some(Phase::ReadBack));
        self.phase(Phase::Farewell).await;
        drop(workers);
        let targets = self.targets.borrow().clone();
        for (number, target) in (0u16..).zip(targets) {
            // Every other one does not wait for answers.
            let waits = (number + self.index).is_multiple_of(2);
            let ended = if waits { target.close().await } else { target.leave().await };
            if let Err(error) = ended {
                self.violate(&format!("it cannot log out: {error}"));
            }
        }
        self.done.set(Some(Phase::Farewell));
    }

    /// One worker for each unit that has blocks for all hosts.
    async fn workers(self: &Rc<Self>, seed: u64) -> Rc<[Worker]> {
        let mut workers = Vec::new();
        let shared = self.units.iter().filter(|unit| unit.shared_blocks > 0);
        for (index, plan) in (0..).map(UnitIndex).zip(shared) {
            let part = match index {
                UnitIndex::FIRST => format!("host {}", self.index),
                UnitIndex(other) => format!("host {} unit {other}", self.index),
            };
            let (lun, random) = (self.open(index).await, Random::new(seed, &part));
            workers.push(Worker::new(Rc::clone(self), (index, plan), lun, random));
        }
        workers.into()
    }

    async fn connect(&self, login: &Login) -> Target {
        let Login { target, environment, config, is_patient } = login;
        let name = target.name();
        let Some(portal) = config.portals.first() else { return std::future::pending().await };
        loop {
            match Target::begin(environment.clone(), &name, portal, config.clone()).await {
                Ok(target) => {
                    if *is_patient {
                        target.complete().await;
                    }
                    return target;
                }
                Err(error) => {
                    self.trace(|| format!("no login: {error}"));
                    self.pause(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// A logical unit, as a program finds it that opens it.
    pub async fn open(&self, unit: UnitIndex) -> Lun {
        let UnitPlan { target, number, .. } = self.units[unit.place()];
        let target = self.targets.borrow().get(target.place()).cloned();
        loop {
            match target.as_ref().map(|target| target.lun(number)) {
                None => std::future::pending().await,
                Some(opening) => match opening.await {
                    Ok(lun) => return lun,
                    Err(error) => {
                        self.trace(|| format!("unit {} is not to be had: {error}", unit.0));
                        self.pause(RETRY_PAUSE).await;
                    }
                },
            }
        }
    }

    /// Waits until the world has come to a phase.
    async fn phase(&self, phase: Phase) {
        loop {
            let changed = self.phase_changed.listen();
            if self.ledger.borrow().phase >= phase {
                return;
            }
            changed.await;
        }
    }

    pub async fn pause(&self, pause: Duration) {
        use client::Host;
        self.runtime.sleep_until(self.runtime.now() + pause).await;
    }

    pub fn violate(&self, what: &str) {
        let mut ledger = self.ledger.borrow_mut();
        ledger.violate(format!("host {}: {what}", self.index));
    }

    pub fn trace(&self, line: impl FnOnce() -> String) {
        self.ledger.borrow().trace(self.runtime.clock.now(), || format!("host {}: {}", self.index, line()));
    }
}
