//! `key=value` text, and its distribution over PDUs (RFC 7143 §6.1).

/// The longest key name (§6.1).
pub const KEY_BYTES_MAX: usize = 63;
/// The longest value that is read or written: every end must accept it (§6.1).
pub const VALUE_BYTES_MAX: usize = 8192;

/// Text that breaks the format of §6.1. The peer is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum InvalidText {
    /// A pair without the null byte that ends it.
    #[error("the last key=value pair is not ended by a null byte")]
    Unterminated,
    /// A pair without `=`.
    #[error("a pair has no '='")]
    NoValue,
    /// A key name that is empty, longer than [`KEY_BYTES_MAX`], or contains an invalid character.
    #[error("a key name is empty, too long, or has a character that is not allowed")]
    KeyName,
    /// A value longer than [`VALUE_BYTES_MAX`].
    #[error("a value of {bytes} bytes is longer than {VALUE_BYTES_MAX}")]
    ValueTooLong { bytes: usize },
    /// A value that is not UTF-8.
    #[error("a value is not UTF-8")]
    NotUtf8,
    /// The text exceeds the receiver's limit.
    #[error("more than {bytes_max} bytes of text")]
    TooLong { bytes_max: usize },
}

/// The pairs of a complete text, in order. Ends after the first error. The session must check that no key repeats
/// (§6.2), because that depends on earlier texts too.
pub fn pairs(text: &[u8]) -> impl Iterator<Item = Result<(&str, &str), InvalidText>> {
    let mut rest = text;
    core::iter::from_fn(move || {
        rest = skip_nulls(rest);
        if rest.is_empty() {
            return None;
        }
        let Some(end) = rest.iter().position(|&byte| byte == 0) else {
            rest = &[];
            return Some(Err(InvalidText::Unterminated));
        };
        let pair = parse_pair(&rest[..end]);
        rest = if pair.is_ok() { &rest[end..] } else { &[] };
        Some(pair)
    })
}

/// Some peers count their padding into DataSegmentLength; nothing between two nulls could be misread.
fn skip_nulls(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| byte != 0).unwrap_or(text.len());
    &text[start..]
}

fn parse_pair(pair: &[u8]) -> Result<(&str, &str), InvalidText> {
    let equals = pair.iter().position(|&byte| byte == b'=').ok_or(InvalidText::NoValue)?;
    let (key, value) = (&pair[..equals], &pair[equals + 1..]);
    if !is_key_name(key) {
        return Err(InvalidText::KeyName);
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(InvalidText::ValueTooLong { bytes: value.len() });
    }
    let key = str::from_utf8(key).map_err(|_| InvalidText::KeyName)?;
    let value = str::from_utf8(value).map_err(|_| InvalidText::NotUtf8)?;
    Ok((key, value))
}

/// A standard-label, with two exceptions for registered keys: `X#NodeArchitecture` (§13.26) contains `#`, and
/// `iSCSIProtocolLevel` (§13.24) starts with a small letter.
fn is_key_name(key: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b".-+@_#".contains(byte);
    (1..=KEY_BYTES_MAX).contains(&key.len()) && key[0].is_ascii_alphabetic() && key.iter().all(allowed)
}

/// Whether a key is a private or public extension (§13.22, §13.26), which may safely go unrecognised.
#[must_use]
pub fn is_extension_key(key: &str) -> bool {
    key.starts_with("X-") || key.starts_with("X#")
}

/// Builds a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextWriter {
    bytes: Vec<u8>,
}

impl TextWriter {
    /// No text yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Appends `key=value` and its null. Truncates either at a null, which it must not contain.
    pub fn push(&mut self, key: &str, value: &str) {
        for (part, end) in [(key, b'='), (value, 0)] {
            let part = part.split('\0').next().unwrap_or_default();
            self.bytes.extend_from_slice(part.as_bytes());
            self.bytes.push(end);
        }
    }

    /// Whether there is no text yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The text so far.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The complete text, as data segments carry it.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Joins the data segments of PDUs that have the C bit into one text.
#[derive(Clone, Debug)]
pub struct Assembler {
    text: Vec<u8>,
    bytes_max: usize,
}

impl Assembler {
    /// An assembler that holds at most `bytes_max`. Every end must accept at least 8192 (§6.1).
    #[must_use]
    pub const fn new(bytes_max: usize) -> Self {
        Self { text: Vec::new(), bytes_max }
    }

    /// Adds the next segment; `continued` is its PDU's C bit. Returns the whole text with its last segment, and is then
    /// ready for the next text.
    ///
    /// # Errors
    /// [`InvalidText::TooLong`] if the text exceeds the limit; the assembler then drops its text.
    pub fn push(&mut self, segment: &[u8], continued: bool) -> Result<Option<Vec<u8>>, InvalidText> {
        if segment.len() > self.bytes_max - self.text.len() {
            *self = Self::new(self.bytes_max);
            return Err(InvalidText::TooLong { bytes_max: self.bytes_max });
        }
        self.text.extend_from_slice(segment);
        Ok(if continued { None } else { Some(core::mem::take(&mut self.text)) })
    }
}

/// Cuts a text into the data segments of as many PDUs as it needs, of at most `segment_bytes_max` (at least one) each.
/// Returns each with its C bit. An empty text is one empty segment.
pub fn segments(text: &[u8], segment_bytes_max: usize) -> impl Iterator<Item = (&[u8], bool)> {
    let mut rest = Some(text);
    core::iter::from_fn(move || {
        let text = rest?;
        let cut = segment_bytes_max.max(1).min(text.len());
        let (segment, after) = text.split_at(cut);
        rest = if after.is_empty() { None } else { Some(after) };
        Some((segment, rest.is_some()))
    })
}
