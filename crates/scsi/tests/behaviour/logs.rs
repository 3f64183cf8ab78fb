//! LOG SENSE and READ DEFECT DATA: there is little to tell, and it is told properly.

use crate::world::{cdb, data, full, refusal};
use ropewalk_scsi::{FieldPointer, Sense, Step};

fn log_sense(page: u8, subpage: u8, pointer: u16, allocation_bytes: u16) -> Step {
    let fields: [(usize, &[u8]); 3] =
        [(0, &[0x4d, 0, page, subpage]), (5, &pointer.to_be_bytes()), (7, &allocation_bytes.to_be_bytes())];
    full().begin(&cdb(10, &fields))
}

#[test]
fn supported_log_pages_are_listed_and_are_there() {
    let listed = data(log_sense(0x40, 0, 0, 255));
    assert_eq!(listed, [0, 0, 0, 2, 0x00, 0x2f]);
    for code in &listed[4..] {
        assert_eq!(data(log_sense(0x40 | code, 0, 0, 255))[0], *code);
    }
}

#[test]
fn supported_subpages_are_listed_and_are_there() {
    let listed = data(log_sense(0, 0xff, 0, 255));
    assert_eq!(listed, [0x40, 0xff, 0, 6, 0x00, 0x00, 0x00, 0xff, 0x2f, 0x00]);
    let (pairs, rest) = listed[4..].as_chunks::<2>();
    assert!(rest.is_empty());
    for [code, subpage] in pairs {
        assert_eq!(data(log_sense(*code, *subpage, 0, 255))[1], *subpage);
    }
}

#[test]
fn no_failure_is_foreseen() {
    assert_eq!(data(log_sense(0x2f, 0, 0, 255)), [0x2f, 0, 0, 8, 0, 0, 3, 4, 0, 0, 0xff, 0]);
    assert_eq!(data(log_sense(0x2f, 0, 0, 5)), [0x2f, 0, 0, 8, 0]);
}

#[test]
fn unknown_log_pages_and_parameters_are_refused() {
    let invalid = Sense::invalid_field_in_cdb;
    assert_eq!(refusal(log_sense(0x02, 0, 0, 255)), invalid(FieldPointer::cdb_bit(2, 5)));
    assert_eq!(refusal(log_sense(0x2f, 1, 0, 255)), invalid(FieldPointer::cdb(3)));
    assert_eq!(refusal(log_sense(0x2f, 0, 1, 255)), invalid(FieldPointer::cdb(5)));
}

#[test]
fn the_defect_lists_that_are_asked_for_are_empty() {
    let ten = cdb(10, &[(0, &[0x37, 0, 0x1d]), (8, &[32])]);
    assert_eq!(data(full().begin(&ten)), [0, 0x1d, 0, 0]);
    let twelve = cdb(12, &[(0, &[0xb7, 0x0c]), (9, &[32])]);
    assert_eq!(data(full().begin(&twelve)), [0, 0x0c, 0, 0, 0, 0, 0, 0]);
}
