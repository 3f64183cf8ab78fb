//! The initiator's side of the security stage (RFC 7143 §6.3.2, §12.1).

use super::Failure;
use crate::chap::{Algorithm, Challenge, ChapError, Credentials, Entropy};
use crate::negotiation::{Declared, Key, Negotiation};
use pdu::TextWriter;
use pdu::text_value::{NONE, hexadecimal_text};

/// The state of the security stage: what has been proven, and which step comes next.
#[derive(Clone, Debug)]
pub(super) struct Security {
    credentials: Option<Credentials>,
    /// Random bytes for this side's challenge.
    entropy: Entropy,
    /// The algorithm that the target chose, and this side's challenge of its length.
    chosen: Option<(Algorithm, Challenge)>,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Authentication methods were proposed, or are about to be.
    AwaitMethod,
    /// `CHAP_A` was sent; the challenge comes next.
    AwaitChallenge,
    /// The response was sent, with this side's challenge if it demands a proof; the target's proof or consent comes
    /// next.
    AwaitVerdict,
    /// Nothing more is to be proven.
    Done,
}

/// Checks an AuthMethod that a target sends after the security stage: it may only say that nothing is to be proven.
pub(super) fn check_late_method(declared: &[Declared<'_>]) -> Result<(), Failure> {
    let method = declared.iter().find(|(key, _)| *key == Key::AuthMethod);
    if method.is_none_or(|(_, method)| *method == NONE) { Ok(()) } else { Err(Failure::AuthMethod) }
}

impl Security {
    pub(super) fn new(credentials: Option<Credentials>, entropy: &Entropy) -> Self {
        Self { credentials, entropy: *entropy, chosen: None, step: Step::AwaitMethod }
    }

    /// The algorithm that the target chose, if it has chosen one.
    pub(super) fn algorithm(&self) -> Option<Algorithm> {
        self.chosen.as_ref().map(|(algorithm, _)| *algorithm)
    }

    fn is_mutual(&self) -> bool {
        self.credentials.as_ref().is_some_and(|credentials| credentials.target.is_some())
    }

    /// Proposes authentication methods. An initiator that demands the target's proof does not offer `None`.
    pub(super) fn propose(&self, negotiation: &mut Negotiation, text: &mut TextWriter) {
        text.push(Key::AuthMethod.name(), if self.is_mutual() { "CHAP" } else { "CHAP,None" });
        negotiation.note_sent(Key::AuthMethod);
    }

    /// Whether another answer of the target must come in this stage.
    pub(super) fn expects_more(&self) -> bool {
        self.step == Step::AwaitChallenge
    }

    /// Checks that the stage may be left.
    pub(super) fn check_proven(&self) -> Result<(), Failure> {
        match self.step {
            Step::Done => Ok(()),
            Step::AwaitMethod | Step::AwaitVerdict if !self.is_mutual() => Ok(()),
            Step::AwaitChallenge => Err(Failure::Stage),
            Step::AwaitMethod | Step::AwaitVerdict => Err(Failure::TargetUnproven(ChapError::Incomplete)),
        }
    }

    /// Takes the keys of one text, and appends the next step.
    pub(super) fn receive(
        &mut self,
        declared: &[Declared<'_>],
        negotiation: &mut Negotiation,
        answers: &mut TextWriter,
    ) -> Result<(), Failure> {
        let get = |key| declared.iter().find(|(declared, _)| *declared == key).map(|&(_, value)| value);
        match self.step {
            Step::AwaitMethod => match get(Key::AuthMethod) {
                Some("CHAP") => {
                    let credentials = self.credentials.as_ref().ok_or(Failure::AuthMethod)?;
                    answers.push(Key::ChapAlgorithm.name(), &credentials.algorithms.offer());
                    negotiation.note_sent(Key::ChapAlgorithm);
                    self.step = Step::AwaitChallenge;
                }
                Some(NONE) if !self.is_mutual() => self.step = Step::Done,
                Some(_) => return Err(Failure::AuthMethod),
                None => {}
            },
            Step::AwaitChallenge => {
                let Some(algorithm) = get(Key::ChapAlgorithm) else { return Ok(()) };
                let keys = (get(Key::ChapIdentifier), get(Key::ChapChallenge));
                let (Some(identifier), Some(value)) = keys else {
                    return Err(Failure::TargetUnproven(ChapError::Incomplete));
                };
                self.respond(algorithm, identifier, value, answers).map_err(Failure::TargetUnproven)?;
            }
            Step::AwaitVerdict => {
                let keys = (get(Key::ChapName), get(Key::ChapResponse));
                if let (Some(name), Some(response)) = keys {
                    self.verify(name, response).map_err(Failure::TargetUnproven)?;
                }
            }
            Step::Done => {}
        }
        Ok(())
    }

    /// Appends this side's proof, and its own challenge if it demands the target's proof.
    fn respond(
        &mut self,
        algorithm: &str,
        identifier: &str,
        value: &str,
        answers: &mut TextWriter,
    ) -> Result<(), ChapError> {
        let credentials = self.credentials.as_ref().ok_or(ChapError::NoAccount)?;
        let algorithm = credentials.algorithms.chosen(algorithm).ok_or(ChapError::Algorithm)?;
        let challenge = Challenge::from_entropy(algorithm, &self.entropy);
        let theirs = Challenge::parse(identifier, value, Some(&challenge))?;
        let own = &credentials.initiator;
        answers.push(Key::ChapName.name(), own.name());
        answers.push(Key::ChapResponse.name(), &hexadecimal_text(&theirs.answer(algorithm, own)));
        if self.is_mutual() {
            answers.push(Key::ChapIdentifier.name(), &challenge.identifier().to_string());
            answers.push(Key::ChapChallenge.name(), &hexadecimal_text(challenge.value()));
        }
        self.chosen = Some((algorithm, challenge));
        self.step = Step::AwaitVerdict;
        Ok(())
    }

    fn verify(&mut self, name: &str, response: &str) -> Result<(), ChapError> {
        let credentials = self.credentials.as_ref().ok_or(ChapError::NoAccount)?;
        let target = credentials.target.as_ref().ok_or(ChapError::OutOfTurn)?;
        let (algorithm, challenge) = self.chosen.as_ref().ok_or(ChapError::OutOfTurn)?;
        let (accounts, own) = (core::slice::from_ref(target), Some(&credentials.initiator));
        challenge.check(*algorithm, accounts, own, name, response)?;
        self.step = Step::Done;
        Ok(())
    }
}
