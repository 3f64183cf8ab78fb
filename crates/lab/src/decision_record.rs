//! What a tuner decided, as programs read it.

use initiator::Report;
use pdu::Instant;
use policy::tuner::{Decision, Law};
use serde::{Deserialize, Serialize};

/// A [`Decision`](policy::tuner::Decision).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// The time since the first connection logged in.
    pub at_s: f64,
    /// The connections that worked.
    pub connections_before: u32,
    /// The connections that were to work from then on.
    pub connections: u32,
    /// They were to use BBR.
    pub bbr: bool,
    /// What was moved right before.
    pub bytes_per_second: f64,
    /// What led to it: [`policy::tuner::Reason::name`].
    pub reason: String,
    /// The same in words.
    pub explanation: String,
}

impl DecisionRecord {
    /// All decisions over a target's connections.
    pub fn all_of(report: &Report) -> impl Iterator<Item = Self> {
        report.decisions.iter().map(|decision| Self::of(decision, report.began))
    }

    /// One, of connections the first of which logged in then.
    #[must_use]
    pub fn of(decision: &Decision, began: Instant) -> Self {
        Self {
            at_s: decision.at.saturating_duration_since(began).as_secs_f64(),
            connections_before: decision.connections_before,
            connections: decision.connections,
            bbr: decision.law == Law::Bbr,
            bytes_per_second: decision.bytes_per_second,
            reason: decision.reason.name().to_owned(),
            explanation: decision.reason.to_string(),
        }
    }
}
