//! Why a target refuses a login, and what it says to the initiator.

use super::Denial;
use crate::chap::ChapError;
use crate::login::exchange::ExchangeError;
use crate::negotiation::{Key, NegotiationError};
use pdu::{InvalidPdu, InvalidText, LoginStatus};

/// Why a login was refused. The initiator is at fault, unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The first PDU is not a login: no answer, because this may be no iSCSI at all (RFC 7143 §4.2.3).
    #[error("the connection did not begin with a login")]
    Stranger,
    /// A PDU after the login was complete or refused: no answer, because the last one has been given.
    #[error("a PDU after the end of the login")]
    Over,
    /// Another PDU before the login was done.
    #[error("a PDU that is not a login during login")]
    NotALogin,
    /// A login PDU that cannot be read.
    #[error(transparent)]
    InvalidPdu(#[from] InvalidPdu),
    /// The lowest version that the initiator speaks is higher than ours.
    #[error("the initiator speaks version {0} at least")]
    Version(u8),
    /// A field that must not change during a login did.
    #[error("{0} changed during the login")]
    Changed(&'static str),
    /// A stage that is not the present one, or cannot follow it.
    #[error("a stage of the login out of turn")]
    Stage,
    /// Text beyond the bounds, or that is no text.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// Keys against their rules.
    #[error(transparent)]
    Negotiation(#[from] NegotiationError),
    /// A name without which nothing can begin.
    #[error("{0} is missing from the first request")]
    Missing(Key),
    /// A name that no initiator or target can have.
    #[error("{0} is not an iSCSI name")]
    InvalidName(Key),
    /// A key of the first request that comes later.
    #[error("{0} came after the first request")]
    Late(Key),
    /// A connection cannot be added to a discovery session.
    #[error("a discovery session has one connection")]
    SessionType,
    /// The directory said no.
    #[error("no access: {0}")]
    Access(Denial),
    /// The target demands authentication, and the initiator went past it.
    #[error("the initiator did not authenticate itself")]
    AuthenticationSkipped,
    /// Authentication was tried and failed.
    #[error("authentication failed: {0}")]
    Authentication(#[from] ChapError),
}

impl From<InvalidText> for Refusal {
    fn from(error: InvalidText) -> Self {
        Self::Exchange(error.into())
    }
}

impl Refusal {
    /// What the initiator is told (RFC 7143 §11.13.5), if anything.
    #[must_use]
    pub fn status(&self) -> Option<LoginStatus> {
        Some(match self {
            Self::Stranger | Self::Over => return None,
            Self::NotALogin => LoginStatus::InvalidDuringLogin,
            Self::Version(_) => LoginStatus::UnsupportedVersion,
            Self::Missing(_) => LoginStatus::MissingParameter,
            Self::SessionType => LoginStatus::SessionTypeNotSupported,
            Self::Access(Denial::Refused(status)) => *status,
            Self::Access(Denial::Redirected(to)) if to.permanent => LoginStatus::TargetMovedPermanently,
            Self::Access(Denial::Redirected(_)) => LoginStatus::TargetMovedTemporarily,
            Self::AuthenticationSkipped | Self::Authentication(_) => LoginStatus::AuthenticationFailure,
            Self::InvalidPdu(_)
            | Self::Changed(_)
            | Self::Stage
            | Self::Exchange(_)
            | Self::Negotiation(_)
            | Self::InvalidName(_)
            | Self::Late(_) => LoginStatus::InitiatorError,
        })
    }
}
