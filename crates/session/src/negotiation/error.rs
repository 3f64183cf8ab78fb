//! How a negotiation fails.

use super::rule::Key;

/// What the peer did, or asked for, that ends a negotiation. A target answers all of them with the login status
/// "initiator error", an initiator drops the connection (RFC 7143 §6.2, §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NegotiationError {
    /// A key of another stage of the login, or of the full feature phase.
    #[error("{0} does not belong to this stage of the login")]
    WrongStage(Key),
    /// A key that only the other side may send.
    #[error("{0} is not for this side to send")]
    WrongSender(Key),
    /// A key was declared or negotiated a second time.
    #[error("{0} was sent a second time")]
    Repeated(Key),
    /// An answer word that answers nothing.
    #[error("{0} was proposed with a word that is reserved for answers")]
    ReservedWord(Key),
    /// A declaration that the key's rule does not admit.
    #[error("{0} was declared with a value that it cannot have")]
    InvalidDeclaration(Key),
    /// An answer that the key's rule does not admit for what was proposed.
    #[error("{0} was answered with a value that does not follow from what was proposed")]
    InvalidAnswer(Key),
    /// The peer knows less than the standard demands.
    #[error("{0} was not understood, but every implementation must")]
    NotUnderstood(Key),
    /// The outcome is lawful, but this side cannot work with it.
    #[error("no agreement on {0}")]
    NoAgreement(Key),
    /// Two values that cannot hold together, each lawful by itself.
    #[error("{0} contradicts {1}")]
    Contradiction(Key, Key),
    /// More keys in one text than anyone needs.
    #[error("too many keys")]
    TooManyKeys,
}
