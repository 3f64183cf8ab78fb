//! I_T nexuses by their ports, which stay the same when an initiator returns with a new session (SAM-5).

use pdu::Isid;
use scsi::TransportId;

/// An initiator port: an iSCSI name and an ISID (RFC 7143 §4.4.2), in the hands of one CHAP user.
///
/// Anybody can claim a name. Two users with the same name and ISID are therefore two ports, and neither owns anything
/// of the other. On the wire both have the same `TransportID`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InitiatorPort {
    /// In lower case: names that differ only in case are the same (RFC 7143 §4.2.7.2).
    name: String,
    isid: Isid,
    /// `None` if no authentication is required.
    user: Option<String>,
}

impl InitiatorPort {
    /// The port of this initiator with this ISID, without a user.
    #[must_use]
    pub fn new(name: &str, isid: Isid) -> Self {
        Self { name: session::name::folded(name), isid, user: None }
    }

    /// The port of the same name in the hands of this CHAP user.
    #[must_use]
    pub fn of_user(self, user: Option<&str>) -> Self {
        Self { user: user.map(Into::into), ..self }
    }

    /// The port that parameter data names; `None` if the data names a whole initiator.
    pub(super) fn named_by(id: &TransportId) -> Option<Self> {
        id.isid.map(|isid| Self::new(&id.initiator_name, Isid(isid)))
    }

    /// Whether parameter data names this port, or its whole initiator.
    pub(super) fn is_named_by(&self, id: &TransportId) -> bool {
        session::name::is_same(&self.name, &id.initiator_name)
            && id.isid.is_none_or(|isid| Isid(isid) == self.isid)
    }

    pub(super) fn transport_id(&self) -> TransportId {
        TransportId { initiator_name: self.name.clone(), isid: Some(self.isid.0) }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(super) const fn isid(&self) -> Isid {
        self.isid
    }
}

/// A target port by its relative identifier, from 1 (SPC-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePort(pub u16);

impl RelativePort {
    /// The only port of a target with one.
    pub const ONLY: Self = Self(1);
}

/// The two ports of an I_T nexus.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The initiator's port.
    pub initiator: InitiatorPort,
    /// The target's port.
    pub target: RelativePort,
}
