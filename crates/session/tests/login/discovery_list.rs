//! The answer to SendTargets.

use proptest::prelude::*;
use ropewalk_session::discovery::{ADDRESSES_PER_TARGET_MAX, InvalidTargetList, parse, write};
use ropewalk_session::target::TargetRecord;

fn record(name: &str, addresses: &[&str]) -> TargetRecord {
    let target_addresses = addresses.iter().map(|&address| address.into()).collect();
    TargetRecord { target_name: name.into(), target_addresses }
}

#[test]
fn a_list_is_read_as_it_was_written() {
    let records = [
        record("iqn.2026-11.org.example:a", &["192.0.2.1:3260,1", "[2001:db8::1]:3260,2"]),
        record("naa.62004567BA64678D0123456789ABCDEF", &[]),
    ];
    assert_eq!(parse(&write(&records)).unwrap(), records);
}

#[test]
fn no_targets_is_a_list_too() {
    assert_eq!(parse(b"").unwrap(), []);
}

#[test]
fn an_address_belongs_to_the_target_before_it() {
    assert_eq!(parse(b"TargetAddress=192.0.2.1,1\0"), Err(InvalidTargetList::AddressWithoutTarget));
}

#[test]
fn hostile_names_and_addresses_are_refused() {
    assert_eq!(parse(b"TargetName=../x\0"), Err(InvalidTargetList::Name));
    assert_eq!(parse(b"TargetName=iqn.a\0TargetAddress=a b\0"), Err(InvalidTargetList::Address));
    assert_eq!(parse(b"TargetName=iqn.a\0TargetAddress=\0"), Err(InvalidTargetList::Address));
    let endless = format!("TargetName=iqn.a\0{}", "TargetAddress=a\0".repeat(ADDRESSES_PER_TARGET_MAX + 1));
    assert_eq!(parse(endless.as_bytes()), Err(InvalidTargetList::TooMany));
}

#[test]
fn keys_that_should_not_be_there_are_passed_over() {
    let text = b"TargetName=iqn.a\0TargetAlias=disk\0TargetAddress=a,1\0X-b=c\0";
    assert_eq!(parse(text).unwrap(), [record("iqn.a", &["a,1"])]);
}

/// A key that belongs into a list, or does not.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z0-9.:-]{1,8}".prop_map(|name| format!("TargetName=iqn.2026-11.{name}\0")),
        4 => "[0-9.:,]{1,12}".prop_map(|address| format!("TargetAddress={address}\0")),
        2 => (1_u8..255).prop_map(|host| format!("TargetAddress=192.0.2.{host}:3260,1\0")),
        1 => "[ -~]{0,8}",
    ]
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_survived(text in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&text);
    }

    #[test]
    fn whatever_is_read_can_be_written_and_read_again(pieces in proptest::collection::vec(piece(), 0..12)) {
        let text = pieces.concat();
        if let Ok(records) = parse(text.as_bytes()) {
            prop_assert!(records.iter().all(|record| record.target_addresses.len() <= ADDRESSES_PER_TARGET_MAX));
            prop_assert_eq!(parse(&write(&records)), Ok(records));
        }
    }
}
