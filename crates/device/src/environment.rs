//! What the sessions of one event loop live in: its time, its memory, and who may see what.

use crate::memory::Memory;
use crate::peer::{Ipv6Prefix, PeerHost, Peers};
use nexus::target::NexusId;
use pdu::{Duration, Instant, Tsih};
use session::target::{Command, TargetRecord, TaskId};
use std::cell::{Cell, OnceCell};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Something that happens on one thread.
pub type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// The event loop: whoever polls, and knows the time. One thread; nothing that is spawned leaves it.
pub trait Host {
    /// This instant. It never goes back.
    fn now(&self) -> Instant;

    /// Polls `task` whenever it is woken, until it is done. Never within this call: what spawns a task may be using the
    /// state that the task will want.
    fn spawn(&self, task: LocalFuture);

    /// Resolves when [`now`](Self::now) has reached `time`.
    fn sleep_until(&self, time: Instant) -> LocalFuture;
}

/// An initiator, as far as its target knows it.
#[derive(Clone, Copy, Debug)]
pub struct Visitor<'a> {
    /// What it calls itself.
    pub initiator_name: &'a str,
    /// Where it comes from.
    pub address: IpAddr,
    /// The CHAP user that it has proven to be, if that was demanded.
    pub user: Option<&'a str>,
}

/// Who may see what.
pub trait Visibility {
    /// Whether this initiator may use a unit of a target that it may log in to.
    fn shows_unit(&self, visitor: &Visitor<'_>, target_name: &str, number: u16) -> bool;

    /// What SendTargets tells this initiator, which came through `portal`: all that it may log in to, or of these the
    /// one that is named.
    fn targets(&self, visitor: &Visitor<'_>, portal: SocketAddr, only: Option<&str>) -> Vec<TargetRecord>;
}

/// Somebody who is told what the device server is asked for, and must do nothing about it.
pub trait Observer {
    /// A session hands over a command, in its order.
    fn command_begins(&self, session: Tsih, command: &Command);

    /// Its Data-Out is there and its turn has come: what it wants of the medium begins.
    fn command_starts(&self, _session: Tsih, _task: TaskId) {}

    /// It has been carried out, or has failed; its answer follows. A long read ends when the last of its pieces has been
    /// handed to the session, and so waits for the network with those before. A command that was refused when it
    /// came, or aborted before it started, has no end.
    fn command_ends(&self, _session: Tsih, _task: TaskId) {}
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn command_begins(&self, session: Tsih, command: &Command) {
        (**self).command_begins(session, command);
    }

    fn command_starts(&self, session: Tsih, task: TaskId) {
        (**self).command_starts(session, task);
    }

    fn command_ends(&self, session: Tsih, task: TaskId) {
        (**self).command_ends(session, task);
    }
}

/// Bounds on every session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Commands that one session may have outstanding. Fewer are granted when their unsolicited data could exceed the
    /// memory set aside for it.
    pub window_commands: u32,
    /// Sessions that one host may have with one target.
    pub sessions_per_address: u16,
    /// Which IPv6 addresses are one host's.
    pub ipv6_prefix: Ipv6Prefix,
    /// Silence after which a connection is probed.
    pub ping_after: Duration,
    /// How long a connection that was probed may be silent, at the most.
    pub ping_timeout: Duration,
}

/// What an event loop holds and has done; other threads may look.
#[derive(Debug, Default)]
pub struct Gauges {
    sessions: AtomicUsize,
    commands: AtomicU64,
}

impl Gauges {
    /// Sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// SCSI commands begun, total.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    pub(crate) fn count_command(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
    }
}

/// One more session, for as long as this lives.
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

/// What all target nodes of one event loop share.
pub struct Environment {
    pub(crate) host: Rc<dyn Host>,
    pub(crate) visibility: Arc<dyn Visibility>,
    pub(crate) memory: Memory,
    pub(crate) limits: SessionLimits,
    pub(crate) gauges: Arc<Gauges>,
    pub(crate) observer: OnceCell<Rc<dyn Observer>>,
    pub(crate) peers: Peers,
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
            next_nexus: Cell::new(0),
        })
    }

    /// Tells `observer` what happens from now on. There is one at the most: the first stays.
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

    /// Lets `task` run on its own.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.host.spawn(Box::pin(task));
    }

    /// The host that has `address`, as limits count it.
    pub(crate) fn host_of(&self, address: IpAddr) -> PeerHost {
        self.limits.ipv6_prefix.host_of(address)
    }

    pub(crate) fn next_nexus(&self) -> NexusId {
        let id = self.next_nexus.get();
        self.next_nexus.set(id + 1);
        NexusId(id)
    }
}
