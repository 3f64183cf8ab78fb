//! READ, WRITE, VERIFY, COMPARE AND WRITE, SYNCHRONIZE CACHE: what blocks they mean and what is refused.

use crate::world;
use crate::world::{cdb, full, out_of_range, read_only, refusal, thin, write_protected};
use ropewalk_scsi::{
    AdditionalSense, BlockLength, Blocks, Compare, Disk, Extent, FieldPointer, Limits, Sense, Step,
};

const LAST: u32 = 99_999;

/// CDBs of the ten, twelve and sixteen byte forms of a command, with the byte where the count stands.
fn forms(codes: [u8; 3], flags: u8, lba: u32, blocks: u16) -> [(Vec<u8>, u16); 3] {
    let long = u32::from(blocks);
    let ten = cdb(10, &[(0, &[codes[0], flags]), (2, &lba.to_be_bytes()), (7, &blocks.to_be_bytes())]);
    let twelve = cdb(12, &[(0, &[codes[1], flags]), (2, &lba.to_be_bytes()), (6, &long.to_be_bytes())]);
    let lba = u64::from(lba).to_be_bytes();
    let sixteen = cdb(16, &[(0, &[codes[2], flags]), (2, &lba), (10, &long.to_be_bytes())]);
    [(ten, 7), (twelve, 6), (sixteen, 10)]
}

const READ: [u8; 3] = [0x28, 0xa8, 0x88];
const WRITE: [u8; 3] = [0x2a, 0xaa, 0x8a];
const VERIFY: [u8; 3] = [0x2f, 0xaf, 0x8f];
const WRITE_AND_VERIFY: [u8; 3] = [0x2e, 0xae, 0x8e];

#[test]
fn reads_name_their_blocks() {
    for (bytes, _) in forms(READ, 0, 1000, 7) {
        assert_eq!(full().begin(&bytes), Step::Read { extent: Extent::new(1000, 7), fua: false });
    }
}

#[test]
fn writes_name_their_blocks() {
    for (bytes, _) in forms(WRITE, 0, 1000, 7) {
        let step = full().begin(&bytes);
        assert_eq!(step, Step::Write { extent: Extent::new(1000, 7), fua: false });
        assert_eq!(step.data_out_bytes(BlockLength::B512), 7 * 512);
        assert_eq!(step.data_out_bytes(BlockLength::B4096), 7 * 4096);
    }
}

#[test]
fn fua_is_passed_on_and_dpo_changes_nothing() {
    for (flags, expected) in [(0x08, true), (0x10, false), (0x18, true)] {
        for (bytes, _) in forms(READ, flags, 0, 1) {
            assert_eq!(full().begin(&bytes), Step::Read { extent: Extent::new(0, 1), fua: expected });
        }
        for (bytes, _) in forms(WRITE, flags, 0, 1) {
            assert_eq!(full().begin(&bytes), Step::Write { extent: Extent::new(0, 1), fua: expected });
        }
    }
}

#[test]
fn protection_information_is_refused() {
    for codes in [READ, WRITE, VERIFY] {
        for protect in 1..8 {
            for (bytes, _) in forms(codes, protect << 5, 0, 1) {
                assert_eq!(refusal(full().begin(&bytes)).additional, AdditionalSense::INVALID_FIELD_IN_CDB);
            }
        }
    }
}

#[test]
fn no_blocks_are_no_error() {
    for lba in [0, LAST, LAST + 1] {
        for (bytes, _) in forms(READ, 0, lba, 0) {
            let step = full().begin(&bytes);
            assert_eq!(step, Step::Read { extent: Extent::new(lba.into(), 0), fua: false });
            assert_eq!(step.data_in_bytes(BlockLength::B512), 0);
        }
    }
}

#[test]
fn blocks_beyond_the_end_are_out_of_range() {
    for codes in [READ, WRITE, VERIFY] {
        for (lba, blocks) in [(LAST, 2), (LAST + 1, 1), (LAST + 2, 0), (0x8000_0000, 0), (u32::MAX, 1)] {
            for (bytes, _) in forms(codes, 0, lba, blocks) {
                assert_eq!(refusal(full().begin(&bytes)), out_of_range(2));
            }
        }
    }
}

#[test]
fn an_address_that_overflows_is_out_of_range() {
    let bytes = cdb(16, &[(0, &[0x88]), (2, &[0xff; 8]), (10, &[0, 0, 0, 1])]);
    assert_eq!(refusal(full().begin(&bytes)), out_of_range(2));
}

#[test]
fn the_last_block_can_be_read() {
    for (bytes, _) in forms(READ, 0, LAST, 1) {
        assert_eq!(full().begin(&bytes), Step::Read { extent: Extent::new(LAST.into(), 1), fua: false });
    }
}

#[test]
fn more_than_the_maximum_transfer_length_is_an_invalid_field() {
    let disk = Disk { limits: Limits { transfer_bytes_max: 8 * 512, ..Limits::default() }, ..full() };
    for codes in [READ, WRITE, VERIFY] {
        for (bytes, field) in forms(codes, 0, 0, 9) {
            assert_eq!(refusal(disk.begin(&bytes)), Sense::invalid_field_in_cdb(FieldPointer::cdb(field)));
        }
    }
}

#[test]
fn six_byte_commands_have_21_bits_of_address_and_no_zero() {
    let disk = Disk { blocks: Blocks(1 << 22), ..full() };
    let extent = Extent::new(0x1f_ffff, 256);
    let bytes = [0x08, 0x1f, 0xff, 0xff, 0, 0];
    assert_eq!(disk.begin(&bytes), Step::Read { extent, fua: false });
    let bytes = [0x0a, 0x01, 0x02, 0x03, 9, 0];
    assert_eq!(disk.begin(&bytes), Step::Write { extent: Extent::new(0x01_0203, 9), fua: false });
}

#[test]
fn a_disk_of_more_than_two_tebibytes_is_reached_to_its_end() {
    let disk = Disk { blocks: Blocks(1 << 40), ..full() };
    let lba = (1u64 << 40) - 1;
    let bytes = cdb(16, &[(0, &[0x88]), (2, &lba.to_be_bytes()), (10, &[0, 0, 0, 1])]);
    assert_eq!(disk.begin(&bytes), Step::Read { extent: Extent::new(lba, 1), fua: false });
}

#[test]
fn bytchk_says_what_is_compared() {
    let cases =
        [(0b00, Compare::Medium, 0), (0b01, Compare::DataOut, 4 * 512), (0b11, Compare::OneBlock, 512)];
    for (bytchk, compare, out_bytes) in cases {
        for (bytes, _) in forms(VERIFY, bytchk << 1, 5, 4) {
            let step = full().begin(&bytes);
            assert_eq!(step, Step::Verify { extent: Extent::new(5, 4), compare });
            assert_eq!(step.data_out_bytes(BlockLength::B512), out_bytes);
        }
        for (bytes, _) in forms(VERIFY, bytchk << 1 | 0x10, 5, 0) {
            assert_eq!(full().begin(&bytes).data_out_bytes(BlockLength::B512), 0);
        }
    }
    for (bytes, _) in forms(VERIFY, 0b10 << 1, 5, 4) {
        let field = FieldPointer::cdb_bit(1, 2);
        assert_eq!(refusal(full().begin(&bytes)), Sense::invalid_field_in_cdb(field));
    }
}

fn compare_and_write(lba: u64, blocks: u8, flags: u8) -> Vec<u8> {
    cdb(16, &[(0, &[0x89, flags]), (2, &lba.to_be_bytes()), (13, &[blocks])])
}

#[test]
fn compare_and_write_brings_two_buffers() {
    let step = full().begin(&compare_and_write(9, 3, 0x08));
    assert_eq!(step, Step::CompareAndWrite { extent: Extent::new(9, 3), fua: true });
    assert_eq!(step.data_out_bytes(BlockLength::B512), 2 * 3 * 512);
}

#[test]
fn compare_and_write_is_bounded() {
    let disk = Disk { limits: Limits { compare_and_write_blocks_max: 4, ..Limits::default() }, ..full() };
    let field = FieldPointer::cdb(13);
    assert_eq!(refusal(disk.begin(&compare_and_write(0, 5, 0))), Sense::invalid_field_in_cdb(field));
    assert_eq!(refusal(disk.begin(&compare_and_write(99_999, 2, 0))), out_of_range(2));
}

#[test]
fn synchronize_cache_of_no_blocks_means_all_to_the_end() {
    for (lba, blocks, length) in [(1000, 0, 99_000), (1000, 5, 5), (0, 0, 100_000)] {
        let [(ten, _), _, (sixteen, _)] = forms([0x35, 0, 0x91], 0, lba, blocks);
        for bytes in [ten, sixteen] {
            let extent = Extent::new(lba.into(), length);
            assert_eq!(full().begin(&bytes), Step::Flush { extent, immediate: false });
        }
    }
    let [(ten, _), ..] = forms([0x35, 0, 0], 0x02, 0, 1);
    assert_eq!(full().begin(&ten), Step::Flush { extent: Extent::new(0, 1), immediate: true });
}

#[test]
fn stopping_flushes_and_starting_does_nothing() {
    let flush = Step::Flush { extent: full().extent(), immediate: false };
    assert_eq!(full().begin(&[0x1b, 0, 0, 0, 0x00, 0]), flush);
    for gentle in [0x01, 0x04] {
        assert_eq!(full().begin(&[0x1b, 0, 0, 0, gentle, 0]), Step::Done(ropewalk_scsi::Outcome::good()));
    }
}

#[test]
fn nothing_is_ejected_and_no_power_condition_is_entered() {
    for unsupported in [0x02, 0x03, 0x10, 0x30] {
        let sense = refusal(full().begin(&[0x1b, 0, 0, 0, unsupported, 0]));
        assert_eq!(sense.additional, AdditionalSense::INVALID_FIELD_IN_CDB);
    }
}

#[test]
fn a_read_only_disk_refuses_every_write() {
    let mut writes: Vec<Vec<u8>> = forms(WRITE, 0, 0, 1).map(|(bytes, _)| bytes).to_vec();
    writes.push(vec![0x0a, 0, 0, 0, 1, 0]);
    writes.push(compare_and_write(0, 1, 0));
    writes.push(cdb(10, &[(0, &[0x41, 0x08]), (7, &[0, 1])]));
    writes.push(cdb(16, &[(0, &[0x93, 0x09]), (10, &[0, 0, 0, 1])]));
    writes.push(cdb(10, &[(0, &[0x42]), (7, &[0, 24])]));
    for bytes in writes {
        assert_eq!(refusal(read_only().begin(&bytes)), write_protected(), "{bytes:02x?}");
    }
    for (bytes, _) in forms(READ, 0, 0, 1) {
        assert!(matches!(read_only().begin(&bytes), Step::Read { .. }));
    }
}

fn write_10(blocks: u16) -> Step {
    full().begin(&cdb(10, &[(0, &[0x2a]), (7, &blocks.to_be_bytes())]))
}

fn mismatched() -> Sense {
    world::illegal(AdditionalSense::INVALID_FIELD_IN_COMMAND_INFORMATION_UNIT)
}

#[test]
fn a_write_with_too_little_data_writes_the_blocks_it_has() {
    let written = |expected_bytes| write_10(2).with_data_out(expected_bytes, BlockLength::B512);
    assert_eq!(written(512), Step::Write { extent: Extent::new(0, 1), fua: false });
    assert_eq!(written(0), Step::Write { extent: Extent::new(0, 0), fua: false });
    assert_eq!(refusal(written(200)), mismatched());
}

#[test]
fn a_write_with_too_much_data_writes_its_own() {
    assert_eq!(write_10(1).with_data_out(10_000, BlockLength::B512), write_10(1));
}

#[test]
fn compare_and_write_and_write_same_want_exactly_their_data() {
    let compare = full().begin(&compare_and_write(0, 1, 0));
    let same = thin().begin(&cdb(10, &[(0, &[0x41, 0x08]), (7, &[0, 1])]));
    for (step, exact) in [(compare, 1024), (same, 512)] {
        assert_eq!(step.clone().with_data_out(exact, BlockLength::B512), step);
        for wrong in [0, exact / 2, exact - 1, exact * 2] {
            assert_eq!(refusal(step.clone().with_data_out(wrong, BlockLength::B512)), mismatched());
        }
    }
}

#[test]
fn compare_and_write_of_no_blocks_but_with_data_is_refused() {
    let step = full().begin(&compare_and_write(0, 0, 0));
    let field = FieldPointer::cdb(13);
    let refused = refusal(step.clone().with_data_out(512, BlockLength::B512));
    assert_eq!(refused, Sense::invalid_field_in_cdb(field));
    assert_eq!(step.clone().with_data_out(0, BlockLength::B512), step);
}

#[test]
fn a_comparison_without_all_its_data_is_refused() {
    let step = full().begin(&cdb(10, &[(0, &[0x2f, 0x02]), (7, &[0, 2])]));
    assert_eq!(refusal(step.clone().with_data_out(512, BlockLength::B512)), mismatched());
    assert_eq!(step.clone().with_data_out(4096, BlockLength::B512), step);
}

#[test]
fn write_and_verify_writes_and_then_reads_or_compares() {
    for (flags, compare) in [(0x00, Compare::Medium), (0x10, Compare::Medium), (0x02, Compare::DataOut)] {
        for (bytes, _) in forms(WRITE_AND_VERIFY, flags, 1000, 7) {
            let step = full().begin(&bytes);
            assert_eq!(step, Step::WriteAndVerify { extent: Extent::new(1000, 7), compare });
            assert_eq!(step.data_out_bytes(BlockLength::B512), 7 * 512);
        }
    }
    for (bytes, _) in forms(WRITE_AND_VERIFY, 0x04, 0, 1) {
        let field = FieldPointer::cdb_bit(1, 2);
        assert_eq!(refusal(full().begin(&bytes)), Sense::invalid_field_in_cdb(field));
    }
    for (bytes, _) in forms(WRITE_AND_VERIFY, 0, 0, 1) {
        assert_eq!(refusal(read_only().begin(&bytes)), write_protected());
    }
}

#[test]
fn write_and_verify_of_less_data_takes_the_blocks_that_come() {
    for (bytes, _) in forms(WRITE_AND_VERIFY, 2, 1000, 7) {
        let step = full().begin(&bytes).with_data_out(3 * 512, BlockLength::B512);
        assert_eq!(step, Step::WriteAndVerify { extent: Extent::new(1000, 3), compare: Compare::DataOut });
        let sense = refusal(full().begin(&bytes).with_data_out(100, BlockLength::B512));
        assert_eq!(sense.additional, AdditionalSense::INVALID_FIELD_IN_COMMAND_INFORMATION_UNIT);
    }
}

fn or_write(flags: u8, lba: u64, blocks: u32) -> Vec<u8> {
    cdb(16, &[(0, &[0x8b, flags]), (2, &lba.to_be_bytes()), (10, &blocks.to_be_bytes())])
}

#[test]
fn or_write_needs_all_of_its_data() {
    let step = full().begin(&or_write(0x08, 1000, 7));
    assert_eq!(step, Step::OrWrite { extent: Extent::new(1000, 7), fua: true });
    assert_eq!(step.data_out_bytes(BlockLength::B512), 7 * 512);
    let sense = refusal(step.with_data_out(3 * 512, BlockLength::B512));
    assert_eq!(sense.additional, AdditionalSense::INVALID_FIELD_IN_COMMAND_INFORMATION_UNIT);
    assert_eq!(refusal(read_only().begin(&or_write(0, 0, 1))), write_protected());
    assert_eq!(refusal(full().begin(&or_write(0, LAST.into(), 2))), out_of_range(2));
}

fn pre_fetch(flags: u8, lba: u32, blocks: u16) -> [Vec<u8>; 2] {
    let [(ten, _), _, (sixteen, _)] = forms([0x34, 0xff, 0x90], flags, lba, blocks);
    [ten, sixteen]
}

#[test]
fn pre_fetch_reads_what_fits() {
    for (flags, immediate) in [(0, false), (2, true)] {
        for bytes in pre_fetch(flags, 1000, 7) {
            let step = full().begin(&bytes);
            assert_eq!(step, Step::PreFetch { extent: Extent::new(1000, 7), immediate });
            assert_eq!(
                (step.data_in_bytes(BlockLength::B512), step.data_out_bytes(BlockLength::B512)),
                (0, 0)
            );
        }
    }
    for bytes in pre_fetch(0, LAST - 8, 0) {
        let extent = Extent::new((LAST - 8).into(), 9);
        assert_eq!(full().begin(&bytes), Step::PreFetch { extent, immediate: false });
    }
    for bytes in pre_fetch(0, LAST, 2) {
        assert_eq!(refusal(full().begin(&bytes)), out_of_range(2));
    }
}

#[test]
fn pre_fetch_of_too_much_fetches_nothing() {
    for bytes in pre_fetch(0, 0, 0) {
        assert_eq!(full().begin(&bytes), Step::Done(ropewalk_scsi::Outcome::good()));
    }
}
