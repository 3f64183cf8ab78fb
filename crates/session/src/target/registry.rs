//! The sessions of one target portal group, and the place of each new login among them (RFC 7143 §6.3.5, §11.12.6).

use crate::parameters::{Identity, MAX_CONNECTIONS};
use pdu::{Cid, LoginStatus, Tsih};
use std::collections::{BTreeMap, HashMap};

/// A login that is complete and authenticated, and asks for its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applicant {
    /// The identity of the session that it wants.
    pub identity: Identity,
    /// The CHAP user that the initiator has proven to be, if authentication was demanded.
    pub user: Option<String>,
    /// The session to join; zero for a new one.
    pub tsih: Tsih,
    /// The connection's id within its session.
    pub cid: Cid,
    /// How many connections the session may have at a time, if this is its leading login.
    pub max_connections: u16,
}

/// The place of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The login leads a new session with this handle.
    New(Tsih),
    /// The login joins this session.
    Join(Tsih),
    /// A session of the same identity and user exists. Close it ([`super::Session::close`]), wait for its
    /// [`super::Event::Ended`], call [`Registry::ended`], and ask again. Until then its writes may still reach the
    /// disk.
    Reinstate(Tsih),
}

/// The owner of a session. An initiator's name is only a claim, so sessions belong to a name and a CHAP user. A user
/// who claims the name of another user's initiator gets separate sessions, and can neither end, join nor prevent those
/// of the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Owner {
    identity: Identity,
    user: Option<String>,
}

impl Owner {
    fn of(applicant: &Applicant) -> Self {
        Self { identity: applicant.identity.clone(), user: applicant.user.clone() }
    }
}

/// The registry's record of a session.
#[derive(Debug)]
struct Entry {
    owner: Owner,
    max_connections: usize,
    /// The number of connections with each CID: two during a reinstatement, else one.
    cids: BTreeMap<Cid, u32>,
}

/// The sessions of one target portal group. Only authenticated logins may be shown to it, because a login with a
/// session's user and identity can end that session.
#[derive(Debug)]
pub struct Registry {
    sessions: BTreeMap<Tsih, Entry>,
    by_owner: HashMap<Owner, Tsih>,
    sessions_max: usize,
    last: Tsih,
}

impl Registry {
    /// An empty registry that takes at most `sessions_max` sessions.
    #[must_use]
    pub fn new(sessions_max: u16) -> Self {
        Self {
            sessions: BTreeMap::new(),
            by_owner: HashMap::new(),
            // Zero is not a handle, so there are 65535.
            sessions_max: sessions_max.into(),
            last: Tsih::NEW_SESSION,
        }
    }

    /// Decides where `applicant` belongs, and enters it there, except for [`Admission::Reinstate`].
    ///
    /// # Errors
    /// The status with which the login must be refused: [`LoginStatus::SessionDoesNotExist`],
    /// [`LoginStatus::TooManyConnections`], [`LoginStatus::AuthorizationFailure`] for another user's session, or
    /// [`LoginStatus::OutOfResources`]. A connection with the CID of another one of its session reinstates that one
    /// (§6.3.4).
    pub fn admit(&mut self, applicant: &Applicant) -> Result<Admission, LoginStatus> {
        if applicant.tsih == Tsih::NEW_SESSION { self.admit_leading(applicant) } else { self.join(applicant) }
    }

    fn admit_leading(&mut self, applicant: &Applicant) -> Result<Admission, LoginStatus> {
        let owner = Owner::of(applicant);
        if let Some(old) = self.by_owner.get(&owner) {
            return Ok(Admission::Reinstate(*old));
        }
        if self.sessions.len() >= self.sessions_max {
            return Err(LoginStatus::OutOfResources);
        }
        let tsih = self.free_handle();
        let entry = Entry {
            owner: owner.clone(),
            max_connections: applicant.max_connections.clamp(1, MAX_CONNECTIONS).into(),
            cids: BTreeMap::from([(applicant.cid, 1)]),
        };
        self.sessions.insert(tsih, entry);
        self.by_owner.insert(owner, tsih);
        Ok(Admission::New(tsih))
    }

    fn join(&mut self, applicant: &Applicant) -> Result<Admission, LoginStatus> {
        let entry = self
            .sessions
            .get_mut(&applicant.tsih)
            .filter(|entry| entry.owner.identity == applicant.identity)
            .ok_or(LoginStatus::SessionDoesNotExist)?;
        if entry.owner.user != applicant.user {
            return Err(LoginStatus::AuthorizationFailure);
        }
        // A connection with a CID that is in use reinstates the other one (RFC 7143 §6.3.4).
        let is_reinstated = entry.cids.contains_key(&applicant.cid);
        if !is_reinstated && entry.cids.len() >= entry.max_connections {
            return Err(LoginStatus::TooManyConnections);
        }
        *entry.cids.entry(applicant.cid).or_default() += 1;
        Ok(Admission::Join(applicant.tsih))
    }

    /// The next free handle. Handles are used in turn, so that a freed one is not reused for as long as possible.
    fn free_handle(&mut self) -> Tsih {
        loop {
            self.last = Tsih(self.last.0.wrapping_add(1));
            if self.last != Tsih::NEW_SESSION && !self.sessions.contains_key(&self.last) {
                return self.last;
            }
        }
    }

    /// Says that an admitted connection is gone, or never finished its login. Its CID may be used again.
    pub fn lane_closed(&mut self, tsih: Tsih, cid: Cid) {
        let Some(entry) = self.sessions.get_mut(&tsih) else { return };
        let Some(connections) = entry.cids.get_mut(&cid) else { return };
        *connections -= 1;
        if *connections == 0 {
            entry.cids.remove(&cid);
        }
    }

    /// Says that a session has ended, or that its leading login never finished. Its identity and handle are free.
    pub fn ended(&mut self, tsih: Tsih) {
        if let Some(entry) = self.sessions.remove(&tsih) {
            self.by_owner.remove(&entry.owner);
        }
    }

    /// The number of sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }
}
