//! Login and text keys (RFC 7143 §6).

use pdu::text_keys::{Assembler, TextWriter, is_extension_key, pairs, segments};
use pdu::text_value::{binary, boolean, list, numerical, range};

/// As much as a login's whole text.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// A text, first in segments of a length that its first byte gives, then whole. What parses must survive being written
/// and parsed again.
///
/// # Panics
/// If it does not.
pub fn text_keys(input: &[u8]) {
    let Some((&step, text)) = input.split_first() else { return };
    let mut assembler = Assembler::new(TEXT_BYTES_MAX);
    let mut whole = None;
    for (segment, continued) in segments(text, usize::from(step) + 1) {
        match assembler.push(segment, continued) {
            Ok(done) => whole = done,
            Err(_) => return,
        }
    }
    assert!(whole.is_none_or(|whole| whole == text), "segments make the text that they were cut from");
    let Ok(parsed) = pairs(text).collect::<Result<Vec<_>, _>>() else { return };
    let mut writer = TextWriter::new();
    for (key, value) in &parsed {
        look_at(key, value);
        writer.push(key, value);
    }
    let again: Result<Vec<_>, _> = pairs(writer.bytes()).collect();
    assert_eq!(again.as_ref(), Ok(&parsed), "a text survives being written");
    // Whatever parses as a list of targets survives being written as well.
    if let Ok(records) = session::discovery::parse(text) {
        let again = session::discovery::parse(&session::discovery::write(&records));
        assert_eq!(again.as_ref(), Ok(&records));
    }
}

/// Every way to read a value. None may trust another.
fn look_at(key: &str, value: &str) {
    let _ = is_extension_key(key);
    let _ = boolean(value);
    if let Ok(number) = numerical(value, 1..=65535) {
        assert!((1..=65535).contains(&number));
    }
    if let Ok(found) = range(value, 0..=u64::MAX) {
        assert!(found.start() <= found.end());
    }
    if let Ok(values) = list(value) {
        assert!(values.count() <= value.len() + 1);
    }
    if let Ok(bytes) = binary(value, 1024) {
        assert!(bytes.len() <= 1024);
    }
}
