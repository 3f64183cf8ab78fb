//! The engine that follows the table of rules, and records what each side has said about each key.

use super::NegotiationError;
use super::rule::{KEYS, Key, Kind, RULES, Rule, Senders, Stages, Usage};
use crate::parameters::{Offer, SessionType};
use pdu::text_value::{IRRELEVANT, NOT_UNDERSTOOD, REJECT};
use pdu::{Stage, TextWriter};

/// This side's role in the login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The initiator proposes all keys that it has a wish for in its first operational request.
    Initiator,
    /// The target answers, and proposes only keys whose default it cannot work with.
    Target,
}

/// A key that the login itself must process: a text that the peer declared, or a step of the authentication.
pub type Declared<'text> = (Key, &'text str);

/// The most keys in one text, which bounds the answer. The standard has 35; the rest is room for extensions.
const KEYS_PER_TEXT_MAX: usize = 128;

/// The negotiation of one login, all stages.
#[derive(Clone, Debug)]
pub struct Negotiation {
    pub(super) role: Role,
    pub(super) leading: bool,
    pub(super) session_type: SessionType,
    pub(super) offer: Offer,
    pub(super) entries: [Entry; KEYS],
    /// The peer's declarations, each in its own words.
    heard: Vec<(Key, String)>,
}

/// The state of one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// This side has sent it: declared, proposed or answered.
    pub(super) sent: bool,
    /// The peer has sent it.
    pub(super) received: bool,
    /// The peer answered with a value.
    pub(super) agreed: bool,
    /// The value that holds: a number, a boolean as 0 or 1, a position in a list. For a declared number, the peer's.
    pub(super) value: u32,
}

impl Negotiation {
    /// A new negotiation. `leading` is true for a session's first connection, whose keys hold for all, and false for
    /// one that joins. A target passes [`SessionType::Normal`] and learns the type from the initiator.
    #[must_use]
    pub fn new(role: Role, leading: bool, session_type: SessionType, offer: Offer) -> Self {
        let entries = RULES.map(|rule| Entry {
            sent: false,
            received: false,
            agreed: false,
            value: rule.kind.default_value(),
        });
        Self { role, leading, session_type, offer: offer.bounded(), entries, heard: Vec::new() }
    }

    /// The session's type: normal, unless the initiator said otherwise.
    #[must_use]
    pub fn session_type(&self) -> SessionType {
        self.session_type
    }

    /// Takes one complete text of the peer and appends the answers that it demands. Returns the keys that the login
    /// must process, in the table's order.
    ///
    /// A declaration that is repeated word for word is ignored, although RFC 7143 §6.3 would have it refused like any
    /// other repetition: libiscsi declares its names and `SessionType` again in the operational stage if it has
    /// credentials that the target did not ask for.
    ///
    /// # Errors
    /// Any [`NegotiationError`] means that the login has failed.
    pub fn receive<'text>(
        &mut self,
        stage: Stage,
        pairs: &[(&'text str, &'text str)],
        answers: &mut TextWriter,
    ) -> Result<Vec<Declared<'text>>, NegotiationError> {
        if pairs.len() > KEYS_PER_TEXT_MAX {
            return Err(NegotiationError::TooManyKeys);
        }
        let mut known = Vec::with_capacity(pairs.len());
        for &(name, value) in pairs {
            match Key::from_name(name) {
                Some(key) => known.push((key, value)),
                None if is_answer_word(value) => {}
                None => answers.push(name, NOT_UNDERSTOOD),
            }
        }
        known.sort_by_key(|&(key, _)| key);
        let mut declared = Vec::new();
        for (key, value) in known {
            if self.receive_key(stage, key.rule(), value, answers)? {
                declared.push((key, value));
            }
        }
        Ok(declared)
    }

    /// Takes one key. Returns whether the login must process its value.
    fn receive_key(
        &mut self,
        stage: Stage,
        rule: &Rule,
        value: &str,
        answers: &mut TextWriter,
    ) -> Result<bool, NegotiationError> {
        let key = rule.key;
        let entry = self.entries[key as usize];
        let answers_us = entry.sent && !entry.received;
        if is_answer_word(value) && !answers_us {
            return Err(NegotiationError::ReservedWord(key));
        }
        if answers_us && value == NOT_UNDERSTOOD && rule.is_original() {
            return Err(NegotiationError::NotUnderstood(key));
        }
        self.check_place(stage, rule, answers_us)?;
        if self.is_refused_to_followers(rule) {
            answers.push(rule.name, REJECT);
            return Ok(false);
        }
        let repeatable = key == Key::TargetAddress;
        if entry.received && !repeatable {
            let said = self.heard.iter().any(|(heard, said)| *heard == key && said == value);
            return if said { Ok(false) } else { Err(NegotiationError::Repeated(key)) };
        }
        self.entries[key as usize].received = true;
        match rule.kind {
            Kind::Authentication => return Ok(true),
            Kind::DeclaredText { .. } if is_answer_word(value) => {}
            Kind::DeclaredText { bytes_max } => return self.hear_text(key, value, bytes_max),
            Kind::DeclaredNumber { min, max, .. } => self.hear_number(key, value, min, max)?,
            Kind::Obsolete | Kind::TextRequest => answers.push(rule.name, REJECT),
            Kind::List { .. } | Kind::Boolean { .. } | Kind::Number { .. } if answers_us => {
                self.hear_answer(rule, value)?;
            }
            Kind::List { .. } | Kind::Boolean { .. } | Kind::Number { .. } => {
                let answer = self.answer(rule, value);
                answers.push(rule.name, &answer);
                self.entries[key as usize].sent = true;
            }
        }
        Ok(false)
    }

    /// Checks that the peer may send the key in this stage. An answer to this side's proposal is always allowed.
    fn check_place(&self, stage: Stage, rule: &Rule, answers_us: bool) -> Result<(), NegotiationError> {
        let own = match self.role {
            Role::Initiator => Senders::Initiator,
            Role::Target => Senders::Target,
        };
        if rule.senders == own && !answers_us {
            return Err(NegotiationError::WrongSender(rule.key));
        }
        let fits = match rule.stages {
            Stages::Any => true,
            Stages::Security => stage == Stage::SecurityNegotiation,
            Stages::Operational => stage == Stage::OperationalNegotiation,
        };
        if fits && rule.usage != Usage::FullFeature {
            Ok(())
        } else {
            Err(NegotiationError::WrongStage(rule.key))
        }
    }

    /// Whether the key is refused on a connection that joins: the leading connection's values hold for the session, so
    /// new proposals are rejected (§13). SessionType and X#NodeArchitecture are mere declarations and are accepted.
    fn is_refused_to_followers(&self, rule: &Rule) -> bool {
        let declared = matches!(rule.kind, Kind::DeclaredText { .. });
        !self.leading && rule.usage == Usage::Leading && !declared
    }

    fn hear_text(&mut self, key: Key, value: &str, bytes_max: usize) -> Result<bool, NegotiationError> {
        if value.len() > bytes_max {
            return Err(NegotiationError::InvalidDeclaration(key));
        }
        self.remember(key, value);
        if key == Key::SessionType {
            self.session_type = match value {
                "Normal" => SessionType::Normal,
                "Discovery" => SessionType::Discovery,
                _ => return Err(NegotiationError::InvalidDeclaration(key)),
            };
        }
        Ok(key != Key::NodeArchitecture)
    }

    fn hear_number(&mut self, key: Key, value: &str, min: u32, max: u32) -> Result<(), NegotiationError> {
        let number =
            super::answer::number(value, min, max).ok_or(NegotiationError::InvalidDeclaration(key))?;
        let entry = &mut self.entries[key as usize];
        entry.value = number;
        entry.agreed = true;
        self.remember(key, value);
        Ok(())
    }

    /// Keeps a declaration, to recognize a repetition. There is at most one per key, of bounded length.
    fn remember(&mut self, key: Key, value: &str) {
        self.heard.retain(|(heard, _)| *heard != key);
        self.heard.push((key, value.to_owned()));
    }

    /// Notes that this side has sent a key that the login itself processes.
    pub fn note_sent(&mut self, key: Key) {
        self.entries[key as usize].sent = true;
    }

    /// Whether the peer still owes an answer.
    #[must_use]
    pub fn awaits_answer(&self) -> bool {
        RULES.iter().any(|rule| self.is_proposed(rule))
    }

    pub(super) fn is_proposed(&self, rule: &Rule) -> bool {
        let entry = self.entries[rule.key as usize];
        rule.kind.is_negotiated() && entry.sent && !entry.received
    }

    pub(super) fn value(&self, key: Key) -> u32 {
        self.entries[key as usize].value
    }

    pub(super) fn flag(&self, key: Key) -> bool {
        self.value(key) != 0
    }
}

/// The words that only an answer may use (§6.2).
pub(super) fn is_answer_word(value: &str) -> bool {
    [REJECT, IRRELEVANT, NOT_UNDERSTOOD].contains(&value)
}
