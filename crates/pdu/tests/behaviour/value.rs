//! The forms of values (RFC 7143 §6.1).

use proptest::prelude::*;
use ropewalk_pdu::InvalidValue::{
    BinaryTooLong, EmptyElement, NotABoolean, NotANumber, NotARange, NotBinary, OutOfRange,
};
use ropewalk_pdu::text_value::{
    base64_text, binary, boolean, boolean_text, hexadecimal_text, list, numerical, range,
};

const ANY: std::ops::RangeInclusive<u64> = 0..=u64::MAX;

#[test]
fn a_number_is_decimal_or_hexadecimal() {
    assert_eq!(numerical("0", ANY), Ok(0));
    assert_eq!(numerical("262144", ANY), Ok(262_144));
    assert_eq!(numerical("0x40000", ANY), Ok(262_144));
    assert_eq!(numerical("0XfF", ANY), Ok(255));
    assert_eq!(numerical("18446744073709551615", ANY), Ok(u64::MAX));
}

#[test]
fn what_is_no_number_is_refused() {
    for value in [
        "",
        "-1",
        "+1",
        "0x",
        "0x+1",
        "0xg",
        "1 ",
        "007",
        "1e3",
        "18446744073709551616",
        "0x10000000000000000",
    ] {
        assert_eq!(numerical(value, ANY), Err(NotANumber), "{value:?}");
    }
}

#[test]
fn a_number_out_of_bounds_is_refused() {
    assert_eq!(numerical("512", 512..=4096), Ok(512));
    assert_eq!(numerical("511", 512..=4096), Err(OutOfRange { found: 511, min: 512, max: 4096 }));
}

#[test]
fn a_range_goes_from_low_to_high() {
    assert_eq!(range("16~0x20", ANY), Ok(16..=32));
    assert_eq!(range("5~5", ANY), Ok(5..=5));
    assert_eq!(range("6~5", ANY), Err(NotARange));
    assert_eq!(range("5", ANY), Err(NotARange));
    assert_eq!(range("1~2~3", ANY), Err(NotANumber));
    assert_eq!(range("1~9", 0..=8), Err(OutOfRange { found: 9, min: 0, max: 8 }));
}

#[test]
fn a_boolean_is_yes_or_no_and_nothing_else() {
    assert_eq!(boolean("Yes"), Ok(true));
    assert_eq!(boolean("No"), Ok(false));
    assert_eq!(boolean("yes"), Err(NotABoolean));
    assert_eq!(boolean(boolean_text(true)), Ok(true));
    assert_eq!(boolean(boolean_text(false)), Ok(false));
}

#[test]
fn a_list_keeps_the_order_of_preference() {
    let elements: Vec<_> = list("CRC32C,None").unwrap().collect();
    assert_eq!(elements, ["CRC32C", "None"]);
}

#[test]
fn a_list_with_a_gap_is_refused() {
    for value in ["", ",None", "CRC32C,,None", "None,"] {
        assert_eq!(list(value).err(), Some(EmptyElement), "{value:?}");
    }
}

#[test]
fn an_odd_number_of_hexadecimal_digits_starts_with_half_a_byte() {
    assert_eq!(binary("0x123", 2), Ok(vec![0x01, 0x23]));
    assert_eq!(binary("0X00fF", 2), Ok(vec![0x00, 0xff]));
}

#[test]
fn base64_is_the_standard_alphabet_with_padding() {
    assert_eq!(binary("0bAAH/", 3), Ok(vec![0, 1, 255]));
    assert_eq!(binary("0B/w==", 1), Ok(vec![255]));
}

#[test]
fn what_is_neither_hexadecimal_nor_base64_is_refused() {
    for value in ["", "0", "0x", "0b", "0xg0", "0b/w", "0b====", "12", "é1"] {
        assert_eq!(binary(value, 16), Err(NotBinary), "{value:?}");
    }
}

#[test]
fn a_binary_value_beyond_its_limit_is_refused() {
    assert_eq!(binary("0x0011", 1), Err(BinaryTooLong { bytes_max: 1 }));
    assert_eq!(binary("0b//8=", 1), Err(BinaryTooLong { bytes_max: 1 }));
    assert_eq!(binary(&format!("0b{}", "A".repeat(4000)), 8), Err(BinaryTooLong { bytes_max: 8 }));
}

proptest! {
    #[test]
    fn written_binary_values_are_read_back(bytes in prop::collection::vec(any::<u8>(), 1..64)) {
        prop_assert_eq!(binary(&hexadecimal_text(&bytes), bytes.len()), Ok(bytes.clone()));
        prop_assert_eq!(binary(&base64_text(&bytes), bytes.len()), Ok(bytes));
    }
}
