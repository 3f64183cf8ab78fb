//! UNMAP, WRITE SAME and GET LBA STATUS.

use crate::world::{cdb, data, full, illegal, out_of_range, refusal, thin};
use ropewalk_scsi::{
    AdditionalSense, BlockLength, Blocks, Disk, Extent, FieldPointer, GetLbaStatus, Lba, Limits, Outcome,
    Pattern, ProvisioningStatus, Sense, Step,
};

fn unmap(bytes: u16) -> Vec<u8> {
    cdb(10, &[(0, &[0x42]), (7, &bytes.to_be_bytes())])
}

fn unmap_list(extents: &[(u64, u32)]) -> Vec<u8> {
    let descriptor_bytes = u16::try_from(extents.len() * 16).expect("fits");
    let mut list = vec![0; 8];
    list[..2].copy_from_slice(&(descriptor_bytes + 6).to_be_bytes());
    list[2..4].copy_from_slice(&descriptor_bytes.to_be_bytes());
    for (lba, blocks) in extents {
        list.extend(lba.to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
    }
    list
}

fn unmapped(disk: &Disk, list: &[u8]) -> Step {
    let bytes = unmap(u16::try_from(list.len()).expect("fits"));
    assert_eq!(disk.begin(&bytes), Step::Parameter { bytes: u32::try_from(list.len()).expect("fits") });
    disk.parameter(&bytes, list)
}

fn length_error() -> Sense {
    illegal(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR)
}

#[test]
fn unmap_names_its_extents() {
    let step = unmapped(&thin(), &unmap_list(&[(8, 16), (99_992, 8)]));
    assert_eq!(step, Step::Unmap(vec![Extent::new(8, 16), Extent::new(99_992, 8)]));
}

#[test]
fn unmap_of_overlapping_extents_is_no_error() {
    let step = unmapped(&thin(), &unmap_list(&[(8, 16), (8, 32)]));
    assert_eq!(step, Step::Unmap(vec![Extent::new(8, 16), Extent::new(8, 32)]));
}

#[test]
fn unmap_of_nothing_is_no_error() {
    assert_eq!(thin().begin(&unmap(0)), Step::Unmap(vec![]));
    assert_eq!(unmapped(&thin(), &unmap_list(&[])), Step::Unmap(vec![]));
    assert_eq!(unmapped(&thin(), &unmap_list(&[(0, 0), (100_000, 0)])), Step::Unmap(vec![]));
}

#[test]
fn unmap_beyond_the_end_is_out_of_range() {
    let out_of_range = illegal(AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE);
    for wrong in [(99_999, 2), (100_001, 0), (u64::MAX, u32::MAX)] {
        let sense = refusal(unmapped(&thin(), &unmap_list(&[(0, 1), wrong])));
        assert_eq!(sense, out_of_range.at(FieldPointer::parameter(24)));
    }
}

#[test]
fn unmap_is_bounded_in_descriptors_and_in_blocks() {
    let limits = Limits { unmap_descriptors_max: 2, unmap_blocks_max: 100, ..Limits::default() };
    let disk = Disk { limits, ..thin() };
    assert_eq!(
        refusal(unmapped(&disk, &unmap_list(&[(0, 1); 3]))),
        Sense::invalid_field_in_parameter_list(2)
    );
    assert_eq!(
        refusal(unmapped(&disk, &unmap_list(&[(0, 60), (100, 60)]))),
        Sense::invalid_field_in_parameter_list(32)
    );
}

#[test]
fn an_unmap_list_that_contradicts_its_length_is_refused() {
    let list = unmap_list(&[(0, 1)]);
    let bytes = unmap(24);
    assert_eq!(refusal(thin().parameter(&bytes, &list[..23])), length_error());
    let mut longer = list.clone();
    longer[3] = 32;
    assert_eq!(refusal(thin().parameter(&bytes, &longer)), length_error());
    let mut longer = list.clone();
    longer[1] = 40;
    assert_eq!(refusal(thin().parameter(&bytes, &longer)), length_error());
    for short in 1..8 {
        assert_eq!(refusal(thin().begin(&unmap(short))).additional, length_error().additional);
    }
}

#[test]
fn an_incomplete_unmap_descriptor_is_ignored() {
    let mut list = unmap_list(&[(0, 1), (5, 1)]);
    list[3] = 31;
    assert_eq!(unmapped(&thin(), &list), Step::Unmap(vec![Extent::new(0, 1)]));
}

fn write_same_16(flags: u8, lba: u64, blocks: u32) -> Vec<u8> {
    cdb(16, &[(0, &[0x93, flags]), (2, &lba.to_be_bytes()), (10, &blocks.to_be_bytes())])
}

fn write_same_10(flags: u8, lba: u32, blocks: u16) -> Vec<u8> {
    cdb(10, &[(0, &[0x41, flags]), (2, &lba.to_be_bytes()), (7, &blocks.to_be_bytes())])
}

#[test]
fn write_same_repeats_one_block() {
    for bytes in [write_same_10(0, 7, 9), write_same_16(0, 7, 9)] {
        let step = full().begin(&bytes);
        let extent = Extent::new(7, 9);
        assert_eq!(step, Step::WriteSame { extent, pattern: Pattern::DataOut, unmap: false });
        assert_eq!(step.data_out_bytes(BlockLength::B4096), 4096);
    }
}

#[test]
fn write_same_without_data_out_writes_zeroes() {
    let step = thin().begin(&write_same_16(0x09, 7, 9));
    assert_eq!(step, Step::WriteSame { extent: Extent::new(7, 9), pattern: Pattern::Zeroes, unmap: true });
    assert_eq!(step.data_out_bytes(BlockLength::B512), 0);
}

#[test]
fn write_same_may_unmap_only_on_a_thin_disk() {
    for bytes in [write_same_10(0x08, 0, 1), write_same_16(0x08, 0, 1)] {
        assert!(matches!(thin().begin(&bytes), Step::WriteSame { unmap: true, .. }));
        let field = FieldPointer::cdb_bit(1, 3);
        assert_eq!(refusal(full().begin(&bytes)), Sense::invalid_field_in_cdb(field));
    }
}

#[test]
fn nothing_is_anchored() {
    for bytes in [write_same_10(0x18, 0, 1), write_same_16(0x10, 0, 1)] {
        let field = FieldPointer::cdb_bit(1, 4);
        assert_eq!(refusal(thin().begin(&bytes)), Sense::invalid_field_in_cdb(field));
    }
}

#[test]
fn write_same_of_no_blocks_is_refused_and_not_taken_for_all_to_the_end() {
    for (bytes, byte) in [(write_same_10(0, 99_000, 0), 7), (write_same_16(0, 99_000, 0), 10)] {
        let field = FieldPointer::cdb(byte);
        assert_eq!(refusal(full().begin(&bytes)), Sense::invalid_field_in_cdb(field));
    }
}

#[test]
fn a_disk_may_take_no_blocks_for_all_to_the_end_within_bounds() {
    let limits = Limits { write_same_to_end: true, write_same_blocks_max: Blocks(1000), ..Limits::default() };
    let disk = Disk { limits, ..full() };
    for bytes in [write_same_10(0, 99_000, 0), write_same_16(0, 99_000, 0)] {
        let Step::WriteSame { extent, .. } = disk.begin(&bytes) else { panic!() };
        assert_eq!(extent, Extent { lba: Lba(99_000), blocks: Blocks(1000) });
    }
    let field = FieldPointer::cdb(10);
    assert_eq!(refusal(disk.begin(&write_same_16(0, 98_999, 0))), Sense::invalid_field_in_cdb(field));
    assert_eq!(refusal(disk.begin(&write_same_16(0, 100_000, 0))), out_of_range(2));
}

#[test]
fn write_same_is_bounded() {
    let limits = Limits { write_same_blocks_max: Blocks(100), ..Limits::default() };
    let disk = Disk { limits, ..full() };
    let field = FieldPointer::cdb(10);
    assert_eq!(refusal(disk.begin(&write_same_16(0, 0, 101))), Sense::invalid_field_in_cdb(field));
    assert!(matches!(disk.begin(&write_same_16(0, 0, 100)), Step::WriteSame { .. }));
}

#[test]
fn write_same_beyond_the_end_is_out_of_range() {
    for (lba, blocks) in [(99_999, 2), (100_001, 0), (u64::MAX, 1)] {
        assert_eq!(refusal(full().begin(&write_same_16(0, lba, blocks))), out_of_range(2));
    }
}

fn lba_status(disk: &Disk, lba: u64, allocation_bytes: u32) -> Step {
    let fields: [(usize, &[u8]); 3] =
        [(0, &[0x9e, 0x12]), (2, &lba.to_be_bytes()), (10, &allocation_bytes.to_be_bytes())];
    disk.begin(&cdb(16, &fields))
}

fn question(disk: &Disk, lba: u64, allocation_bytes: u32) -> GetLbaStatus {
    match lba_status(disk, lba, allocation_bytes) {
        Step::GetLbaStatus(question) => question,
        other => panic!("{other:?}"),
    }
}

/// LBA, blocks and status of each descriptor.
fn descriptors(outcome: Outcome) -> Vec<(u64, u32, u8)> {
    let data = data(Step::Done(outcome));
    assert_eq!(u32::from_be_bytes([data[0], data[1], data[2], data[3]]) as usize, data.len() - 4);
    let (descriptors, rest) = data[8..].as_chunks::<16>();
    assert!(rest.is_empty());
    let field = |d: &[u8; 16]| {
        let (lba, blocks) = (d[..8].try_into().expect("fits"), d[8..12].try_into().expect("fits"));
        (u64::from_be_bytes(lba), u32::from_be_bytes(blocks), d[12])
    };
    descriptors.iter().map(field).collect()
}

#[test]
fn lba_status_lists_runs_from_the_block_asked_for() {
    let question = question(&thin(), 50, 8 + 3 * 16);
    assert_eq!((question.extent, question.runs_max), (Extent::new(50, 99_950), 3));
    let runs =
        [(Blocks(14), ProvisioningStatus::Mapped), (Blocks(u64::MAX), ProvisioningStatus::Deallocated)];
    assert_eq!(descriptors(question.respond(runs)), [(50, 14, 0), (64, 99_936, 1)]);
}

#[test]
fn lba_status_of_no_known_run_is_mapped() {
    assert_eq!(descriptors(question(&full(), 0, 100).respond([])), [(0, 100_000, 0)]);
}

#[test]
fn lba_status_stops_after_a_run_too_long_for_its_field() {
    let disk = Disk { blocks: Blocks(1 << 40), ..thin() };
    let runs =
        [(Blocks(1 << 33), ProvisioningStatus::Deallocated), (Blocks(u64::MAX), ProvisioningStatus::Mapped)];
    assert_eq!(descriptors(question(&disk, 0, 1000).respond(runs)), [(0, u32::MAX, 1)]);
}

#[test]
fn lba_status_beyond_the_end_is_out_of_range() {
    for lba in [100_000, 100_001, u64::MAX] {
        assert_eq!(refusal(lba_status(&thin(), lba, 100)), out_of_range(2));
    }
}

#[test]
fn lba_status_is_cut_to_the_allocation_length_and_bounded() {
    assert_eq!(question(&thin(), 0, u32::MAX).runs_max, 1024);
    let question = question(&thin(), 0, 10);
    assert_eq!(question.runs_max, 1);
    assert_eq!(data(Step::Done(question.respond([]))), [0, 0, 0, 20, 0, 0, 0, 0, 0, 0]);
}
