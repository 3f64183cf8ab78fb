//! What a target asks its configuration, and is told, about a login.

use crate::chap::Authentication;
use crate::parameters::SessionParameters;
use pdu::{LoginStatus, Tsih, Window};
use std::sync::Arc;

/// Who may use which target, and what they must prove: the target's configuration.
pub trait Directory {
    /// Access of this initiator to this target, or to discovery (`None`).
    ///
    /// The name is a claim until the login is done: if it needs proof, [`Access::authentication`] must say so.
    ///
    /// Both names are normalized.
    ///
    /// # Errors
    /// What to say instead.
    fn access(&self, initiator_name: &str, target_name: Option<&str>) -> Result<Access, Denial>;
}

/// Why an initiator cannot log in here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// [`LoginStatus::NotFound`] or [`LoginStatus::AuthorizationFailure`] as a rule.
    #[error("{0}")]
    Refused(LoginStatus),
    /// It can at another address.
    #[error("the target is at {}", .0.address)]
    Redirected(Redirection),
}

/// Where a target is instead (RFC 7143 §11.13.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// `host[:port]`, the host a name, an IPv4 address, or an IPv6 address in brackets (§13.8).
    pub address: String,
    /// Whether initiators should remember it.
    pub permanent: bool,
}

impl From<LoginStatus> for Denial {
    fn from(status: LoginStatus) -> Self {
        Self::Refused(status)
    }
}

/// Terms on which an initiator may log in.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// What it must prove by CHAP, and what the target can prove in turn. `None`: nothing is asked.
    pub authentication: Option<Arc<Authentication>>,
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
