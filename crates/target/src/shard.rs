//! One event loop: a thread with its targets, their sessions, and its engine of file I/O.

use crate::arrival::{self, Arrival};
use crate::catalog::{Catalog, DISCOVERY_SHARD};
use crate::config::{Config, Limits, TargetConfig};
use crate::counters::Gauges;
use crate::failed_logins::FailedLogins;
use crate::listener::{self, WaitingRoom};
use crate::observers::Observers;
use crate::opening::{self, OpenError};
use crate::refusals::Refusals;
use crate::shutdown::{self, ShutdownReport};
use crate::state_directory::StateDirectory;
use crate::tokio_host::TokioHost;
use block::Engine;
use device::{Environment, Memory, PeerHost, TargetNode};
use framing::SocketOptions;
use session::parameters::Offer;
use std::cell::RefCell;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::Instant;
use transport::{Clock, ReadableFd};

/// The state that all sessions of a shard share.
pub(crate) struct Shard {
    pub catalog: Arc<Catalog>,
    pub gauges: Arc<Gauges>,
    pub limits: Limits,
    pub offer: Offer,
    /// The memories of all shards: a login is offered a FirstBurstLength before it has named its target, and so its
    /// shard.
    pub memories: Arc<[Memory]>,
    pub socket: SocketOptions,
    pub observer: Option<Arc<dyn transport::Observer>>,
    pub waiting_room: WaitingRoom,
    pub failed_logins: RefCell<FailedLogins>,
    refusals: Refusals,
    nodes: Vec<Rc<TargetNode>>,
    /// The channels to all shards, including this one.
    doors: Vec<mpsc::UnboundedSender<Message>>,
}

/// A request from one shard or the server to a shard. There are never more messages than connections.
pub(crate) enum Message {
    /// A login whose target is here.
    Arrival(Box<Arrival>),
    /// End everything in order.
    Shutdown {
        /// The time at which living sessions are cut off.
        deadline: Instant,
        /// Receives the report at the end.
        done: oneshot::Sender<ShutdownReport>,
    },
    /// End everything now.
    Abandon,
}

/// The parts of a shard. It travels to the shard's thread.
pub(crate) struct ShardPlan {
    pub index: usize,
    pub config: Arc<Config>,
    pub offer: Offer,
    pub catalog: Arc<Catalog>,
    pub gauges: Arc<Gauges>,
    pub own: Arc<device::Gauges>,
    pub memory: Memory,
    /// The memories of all shards.
    pub memories: Arc<[Memory]>,
    /// Each with its portal group tag.
    pub listeners: Vec<(std::net::TcpListener, u16)>,
    pub doors: Vec<mpsc::UnboundedSender<Message>>,
    pub messages: mpsc::UnboundedReceiver<Message>,
    /// The storage of reservations.
    pub state: Option<StateDirectory>,
    pub observers: Observers,
    pub opened: oneshot::Sender<Result<(), OpenError>>,
}

/// The interval between checks whether a shard is idle and can return memory.
const HOUSEKEEPING: Duration = Duration::from_secs(5);

/// The main function of a shard's thread.
pub(crate) fn run(plan: ShardPlan) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "cannot set up an event loop"),
    };
    LocalSet::new().block_on(&runtime, serve(plan));
}

async fn serve(plan: ShardPlan) {
    let clock = Clock::start();
    let environment = Environment::new(
        Rc::new(TokioHost::new(clock)),
        Arc::<Catalog>::clone(&plan.catalog),
        plan.memory.clone(),
        plan.config.limits.session(),
        Arc::clone(&plan.own),
    );
    if let Some(observer) = &plan.observers.commands {
        environment.observe(Rc::new(Arc::clone(observer)));
    }
    let mut engine = None;
    let nodes = match open_targets(&plan, &environment, &mut engine) {
        Ok(nodes) => nodes,
        Err(error) => {
            // If this fails, the receiver is gone.
            let _ = plan.opened.send(Err(error));
            return;
        }
    };
    let ShardPlan {
        config,
        offer,
        catalog,
        gauges,
        own,
        memory,
        memories,
        listeners,
        doors,
        mut messages,
        observers,
        opened,
        ..
    } = plan;
    let shard = Rc::new(Shard {
        catalog,
        gauges,
        limits: config.limits.clone(),
        offer,
        memories,
        socket: config.socket.options(),
        observer: observers.connections,
        waiting_room: WaitingRoom::default(),
        failed_logins: RefCell::default(),
        refusals: Refusals::new(std::time::Instant::now()),
        nodes,
        doors,
    });
    let _reaping = engine.map(|engine| Helper(spawn_local(reap(engine))));
    let _housekeeping = Helper(spawn_local(keep_house(memory, own)));
    let accepting: Vec<_> = listeners
        .into_iter()
        .filter_map(|(listener, tag)| Some((TcpListener::from_std(listener).ok()?, tag)))
        .map(|(listener, tag)| Helper(spawn_local(listener::accept(Rc::clone(&shard), listener, tag))))
        .collect();
    let _ = opened.send(Ok(()));
    let done = loop {
        match messages.recv().await {
            Some(Message::Arrival(arrival)) => {
                spawn_local(arrival::serve(Rc::clone(&shard), *arrival));
            }
            Some(Message::Shutdown { deadline, done }) => break Some((deadline, done)),
            Some(Message::Abandon) | None => break None,
        }
    };
    shard.nodes().iter().for_each(|node| node.close_doors());
    drop(accepting);
    shard.waiting_room.dismiss_all();
    if let Some((deadline, done)) = done {
        let report = shutdown::shut_down(&shard, deadline).await;
        let _ = done.send(report);
    }
    shard.nodes().iter().for_each(|node| node.forget_sessions());
}

/// A task that lives as long as this.
struct Helper(JoinHandle<()>);

impl Drop for Helper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn open_targets(
    plan: &ShardPlan,
    environment: &Rc<Environment>,
    engine: &mut Option<Engine>,
) -> Result<Vec<Rc<TargetNode>>, OpenError> {
    let sessions_max = plan.config.limits.sessions_per_target;
    let here = |target: &&TargetConfig| plan.catalog.shard_of(target.name.as_str()) == plan.index;
    let mut nodes = Vec::new();
    if plan.index == DISCOVERY_SHARD {
        nodes.push(TargetNode::new(environment, String::new(), Vec::new(), sessions_max));
    }
    for target in plan.config.targets.iter().filter(here) {
        let groups = plan.config.portal_groups_of(target);
        let mut units = Vec::new();
        for lun in &target.luns {
            let unit = opening::open(&target.name, &groups, lun, engine, &plan.memory, plan.state.as_ref())?;
            units.push(Rc::new(unit));
        }
        if let Some(state) = &plan.state {
            let served: Vec<_> = target.luns.iter().map(|lun| lun.identity(&target.name).naa).collect();
            state.warn_of_others(target.name.as_str(), &served);
        }
        nodes.push(TargetNode::new(environment, target.name.to_string(), units, sessions_max));
    }
    Ok(nodes)
}

/// Lets the engine deliver finished operations.
async fn reap(engine: Engine) {
    let Some(descriptor) = engine.reap_fd() else { return };
    let finished = match ReadableFd::new(descriptor) {
        Ok(finished) => finished,
        Err(error) => return tracing::error!(%error, "cannot watch for the end of file operations"),
    };
    while finished.readable().await.is_ok() {
        engine.reap();
    }
}

/// Returns idle memory to the system when the shard has had no requests for a while.
async fn keep_house(memory: Memory, own: Arc<device::Gauges>) {
    let mut interval = tokio::time::interval(HOUSEKEEPING);
    let mut commands = None;
    loop {
        interval.tick().await;
        let now = Some(own.commands());
        if std::mem::replace(&mut commands, now) == now {
            memory.trim();
        }
    }
}

impl Shard {
    /// The target of this name, if it is here.
    pub(crate) fn node(&self, target_name: &str) -> Option<Rc<TargetNode>> {
        self.nodes.iter().find(|node| session::name::is_same(node.name(), target_name)).cloned()
    }

    pub(crate) fn nodes(&self) -> &[Rc<TargetNode>] {
        &self.nodes
    }

    /// The host with this `address`, for the limits.
    pub(crate) fn host_of(&self, address: IpAddr) -> PeerHost {
        self.limits.ipv6_prefix().host_of(address)
    }

    /// Counts and logs a connection that is not served. `initiator` is a name that the peer only claims.
    pub(crate) fn refused(&self, peer: SocketAddr, initiator: Option<&str>, reason: &dyn Display) {
        self.gauges.refused_connections.fetch_add(1, Ordering::Relaxed);
        self.refusals.log(std::time::Instant::now(), peer, initiator, reason);
    }

    /// Hands a login to the shard of its target.
    ///
    /// # Errors
    /// That shard has ended.
    pub(crate) fn hand_over(&self, arrival: Arrival) -> Result<(), ()> {
        let shard = self.catalog.shard_of(&arrival.applicant.identity.target_name);
        let door = self.doors.get(shard).ok_or(())?;
        door.send(Message::Arrival(Box::new(arrival))).map_err(drop)
    }
}
