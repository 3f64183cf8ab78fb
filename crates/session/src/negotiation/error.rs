//! Why a negotiation fails.

use super::rule::Key;

/// Why a negotiation ended. The peer is at fault. A target answers each with the login status "initiator error", an
/// initiator drops the connection (RFC 7143 §6.2, §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NegotiationError {
    /// A key belongs to another stage of the login, or to the full feature phase.
    #[error("{0} does not belong to this stage of the login")]
    WrongStage(Key),
    /// A key that only the other side may send.
    #[error("{0} is not for this side to send")]
    WrongSender(Key),
    /// A key was declared or negotiated a second time.
    #[error("{0} was sent a second time")]
    Repeated(Key),
    /// An answer word such as `Reject` came without a proposal.
    #[error("{0} was proposed with a word that is reserved for answers")]
    ReservedWord(Key),
    /// A declared value breaks the key's rule.
    #[error("{0} was declared with a value that it cannot have")]
    InvalidDeclaration(Key),
    /// An answered value does not follow from the proposed one by the key's rule.
    #[error("{0} was answered with a value that does not follow from what was proposed")]
    InvalidAnswer(Key),
    /// The peer does not understand a key that every implementation must.
    #[error("{0} was not understood, but every implementation must")]
    NotUnderstood(Key),
    /// The value is valid, but this side cannot work with it.
    #[error("no agreement on {0}")]
    NoAgreement(Key),
    /// Two values are valid separately but not together.
    #[error("{0} contradicts {1}")]
    Contradiction(Key, Key),
    /// More keys in one text than anyone needs.
    #[error("too many keys")]
    TooManyKeys,
}
