//! Disks whose medium can be removed, and what commands need of a medium.

use crate::world::{data, full, refusal, removable};
use ropewalk_scsi::{AdditionalSense, Extent, FieldPointer, MediumAccess, Outcome, Sense, Step};

fn start_stop(flags: u8) -> [u8; 6] {
    [0x1b, 0, 0, 0, flags, 0]
}

const START: u8 = 0x01;
const LOEJ: u8 = 0x02;
const NO_FLUSH: u8 = 0x04;

#[test]
fn inquiry_tells_that_the_medium_is_removable() {
    assert_eq!(data(removable().begin(&[0x12, 0, 0, 0, 96, 0]))[1], 0x80);
    assert_eq!(data(full().begin(&[0x12, 0, 0, 0, 96, 0]))[1], 0);
}

#[test]
fn a_medium_is_loaded_and_ejected() {
    assert_eq!(removable().begin(&start_stop(LOEJ | START)), Step::Load);
    assert_eq!(removable().begin(&start_stop(LOEJ)), Step::Eject { flush: true });
    assert_eq!(removable().begin(&start_stop(LOEJ | NO_FLUSH)), Step::Eject { flush: false });
}

#[test]
fn stopping_without_ejecting_flushes() {
    let extent = Extent::new(0, 100_000);
    assert_eq!(removable().begin(&start_stop(0)), Step::Flush { extent, immediate: false });
    assert_eq!(removable().begin(&start_stop(START)), Step::Done(Outcome::good()));
}

#[test]
fn a_power_condition_never_ejects() {
    for condition in 1..16 {
        assert_eq!(removable().begin(&start_stop(condition << 4 | LOEJ)), Step::Done(Outcome::good()));
    }
}

#[test]
fn removal_is_prevented_and_allowed() {
    assert_eq!(removable().begin(&[0x1e, 0, 0, 0, 1, 0]), Step::PreventRemoval(true));
    assert_eq!(removable().begin(&[0x1e, 0, 0, 0, 0, 0]), Step::PreventRemoval(false));
    let field = FieldPointer::cdb_bit(4, 1);
    assert_eq!(refusal(removable().begin(&[0x1e, 0, 0, 0, 2, 0])), Sense::invalid_field_in_cdb(field));
}

#[test]
fn a_fixed_medium_is_neither_ejected_nor_kept() {
    let field = FieldPointer::cdb_bit(4, 1);
    assert_eq!(refusal(full().begin(&start_stop(LOEJ))), Sense::invalid_field_in_cdb(field));
    let sense = refusal(full().begin(&[0x1e, 0, 0, 0, 1, 0]));
    assert_eq!(sense.additional, AdditionalSense::INVALID_COMMAND_OPERATION_CODE);
}

#[test]
fn every_command_that_changes_blocks_needs_a_writable_medium() {
    for code in [0x0a, 0x2a, 0x2e, 0x41, 0x42, 0x89, 0x8a, 0x8b, 0x8e, 0x93, 0xaa, 0xae] {
        assert_eq!(MediumAccess::of(&[code]), MediumAccess::Write, "{code:02x}");
    }
}

#[test]
fn every_command_that_asks_about_blocks_needs_a_medium() {
    for code in
        [0x00, 0x08, 0x25, 0x28, 0x2f, 0x34, 0x35, 0x37, 0x83, 0x88, 0x8f, 0x90, 0x91, 0x9e, 0xa8, 0xaf, 0xb7]
    {
        assert_eq!(MediumAccess::of(&[code]), MediumAccess::Read, "{code:02x}");
    }
}

#[test]
fn commands_to_the_unit_need_no_medium() {
    for code in [0x03, 0x12, 0x15, 0x1a, 0x1b, 0x1e, 0x4d, 0x55, 0x5a, 0x5e, 0x5f, 0x84, 0xa0, 0xa3, 0xff] {
        assert_eq!(MediumAccess::of(&[code]), MediumAccess::None, "{code:02x}");
    }
    assert_eq!(MediumAccess::of(&[]), MediumAccess::None);
}
