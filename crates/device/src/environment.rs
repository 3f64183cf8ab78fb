//! The environment of the sessions of one event loop: its time, its memory, and access rights.

use crate::memory::Memory;
use crate::peer::{Ipv6Prefix, PeerHost, Peers};
use crate::unit_state::NexusId;
use framing::Scratch;
use pdu::{Duration, Instant, LaneId, Tsih};
use scsi::Outcome;
use session::target::{Command, OrderWaits, TargetRecord, TaskId};
use std::cell::{Cell, OnceCell, RefCell};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A future that stays on one thread.
pub type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// The event loop. It has one thread; spawned tasks never leave it.
pub trait Host {
    /// The current time. It never goes back.
    fn now(&self) -> Instant;

    /// Polls `task` whenever it is woken, until it is done. Never polls within this call, because the caller may be
    /// using the state that the task needs.
    fn spawn(&self, task: LocalFuture);

    /// Resolves when [`now`](Self::now) has reached `time`.
    fn sleep_until(&self, time: Instant) -> LocalFuture;
}

/// An initiator, as its target knows it.
#[derive(Clone, Copy, Debug)]
pub struct Visitor<'a> {
    /// The name that it claims.
    pub initiator_name: &'a str,
    /// The address that it connects from.
    pub address: IpAddr,
    /// The CHAP user that it has authenticated as, if that was required.
    pub user: Option<&'a str>,
}

/// Decides which targets and logical units an initiator may see and use.
pub trait Visibility {
    /// Whether this initiator may use a unit of a target that it may log in to.
    fn shows_unit(&self, visitor: &Visitor<'_>, target_name: &str, number: u16) -> bool;

    /// The answer of SendTargets to this initiator, which came through `portal`: all targets that it may log in to, or
    /// the named one if it may.
    fn targets(&self, visitor: &Visitor<'_>, portal: SocketAddr, only: Option<&str>) -> Vec<TargetRecord>;
}

/// Observes the device server, and must not affect them.
pub trait Observer {
    /// A session hands over a command, in its order.
    fn command_begins(&self, session: Tsih, command: &Command);

    /// The command was refused when it arrived, before it could enter its unit's task set: this outcome is its answer.
    fn command_refused(&self, _session: Tsih, _command: &Command, _outcome: &Outcome) {}

    /// The command's Data-Out has arrived and its turn has come: its work on the medium begins.
    fn command_starts(&self, _session: Tsih, _task: TaskId) {}

    /// The command was executed, or failed; its answer follows. A long read ends when its last piece has been handed to
    /// the session, which includes its waits for the network. A command that was refused on arrival, or aborted before
    /// it started, has no end.
    fn command_ends(&self, _session: Tsih, _task: TaskId) {}

    /// The session loses a connection, or lets it go.
    fn lane_ends(&self, _session: Tsih, _lane: LaneId) {}
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn command_begins(&self, session: Tsih, command: &Command) {
        (**self).command_begins(session, command);
    }

    fn command_refused(&self, session: Tsih, command: &Command, outcome: &Outcome) {
        (**self).command_refused(session, command, outcome);
    }

    fn command_starts(&self, session: Tsih, task: TaskId) {
        (**self).command_starts(session, task);
    }

    fn command_ends(&self, session: Tsih, task: TaskId) {
        (**self).command_ends(session, task);
    }

    fn lane_ends(&self, session: Tsih, lane: LaneId) {
        (**self).lane_ends(session, lane);
    }
}

/// The bounds of every session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Commands that one session may have outstanding. The session gets fewer if their unsolicited data could exceed
    /// its reservation.
    pub window_commands: u32,
    /// Sessions that one host may have with one target.
    pub sessions_per_address: u16,
    /// The length of the prefix that identifies an IPv6 host.
    pub ipv6_prefix: Ipv6Prefix,
    /// The silence after which a connection is pinged.
    pub ping_after: Duration,
    /// The longest silence of a connection after a ping.
    pub ping_timeout: Duration,
}

/// The state and totals of an event loop, readable from other threads.
#[derive(Debug, Default)]
pub struct Gauges {
    sessions: AtomicUsize,
    commands: AtomicU64,
    /// Locked for each command, which costs little because nobody else locks it but a reader.
    order_waits: Mutex<OrderWaits>,
}

impl Gauges {
    /// Sessions that exist now.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// SCSI commands begun, total.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// The waits of commands for earlier ones of their sessions.
    #[must_use]
    pub fn order_waits(&self) -> OrderWaits {
        *self.order_waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count_command(&self, command: &Command) {
        self.commands.fetch_add(1, Ordering::Relaxed);
        if let Some(wait) = command.order_wait {
            self.order_waits.lock().unwrap_or_else(PoisonError::into_inner).record(wait);
        }
    }
}

/// One more session, while this lives.
pub(crate) struct CountedSession(Arc<Gauges>);

impl CountedSession {
    pub(crate) fn new(gauges: &Arc<Gauges>) -> Self {
        gauges.sessions.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(gauges))
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The state that all target nodes of one event loop share.
pub struct Environment {
    pub(crate) host: Rc<dyn Host>,
    pub(crate) visibility: Arc<dyn Visibility>,
    pub(crate) memory: Memory,
    pub(crate) limits: SessionLimits,
    pub(crate) gauges: Arc<Gauges>,
    pub(crate) observer: OnceCell<Rc<dyn Observer>>,
    pub(crate) peers: Peers,
    /// Where connections read what has no buffer of its own. Borrowed only within one poll.
    pub(crate) scratch: RefCell<Scratch>,
    next_nexus: Cell<u64>,
}

impl Environment {
    /// An environment without any node yet.
    #[must_use]
    pub fn new(
        host: Rc<dyn Host>,
        visibility: Arc<dyn Visibility>,
        memory: Memory,
        limits: SessionLimits,
        gauges: Arc<Gauges>,
    ) -> Rc<Self> {
        Rc::new(Self {
            host,
            visibility,
            memory,
            limits,
            gauges,
            observer: OnceCell::new(),
            peers: Peers::default(),
            scratch: RefCell::default(),
            next_nexus: Cell::new(0),
        })
    }

    /// Reports every further event to `observer`. Only one is possible: the first stays.
    pub fn observe(&self, observer: Rc<dyn Observer>) {
        // A second one is dropped.
        let _ = self.observer.set(observer);
    }

    /// The memory of commands.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn tell(&self, what: impl FnOnce(&dyn Observer)) {
        if let Some(observer) = self.observer.get() {
            what(&**observer);
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.host.now()
    }

    /// Spawns `task` on the event loop.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.host.spawn(Box::pin(task));
    }

    /// The host with this `address`, for the limits.
    pub(crate) fn host_of(&self, address: IpAddr) -> PeerHost {
        self.limits.ipv6_prefix.host_of(address)
    }

    pub(crate) fn next_nexus(&self) -> NexusId {
        let id = self.next_nexus.get();
        self.next_nexus.set(id + 1);
        NexusId(id)
    }
}
