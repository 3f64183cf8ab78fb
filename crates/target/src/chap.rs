//! The sources of CHAP users and secrets (RFC 7143 §12.1.3). Never the command line, which every user can read.

use crate::access::Mask;
use secret::SecretFileError;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use session::chap::{Account, Algorithms, Authentication, InvalidAlgorithm, InvalidCredentials, Secret};
use std::fmt;
use std::path::PathBuf;

/// The users that an initiator must authenticate as, and optionally the target's own credential.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chap {
    /// User names and secrets of initiators. An initiator must prove one of them.
    #[serde(rename = "initiator", deserialize_with = "one_or_many")]
    pub initiators: Vec<Credential>,
    /// The target's own credential, for initiators that ask for it (mutual CHAP).
    #[serde(default)]
    pub target: Option<Credential>,
}

/// A user name and the source of its secret.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The name of whoever proves knowledge of the secret: `CHAP_N` (RFC 7143 §12.1.3).
    pub user: String,
    /// A file that holds the secret, without or with a final line feed; only its owner may have access to it.
    #[serde(default)]
    pub secret_file: Option<PathBuf>,
    /// An environment variable that holds the secret.
    #[serde(default)]
    pub secret_env: Option<String>,
    /// The secret itself. Then only its owner may have access to the file of the configuration.
    #[serde(default)]
    pub secret: Option<InlineSecret>,
}

/// A secret as it was written into a configuration. Never printed.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct InlineSecret(String);

impl From<&str> for InlineSecret {
    fn from(secret: &str) -> Self {
        Self(secret.to_owned())
    }
}

impl fmt::Debug for InlineSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InlineSecret(..)")
    }
}

/// Accepts one table, or an array of them.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Credential>, D::Error> {
    struct OneOrMany;

    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Vec<Credential>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a user with its secret, or several")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            Credential::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(seq))
        }
    }

    deserializer.deserialize_any(OneOrMany)
}

/// The algorithms that initiators may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct ChapAlgorithms(pub Algorithms);

impl TryFrom<Vec<String>> for ChapAlgorithms {
    type Error = InvalidAlgorithm;

    fn try_from(names: Vec<String>) -> Result<Self, Self::Error> {
        names.join(",").parse().map(Self)
    }
}

/// A secret that is unavailable or too weak.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum SecretError {
    /// The credential names none or several of the three sources.
    #[error("CHAP user {user}: name one of a file, an environment variable or the secret itself")]
    Source { user: String },
    /// The file cannot be read, or others could read it.
    #[error("CHAP user {user}: {source}")]
    File { user: String, source: SecretFileError },
    /// The variable is not set.
    #[error("CHAP user {user}: the environment variable {variable} is not set")]
    Variable { user: String, variable: String },
    /// The secret cannot be used.
    #[error("CHAP user {user}: {source}")]
    Unusable { user: String, source: InvalidCredentials },
    /// Both directions share one secret (RFC 7143 §9.2.1).
    #[error(
        "CHAP users {initiator} and {target} have the same secret, so the initiator could pass for the target: give \
         the target a secret of its own"
    )]
    BothDirections { initiator: String, target: String },
}

impl Chap {
    /// Reads the secrets.
    ///
    /// # Errors
    /// One of them is unavailable or unusable.
    pub(crate) fn authentication(&self, algorithms: &ChapAlgorithms) -> Result<Authentication, SecretError> {
        let initiators = self.initiators.iter().map(Credential::account).collect::<Result<_, _>>()?;
        let target = self.target.as_ref().map(Credential::account).transpose()?;
        let names = || {
            let users: Vec<_> = self.initiators.iter().map(|credential| credential.user.as_str()).collect();
            users.join(", ")
        };
        Authentication::new(initiators, target, algorithms.0.clone())
            .map_err(|source| SecretError::Unusable { user: names(), source })
    }

    /// Reads the secrets of the users that this mask admits.
    pub(crate) fn authentication_of(
        &self,
        mask: &Mask,
        algorithms: &ChapAlgorithms,
    ) -> Result<Authentication, SecretError> {
        let admitted = self.initiators.iter().filter(|credential| mask.admits_user(&credential.user));
        let admitted = Self { initiators: admitted.cloned().collect(), target: self.target.clone() };
        admitted.authentication(algorithms)
    }

    /// Whether the configuration itself contains a secret.
    pub(crate) fn has_inline_secret(&self) -> bool {
        self.initiators.iter().chain(&self.target).any(|credential| credential.secret.is_some())
    }
}

impl Credential {
    fn account(&self) -> Result<Account, SecretError> {
        let secret = Secret::new(&self.secret()?).map_err(|source| self.unusable(source))?;
        Account::new(self.user.clone(), secret).map_err(|source| self.unusable(source))
    }

    fn unusable(&self, source: InvalidCredentials) -> SecretError {
        SecretError::Unusable { user: self.user.clone(), source }
    }

    fn secret(&self) -> Result<Vec<u8>, SecretError> {
        let user = self.user.clone();
        let mut secret = match (&self.secret_file, &self.secret_env, &self.secret) {
            (Some(path), None, None) => {
                secret::read(path).map_err(|source| SecretError::File { user, source })?
            }
            (None, Some(variable), None) => {
                let variable = variable.clone();
                let value = std::env::var_os(&variable);
                value.ok_or(SecretError::Variable { user, variable })?.into_encoded_bytes()
            }
            (None, None, Some(secret)) => secret.0.clone().into_bytes(),
            _ => return Err(SecretError::Source { user }),
        };
        while secret.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            secret.pop();
        }
        Ok(secret)
    }
}

/// Checks that no secret authenticates both an initiator and a target: its initiator could pass for that target (RFC
/// 7143 §9.2.1). Warns of initiators that can pass for each other.
pub(crate) fn check_secrets<'a>(
    all: impl Iterator<Item = &'a Authentication> + Clone,
) -> Result<(), SecretError> {
    let initiators: Vec<_> = all.clone().flat_map(Authentication::initiators).collect();
    for target in all.filter_map(Authentication::target) {
        if let Some(initiator) = initiators.iter().find(|initiator| initiator.has_secret_of(target)) {
            let (initiator, target) = (initiator.name().to_owned(), target.name().to_owned());
            return Err(SecretError::BothDirections { initiator, target });
        }
    }
    for (index, user) in initiators.iter().enumerate() {
        let twin = |other: &&&Account| other.name() != user.name() && other.has_secret_of(user);
        if let Some(other) = initiators[..index].iter().find(twin) {
            let (user, other) = (user.name(), other.name());
            tracing::warn!(user, other, "two CHAP users have the same secret: each can pass for the other");
        }
    }
    Ok(())
}
