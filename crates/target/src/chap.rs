//! Where CHAP users and secrets come from (RFC 7143 §12.1.3). Never from a command line, which everybody can read.

use serde::Deserialize;
use session::chap::{Account, Credentials, InvalidCredentials, Secret};
use std::path::PathBuf;

/// Who an initiator must prove to be, and optionally who the target proves to be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chap {
    /// The initiator's user name and secret.
    pub initiator: Credential,
    /// The target's own, for an initiator that asks who the target is.
    #[serde(default)]
    pub target: Option<Credential>,
}

/// A user name and where its secret is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// `CHAP_N`.
    pub user: String,
    /// A file that holds the secret, without or with a final line feed.
    #[serde(default)]
    pub secret_file: Option<PathBuf>,
    /// An environment variable that holds the secret.
    #[serde(default)]
    pub secret_env: Option<String>,
}

/// A secret that cannot be had, or is too weak.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Neither or both of the two.
    #[error("CHAP user {user}: name either a file or an environment variable that holds the secret")]
    Source {
        /// Whose.
        user: String,
    },
    /// The file cannot be read.
    #[error("CHAP user {user}: cannot read the secret from {}: {source}", path.display())]
    File {
        /// Whose.
        user: String,
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The variable is not set.
    #[error("CHAP user {user}: the environment variable {variable} is not set")]
    Variable {
        /// Whose.
        user: String,
        /// Which.
        variable: String,
    },
    /// It cannot be used.
    #[error("CHAP user {user}: {source}")]
    Unusable {
        /// Whose.
        user: String,
        /// Why.
        source: InvalidCredentials,
    },
}

impl Chap {
    /// Reads the secrets.
    ///
    /// # Errors
    /// One of them cannot be had or used.
    pub(crate) fn credentials(&self) -> Result<Credentials, SecretError> {
        let initiator = self.initiator.account()?;
        let Some(own) = &self.target else { return Ok(Credentials::one_way(initiator)) };
        Credentials::mutual(initiator, own.account()?).map_err(|source| own.unusable(source))
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
        let mut secret = match (&self.secret_file, &self.secret_env) {
            (Some(path), None) => {
                let path = path.clone();
                std::fs::read(&path).map_err(|source| SecretError::File { user, path, source })?
            }
            (None, Some(variable)) => {
                let variable = variable.clone();
                let value = std::env::var_os(&variable);
                value.ok_or(SecretError::Variable { user, variable })?.into_encoded_bytes()
            }
            _ => return Err(SecretError::Source { user }),
        };
        while secret.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            secret.pop();
        }
        Ok(secret)
    }
}
