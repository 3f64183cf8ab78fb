//! Texts of key=value pairs, whole and in pieces (RFC 7143 §6.1).

use proptest::prelude::*;
use ropewalk_pdu::InvalidText::{KeyName, NoValue, NotUtf8, TooLong, Unterminated, ValueTooLong};
use ropewalk_pdu::text_keys::{KEY_BYTES_MAX, VALUE_BYTES_MAX, is_extension_key, pairs, segments};
use ropewalk_pdu::{Assembler, InvalidText, TextWriter};

fn read(text: &[u8]) -> Result<Vec<(&str, &str)>, InvalidText> {
    pairs(text).collect()
}

#[test]
fn pairs_come_in_the_order_they_were_written() {
    let mut text = TextWriter::new();
    text.push("InitiatorName", "iqn.2026-01.example:a");
    text.push("SessionType", "Normal");
    assert_eq!(text.bytes(), b"InitiatorName=iqn.2026-01.example:a\0SessionType=Normal\0");
    let expected = vec![("InitiatorName", "iqn.2026-01.example:a"), ("SessionType", "Normal")];
    assert_eq!(read(text.bytes()), Ok(expected));
}

#[test]
fn a_value_may_be_empty_and_may_hold_equals_signs() {
    assert_eq!(read(b"A=\0B=x=y\0"), Ok(vec![("A", ""), ("B", "x=y")]));
}

#[test]
fn a_value_may_be_any_utf8() {
    assert_eq!(read("InitiatorAlias=Spëicher ☃\0".as_bytes()), Ok(vec![("InitiatorAlias", "Spëicher ☃")]));
    assert_eq!(read(b"InitiatorAlias=\xff\0"), Err(NotUtf8));
}

#[test]
fn an_empty_text_has_no_pairs() {
    assert_eq!(read(b""), Ok(vec![]));
}

#[test]
fn padding_that_was_counted_as_text_is_passed_over() {
    assert_eq!(read(b"A=1\0\0\0\0"), Ok(vec![("A", "1")]));
}

#[test]
fn a_pair_without_its_null_is_refused() {
    assert_eq!(read(b"A=1\0B=2"), Err(Unterminated));
}

#[test]
fn a_pair_without_an_equals_sign_is_refused() {
    assert_eq!(read(b"HeaderDigest\0"), Err(NoValue));
}

#[test]
fn reading_ends_with_the_first_error() {
    let results: Vec<_> = pairs(b"A=1\0oops\0B=2\0").collect();
    assert_eq!(results, [Ok(("A", "1")), Err(NoValue)]);
}

#[test]
fn registered_keys_that_are_no_standard_labels_are_taken() {
    for key in ["X#NodeArchitecture", "iSCSIProtocolLevel", "X-com.example.Fast", "CHAP_A"] {
        assert_eq!(read(format!("{key}=1\0").as_bytes()), Ok(vec![(key, "1")]));
    }
}

#[test]
fn a_key_name_that_is_none_is_refused() {
    for text in ["=1\0", "A B=1\0", "1A=1\0", "A,B=1\0", "Ä=1\0"] {
        assert_eq!(read(text.as_bytes()), Err(KeyName), "{text:?}");
    }
}

#[test]
fn a_key_name_has_at_most_63_bytes() {
    let longest = "K".repeat(KEY_BYTES_MAX);
    assert_eq!(read(format!("{longest}=\0").as_bytes()), Ok(vec![(longest.as_str(), "")]));
    assert_eq!(read(format!("{longest}K=\0").as_bytes()), Err(KeyName));
}

#[test]
fn a_value_has_at_most_8192_bytes() {
    let longest = "v".repeat(VALUE_BYTES_MAX);
    assert_eq!(read(format!("K={longest}\0").as_bytes()), Ok(vec![("K", longest.as_str())]));
    assert_eq!(read(format!("K={longest}v\0").as_bytes()), Err(ValueTooLong { bytes: VALUE_BYTES_MAX + 1 }));
}

#[test]
fn extension_keys_are_told_from_others() {
    assert!(is_extension_key("X-com.example.Fast"));
    assert!(is_extension_key("X#NodeArchitecture"));
    assert!(!is_extension_key("Xylophone"));
}

#[test]
fn a_null_cannot_be_smuggled_into_a_text() {
    let mut text = TextWriter::new();
    text.push("TargetAlias", "a\0MaxConnections=64");
    assert_eq!(text.bytes(), b"TargetAlias=a\0");
}

#[test]
fn segments_that_go_on_are_joined() {
    let mut assembler = Assembler::new(64);
    assert_eq!(assembler.push(b"Header", true), Ok(None));
    assert_eq!(assembler.push(b"Digest=None\0", false), Ok(Some(b"HeaderDigest=None\0".to_vec())));
    assert_eq!(assembler.push(b"A=1\0", false), Ok(Some(b"A=1\0".to_vec())));
}

#[test]
fn a_text_that_never_ends_is_cut_off_at_the_limit() {
    let mut assembler = Assembler::new(8);
    assert_eq!(assembler.push(b"12345678", true), Ok(None));
    assert_eq!(assembler.push(b"9", true), Err(TooLong { bytes_max: 8 }));
}

#[test]
fn an_empty_text_is_one_empty_segment() {
    assert_eq!(segments(b"", 512).collect::<Vec<_>>(), [(&b""[..], false)]);
}

proptest! {
    #[test]
    fn a_text_cut_into_segments_is_joined_again(text: Vec<u8>, segment_bytes_max in 0..40usize) {
        let mut assembler = Assembler::new(text.len());
        let mut joined = None;
        for (segment, continued) in segments(&text, segment_bytes_max) {
            prop_assert!(segment.len() <= segment_bytes_max.max(1));
            prop_assert_eq!(joined, None);
            joined = assembler.push(segment, continued).unwrap();
        }
        prop_assert_eq!(joined, Some(text));
    }

    #[test]
    fn a_written_text_is_read_back(
        sent in prop::collection::vec(("[A-Za-z][A-Za-z0-9.+@_#-]{0,62}", "[^\0]{0,40}"), 0..10),
    ) {
        let mut text = TextWriter::new();
        for (key, value) in &sent {
            text.push(key, value);
        }
        let sent: Vec<_> = sent.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        prop_assert_eq!(read(text.bytes()), Ok(sent));
    }
}
