//! The sessions of one target portal group: which of them a login belongs to (RFC 7143 §6.3.5, §11.12.6).

use crate::parameters::Identity;
use pdu::{Cid, LoginStatus, Tsih};

/// A login that has reached its end, authenticated, and asks for its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applicant {
    /// Who, with which target, through which portal group.
    pub identity: Identity,
    /// The session to join; zero for a new one.
    pub tsih: Tsih,
    /// The connection's name within its session.
    pub cid: Cid,
    /// The session's MaxConnections, as negotiated by a leading login.
    pub max_connections: u16,
}

/// Where a login belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It leads a new session of this handle.
    New(Tsih),
    /// It joins this session.
    Join(Tsih),
    /// A session of the same identity exists: close it ([`super::Session::close`]), and when its
    /// [`super::Event::Ended`] has come and [`Registry::ended`] was called, ask again. Until then its writes may
    /// still reach the disk.
    Reinstate(Tsih),
}

/// The sessions of one target portal group.
#[derive(Debug, Default)]
pub struct Registry {}

impl Registry {
    /// An empty registry that takes at most `sessions_max` sessions.
    #[must_use]
    pub fn new(sessions_max: u16) -> Self {
        let _ = sessions_max;
        Self {}
    }

    /// Decides where `applicant` belongs, and enters it there.
    ///
    /// # Errors
    /// The status with which the login must be refused.
    pub fn admit(&mut self, applicant: &Applicant) -> Result<Admission, LoginStatus> {
        let _ = applicant;
        Ok(Admission::New(Tsih(1)))
    }

    /// Says that a connection that was admitted is gone, or never finished its login.
    pub fn lane_closed(&mut self, tsih: Tsih, cid: Cid) {
        let _ = (tsih, cid);
    }

    /// Says that a session has ended: its identity and its handle are free.
    pub fn ended(&mut self, tsih: Tsih) {
        let _ = tsih;
    }
}
