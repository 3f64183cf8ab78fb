//! CHAP: proof of a shared secret without sending it (RFC 1994), as iSCSI uses it (RFC 7143 §12.1.3, §9.2.1).

use core::fmt;
use md5::{Digest, Md5};
use pdu::text_value::{binary, list, numerical};
use subtle::{Choice, ConstantTimeEq};

/// How a response is made from identifier, secret and challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// CHAP with MD5, the one that every implementation has.
    Md5,
}

impl Algorithm {
    /// All that are implemented, the preferred first.
    pub const ALL: [Self; 1] = [Self::Md5];

    /// Its registered number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Md5 => 5,
        }
    }

    /// The first of a `CHAP_A` list that is implemented. Others are passed over (RFC 7143 §6.2.1).
    #[must_use]
    pub fn choose(proposed: &str) -> Option<Self> {
        let numbers = list(proposed).ok()?.filter_map(|value| numerical(value, 0..=u8::MAX.into()).ok());
        numbers.into_iter().find_map(|number| {
            Self::ALL.into_iter().find(|algorithm| u64::from(algorithm.number()) == number)
        })
    }

    /// The `CHAP_A` list of all that are implemented.
    #[must_use]
    pub fn offer() -> String {
        Self::ALL.map(|algorithm| algorithm.number().to_string()).join(",")
    }

    fn response(self, challenge: &Challenge, secret: &Secret) -> Vec<u8> {
        match self {
            Self::Md5 => Md5::new()
                .chain_update([challenge.identifier])
                .chain_update(&secret.0)
                .chain_update(&challenge.value)
                .finalize()
                .to_vec(),
        }
    }
}

/// The shortest secret: 96 bits, below which no response should be sent (RFC 7143 §9.2.1), because whoever overhears
/// the exchange can search for the secret at leisure.
pub const SECRET_BYTES_MIN: usize = 12;
/// The longest secret: nothing is gained above the 128 bits that the standard asks for; this leaves room for phrases.
pub const SECRET_BYTES_MAX: usize = 255;
/// The longest challenge or response (RFC 7143 §12.1.3).
const BINARY_BYTES_MAX: usize = 1024;
/// The length of a challenge made here: as long as an MD5 response.
const CHALLENGE_BYTES: usize = 16;

/// Random bytes for one challenge: from a cryptographic source, never used twice.
pub type Entropy = [u8; ENTROPY_BYTES];
/// The identifier's byte and the challenge's.
pub const ENTROPY_BYTES: usize = 1 + CHALLENGE_BYTES;

/// What only the two ends know. Never printed.
#[derive(Clone)]
pub struct Secret(Box<[u8]>);

/// Why credentials cannot be used. The person who configured them is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCredentials {
    /// Too short to withstand a search, or absurdly long.
    #[error("a CHAP secret has {bytes} bytes; {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} are allowed")]
    SecretLength {
        /// What it has.
        bytes: usize,
    },
    /// A name that is empty, too long for a simple value, or has a null.
    #[error("a CHAP name is empty, longer than 255 bytes, or has a null byte")]
    Name,
    /// One secret for both directions lets either end pass for the other (RFC 7143 §9.2.1).
    #[error("the initiator and the target must have different CHAP secrets")]
    SameSecret,
}

impl Secret {
    /// # Errors
    /// If it is shorter than [`SECRET_BYTES_MIN`] or longer than [`SECRET_BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Result<Self, InvalidCredentials> {
        if (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len()) {
            Ok(Self(bytes.into()))
        } else {
            Err(InvalidCredentials::SecretLength { bytes: bytes.len() })
        }
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
    /// If the name cannot be sent.
    pub fn new(name: impl Into<String>, secret: Secret) -> Result<Self, InvalidCredentials> {
        let name = name.into();
        let sendable = (1..=255).contains(&name.len()) && !name.contains('\0');
        if sendable { Ok(Self { name, secret }) } else { Err(InvalidCredentials::Name) }
    }

    /// The name that goes with the proof.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Who proves itself to whom: the same for both ends.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub(crate) initiator: Account,
    pub(crate) target: Option<Account>,
}

impl Credentials {
    /// The initiator proves itself to the target.
    #[must_use]
    pub fn one_way(initiator: Account) -> Self {
        Self { initiator, target: None }
    }

    /// Each proves itself to the other: an initiator with such credentials insists, a target with such credentials can.
    ///
    /// # Errors
    /// If both have the same secret.
    pub fn mutual(initiator: Account, target: Account) -> Result<Self, InvalidCredentials> {
        if initiator.secret.0.ct_eq(&target.secret.0).into() {
            return Err(InvalidCredentials::SameSecret);
        }
        Ok(Self { initiator, target: Some(target) })
    }
}

/// What one end asks the other to answer with its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    identifier: u8,
    value: Vec<u8>,
}

/// Why the peer has not proven itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChapError {
    /// None of the proposed algorithms is implemented, or another than the proposed was chosen.
    #[error("no common CHAP algorithm")]
    Algorithm,
    /// A step of the exchange lacks one of its keys.
    #[error("an incomplete step of the CHAP exchange")]
    Incomplete,
    /// A key that does not belong to the step, or a step out of turn.
    #[error("a step of the CHAP exchange out of turn")]
    OutOfTurn,
    /// An identifier, challenge or response that cannot be read or is too long.
    #[error("a malformed CHAP value")]
    Malformed,
    /// The challenge is the one that this side sent: an attempt to have it answered here.
    #[error("the challenge was reflected")]
    Reflected,
    /// The name or the response is wrong.
    #[error("wrong name or response")]
    WrongResponse,
    /// This end has no account to prove itself with.
    #[error("the peer asks for a proof that this end has no account for")]
    NoAccount,
}

impl Challenge {
    /// A new challenge.
    #[must_use]
    pub fn from_entropy(entropy: &Entropy) -> Self {
        let (identifier, value) = (entropy[0], entropy[1..].to_vec());
        Self { identifier, value }
    }

    /// The peer's `CHAP_I` and `CHAP_C`, given the challenge that this side sent on the same connection, if it did.
    ///
    /// # Errors
    /// If they cannot be read, or reflect this side's own.
    pub fn parse(identifier: &str, value: &str, own: Option<&Self>) -> Result<Self, ChapError> {
        let identifier = numerical(identifier, 0..=u8::MAX.into()).map_err(|_| ChapError::Malformed)?;
        let identifier = u8::try_from(identifier).map_err(|_| ChapError::Malformed)?;
        let value = parse_binary(value)?;
        match own {
            Some(own) if own.value == value => Err(ChapError::Reflected),
            _ => Ok(Self { identifier, value }),
        }
    }

    /// `CHAP_I`.
    #[must_use]
    pub fn identifier(&self) -> u8 {
        self.identifier
    }

    /// The bytes of `CHAP_C`.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// The bytes of `CHAP_R` that prove `account`.
    #[must_use]
    pub fn answer(&self, algorithm: Algorithm, account: &Account) -> Vec<u8> {
        algorithm.response(self, &account.secret)
    }

    /// That `name` and `response` (`CHAP_N`, `CHAP_R`) prove `account`, which is not `own`.
    ///
    /// # Errors
    /// If the response cannot be read, or is not the one. A response that this side would have given with its own
    /// secret proves nothing, because it may have been had from this side (RFC 7143 §9.2.1). How long this takes
    /// does not depend on how much is right.
    pub fn check(
        &self,
        algorithm: Algorithm,
        account: &Account,
        own: Option<&Account>,
        name: &str,
        response: &str,
    ) -> Result<(), ChapError> {
        let response = parse_binary(response)?;
        let right_name = account.name.as_bytes().ct_eq(name.as_bytes());
        let right_response = self.answer(algorithm, account).ct_eq(&response);
        let ours = own.map_or(Choice::from(0), |own| self.answer(algorithm, own).ct_eq(&response));
        if (right_name & right_response & !ours).into() { Ok(()) } else { Err(ChapError::WrongResponse) }
    }
}

fn parse_binary(value: &str) -> Result<Vec<u8>, ChapError> {
    let bytes = binary(value, BINARY_BYTES_MAX).map_err(|_| ChapError::Malformed)?;
    if bytes.is_empty() { Err(ChapError::Malformed) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str, secret: &str) -> Account {
        Account::new(name, Secret::new(secret.as_bytes()).unwrap()).unwrap()
    }

    fn hex(bytes: &[u8]) -> String {
        pdu::text_value::hexadecimal_text(bytes)
    }

    const CHALLENGE: Entropy = *b"\x07sixteen bytes ok";

    #[test]
    fn the_response_is_md5_of_identifier_secret_and_challenge() {
        let challenge = Challenge::from_entropy(&CHALLENGE);
        let expected = Md5::digest(b"\x07correct horse battery sixteen bytes ok".as_slice()).to_vec();
        let answer = challenge.answer(Algorithm::Md5, &account("i", "correct horse battery "));
        assert_eq!(answer, expected);
    }

    #[test]
    fn a_right_response_is_taken_in_hexadecimal_and_in_base64() {
        let challenge = Challenge::from_entropy(&CHALLENGE);
        let peer = account("peer", "correct horse battery");
        let answer = challenge.answer(Algorithm::Md5, &peer);
        for text in [hex(&answer), pdu::text_value::base64_text(&answer)] {
            assert_eq!(challenge.check(Algorithm::Md5, &peer, None, "peer", &text), Ok(()));
        }
    }

    #[test]
    fn a_wrong_name_a_wrong_secret_and_a_cut_response_are_refused() {
        let challenge = Challenge::from_entropy(&CHALLENGE);
        let peer = account("peer", "correct horse battery");
        let answer = challenge.answer(Algorithm::Md5, &peer);
        let other = challenge.answer(Algorithm::Md5, &account("peer", "another secret"));
        for (name, response) in [("pear", hex(&answer)), ("peer", hex(&other)), ("peer", hex(&answer[..15]))]
        {
            let verdict = challenge.check(Algorithm::Md5, &peer, None, name, &response);
            assert_eq!(verdict, Err(ChapError::WrongResponse));
        }
    }

    #[test]
    fn a_response_that_this_side_would_give_proves_nothing() {
        let challenge = Challenge::from_entropy(&CHALLENGE);
        let peer = account("peer", "one secret for both");
        let own = account("me", "one secret for both");
        let response = hex(&challenge.answer(Algorithm::Md5, &peer));
        let verdict = challenge.check(Algorithm::Md5, &peer, Some(&own), "peer", &response);
        assert_eq!(verdict, Err(ChapError::WrongResponse));
    }

    #[test]
    fn a_reflected_challenge_is_found_whatever_its_form() {
        let own = Challenge::from_entropy(&CHALLENGE);
        for text in [hex(own.value()), pdu::text_value::base64_text(own.value())] {
            assert_eq!(Challenge::parse("9", &text, Some(&own)), Err(ChapError::Reflected));
        }
    }

    #[test]
    fn challenges_are_bounded() {
        assert!(Challenge::parse("1", &hex(&[0; 1024]), None).is_ok());
        for value in [hex(&[0; 1025]), String::from("0x"), String::new(), String::from("12")] {
            assert_eq!(Challenge::parse("1", &value, None), Err(ChapError::Malformed));
        }
        assert_eq!(Challenge::parse("256", "0x00", None), Err(ChapError::Malformed));
    }

    #[test]
    fn a_secret_is_never_printed() {
        let credentials = Credentials::one_way(account("name", "correct horse battery"));
        assert!(!format!("{credentials:?}").contains("correct"));
    }

    #[test]
    fn short_secrets_and_equal_secrets_are_refused() {
        assert!(Secret::new(b"eleven byte").is_err());
        let same = Credentials::mutual(account("i", "the same secret"), account("t", "the same secret"));
        assert_eq!(same.unwrap_err(), InvalidCredentials::SameSecret);
    }

    #[test]
    fn algorithms_that_are_not_implemented_are_passed_over() {
        assert_eq!(Algorithm::choose("7,6,5"), Some(Algorithm::Md5));
        assert_eq!(Algorithm::choose("7,8"), None);
        assert_eq!(Algorithm::choose(",,"), None);
    }
}
