//! The questions of a login to the target's configuration, and their answers.

use crate::chap::Authentication;
use crate::parameters::SessionParameters;
use pdu::{LoginStatus, Tsih, Window};
use std::sync::Arc;

/// The target's configuration: who may use which target, and what they must prove.
pub trait Directory {
    /// The terms on which this initiator may use this target, or discovery (`None`). Both names are normalized.
    ///
    /// The initiator's name is only a claim: if it needs proof, [`Access::authentication`] must demand it.
    ///
    /// # Errors
    /// [`Denial`] if the initiator may not log in here.
    fn access(&self, initiator_name: &str, target_name: Option<&str>) -> Result<Access, Denial>;
}

/// Why an initiator cannot log in here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// Refuse with this status, usually [`LoginStatus::NotFound`] or [`LoginStatus::AuthorizationFailure`].
    #[error("{0}")]
    Refused(LoginStatus),
    /// The target is at another address.
    #[error("the target is at {}", .0.address)]
    Redirected(Redirection),
}

/// The address to which a target has moved (RFC 7143 §11.13.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// `host[:port]`, the host a name, an IPv4 address, or an IPv6 address in brackets (§13.8).
    pub address: String,
    /// Whether the target moved permanently.
    pub permanent: bool,
}

impl From<LoginStatus> for Denial {
    fn from(status: LoginStatus) -> Self {
        Self::Refused(status)
    }
}

/// The terms on which an initiator may log in.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The accounts that the initiator can prove by CHAP, and the target's own. `None` demands no authentication.
    pub authentication: Option<Arc<Authentication>>,
    /// The target's description for people.
    pub alias: Option<String>,
}

/// The place of an admitted login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The session's handle.
    pub tsih: Tsih,
    /// The session's command window, for the last response.
    pub window: Window,
    /// The parameters of the session that the connection joins; `None` when it leads a new one.
    pub joined: Option<SessionParameters>,
}
