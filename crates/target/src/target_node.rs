//! One target on its shard: its logical units and the sessions that use them.

use crate::logical_unit::LogicalUnit;
use crate::session_driver::SessionDriver;
use crate::shard::Shard;
use nexus::target::{Contact, NexusId};
use pdu::{Cid, Tsih};
use session::parameters::Identity;
use session::target::{Registry, TargetRecord};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::sync::Notify;

/// A target, or with an empty name and no units, the home of discovery sessions.
pub(crate) struct TargetNode {
    pub name: String,
    pub units: Vec<Rc<LogicalUnit>>,
    pub registry: RefCell<Registry>,
    sessions: RefCell<Vec<Rc<SessionDriver>>>,
    /// Told whenever a session has ended.
    pub session_ended: Notify,
    lost: RefCell<VecDeque<LostNexus>>,
}

/// An initiator port whose session was lost, and the units on which commands went with it.
struct LostNexus {
    identity: Identity,
    units: Vec<u16>,
}

/// Lost nexuses that are remembered, the oldest forgotten first: more initiators than one target serves at a time.
const LOST_NEXUSES_MAX: usize = 1024;

impl TargetNode {
    pub(crate) fn new(name: String, units: Vec<Rc<LogicalUnit>>, sessions_max: u16) -> Rc<Self> {
        Rc::new(Self {
            name,
            units,
            registry: RefCell::new(Registry::new(sessions_max)),
            sessions: RefCell::default(),
            session_ended: Notify::new(),
            lost: RefCell::default(),
        })
    }

    /// All sessions.
    pub(crate) fn sessions(&self) -> Vec<Rc<SessionDriver>> {
        self.sessions.borrow().clone()
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
        let lost = self.forget_lost(&session.identity);
        for unit in &session.units {
            let contact = match &lost {
                Some(lost) => Contact::Reinstated { commands_lost: lost.units.contains(&unit.number) },
                None => Contact::First,
            };
            unit.shared.borrow_mut().establish(session.nexus, contact);
        }
        self.sessions.borrow_mut().push(Rc::clone(session));
        let (node, session) = (Rc::clone(self), Rc::clone(session));
        tokio::task::spawn_local(async move {
            let orderly = Rc::clone(&session).run().await;
            node.session_ended(&session, orderly);
        });
    }

    fn session_ended(&self, session: &Rc<SessionDriver>, orderly: bool) {
        for unit in &session.units {
            let cleared = unit.shared.borrow_mut().lose(session.nexus);
            debug_assert!(cleared.started.is_empty(), "a session ended before its commands");
        }
        if orderly {
            self.forget_lost(&session.identity);
        }
        self.sessions.borrow_mut().retain(|known| !Rc::ptr_eq(known, session));
        self.registry.borrow_mut().ended(session.tsih);
        self.session_ended.notify_waiters();
        let initiator = &session.identity.initiator_name;
        let (target, tsih) = (&self.name, session.tsih);
        tracing::info!(initiator, target, %tsih, by_logout = orderly, "session ended");
    }

    /// Lets go of all sessions, whatever they are doing: the event loop ends.
    pub(crate) fn forget_sessions(&self) {
        self.sessions.borrow_mut().clear();
    }

    /// Takes note of a nexus that was lost, for the unit attentions of the session that replaces it.
    pub(crate) fn remember_lost(&self, identity: &Identity, units: Vec<u16>) {
        let mut lost = self.lost.borrow_mut();
        if lost.len() == LOST_NEXUSES_MAX {
            lost.pop_front();
        }
        lost.push_back(LostNexus { identity: identity.clone(), units });
    }

    fn forget_lost(&self, identity: &Identity) -> Option<LostNexus> {
        let mut lost = self.lost.borrow_mut();
        let place = lost.iter().position(|lost| lost.identity == *identity)?;
        lost.remove(place)
    }

    /// A connection that was admitted is gone.
    pub(crate) fn lane_closed(&self, tsih: Tsih, cid: Cid) {
        self.registry.borrow_mut().lane_closed(tsih, cid);
    }

    /// What SendTargets answers: in discovery what the initiator may use, otherwise this target.
    pub(crate) fn visible_targets(
        &self,
        shard: &Shard,
        session: &SessionDriver,
        portal: SocketAddr,
        only: Option<&str>,
    ) -> Vec<TargetRecord> {
        let own = (!self.name.is_empty()).then_some(self.name.as_str());
        match (own, only) {
            (Some(own), Some(name)) if !own.eq_ignore_ascii_case(name) => Vec::new(),
            (own, only) => {
                let initiator_name = &session.identity.initiator_name;
                shard.catalog.records(initiator_name, session.peer, portal, own.or(only))
            }
        }
    }
}
