//! iSCSI names (RFC 7143 §4.2.7, RFC 3722).

use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// A valid iSCSI name, in the lower case that comparison needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct IscsiName(String);

/// A text that is no iSCSI name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not an iSCSI name: write iqn.YEAR-MONTH.REVERSED-DOMAIN[:ANYTHING], eui.… or naa.…, of letters, \
         digits, '-', '.' and ':'"
)]
pub struct InvalidIscsiName(String);

/// The longest name (RFC 7143 §4.2.7.1).
const NAME_BYTES_MAX: usize = 223;

impl FromStr for IscsiName {
    type Err = InvalidIscsiName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.to_ascii_lowercase();
        let characters =
            name.chars().all(|c| c.is_ascii_alphanumeric() || "-.:".contains(c) || !c.is_ascii());
        let form = if let Some(rest) = name.strip_prefix("iqn.") {
            is_dated(rest)
        } else if let Some(digits) = name.strip_prefix("eui.") {
            is_hexadecimal(digits, &[16])
        } else if let Some(digits) = name.strip_prefix("naa.") {
            is_hexadecimal(digits, &[16, 32])
        } else {
            false
        };
        if characters && form && name.len() <= NAME_BYTES_MAX {
            Ok(Self(name))
        } else {
            Err(InvalidIscsiName(text.to_owned()))
        }
    }
}

/// `2026-01.com.example`, and anything after it.
fn is_dated(rest: &str) -> bool {
    let Some((date, domain)) = rest.split_once('.') else { return false };
    let Some((year, month)) = date.split_once('-') else { return false };
    let digits = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(year, 4) && digits(month, 2) && !domain.is_empty()
}

fn is_hexadecimal(digits: &str, lengths: &[usize]) -> bool {
    lengths.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl TryFrom<String> for IscsiName {
    type Error = InvalidIscsiName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl IscsiName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IscsiName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_form_are_taken_in_lower_case() {
        let name: IscsiName = "IQN.2026-01.com.Example:disk-1".parse().unwrap();
        assert_eq!(name.as_str(), "iqn.2026-01.com.example:disk-1");
        assert!("eui.0123456789abcdef".parse::<IscsiName>().is_ok());
        assert!("naa.0123456789abcdef0123456789abcdef".parse::<IscsiName>().is_ok());
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = format!("iqn.2026-01.com.{}", "a".repeat(NAME_BYTES_MAX));
        for text in [
            "",
            "disk",
            "iqn.com.example",
            "iqn.2026-01.",
            "iqn.2026-01.a b",
            "iqn.2026-01.a,b",
            "eui.1",
            &long,
        ] {
            assert!(text.parse::<IscsiName>().is_err(), "{text}");
        }
    }
}
