//! One target in its event loop: its logical units and their sessions.

use crate::environment::Environment;
use crate::logical_unit::LogicalUnit;
use crate::session_driver::SessionDriver;
use crate::threshold::watch;
use crate::unit_state::NexusId;
use futures_channel::oneshot;
use futures_util::FutureExt;
use pdu::{Cid, Tsih};
use session::target::Registry;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::IpAddr;
use std::rc::Rc;

/// A target, or, with an empty name and no units, the home of discovery sessions.
pub struct TargetNode {
    pub(crate) environment: Rc<Environment>,
    name: String,
    units: Vec<Rc<LogicalUnit>>,
    pub(crate) registry: RefCell<Registry>,
    sessions: RefCell<Vec<Rc<SessionDriver>>>,
    /// Dropped when a session has ended, which tells the waiters.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
    /// Whether new sessions are refused.
    closed: Cell<bool>,
}

impl TargetNode {
    /// A target with at most `sessions_max` sessions.
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

    /// Refuses new sessions from now on.
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

    /// The sessions that have not ended, the oldest first.
    pub fn sessions(&self) -> Vec<Rc<SessionDriver>> {
        self.sessions.borrow().clone()
    }

    /// The number of sessions from the host with this address.
    pub(crate) fn sessions_from(&self, address: IpAddr) -> usize {
        let host = self.environment.host_of(address);
        let sessions = self.sessions.borrow();
        sessions.iter().filter(|session| self.environment.host_of(session.peer()) == host).count()
    }

    /// The session of this nexus, if it lives.
    pub(crate) fn session_of(&self, nexus: NexusId) -> Option<Rc<SessionDriver>> {
        self.sessions.borrow().iter().find(|session| session.nexus == nexus).cloned()
    }

    /// The session with this TSIH, if it lives.
    pub(crate) fn session_with(&self, tsih: Tsih) -> Option<Rc<SessionDriver>> {
        self.sessions.borrow().iter().find(|session| session.tsih == tsih).cloned()
    }

    /// Adds a new session, and runs it until it ends.
    pub(crate) fn run_session(self: &Rc<Self>, session: &Rc<SessionDriver>) {
        for unit in &session.units {
            let ports = unit.ports_of(session.identity(), session.user());
            unit.state.borrow_mut().establish(session.nexus, ports);
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
            let mut state = unit.state.borrow_mut();
            // The commands lost with the nexus were recorded when it was lost.
            let cleared = if orderly { state.leave(session.nexus) } else { state.lose(session.nexus) };
            debug_assert!(cleared.started.is_empty(), "a session ended before its commands");
        }
        self.sessions.borrow_mut().retain(|known| !Rc::ptr_eq(known, session));
        self.registry.borrow_mut().ended(session.tsih);
        self.waiting.borrow_mut().clear();
        let initiator = &session.identity().initiator_name;
        let (target, tsih) = (&self.name, session.tsih);
        let waits = *session.state().session.order_waits();
        tracing::info!(
            initiator,
            target,
            %tsih,
            by_logout = orderly,
            commands = waits.commands(),
            out_of_order = waits.waited(),
            order_wait_p50 = ?waits.percentile(50),
            order_wait_p99 = ?waits.percentile(99),
            order_wait_max = ?waits.max(),
            "session ended"
        );
    }

    /// Drops all sessions at the end of the event loop. Sessions and their target own each other; without this, neither
    /// would be freed.
    pub fn forget_sessions(&self) {
        self.sessions.borrow_mut().clear();
    }

    /// A connection that was admitted is gone.
    pub fn lane_closed(&self, tsih: Tsih, cid: Cid) {
        self.registry.borrow_mut().lane_closed(tsih, cid);
    }
}
