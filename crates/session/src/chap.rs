//! CHAP: proof of a shared secret without sending it (RFC 1994), as iSCSI uses it (RFC 7143 §12.1.3, §9.2.1).

mod account;
mod algorithm;

pub use account::{
    Account, Authentication, Credentials, InvalidCredentials, SECRET_BYTES_MAX, SECRET_BYTES_MIN, Secret,
};
pub use algorithm::{Algorithm, Algorithms, InvalidAlgorithm};

use pdu::text_value::{binary, numerical};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// The longest challenge or response (RFC 7143 §12.1.3).
const BINARY_BYTES_MAX: usize = 1024;
/// Random bytes for one challenge. They come from a cryptographic source and are used once.
pub type Entropy = [u8; ENTROPY_BYTES];
/// One byte for the identifier, the rest for the longest challenge.
pub const ENTROPY_BYTES: usize = 1 + algorithm::RESPONSE_BYTES_MAX;

/// An identifier and random bytes that the other end must answer with its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    identifier: u8,
    value: Vec<u8>,
}

/// Why the peer's authentication failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChapError {
    /// This end allows none of the proposed algorithms, or the peer chose one that was not proposed.
    #[error("no common CHAP algorithm")]
    Algorithm,
    /// A step of the exchange lacks a key.
    #[error("an incomplete step of the CHAP exchange")]
    Incomplete,
    /// A key does not belong to the step, or a step came out of turn.
    #[error("a step of the CHAP exchange out of turn")]
    OutOfTurn,
    /// An identifier, challenge or response that cannot be read or is too long.
    #[error("a malformed CHAP value")]
    Malformed,
    /// The peer sent this side's own challenge back, to have this side answer it.
    #[error("the challenge was reflected")]
    Reflected,
    /// The name or the response is wrong.
    #[error("wrong name or response")]
    WrongResponse,
    /// The peer demands a proof, and this end has no account.
    #[error("the peer demands authentication, but this end has no account")]
    NoAccount,
}

impl Challenge {
    /// A new challenge, as long as a response of this algorithm.
    #[must_use]
    pub fn from_entropy(algorithm: Algorithm, entropy: &Entropy) -> Self {
        let (identifier, value) = (entropy[0], entropy[1..=algorithm.response_bytes()].to_vec());
        Self { identifier, value }
    }

    /// Parses the peer's `CHAP_I` and `CHAP_C`. `own` is the challenge that this side sent on the same connection, if
    /// any.
    ///
    /// # Errors
    /// [`ChapError`] if the values are malformed, or are those of `own`.
    pub fn parse(identifier: &str, value: &str, own: Option<&Self>) -> Result<Self, ChapError> {
        let identifier = numerical(identifier, 0..=u8::MAX.into()).map_err(|_| ChapError::Malformed)?;
        let identifier = u8::try_from(identifier).map_err(|_| ChapError::Malformed)?;
        let value = parse_binary(value)?;
        match own {
            Some(own) if own.value == value => Err(ChapError::Reflected),
            _ => Ok(Self { identifier, value }),
        }
    }

    /// The identifier of the challenge, `CHAP_I`, which the response's hash includes (RFC 1994 §4.1).
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
        algorithm.response(self, account.secret())
    }

    /// Returns the account of `accounts` that `name` and `response` (`CHAP_N`, `CHAP_R`) prove. `own` is this side's
    /// account.
    ///
    /// # Errors
    /// [`ChapError`] if the response is malformed or wrong. A response that this side's own secret yields is wrong too,
    /// because the peer may have obtained it from this side (RFC 7143 §9.2.1). The check takes equally long for known
    /// and unknown names, and for any wrong response.
    pub fn check<'account>(
        &self,
        algorithm: Algorithm,
        accounts: &'account [Account],
        own: Option<&Account>,
        name: &str,
        response: &str,
    ) -> Result<&'account Account, ChapError> {
        let response = parse_binary(response)?;
        let (mut place, mut known) = (0_u64, Choice::from(0));
        for (index, account) in (0..).zip(accounts) {
            let same_name = account.name().as_bytes().ct_eq(name.as_bytes());
            place.conditional_assign(&index, same_name);
            known |= same_name;
        }
        // For an unknown name, the first account's secret is computed with, to take the same time.
        let account = usize::try_from(place).ok().and_then(|place| accounts.get(place));
        let account = account.ok_or(ChapError::NoAccount)?;
        let right = self.answer(algorithm, account).ct_eq(&response);
        let ours = own.map_or(Choice::from(0), |own| self.answer(algorithm, own).ct_eq(&response));
        if (known & right & !ours).into() { Ok(account) } else { Err(ChapError::WrongResponse) }
    }
}

fn parse_binary(value: &str) -> Result<Vec<u8>, ChapError> {
    let bytes = binary(value, BINARY_BYTES_MAX).map_err(|_| ChapError::Malformed)?;
    if bytes.is_empty() { Err(ChapError::Malformed) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::{Digest, Md5};

    fn account(name: &str, secret: &str) -> Account {
        Account::new(name, Secret::new(secret.as_bytes()).unwrap()).unwrap()
    }

    fn hex(bytes: &[u8]) -> String {
        pdu::text_value::hexadecimal_text(bytes)
    }

    const ENTROPY: Entropy = *b"\x07sixteen bytes okand sixteen more";

    fn challenge(algorithm: Algorithm) -> Challenge {
        Challenge::from_entropy(algorithm, &ENTROPY)
    }

    #[test]
    fn the_response_is_the_hash_of_identifier_secret_and_challenge() {
        let challenge = challenge(Algorithm::Md5);
        let expected = Md5::digest(b"\x07correct horse battery sixteen bytes ok".as_slice()).to_vec();
        let answer = challenge.answer(Algorithm::Md5, &account("i", "correct horse battery "));
        assert_eq!(answer, expected);
    }

    /// The expected value comes from `printf '\007correct horse battery\001\002\003' | openssl dgst -sha3-256`.
    #[test]
    fn every_algorithm_answers_as_other_implementations_do() {
        let challenge = Challenge::parse("7", "0x010203", None).unwrap();
        let table = [
            (Algorithm::Md5, "67ab49c846ca807e974e726fd7ff9258"),
            (Algorithm::Sha1, "aa64f292aec7bc48ef9e79fc5b59470cd1d155d4"),
            (Algorithm::Sha256, "200d09c3d0aa553c4227dc243727cf8281e134fcfa8913e546d2bbf9d884d576"),
            (Algorithm::Sha3_256, "e9783855bba3e9ca451f1d1294231846d4237ee13df77c0b87067b1c892210ff"),
        ];
        for (algorithm, expected) in table {
            let answer = challenge.answer(algorithm, &account("i", "correct horse battery"));
            assert_eq!(hex(&answer), format!("0x{expected}"), "{algorithm}");
        }
    }

    #[test]
    fn challenges_and_responses_have_the_length_of_their_algorithm() {
        for (algorithm, bytes) in Algorithm::ALL.into_iter().zip([32, 32, 20, 16]) {
            let challenge = challenge(algorithm);
            assert_eq!(challenge.value().len(), bytes);
            assert_eq!(challenge.answer(algorithm, &account("i", "correct horse battery")).len(), bytes);
        }
    }

    #[test]
    fn a_right_response_is_taken_in_hexadecimal_and_in_base64() {
        let peer = [account("peer", "correct horse battery")];
        for algorithm in Algorithm::ALL {
            let challenge = challenge(algorithm);
            let answer = challenge.answer(algorithm, &peer[0]);
            for text in [hex(&answer), pdu::text_value::base64_text(&answer)] {
                assert!(challenge.check(algorithm, &peer, None, "peer", &text).is_ok());
            }
        }
    }

    #[test]
    fn each_of_several_users_is_known_by_its_own_secret_only() {
        let users = [account("alice", "what alice knows"), account("bob", "what bob has heard")];
        let challenge = challenge(Algorithm::Sha256);
        let answer = |user: &Account| hex(&challenge.answer(Algorithm::Sha256, user));
        let check = |name, user| challenge.check(Algorithm::Sha256, &users, None, name, &answer(user));
        assert_eq!(check("alice", &users[0]).unwrap().name(), "alice");
        assert_eq!(check("bob", &users[1]).unwrap().name(), "bob");
        for (name, user) in [("alice", &users[1]), ("bob", &users[0]), ("carol", &users[0])] {
            assert_eq!(check(name, user).unwrap_err(), ChapError::WrongResponse);
        }
    }

    #[test]
    fn a_wrong_name_a_wrong_secret_and_a_response_of_another_length_are_refused_alike() {
        let challenge = challenge(Algorithm::Md5);
        let peer = [account("peer", "correct horse battery")];
        let answer = challenge.answer(Algorithm::Md5, &peer[0]);
        let other = challenge.answer(Algorithm::Md5, &account("peer", "another secret"));
        let longer = challenge.answer(Algorithm::Sha1, &peer[0]);
        let wrong = [
            ("pear", hex(&answer)),
            ("peer", hex(&other)),
            ("peer", hex(&answer[..15])),
            ("peer", hex(&longer)),
        ];
        for (name, response) in wrong {
            let verdict = challenge.check(Algorithm::Md5, &peer, None, name, &response);
            assert_eq!(verdict.unwrap_err(), ChapError::WrongResponse);
        }
    }

    #[test]
    fn a_response_that_this_side_would_give_proves_nothing() {
        let challenge = challenge(Algorithm::Md5);
        let peer = [account("peer", "one secret for both")];
        let own = account("me", "one secret for both");
        let response = hex(&challenge.answer(Algorithm::Md5, &peer[0]));
        let verdict = challenge.check(Algorithm::Md5, &peer, Some(&own), "peer", &response);
        assert_eq!(verdict.unwrap_err(), ChapError::WrongResponse);
    }

    #[test]
    fn a_reflected_challenge_is_found_whatever_its_form_and_identifier() {
        let own = challenge(Algorithm::Sha3_256);
        for text in [hex(own.value()), pdu::text_value::base64_text(own.value())] {
            for identifier in ["7", "9"] {
                assert_eq!(Challenge::parse(identifier, &text, Some(&own)), Err(ChapError::Reflected));
            }
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
}
