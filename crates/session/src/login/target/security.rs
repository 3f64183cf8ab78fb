//! The target's side of the security stage (RFC 7143 §6.3.2, §12.1).

use super::Refusal;
use crate::chap::{Algorithm, Authentication, Challenge, ChapError, Entropy};
use crate::negotiation::{Declared, Key};
use pdu::TextWriter;
use pdu::text_value::{NONE, REJECT, hexadecimal_text};
use std::sync::Arc;

/// The state of the security stage: what has been proven, and which step comes next.
#[derive(Clone, Debug)]
pub(super) struct Security {
    demanded: Option<Arc<Authentication>>,
    entropy: Entropy,
    /// The user that the initiator has proven to be.
    user: Option<String>,
    step: Step,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// No method has been chosen.
    Start,
    /// `AuthMethod=None`: the initiator proves nothing.
    WithoutProof,
    /// `AuthMethod=CHAP`; the initiator's algorithms come next.
    AwaitAlgorithms,
    /// The challenge was sent; the response comes next.
    AwaitResponse(Algorithm, Challenge),
    /// The initiator has proven its identity.
    Proven,
}

/// The keys of one step.
struct Keys<'text>(&'text [Declared<'text>]);

impl<'text> Keys<'text> {
    fn get(&self, key: Key) -> Option<&'text str> {
        self.0.iter().find(|(declared, _)| *declared == key).map(|&(_, value)| value)
    }

    fn need(&self, key: Key) -> Result<&'text str, ChapError> {
        self.get(key).ok_or(ChapError::Incomplete)
    }

    fn any(&self, keys: &[Key]) -> bool {
        keys.iter().any(|&key| self.get(key).is_some())
    }
}

impl Security {
    pub(super) fn new(entropy: &Entropy) -> Self {
        Self { demanded: None, entropy: *entropy, user: None, step: Step::Start }
    }

    /// Sets the accounts that the initiator must prove, once its name is known.
    pub(super) fn demand(&mut self, authentication: Option<Arc<Authentication>>) {
        self.demanded = authentication;
    }

    /// Whether the next text brings the initiator's proof.
    pub(super) fn awaits_proof(&self) -> bool {
        matches!(self.step, Step::AwaitResponse(..))
    }

    /// The user that the initiator has proven to be.
    pub(super) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Whether nothing is left to be proven.
    pub(super) fn is_satisfied(&self) -> bool {
        match self.step {
            Step::Start => self.demanded.is_none(),
            Step::WithoutProof | Step::Proven => true,
            Step::AwaitAlgorithms | Step::AwaitResponse(..) => false,
        }
    }

    /// Takes the keys of one text. `leaving` says that the initiator asks for the next stage.
    pub(super) fn receive(
        &mut self,
        declared: &[Declared<'_>],
        leaving: bool,
        answers: &mut TextWriter,
    ) -> Result<(), Refusal> {
        let keys = Keys(declared);
        if let Some(methods) = keys.get(Key::AuthMethod) {
            self.choose_method(methods, answers)?;
        }
        match &self.step {
            Step::Start if leaving && self.demanded.is_some() => return Err(Refusal::AuthenticationSkipped),
            Step::AwaitAlgorithms if keys.get(Key::ChapAlgorithm).is_some() => {
                self.challenge(&keys, answers)?;
            }
            Step::AwaitResponse(algorithm, challenge) if keys.any(&[Key::ChapName, Key::ChapResponse]) => {
                let user = self.verify(*algorithm, challenge, &keys, answers)?;
                self.user = Some(user);
                self.step = Step::Proven;
            }
            _ if keys.any(&[Key::ChapAlgorithm, Key::ChapName, Key::ChapResponse]) => {
                return Err(ChapError::OutOfTurn.into());
            }
            _ => {}
        }
        Ok(())
    }

    /// "The target MUST reply with the first option in the list it supports and is allowed to use" (§6.3.2).
    fn choose_method(&mut self, methods: &str, answers: &mut TextWriter) -> Result<(), Refusal> {
        let supported = if self.demanded.is_some() { "CHAP" } else { NONE };
        let proposed = methods.split(',').any(|method| method == supported);
        let name = Key::AuthMethod.name();
        match (proposed, self.demanded.is_some()) {
            (true, true) => self.step = Step::AwaitAlgorithms,
            (true, false) => self.step = Step::WithoutProof,
            (false, true) => return Err(Refusal::AuthenticationSkipped),
            (false, false) => {
                // The initiator demands a proof, and this target has no account. The initiator may still go on without
                // one.
                answers.push(name, REJECT);
                return Ok(());
            }
        }
        answers.push(name, supported);
        Ok(())
    }

    fn challenge(&mut self, keys: &Keys<'_>, answers: &mut TextWriter) -> Result<(), ChapError> {
        if keys.any(&[Key::ChapName, Key::ChapResponse]) {
            return Err(ChapError::OutOfTurn);
        }
        let demanded = self.demanded.as_ref().ok_or(ChapError::OutOfTurn)?;
        let algorithm = demanded.algorithms.choose(keys.need(Key::ChapAlgorithm)?);
        let algorithm = algorithm.ok_or(ChapError::Algorithm)?;
        let challenge = Challenge::from_entropy(algorithm, &self.entropy);
        answers.push(Key::ChapAlgorithm.name(), &algorithm.number().to_string());
        answers.push(Key::ChapIdentifier.name(), &challenge.identifier().to_string());
        answers.push(Key::ChapChallenge.name(), &hexadecimal_text(challenge.value()));
        self.step = Step::AwaitResponse(algorithm, challenge);
        Ok(())
    }

    /// Verifies the initiator's proof and returns the user. If the initiator sends a challenge, appends the target's
    /// proof.
    fn verify(
        &self,
        algorithm: Algorithm,
        challenge: &Challenge,
        keys: &Keys<'_>,
        answers: &mut TextWriter,
    ) -> Result<String, ChapError> {
        let demanded = self.demanded.as_ref().ok_or(ChapError::OutOfTurn)?;
        let own = demanded.target.as_ref();
        let (name, response) = (keys.need(Key::ChapName)?, keys.need(Key::ChapResponse)?);
        let user = challenge.check(algorithm, &demanded.initiators, own, name, response)?;
        if keys.any(&[Key::ChapIdentifier, Key::ChapChallenge]) {
            let (identifier, value) = (keys.need(Key::ChapIdentifier)?, keys.need(Key::ChapChallenge)?);
            let theirs = Challenge::parse(identifier, value, Some(challenge))?;
            let own = own.ok_or(ChapError::NoAccount)?;
            answers.push(Key::ChapName.name(), own.name());
            answers.push(Key::ChapResponse.name(), &hexadecimal_text(&theirs.answer(algorithm, own)));
        }
        Ok(user.name().to_owned())
    }
}
