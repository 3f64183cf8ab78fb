//! Negotiation of text keys from a table of their rules (RFC 7143 §6.2, §13).
//!
//! [`rule::RULES`] says of each key who may send it, when, and how its value comes about; [`Negotiation`] is the one
//! engine that follows the table, for the side that proposes and for the side that answers. It starts from an [`Offer`]
//! and yields [`SessionParameters`]; `operational_keys` declares both.

mod answer;
mod engine;
mod error;
mod operational_keys;
mod outcome;
pub mod rule;
#[cfg(test)]
mod tests;

pub use engine::{Declared, Negotiation, Role};
pub use error::NegotiationError;
pub use operational_keys::{Offer, SessionParameters};
pub use rule::Key;
