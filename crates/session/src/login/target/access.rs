//! What a target asks its configuration, and is told, about a login.

use crate::chap::Credentials;
use crate::parameters::SessionParameters;
use pdu::{LoginStatus, Tsih, Window};

/// Who may use which target, and what they must prove: the target's configuration.
pub trait Directory {
    /// Access of this initiator to this target, or to discovery (`None`).
    ///
    /// The name is a claim until the login is done: if it needs proof, [`Access::authentication`] must say so.
    ///
    /// # Errors
    /// The status to refuse with, [`LoginStatus::NotFound`] or [`LoginStatus::AuthorizationFailure`] as a rule.
    fn access(&self, initiator_name: &str, target_name: Option<&str>) -> Result<Access, LoginStatus>;
}

/// Terms on which an initiator may log in.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// What it must prove by CHAP, and what the target can prove in turn. `None`: nothing is asked.
    pub authentication: Option<Credentials>,
    /// The target's description for people.
    pub alias: Option<String>,
}

/// Where a login was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its session.
    pub tsih: Tsih,
    /// The session's command window, for the last response.
    pub window: Window,
    /// The parameters of the session that the connection joins; `None` when it leads a new one.
    pub joined: Option<SessionParameters>,
}
