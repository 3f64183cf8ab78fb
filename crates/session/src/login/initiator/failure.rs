//! Why an initiator's login failed, and the remedy.

use crate::chap::ChapError;
use crate::login::exchange::ExchangeError;
use crate::negotiation::NegotiationError;
use pdu::{InvalidPdu, InvalidText, LoginStatus, LoginStatusClass, Tsih};

/// Why a login failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The target refused the login.
    #[error("the target refused the login: {0}")]
    Refused(LoginStatus),
    /// The target answered success, but made a new session for a connection that should join one. It does not support
    /// several connections per session, whatever MaxConnections it negotiated.
    #[error("the connection did not join session {wanted}: the target made it session {found}")]
    NotJoined {
        /// The session to join.
        wanted: Tsih,
        /// The session in the answer.
        found: Tsih,
    },
    /// The portal is not of the portal group that the session belongs to.
    #[error("the portal is of portal group {found}, the session of portal group {wanted}")]
    OtherPortalGroup {
        /// The tag of the session's portal group.
        wanted: u16,
        /// The tag in the answer.
        found: u16,
    },
    /// This initiator demands mutual authentication, and the target did not prove its identity.
    #[error("the target did not authenticate itself: {0}")]
    TargetUnproven(ChapError),
    /// Both ends have no common authentication method.
    #[error("no common authentication method")]
    AuthMethod,
    /// The target's keys break their rules, or have values that this side cannot work with.
    #[error("negotiation failed: {0}")]
    Negotiation(#[from] NegotiationError),
    /// The target's text is malformed or exceeds a limit.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A PDU that cannot be read.
    #[error(transparent)]
    InvalidPdu(#[from] InvalidPdu),
    /// A PDU other than a login response: perhaps the peer is no iSCSI target.
    #[error("the target answered with a PDU that is not a login response")]
    NotALogin,
    /// A PDU came after the login was done or had failed.
    #[error("a PDU after the end of the login")]
    Over,
    /// A response to a request that this side did not send.
    #[error("the target answered with another task tag")]
    Tag,
    /// The target chose a version that was not offered.
    #[error("the target chose version {0}, which was not offered")]
    Version(u8),
    /// The response names a stage that is not the present one or was not asked for.
    #[error("the target named a login stage out of turn")]
    Stage,
    /// A portal group tag that is not a 16-bit number.
    #[error("the target's TargetPortalGroupTag is not a number of 16 bits")]
    PortalGroupTag,
    /// The target gave a new session the handle 0.
    #[error("the target gave the session no handle")]
    NoHandle,
}

/// The remedy for a failed login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The same login may succeed later.
    RetryLater,
    /// The session that the connection was to join is gone: start a new one.
    NewSession,
    /// This session has all the connections it can have: open further sessions instead.
    NoMoreConnections,
    /// Names, secrets or offers must be changed first.
    Reconfigure,
    /// Nothing on this side helps: the target breaks the protocol.
    None,
}

impl From<InvalidText> for Failure {
    fn from(error: InvalidText) -> Self {
        Self::Exchange(error.into())
    }
}

impl Failure {
    /// The remedy for this failure.
    #[must_use]
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Refused(LoginStatus::SessionDoesNotExist) | Self::OtherPortalGroup { .. } => {
                Remedy::NewSession
            }
            Self::Refused(LoginStatus::TooManyConnections | LoginStatus::CannotIncludeInSession)
            | Self::NotJoined { .. } => Remedy::NoMoreConnections,
            Self::Refused(status) => match status.class() {
                LoginStatusClass::TargetError => Remedy::RetryLater,
                _ => Remedy::Reconfigure,
            },
            Self::TargetUnproven(_)
            | Self::AuthMethod
            | Self::Version(_)
            | Self::Negotiation(NegotiationError::NoAgreement(_)) => Remedy::Reconfigure,
            Self::Negotiation(_)
            | Self::Exchange(_)
            | Self::InvalidPdu(_)
            | Self::NotALogin
            | Self::Over
            | Self::Tag
            | Self::Stage
            | Self::PortalGroupTag
            | Self::NoHandle => Remedy::None,
        }
    }
}
