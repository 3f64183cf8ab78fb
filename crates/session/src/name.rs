//! iSCSI names: the characters they may contain, and the form in which they are compared (RFC 7143 §4.2.7, RFC 3722).

use crate::negotiation::rule::NAME_BYTES_MAX;

/// A text that is not an iSCSI name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an iSCSI name: write iqn.YEAR-MONTH.REVERSED-DOMAIN[:ANYTHING], eui.… or naa.…, of letters, \
     digits, '-', '.' and ':', in at most {NAME_BYTES_MAX} bytes"
)]
pub struct InvalidName(String);

/// Whether two names are the same except for case, in any language (§4.2.7.2). The names need not be valid.
#[must_use]
pub fn is_same(one: &str, other: &str) -> bool {
    letters(one).eq(letters(other))
}

/// Whether a name begins with this text, in any case.
#[must_use]
pub fn starts_with(name: &str, beginning: &str) -> bool {
    let mut letters_of_name = letters(name);
    letters(beginning).all(|letter| letters_of_name.next() == Some(letter))
}

/// A name in lower case, the form in which names are compared. The name need not be valid.
#[must_use]
pub fn folded(name: &str) -> String {
    letters(name).collect()
}

/// The letters of a name in lower case. Each letter is converted by itself, without regard to its neighbours, so that a
/// prefix of a name stays a prefix.
fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(char::to_lowercase)
}

/// A peer's name in lower case, the form in which names are compared. Peers choose their names freely, so the name need
/// not have one of the standard's forms. It may only contain letters and digits of any language and `-.:_`, which have
/// no special meaning in a path, a list, a log line or a terminal. Letters beyond ASCII must come composed (NFC), as
/// the standard demands; decomposed ones make a different name.
///
/// # Errors
/// [`InvalidName`] if it contains other characters, begins with a dot, is empty, or is longer than 223 bytes.
pub fn normalized(name: &str) -> Result<String, InvalidName> {
    let normalized = folded(name);
    if is_acceptable(name) && normalized.len() <= NAME_BYTES_MAX {
        Ok(normalized)
    } else {
        Err(InvalidName(name.chars().take(NAME_BYTES_MAX).collect()))
    }
}

/// Whether [`normalized`] would take it.
pub(crate) fn is_acceptable(name: &str) -> bool {
    let allowed = |letter: char| letter.is_alphanumeric() || "-.:_".contains(letter);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(allowed) && !name.starts_with('.')
}

/// A configured name, in lower case. It must have one of the standard's three forms.
///
/// # Errors
/// [`InvalidName`] if it has none of these forms.
pub fn well_formed(text: &str) -> Result<String, InvalidName> {
    let invalid = || InvalidName(text.chars().take(NAME_BYTES_MAX).collect());
    let name = normalized(text)?;
    let form = if let Some(rest) = name.strip_prefix("iqn.") {
        is_dated(rest)
    } else if let Some(digits) = name.strip_prefix("eui.") {
        is_hexadecimal(digits, &[16])
    } else if let Some(digits) = name.strip_prefix("naa.") {
        is_hexadecimal(digits, &[16, 32])
    } else {
        false
    };
    if form { Ok(name) } else { Err(invalid()) }
}

/// Whether the text begins like `2026-01.com.example` (§4.2.7.4).
fn is_dated(rest: &str) -> bool {
    let Some((date, domain)) = rest.split_once('.') else { return false };
    let Some((year, month)) = date.split_once('-') else { return false };
    let digits = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(year, 4) && digits(month, 2) && !domain.is_empty()
}

fn is_hexadecimal(digits: &str, lengths: &[usize]) -> bool {
    lengths.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_form_are_taken_in_lower_case() {
        assert_eq!(well_formed("IQN.2026-01.com.Example:disk-1").unwrap(), "iqn.2026-01.com.example:disk-1");
        assert_eq!(well_formed("eui.0123456789ABCDEF").unwrap(), "eui.0123456789abcdef");
        assert!(well_formed("naa.0123456789abcdef0123456789abcdef").is_ok());
        assert_eq!(normalized("Host_1").unwrap(), "host_1");
        assert_eq!(normalized("iqn.2026-01.com.example:MÜNCHEN").unwrap(), "iqn.2026-01.com.example:münchen");
    }

    #[test]
    fn names_are_the_same_in_any_case_and_language() {
        assert!(is_same("iqn.2026-01.gr.example:ΟΔΟΣ", "IQN.2026-01.gr.example:οδοσ"));
        assert!(!is_same("iqn.2026-01.gr.example", "iqn.2026-01.gr.example:a"));
        assert!(starts_with("iqn.2026-01.gr.example:οδοσα", "IQN.2026-01.gr.example:ΟΔΟΣ"));
        assert!(!starts_with("iqn.2026-01.gr.example:ο", "iqn.2026-01.gr.example:οδ"));
    }

    #[test]
    fn letters_that_must_come_composed_are_refused_in_parts() {
        assert!(normalized("host-e\u{301}").is_err());
        assert!(normalized("host-\u{e9}").is_ok());
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = format!("iqn.2026-01.com.{}", "a".repeat(NAME_BYTES_MAX));
        for text in ["", "disk", "iqn.com.example", "iqn.2026-01.", "eui.1", "naa.0123456789abcdeg"] {
            assert!(well_formed(text).is_err(), "{text}");
        }
        for text in ["", "../x", ".x", "a/b", "a b", "a,b", "a\nb", "a\u{202e}b", "a\\b", &long] {
            assert!(normalized(text).is_err(), "{text}");
            assert!(well_formed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_does_not_grow_beyond_its_limit_when_it_is_normalized() {
        // İ takes two bytes, its lower case takes three.
        let name = "İ".repeat(NAME_BYTES_MAX / 2);
        assert!(is_acceptable(&name) && normalized(&name).is_err());
    }
}
