//! CHAP names and secrets, from a file or the environment.

use secret::SecretFileError;
use session::chap::{Account, Credentials, InvalidCredentials, Secret};
use std::path::{Path, PathBuf};

/// Why credentials cannot be used. The person who configured them is at fault.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum CredentialsError {
    /// The file cannot be read, or other users could read it.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// The file is not text.
    #[error("{path} is not text")]
    NotText { path: PathBuf },
    /// A line that is not `name = value`, or a name that is not known.
    #[error(
        "{path}:{line}: expected username, password, target_username or target_password, `=` and a value"
    )]
    Line {
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
    },
    /// One setting of a pair is missing.
    #[error("{given} is set, but {missing} is not")]
    Incomplete { given: &'static str, missing: &'static str },
    /// The names or secrets break the standard's rules.
    #[error(transparent)]
    Invalid(#[from] InvalidCredentials),
}

/// The environment variables of libiscsi, which QEMU and its tools use too.
const USERNAME: &str = "LIBISCSI_CHAP_USERNAME";
const PASSWORD: &str = "LIBISCSI_CHAP_PASSWORD";
const TARGET_USERNAME: &str = "LIBISCSI_CHAP_TARGET_USERNAME";
const TARGET_PASSWORD: &str = "LIBISCSI_CHAP_TARGET_PASSWORD";

/// The settings as they were found, before the checks.
#[derive(Default)]
struct Parts {
    username: Option<String>,
    password: Option<String>,
    target_username: Option<String>,
    target_password: Option<String>,
}

/// Credentials from `LIBISCSI_CHAP_USERNAME`, `_PASSWORD` and, for mutual CHAP, `_TARGET_USERNAME` and
/// `_TARGET_PASSWORD`. `user`, from a URL, takes precedence over the environment's. `None` if no password is set.
///
/// # Errors
/// If the credentials are incomplete or break the rules for secrets.
pub fn credentials_from_environment(user: Option<&str>) -> Result<Option<Credentials>, CredentialsError> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    Parts {
        username: user.map(str::to_owned).or_else(|| variable(USERNAME)),
        password: variable(PASSWORD),
        target_username: variable(TARGET_USERNAME),
        target_password: variable(TARGET_PASSWORD),
    }
    .check([USERNAME, PASSWORD, TARGET_USERNAME, TARGET_PASSWORD])
}

/// Credentials from a file of lines `username = …`, `password = …` and, for mutual CHAP, `target_username = …` and
/// `target_password = …`. Empty lines and lines that begin with `#` are ignored. `user`, from a URL, takes precedence
/// over the file's.
///
/// # Errors
/// If the file cannot be read, is readable by others, or does not hold usable credentials.
pub fn credentials_from_file(path: &Path, user: Option<&str>) -> Result<Credentials, CredentialsError> {
    let text = String::from_utf8(secret::read(path)?)
        .map_err(|_| CredentialsError::NotText { path: path.to_owned() })?;
    let mut parts =
        Parts::parse(&text).map_err(|line| CredentialsError::Line { path: path.to_owned(), line })?;
    parts.username = user.map(str::to_owned).or(parts.username);
    let names = ["username", "password", "target_username", "target_password"];
    let missing = CredentialsError::Incomplete { given: "the file", missing: "password" };
    parts.check(names)?.ok_or(missing)
}

impl Parts {
    /// Parses the lines of a file. The error is the number of the first invalid line.
    fn parse(text: &str) -> Result<Self, usize> {
        let mut parts = Self::default();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let (name, value) = text.split_once('=').ok_or(line)?;
            let part = match name.trim() {
                "username" => &mut parts.username,
                "password" => &mut parts.password,
                "target_username" => &mut parts.target_username,
                "target_password" => &mut parts.target_password,
                _ => return Err(line),
            };
            *part = Some(value.trim().to_owned());
        }
        Ok(parts)
    }

    /// Checks the settings for completeness. A name alone is no error in the environment, which may also serve tools
    /// without CHAP, but a URL's user demands CHAP.
    fn check(self, names: [&'static str; 4]) -> Result<Option<Credentials>, CredentialsError> {
        let pair =
            |name: Option<String>, secret: Option<String>, names: [&'static str; 2]| match (name, secret) {
                (None, None) => Ok(None),
                (Some(name), Some(secret)) => Ok(Some(Account::new(name, Secret::new(secret.as_bytes())?)?)),
                (Some(_), None) => Err(CredentialsError::Incomplete { given: names[0], missing: names[1] }),
                (None, Some(_)) => Err(CredentialsError::Incomplete { given: names[1], missing: names[0] }),
            };
        let initiator = pair(self.username, self.password, [names[0], names[1]])?;
        let target = pair(self.target_username, self.target_password, [names[2], names[3]])?;
        Ok(match (initiator, target) {
            (Some(initiator), Some(target)) => Some(Credentials::mutual(initiator, target)?),
            (Some(initiator), None) => Some(Credentials::one_way(initiator)),
            (None, Some(_)) => {
                return Err(CredentialsError::Incomplete { given: names[2], missing: names[0] });
            }
            (None, None) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.as_file().set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let file = file("username = a\npassword = 0123456789ab\n", 0o644);
        let error = credentials_from_file(file.path(), None).unwrap_err();
        assert!(matches!(error, CredentialsError::File(SecretFileError::Exposed { .. })));
    }

    #[test]
    fn a_file_may_hold_comments_and_both_directions() {
        let text = "# ours\nusername = a\npassword = 0123456789ab\n\ntarget_username=t\ntarget_password=cba9876543210\n";
        let file = file(text, 0o600);
        assert!(credentials_from_file(file.path(), None).is_ok());
    }

    #[test]
    fn secrets_never_show_in_debug_output() {
        let file = file("username = a\npassword = 0123456789ab\n", 0o600);
        let shown = format!("{:?}", credentials_from_file(file.path(), None).unwrap());
        assert!(!shown.contains("0123456789ab"));
    }

    #[test]
    fn a_name_without_a_password_is_incomplete() {
        let file = file("username = a\n", 0o600);
        let error = credentials_from_file(file.path(), None).unwrap_err();
        assert_eq!(error.to_string(), "username is set, but password is not");
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named() {
        let file = file("username = a\nsecret: b\n", 0o600);
        let error = credentials_from_file(file.path(), None).unwrap_err();
        assert!(matches!(error, CredentialsError::Line { line: 2, .. }));
    }
}
