//! Why an initiator's login failed, and what would help.

use crate::chap::ChapError;
use crate::login::exchange::ExchangeError;
use crate::negotiation::NegotiationError;
use pdu::{InvalidPdu, InvalidText, LoginStatus, LoginStatusClass, Tsih};

/// Why a login failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The target refused.
    #[error("the target refused the login: {0}")]
    Refused(LoginStatus),
    /// The target answered success, but made a session of its own of a connection that was to join one. It does not
    /// support several connections per session, whatever MaxConnections it negotiated.
    #[error("the connection did not join session {wanted}: the target made it session {found}")]
    NotJoined {
        /// The session to join.
        wanted: Tsih,
        /// The one in the answer.
        found: Tsih,
    },
    /// This initiator insists that the target proves who it is, and it did not.
    #[error("the target did not authenticate itself: {0}")]
    TargetUnproven(ChapError),
    /// No authentication method that both ends may use.
    #[error("no common authentication method")]
    AuthMethod,
    /// The target's keys are against their rules, or cannot be worked with.
    #[error("negotiation: {0}")]
    Negotiation(#[from] NegotiationError),
    /// Text beyond the bounds, or that is no text.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A PDU that cannot be read.
    #[error(transparent)]
    InvalidPdu(#[from] InvalidPdu),
    /// Something else than a login response: perhaps no iSCSI target at all.
    #[error("the target answered with a PDU that is not a login response")]
    NotALogin,
    /// A PDU after the login was done or had failed.
    #[error("a PDU after the end of the login")]
    Over,
    /// A response to a request that was never made.
    #[error("the target answered with another task tag")]
    Tag,
    /// A version that was not offered.
    #[error("the target wants version {0}")]
    Version(u8),
    /// A stage that is not the present one, or was not asked for.
    #[error("the target went to a stage of the login out of turn")]
    Stage,
    /// A portal group tag that is not a 16-bit number.
    #[error("the target's TargetPortalGroupTag is not a number of 16 bits")]
    PortalGroupTag,
    /// A new session without a handle.
    #[error("the target gave the session no handle")]
    NoHandle,
}

/// What would help after a failed login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The same login may succeed later.
    RetryLater,
    /// The session that the connection was to join is gone: start with a new one.
    NewSession,
    /// This session has all the connections it can have: open further sessions instead.
    NoMoreConnections,
    /// Names, secrets or offers must be changed first.
    Reconfigure,
    /// Nothing on this side: the target breaks the protocol.
    None,
}

impl From<InvalidText> for Failure {
    fn from(error: InvalidText) -> Self {
        Self::Exchange(error.into())
    }
}

impl Failure {
    /// What to do about it.
    #[must_use]
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Refused(LoginStatus::SessionDoesNotExist) => Remedy::NewSession,
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
