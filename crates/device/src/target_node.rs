//! One target in its event loop: its logical units and the sessions that use them.

use crate::environment::Environment;
use crate::logical_unit::LogicalUnit;
use crate::session_driver::SessionDriver;
use crate::threshold::watch;
use futures_channel::oneshot;
use futures_util::FutureExt;
use nexus::target::NexusId;
use pdu::{Cid, Tsih};
use session::target::Registry;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::IpAddr;
use std::rc::Rc;

/// A target, or with an empty name and no units, the home of discovery sessions.
pub struct TargetNode {
    pub(crate) environment: Rc<Environment>,
    name: String,
    units: Vec<Rc<LogicalUnit>>,
    pub(crate) registry: RefCell<Registry>,
    sessions: RefCell<Vec<Rc<SessionDriver>>>,
    /// Told by their drop when a session has ended.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
    /// No new session is taken.
    closed: Cell<bool>,
}

impl TargetNode {
    /// A target that takes at most `sessions_max` sessions.
    #[must_use]
    pub fn new(
        environment: &Rc<Environment>,
        name: String,
        units: Vec<Rc<LogicalUnit>>,
        sessions_max: u16,
    ) -> Rc<Self> {
        for unit in &units {
            if let Some(threshold) = unit.disk.threshold() {
                environment.spawn(watch(Rc::clone(environment), Rc::downgrade(unit), threshold));
            }
        }
        Rc::new(Self {
            environment: Rc::clone(environment),
            name,
            units,
            registry: RefCell::new(Registry::new(sessions_max)),
            sessions: RefCell::default(),
            waiting: RefCell::default(),
            closed: Cell::new(false),
        })
    }

    /// Its iSCSI name; empty for the home of discovery sessions.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its logical units.
    #[must_use]
    pub fn units(&self) -> &[Rc<LogicalUnit>] {
        &self.units
    }

    /// Takes no new session any more.
    pub fn close_doors(&self) {
        self.closed.set(true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Resolves when the next session has ended.
    pub fn session_end(&self) -> impl Future<Output = ()> + Unpin + use<> {
        let (sender, end) = oneshot::channel();
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|waiting| !waiting.is_canceled());
        waiting.push(sender);
        end.map(drop)
    }

    /// All sessions.
    pub fn sessions(&self) -> Vec<Rc<SessionDriver>> {
        self.sessions.borrow().clone()
    }

    /// How many sessions the host that has this address leads.
    pub(crate) fn sessions_from(&self, address: IpAddr) -> usize {
        let host = self.environment.host_of(address);
        let sessions = self.sessions.borrow();
        sessions.iter().filter(|session| self.environment.host_of(session.peer()) == host).count()
    }

    /// The session of this nexus, if it lives.
    pub(crate) fn session_of(&self, nexus: NexusId) -> Option<Rc<SessionDriver>> {
        self.sessions.borrow().iter().find(|session| session.nexus == nexus).cloned()
    }

    /// The session of this handle, if it lives.
    pub(crate) fn session_with(&self, tsih: Tsih) -> Option<Rc<SessionDriver>> {
        self.sessions.borrow().iter().find(|session| session.tsih == tsih).cloned()
    }

    /// Takes a new session in, and lets it run until it ends.
    pub(crate) fn run_session(self: &Rc<Self>, session: &Rc<SessionDriver>) {
        for unit in &session.units {
            let ports = unit.ports_of(session.identity(), session.user());
            unit.shared.borrow_mut().establish(session.nexus, ports);
        }
        self.sessions.borrow_mut().push(Rc::clone(session));
        let (node, session) = (Rc::clone(self), Rc::clone(session));
        self.environment.spawn(async move {
            let orderly = Rc::clone(&session).run().await;
            node.session_ended(&session, orderly);
        });
    }

    fn session_ended(&self, session: &Rc<SessionDriver>, orderly: bool) {
        for unit in &session.units {
            let mut shared = unit.shared.borrow_mut();
            // What was lost with the nexus is known since it was lost.
            let cleared = if orderly { shared.leave(session.nexus) } else { shared.lose(session.nexus) };
            debug_assert!(cleared.started.is_empty(), "a session ended before its commands");
        }
        self.sessions.borrow_mut().retain(|known| !Rc::ptr_eq(known, session));
        self.registry.borrow_mut().ended(session.tsih);
        self.waiting.borrow_mut().clear();
        let initiator = &session.identity().initiator_name;
        let (target, tsih) = (&self.name, session.tsih);
        tracing::info!(initiator, target, %tsih, by_logout = orderly, "session ended");
    }

    /// Lets go of all sessions, whatever they are doing: the event loop ends. Sessions and their target know each other:
    /// without this neither would go, nor what they hold.
    pub fn forget_sessions(&self) {
        self.sessions.borrow_mut().clear();
    }

    /// A connection that was admitted is gone.
    pub fn lane_closed(&self, tsih: Tsih, cid: Cid) {
        self.registry.borrow_mut().lane_closed(tsih, cid);
    }
}
