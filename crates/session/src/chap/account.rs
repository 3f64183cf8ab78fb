//! CHAP names, the secrets that prove them, and the proof that each end demands of the other (RFC 7143 §9.2.1).

use super::Algorithms;
use core::fmt;
use subtle::ConstantTimeEq;

/// The shortest secret: 96 bits. RFC 7143 §9.2.1 advises against a response with a shorter one, because an eavesdropper
/// can search for it offline.
pub const SECRET_BYTES_MIN: usize = 12;
/// The longest secret. More than the 128 bits that the standard asks for gains nothing; this leaves room for phrases.
pub const SECRET_BYTES_MAX: usize = 255;
/// The longest CHAP name, in bytes: that of a simple value (§6.1).
const NAME_BYTES_MAX: usize = 255;

/// A shared secret of the two ends. `Debug` does not print it.
#[derive(Clone)]
pub struct Secret(Box<[u8]>);

/// Why credentials cannot be used. The person who configured them is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCredentials {
    /// A secret that is too short to withstand a search, or absurdly long.
    #[error("a CHAP secret has {bytes} bytes; {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} are allowed")]
    SecretLength {
        /// The length of the secret.
        bytes: usize,
    },
    /// A name that is empty, too long for a simple value, or contains a null byte.
    #[error("a CHAP name is empty, longer than {NAME_BYTES_MAX} bytes, or contains a null byte")]
    Name,
    /// Both directions have the same secret, so that either end could pass for the other (RFC 7143 §9.2.1).
    #[error("the initiator and the target must have different CHAP secrets")]
    SameSecret,
    /// Authentication is demanded and no user is configured, so nobody could log in.
    #[error("authentication is required, but no CHAP user is configured")]
    NoUser,
    /// Two users with one name.
    #[error("there are two CHAP users named {0}")]
    TwoUsers(String),
}

impl Secret {
    /// # Errors
    /// [`InvalidCredentials`] if the secret is shorter than [`SECRET_BYTES_MIN`] or longer than [`SECRET_BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Result<Self, InvalidCredentials> {
        if (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len()) {
            Ok(Self(bytes.into()))
        } else {
            Err(InvalidCredentials::SecretLength { bytes: bytes.len() })
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

/// One side's name and the secret that proves it.
#[derive(Clone, Debug)]
pub struct Account {
    name: String,
    secret: Secret,
}

impl Account {
    /// # Errors
    /// [`InvalidCredentials`] if the name is empty, too long or contains a null byte.
    pub fn new(name: impl Into<String>, secret: Secret) -> Result<Self, InvalidCredentials> {
        let name = name.into();
        let sendable = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains('\0');
        if sendable { Ok(Self { name, secret }) } else { Err(InvalidCredentials::Name) }
    }

    /// The name that is sent with the proof (`CHAP_N`).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Whether both accounts have the same secret, so that each can pass for the other.
    #[must_use]
    pub fn has_secret_of(&self, other: &Self) -> bool {
        self.secret.0.ct_eq(&other.secret.0).into()
    }
}

/// The account that an initiator proves, and the target's account if the initiator demands its proof.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub(crate) initiator: Account,
    pub(crate) target: Option<Account>,
    pub(crate) algorithms: Algorithms,
}

impl Credentials {
    /// The initiator proves itself to the target.
    #[must_use]
    pub fn one_way(initiator: Account) -> Self {
        Self { initiator, target: None, algorithms: Algorithms::default() }
    }

    /// Each end proves itself to the other. The initiator refuses a target that does not.
    ///
    /// # Errors
    /// [`InvalidCredentials`] if both have the same secret.
    pub fn mutual(initiator: Account, target: Account) -> Result<Self, InvalidCredentials> {
        if initiator.has_secret_of(&target) {
            return Err(InvalidCredentials::SameSecret);
        }
        Ok(Self { target: Some(target), ..Self::one_way(initiator) })
    }

    /// The same credentials with these algorithms to offer.
    #[must_use]
    pub fn offering(self, algorithms: Algorithms) -> Self {
        Self { algorithms, ..self }
    }

    /// The algorithms that the initiator offers, the preferred first.
    #[must_use]
    pub fn algorithms(&self) -> &Algorithms {
        &self.algorithms
    }
}

/// The accounts that a target accepts, and its own account for initiators that ask for its proof.
#[derive(Clone, Debug)]
pub struct Authentication {
    pub(crate) initiators: Vec<Account>,
    pub(crate) target: Option<Account>,
    pub(crate) algorithms: Algorithms,
}

impl Authentication {
    /// An initiator must prove one of the accounts in `initiators`, by one of `algorithms`.
    ///
    /// # Errors
    /// [`InvalidCredentials`] if `initiators` is empty, two of them have one name, or one has the target's secret.
    pub fn new(
        initiators: Vec<Account>,
        target: Option<Account>,
        algorithms: Algorithms,
    ) -> Result<Self, InvalidCredentials> {
        if initiators.is_empty() {
            return Err(InvalidCredentials::NoUser);
        }
        for (index, account) in initiators.iter().enumerate() {
            if initiators[..index].iter().any(|other| other.name == account.name) {
                return Err(InvalidCredentials::TwoUsers(account.name.clone()));
            }
            if target.as_ref().is_some_and(|target| target.has_secret_of(account)) {
                return Err(InvalidCredentials::SameSecret);
            }
        }
        Ok(Self { initiators, target, algorithms })
    }

    /// The accounts that the target accepts.
    #[must_use]
    pub fn initiators(&self) -> &[Account] {
        &self.initiators
    }

    /// The target's own account, if it has one.
    #[must_use]
    pub fn target(&self) -> Option<&Account> {
        self.target.as_ref()
    }
}

/// The target's half of the same agreement.
impl From<Credentials> for Authentication {
    fn from(credentials: Credentials) -> Self {
        let Credentials { initiator, target, algorithms } = credentials;
        Self { initiators: vec![initiator], target, algorithms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str, secret: &str) -> Account {
        Account::new(name, Secret::new(secret.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_secret_is_never_printed() {
        let credentials = Credentials::one_way(account("name", "correct horse battery"));
        assert!(!format!("{credentials:?}").contains("correct"));
        assert!(!format!("{:?}", Authentication::from(credentials)).contains("correct"));
    }

    #[test]
    fn short_long_and_equal_secrets_are_refused() {
        assert!(Secret::new(b"eleven byte").is_err());
        assert!(Secret::new(&[b'a'; SECRET_BYTES_MAX + 1]).is_err());
        let same = Credentials::mutual(account("i", "the same secret"), account("t", "the same secret"));
        assert_eq!(same.unwrap_err(), InvalidCredentials::SameSecret);
    }

    #[test]
    fn a_target_whose_secret_an_initiator_has_too_is_refused() {
        let users = vec![account("a", "what alice knows"), account("b", "the same secret")];
        let own = Some(account("t", "the same secret"));
        let refused = Authentication::new(users, own, Algorithms::default());
        assert_eq!(refused.unwrap_err(), InvalidCredentials::SameSecret);
    }

    #[test]
    fn users_need_names_of_their_own_and_there_must_be_one() {
        let twice = vec![account("a", "what alice knows"), account("a", "what bob has heard")];
        let refused = Authentication::new(twice, None, Algorithms::default());
        assert_eq!(refused.unwrap_err(), InvalidCredentials::TwoUsers("a".into()));
        let nobody = Authentication::new(Vec::new(), None, Algorithms::default());
        assert_eq!(nobody.unwrap_err(), InvalidCredentials::NoUser);
    }
}
