//! The forms of the keys' values (RFC 7143 §6.1, §6.2).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use core::ops::RangeInclusive;

/// The answer to an unknown key (§6.2).
pub const NOT_UNDERSTOOD: &str = "NotUnderstood";
/// The answer to a key that an earlier choice makes irrelevant (§6.2).
pub const IRRELEVANT: &str = "Irrelevant";
/// The answer to a known key with an unacceptable value (§6.2).
pub const REJECT: &str = "Reject";
/// The list element that excludes all others.
pub const NONE: &str = "None";
/// The boolean-value for true (§6.1).
pub const YES: &str = "Yes";
/// The boolean-value for false (§6.1).
pub const NO: &str = "No";

/// A value that has the wrong form for its key, or is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum InvalidValue {
    /// Neither a decimal nor a hexadecimal constant below 2⁶⁴.
    #[error("not a number")]
    NotANumber,
    /// A number that the key does not allow.
    #[error("{found} is not between {min} and {max}")]
    OutOfRange { found: u64, min: u64, max: u64 },
    /// Not two numbers, the lower first, with a tilde between.
    #[error("not a range")]
    NotARange,
    /// Neither "Yes" nor "No".
    #[error("neither Yes nor No")]
    NotABoolean,
    /// A list with an element that is empty.
    #[error("a list has an empty element")]
    EmptyElement,
    /// Not a hexadecimal or base64 constant.
    #[error("neither a hexadecimal nor a base64 constant")]
    NotBinary,
    /// A binary value longer than the key allows.
    #[error("a binary value of more than {bytes_max} bytes")]
    BinaryTooLong { bytes_max: usize },
}

/// A numerical-value within `bounds`.
///
/// # Errors
/// If it is not a number, or not within `bounds`.
pub fn numerical(value: &str, bounds: RangeInclusive<u64>) -> Result<u64, InvalidValue> {
    let found = constant(value).ok_or(InvalidValue::NotANumber)?;
    if bounds.contains(&found) {
        Ok(found)
    } else {
        Err(InvalidValue::OutOfRange { found, min: *bounds.start(), max: *bounds.end() })
    }
}

/// A numerical-range, as `LOW~HIGH`, both within `bounds`.
///
/// # Errors
/// If it is not a range, or not within `bounds`.
pub fn range(value: &str, bounds: RangeInclusive<u64>) -> Result<RangeInclusive<u64>, InvalidValue> {
    let (low, high) = value.split_once('~').ok_or(InvalidValue::NotARange)?;
    let range = numerical(low, bounds.clone())?..=numerical(high, bounds)?;
    if range.is_empty() { Err(InvalidValue::NotARange) } else { Ok(range) }
}

/// A boolean-value.
///
/// # Errors
/// If it is neither "Yes" nor "No".
pub fn boolean(value: &str) -> Result<bool, InvalidValue> {
    match value {
        YES => Ok(true),
        NO => Ok(false),
        _ => Err(InvalidValue::NotABoolean),
    }
}

/// The text of a boolean.
#[must_use]
pub const fn boolean_text(value: bool) -> &'static str {
    if value { YES } else { NO }
}

/// The elements of a list-of-values, in order of preference (§6.2.1).
///
/// # Errors
/// If one is empty.
pub fn list(value: &str) -> Result<impl Iterator<Item = &str>, InvalidValue> {
    if value.split(',').any(str::is_empty) {
        return Err(InvalidValue::EmptyElement);
    }
    Ok(value.split(','))
}

/// A binary-value of at most `bytes_max`, in hexadecimal or base64. Decimal constants are refused: their length is
/// undefined, and no key that Ropewalk supports needs them.
///
/// # Errors
/// If it has neither form, or is too long.
pub fn binary(value: &str, bytes_max: usize) -> Result<Vec<u8>, InvalidValue> {
    let too_long = Err(InvalidValue::BinaryTooLong { bytes_max });
    let (prefix, digits) = value.split_at_checked(2).ok_or(InvalidValue::NotBinary)?;
    let bytes = match prefix {
        "0x" | "0X" if digits.len().div_ceil(2) > bytes_max => return too_long,
        "0x" | "0X" => hexadecimal(digits.as_bytes()),
        // Four digits encode three bytes; the last group may encode two fewer.
        "0b" | "0B" if (digits.len() / 4 * 3).saturating_sub(2) > bytes_max => return too_long,
        "0b" | "0B" if !digits.is_empty() => STANDARD.decode(digits).ok(),
        _ => None,
    };
    match bytes {
        Some(bytes) if bytes.len() > bytes_max => too_long,
        Some(bytes) => Ok(bytes),
        None => Err(InvalidValue::NotBinary),
    }
}

/// A hex-constant that holds `bytes`.
#[must_use]
pub fn hexadecimal_text(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 0xf)]);
    let mut text = String::with_capacity(2 + bytes.len() * 2);
    text.push_str("0x");
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]));
    text
}

/// A base64-constant that holds `bytes`.
#[must_use]
pub fn base64_text(bytes: &[u8]) -> String {
    let mut text = String::from("0b");
    STANDARD.encode_string(bytes, &mut text);
    text
}

/// A decimal-constant (without leading zeroes) or a hex-constant.
fn constant(value: &str) -> Option<u64> {
    // `from_str_radix` would accept a sign.
    if let Some(digits) = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        return if all_digits { u64::from_str_radix(digits, 16).ok() } else { None };
    }
    let all_digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = value.len() > 1 && value.starts_with('0');
    if all_digits && !leading_zero { value.parse().ok() } else { None }
}

/// The bytes of hexadecimal digits. An odd number of digits gets a leading zero: n digits make (n + 1) / 2 bytes
/// (§6.1).
fn hexadecimal(digits: &[u8]) -> Option<Vec<u8>> {
    let nibble = |digit: &u8| char::from(*digit).to_digit(16).and_then(|nibble| u8::try_from(nibble).ok());
    if digits.is_empty() {
        return None;
    }
    let (first, pairs) = digits.split_at(digits.len() % 2);
    let mut bytes = Vec::with_capacity(digits.len().div_ceil(2));
    for digit in first {
        bytes.push(nibble(digit)?);
    }
    for pair in pairs.chunks_exact(2) {
        bytes.push(nibble(&pair[0])? << 4 | nibble(&pair[1])?);
    }
    Some(bytes)
}
