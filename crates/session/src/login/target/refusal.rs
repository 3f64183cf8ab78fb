//! Why a target refuses a login, and the status that it sends.

use super::Denial;
use crate::chap::ChapError;
use crate::login::exchange::ExchangeError;
use crate::negotiation::{Key, NegotiationError};
use pdu::{InvalidPdu, InvalidText, LoginStatus};

/// Why a login was refused. The initiator is at fault, unless a variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The first PDU is not a Login Request. It gets no answer, because the peer may not speak iSCSI (RFC 7143 §4.2.3).
    #[error("the connection did not begin with a Login Request")]
    Stranger,
    /// A PDU came after the login was complete or refused. It gets no answer, because the last one was sent.
    #[error("a PDU after the end of the login")]
    Over,
    /// A PDU other than a Login Request came before the login was done.
    #[error("a PDU other than a Login Request during login")]
    NotALogin,
    /// A login PDU that cannot be read.
    #[error(transparent)]
    InvalidPdu(#[from] InvalidPdu),
    /// The lowest version that the initiator speaks is higher than ours.
    #[error("the initiator requires at least version {0}")]
    Version(u8),
    /// A field changed that must stay the same during a login.
    #[error("{0} changed during the login")]
    Changed(&'static str),
    /// The request names a stage that is not the present one or cannot follow it.
    #[error("a login stage out of turn")]
    Stage,
    /// The initiator's text is malformed or exceeds a limit.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A key breaks its rule.
    #[error(transparent)]
    Negotiation(#[from] NegotiationError),
    /// The first request lacks a required name.
    #[error("{0} is missing from the first request")]
    Missing(Key),
    /// A name that no initiator or target can have.
    #[error("{0} is not an iSCSI name")]
    InvalidName(Key),
    /// A key of the first request came later.
    #[error("{0} came after the first request")]
    Late(Key),
    /// The connection would join a discovery session, which has only one.
    #[error("a discovery session has one connection")]
    SessionType,
    /// A connection was to carry what none does, or what the leading one does in any case.
    #[error("the key Lane has a value that a joining connection cannot have")]
    Lane,
    /// The directory denied access.
    #[error("access denied: {0}")]
    Access(Denial),
    /// The target demands authentication, and the initiator skipped it.
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
    /// The status to send (RFC 7143 §11.13.5); `None` for silence.
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
            | Self::Lane
            | Self::Exchange(_)
            | Self::Negotiation(_)
            | Self::InvalidName(_)
            | Self::Late(_) => LoginStatus::InitiatorError,
        })
    }
}
