//! Values of keys: this side's wishes, its answers to proposals, and its judgement of the peer's answers.

use super::engine::{Role, is_answer_word};
use super::rule::{BooleanResult, DIGESTS, Key, Kind, NumberResult, PROTOCOL_LEVEL, RULES, Rule, Usage};
use super::{Negotiation, NegotiationError};
use crate::parameters::{DigestPreference, SessionType, SplitLanes};
use pdu::TextWriter;
use pdu::text_value::{IRRELEVANT, REJECT, boolean, boolean_text, numerical};
use std::borrow::Cow;

/// The value that this side prefers.
enum Wish {
    /// One of these, in order of preference.
    List(&'static [&'static str]),
    Boolean(bool),
    Number(u32),
}

impl DigestPreference {
    const fn digests(self) -> &'static [&'static str] {
        match self {
            Self::Required => &["CRC32C"],
            Self::Preferred => &["CRC32C", "None"],
            Self::Accepted => DIGESTS,
            Self::Never => &["None"],
        }
    }
}

impl Negotiation {
    fn wish(&self, rule: &Rule) -> Wish {
        let offer = &self.offer;
        match rule.key {
            Key::HeaderDigest => Wish::List(offer.header_digest.digests()),
            Key::DataDigest => Wish::List(offer.data_digest.digests()),
            // A target keeps the response fence in any case; an initiator does nothing for it (§4.2.3.3).
            Key::TaskReporting => Wish::List(&["ResponseFence", "RFC3720"]),
            Key::SplitLanes => Wish::List(self.split_wish()),
            // Data out of order would gain nothing over TCP, which delivers in order.
            Key::DataPDUInOrder | Key::DataSequenceInOrder => Wish::Boolean(true),
            Key::FirstBurstLength => Wish::Number(self.first_burst_wish()),
            Key::MaxOutstandingR2T => Wish::Number(self.outstanding_r2t_wish()),
            Key::ErrorRecoveryLevel => Wish::Number(self.error_recovery_level_wish()),
            Key::ISCSIProtocolLevel => Wish::Number(PROTOCOL_LEVEL),
            key => match (rule.kind, offer.of(key)) {
                (Kind::Boolean { .. }, Some(offered)) => Wish::Boolean(offered != 0),
                (_, Some(offered)) => Wish::Number(offered),
                (_, None) => Wish::List(&[]),
            },
        }
    }

    /// The preferred splits, the most lanes first. A target knows by now whether the session may have so many.
    fn split_wish(&self) -> &'static [&'static str] {
        let lanes_max = match self.role {
            Role::Initiator => u32::MAX,
            Role::Target => self.value(Key::MaxConnections),
        };
        match self.offer.split {
            SplitLanes::Three if lanes_max >= 3 => &["3", "2", "None"],
            SplitLanes::Two | SplitLanes::Three if lanes_max >= 2 => &["2", "None"],
            SplitLanes::None | SplitLanes::Two | SplitLanes::Three => &["None"],
        }
    }

    /// The preferred FirstBurstLength. It must not exceed MaxBurstLength (§13.14), which a target knows by now.
    fn first_burst_wish(&self) -> u32 {
        match self.role {
            Role::Initiator => self.offer.first_burst_bytes,
            Role::Target => self.offer.first_burst_bytes.min(self.value(Key::MaxBurstLength)),
        }
    }

    /// "If ErrorRecoveryLevel is not 0 and DataSequenceInOrder is set to Yes, then MaxOutstandingR2T MUST be set to 1"
    /// (§13.19). An initiator proposes before it knows the level.
    fn outstanding_r2t_wish(&self) -> u32 {
        let recovery = match self.role {
            Role::Initiator => self.error_recovery_level_wish() != 0,
            Role::Target => self.value(Key::ErrorRecoveryLevel) != 0,
        };
        if recovery { 1 } else { self.offer.max_outstanding_r2t.into() }
    }

    /// The preferred level. Discovery sessions have level 0 (§7.4.1), and so have split ones.
    fn error_recovery_level_wish(&self) -> u32 {
        let is_split = match self.role {
            Role::Initiator => self.offer.split != SplitLanes::None,
            Role::Target => self.value(Key::SplitLanes) != 0,
        };
        match self.session_type {
            SessionType::Normal if !is_split => self.offer.error_recovery_level.into(),
            SessionType::Normal | SessionType::Discovery => 0,
        }
    }

    /// This side's answer to a proposal. The answered value then holds.
    pub(super) fn answer(&mut self, rule: &Rule, proposal: &str) -> Cow<'static, str> {
        if self.is_irrelevant(rule) {
            return IRRELEVANT.into();
        }
        let value = match (rule.kind, self.wish(rule)) {
            (Kind::List { values }, Wish::List(wish)) => choose(values, wish, proposal),
            (Kind::Boolean { result, .. }, Wish::Boolean(wish)) => {
                boolean(proposal).ok().map(|theirs| u32::from(result.combine(theirs, wish)))
            }
            (Kind::Number { min, max, result, .. }, Wish::Number(wish)) => {
                number(proposal, min, max).map(|theirs| result.combine(theirs, wish))
            }
            _ => None,
        };
        let Some(value) = value else { return REJECT.into() };
        self.settle(rule.key, value);
        written(rule.kind, value)
    }

    /// Takes the peer's answer to this side's proposal.
    pub(super) fn hear_answer(&mut self, rule: &Rule, answer: &str) -> Result<(), NegotiationError> {
        if is_answer_word(answer) {
            // The default holds. The end of the negotiation judges whether this side can work with it.
            return Ok(());
        }
        let value = match (rule.kind, self.wish(rule)) {
            (Kind::List { values }, Wish::List(wish)) if wish.contains(&answer) => position(values, answer),
            (Kind::Boolean { result, .. }, Wish::Boolean(wish)) => {
                boolean(answer).ok().filter(|&value| result.combine(value, wish) == value).map(u32::from)
            }
            (Kind::Number { min, max, result, .. }, Wish::Number(wish)) => {
                number(answer, min, max).filter(|&value| result.combine(value, wish) == value)
            }
            _ => None,
        };
        self.settle(rule.key, value.ok_or(NegotiationError::InvalidAnswer(rule.key))?);
        Ok(())
    }

    fn settle(&mut self, key: Key, value: u32) {
        let entry = &mut self.entries[key as usize];
        entry.value = value;
        entry.agreed = true;
    }

    /// Whether an "Irrelevant when" condition of §13 holds for the key.
    fn is_irrelevant(&self, rule: &Rule) -> bool {
        let discovery = rule.normal_session_only && self.session_type == SessionType::Discovery;
        discovery || rule.key == Key::FirstBurstLength && !self.allows_unsolicited_data()
    }

    pub(super) fn allows_unsolicited_data(&self) -> bool {
        !self.flag(Key::InitialR2T) || self.flag(Key::ImmediateData)
    }

    /// Appends this side's declarations, each once.
    pub fn declare(&mut self, text: &mut TextWriter) {
        self.say(text, |_, rule| matches!(rule.kind, Kind::DeclaredNumber { .. }));
    }

    /// Appends this side's own proposals, each once. An initiator proposes every key that it has a wish for. A target
    /// proposes keys whose default it cannot work with and that the initiator has not proposed.
    pub fn propose(&mut self, text: &mut TextWriter) {
        self.say(text, |this, rule| rule.kind.is_negotiated() && this.is_worth_proposing(rule));
    }

    fn say(&mut self, text: &mut TextWriter, wanted: impl Fn(&Self, &Rule) -> bool) {
        for rule in &RULES {
            if !self.entries[rule.key as usize].sent && wanted(self, rule) {
                self.note_sent(rule.key);
                text.push(rule.name, &self.wish_text(rule));
            }
        }
    }

    fn is_worth_proposing(&self, rule: &Rule) -> bool {
        if self.entries[rule.key as usize].received
            || self.is_irrelevant(rule)
            || rule.usage == Usage::Leading && !self.leading
        {
            return false;
        }
        match self.role {
            Role::Initiator => {
                rule.is_original() || rule.key == Key::SplitLanes && self.offer.split != SplitLanes::None
            }
            Role::Target => !self.is_content(rule),
        }
    }

    fn wish_text(&self, rule: &Rule) -> Cow<'static, str> {
        match self.wish(rule) {
            Wish::List(values) => values.join(",").into(),
            Wish::Boolean(value) => boolean_text(value).into(),
            Wish::Number(value) => value.to_string().into(),
        }
    }

    /// Whether this side can work with every value that holds now.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.awaits_answer() && self.discontent().is_none()
    }

    /// The first key whose value this side cannot work with.
    pub(super) fn discontent(&self) -> Option<Key> {
        let judged = |rule: &&Rule| rule.usage != Usage::Leading || self.leading;
        RULES.iter().filter(judged).find(|rule| !self.is_content(rule)).map(|rule| rule.key)
    }

    fn is_content(&self, rule: &Rule) -> bool {
        let value = self.value(rule.key);
        if self.is_irrelevant(rule) {
            return true;
        }
        match (rule.kind, self.wish(rule)) {
            (Kind::List { values }, Wish::List(wish)) => wish.contains(&values[value as usize]),
            (Kind::Boolean { result, .. }, Wish::Boolean(wish)) => {
                result.combine(value != 0, wish) == (value != 0)
            }
            // This side can work with any time.
            _ if matches!(rule.key, Key::DefaultTime2Wait | Key::DefaultTime2Retain) => true,
            // A larger default does no harm to an initiator that never proposed the key: it uses as much of it as it
            // likes.
            (Kind::Number { result, .. }, Wish::Number(wish)) => result.combine(value, wish) == value,
            _ => true,
        }
    }
}

impl BooleanResult {
    const fn combine(self, a: bool, b: bool) -> bool {
        match self {
            Self::And => a && b,
            Self::Or => a || b,
        }
    }
}

impl NumberResult {
    fn combine(self, a: u32, b: u32) -> u32 {
        match self {
            Self::Minimum => a.min(b),
            Self::Maximum => a.max(b),
        }
    }
}

/// The first proposed value that this side supports, as a position in the standard's list (§6.2.1).
fn choose(values: &[&str], wish: &[&str], proposal: &str) -> Option<u32> {
    proposal.split(',').find(|value| wish.contains(value)).and_then(|value| position(values, value))
}

fn position(values: &[&str], value: &str) -> Option<u32> {
    values.iter().position(|known| *known == value).and_then(|position| u32::try_from(position).ok())
}

pub(super) fn number(value: &str, min: u32, max: u32) -> Option<u32> {
    numerical(value, min.into()..=max.into()).ok().and_then(|value| u32::try_from(value).ok())
}

fn written(kind: Kind, value: u32) -> Cow<'static, str> {
    match kind {
        Kind::List { values } => values[value as usize].into(),
        Kind::Boolean { .. } => boolean_text(value != 0).into(),
        _ => value.to_string().into(),
    }
}
