//! EXTENDED COPY, RECEIVE COPY RESULTS and the page that tells of them.

use crate::world::{cdb, data, full, illegal, refusal};
use proptest::prelude::*;
use ropewalk_scsi::{
    AdditionalSense, BlockLength, Blocks, CopyRanges, CopySegment, CopyStatus, Disk, ExtendedCopy,
    FieldPointer, HeldCopies, Identity, Lba, Outcome, ReceiveCopyStatus, Sense, SenseKey, Step,
};

const DISCARD: u8 = 0x10;
const WITHOUT_IDENTIFIER: u8 = 0x18;

fn target(disk: &Disk) -> Vec<u8> {
    let mut descriptor = vec![0; 32];
    descriptor[0] = 0xe4;
    descriptor[4..8].copy_from_slice(&[1, 3, 0, 16]);
    descriptor[8..24].copy_from_slice(&disk.identity.naa.0);
    descriptor[28..].copy_from_slice(&disk.block.bytes().to_be_bytes());
    descriptor
}

fn segment(source: u8, destination: u8, blocks: u16, from: u64, to: u64) -> Vec<u8> {
    let start = [0x02, 0, 0, 24, 0, source, 0, destination, 0, 0];
    [&start[..], &blocks.to_be_bytes(), &from.to_be_bytes(), &to.to_be_bytes()].concat()
}

fn list(id: u8, flags: u8, targets: &[Vec<u8>], segments: &[Vec<u8>]) -> Vec<u8> {
    let (targets, segments) = (targets.concat(), segments.concat());
    let mut list = vec![id, flags];
    list.extend(u16::try_from(targets.len()).expect("fits").to_be_bytes());
    list.extend([0; 4]);
    list.extend(u32::try_from(segments.len()).expect("fits").to_be_bytes());
    list.extend([0; 4]);
    [list, targets, segments].concat()
}

fn command(bytes: usize) -> Vec<u8> {
    cdb(16, &[(0, &[0x83, 0]), (10, &u32::try_from(bytes).expect("fits").to_be_bytes())])
}

fn begun(list: &[u8]) -> Step {
    full().parameter(&command(list.len()), list)
}

fn copy(step: Step) -> ExtendedCopy {
    match step {
        Step::ExtendedCopy(copy) => copy,
        other => panic!("{other:?}"),
    }
}

fn simple() -> Vec<u8> {
    list(7, 0, &[target(&full())], &[segment(0, 0, 2048, 0, 90_000)])
}

fn aborted(additional: AdditionalSense) -> Sense {
    Sense::new(SenseKey::CopyAborted, additional)
}

#[test]
fn a_copy_names_devices_and_segments() {
    let copy = copy(begun(&simple()));
    assert_eq!((copy.list_id, copy.targets.len()), (Some(7), 1));
    assert!(copy.targets[0].names(&full()));
    let segment = CopySegment {
        source: 0,
        destination: 0,
        blocks: Blocks(2048),
        counts_destination: false,
        source_lba: Lba(0),
        destination_lba: Lba(90_000),
    };
    assert_eq!(copy.segments, [segment]);
    let ranges = CopyRanges { source_offset: 0, destination_offset: 90_000 * 512, bytes: 2048 * 512 };
    assert_eq!(segment.ranges(&full(), &full()), Ok(ranges));
}

#[test]
fn a_device_is_named_by_the_unit_s_naa_designator_only() {
    let other = Disk { identity: Identity::from_name("other"), ..full() };
    assert!(!copy(begun(&simple())).targets[0].names(&other));
    for (byte, wrong) in [(4, 2), (5, 0x13), (5, 2), (7, 8), (30, 4)] {
        let mut target = target(&full());
        target[byte] = wrong;
        let copy = copy(begun(&list(0, 0, &[target], &[])));
        assert!(!copy.targets[0].names(&full()), "{byte}");
    }
}

#[test]
fn no_list_is_no_error() {
    assert_eq!(full().begin(&command(0)), Step::Done(Outcome::good()));
}

#[test]
fn a_status_is_held_only_where_asked_for() {
    for (id, flags, held) in [(7, 0, Some(7)), (7, DISCARD, None), (0, WITHOUT_IDENTIFIER, None)] {
        assert_eq!(copy(begun(&list(id, flags, &[], &[]))).list_id, held);
    }
    let invalid = Sense::invalid_field_in_parameter_list;
    assert_eq!(refusal(begun(&list(7, WITHOUT_IDENTIFIER, &[], &[]))), invalid(0));
    assert_eq!(refusal(begun(&list(7, 0x08, &[], &[]))), invalid(1));
}

#[test]
fn a_cut_list_is_a_length_error() {
    let whole = simple();
    let length_error = illegal(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR);
    for length in 16..whole.len() {
        assert_eq!(refusal(begun(&whole[..length])), length_error, "{length}");
    }
    for length in (1..16).chain([16 + 16 * 32 + 64 * 28 + 1, usize::from(u16::MAX)]) {
        let sense = refusal(full().begin(&command(length)));
        assert_eq!(sense, length_error.at(FieldPointer::cdb(10)), "{length}");
    }
}

#[test]
fn more_than_the_operating_parameters_allow_is_refused() {
    let targets = vec![target(&full()); 17];
    let sense = refusal(begun(&list(0, 0, &targets, &[])));
    assert_eq!(sense, illegal(AdditionalSense::TOO_MANY_TARGET_DESCRIPTORS));
    let segments = vec![segment(0, 0, 1, 0, 0); 65];
    let sense = refusal(begun(&list(0, 0, &targets[..1], &segments)));
    assert_eq!(sense, illegal(AdditionalSense::TOO_MANY_SEGMENT_DESCRIPTORS));
    let mut inline = simple();
    inline[15] = 1;
    assert_eq!(refusal(begun(&inline)), illegal(AdditionalSense::INLINE_DATA_LENGTH_EXCEEDED));
}

#[test]
fn other_kinds_of_descriptors_are_refused_where_they_stand() {
    let mut fibre_channel = target(&full());
    fibre_channel[0] = 0xe0;
    let sense = refusal(begun(&list(0, 0, &[target(&full()), fibre_channel], &[])));
    let unsupported = illegal(AdditionalSense::UNSUPPORTED_TARGET_DESCRIPTOR_TYPE_CODE);
    assert_eq!(sense, unsupported.at(FieldPointer::parameter(48)));
    let stream = [vec![0x03, 0, 0, 16], vec![0; 16]].concat();
    let sense = refusal(begun(&list(0, 0, &[target(&full())], &[stream])));
    let unsupported = illegal(AdditionalSense::UNSUPPORTED_SEGMENT_DESCRIPTOR_TYPE_CODE);
    assert_eq!(sense, unsupported.at(FieldPointer::parameter(48)));
}

#[test]
fn devices_that_are_no_units_are_refused() {
    let with = |byte: usize, value: u8| {
        let mut target = target(&full());
        target[byte] = value;
        refusal(begun(&list(0, 0, &[target], &[])))
    };
    assert_eq!(with(1, 0x20), aborted(AdditionalSense::COPY_TARGET_DEVICE_NOT_REACHABLE));
    assert_eq!(with(1, 0x05), aborted(AdditionalSense::COPY_TARGET_DEVICE_NOT_REACHABLE));
    assert_eq!(with(7, 21), Sense::invalid_field_in_parameter_list(23));
}

#[test]
fn a_segment_of_a_device_that_is_not_listed_is_refused() {
    for (source, destination) in [(1, 0), (0, 1)] {
        let segments = [segment(source, destination, 1, 0, 0)];
        let sense = refusal(begun(&list(0, 0, &[target(&full())], &segments)));
        assert_eq!(sense, aborted(AdditionalSense::UNREACHABLE_COPY_TARGET));
    }
    let mut wrong_length = segment(0, 0, 1, 0, 0);
    wrong_length[3] = 20;
    let sense = refusal(begun(&list(0, 0, &[target(&full())], &[wrong_length])));
    assert_eq!(sense, Sense::invalid_field_in_parameter_list(50));
}

#[test]
fn a_segment_must_lie_within_both_devices() {
    let ranges = |blocks, from, to| {
        let segments = [segment(0, 0, blocks, from, to)];
        copy(begun(&list(0, 0, &[target(&full())], &segments))).segments[0].ranges(&full(), &full())
    };
    for (blocks, from, to) in [(2, 99_999, 0), (2, 0, 99_999), (1, u64::MAX, 0), (u16::MAX, 90_000, 0)] {
        assert_eq!(ranges(blocks, from, to), Err(aborted(AdditionalSense::NONE)));
    }
    assert!(ranges(1, 99_999, 0).is_ok());
}

#[test]
fn a_segment_must_be_whole_blocks_of_both_devices() {
    let large = Disk { block: BlockLength::B4096, ..full() };
    let segments = |count_flag: u8, blocks| {
        let mut segment = segment(0, 1, blocks, 8, 1);
        segment[1] = count_flag;
        copy(begun(&list(0, 0, &[target(&full()), target(&large)], &[segment]))).segments[0]
    };
    let ranges = CopyRanges { source_offset: 8 * 512, destination_offset: 4096, bytes: 16 * 512 };
    assert_eq!(segments(0, 16).ranges(&full(), &large), Ok(ranges));
    assert_eq!(segments(2, 2).ranges(&full(), &large), Ok(ranges));
    let inexact = aborted(AdditionalSense::UNEXPECTED_INEXACT_SEGMENT);
    assert_eq!(segments(0, 15).ranges(&full(), &large), Err(inexact));
}

fn status_of(list_id: u8, allocation_bytes: u32) -> ReceiveCopyStatus {
    let fields: [(usize, &[u8]); 2] = [(0, &[0x84, 0, list_id]), (10, &allocation_bytes.to_be_bytes())];
    match full().begin(&cdb(16, &fields)) {
        Step::ReceiveCopyStatus(question) => question,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_held_status_is_told() {
    let mut held = HeldCopies::default();
    held.hold(7, CopyStatus::of(&Outcome::good(), 3, 5 << 20));
    held.hold(8, CopyStatus::of(&ExtendedCopy::device_failed(), 1, 1024));
    let told = |list_id, allocation| data(Step::Done(status_of(list_id, allocation).respond(&held)));
    assert_eq!(told(7, 255), [0, 0, 0, 8, 1, 0, 3, 1, 0, 0, 0x14, 0]);
    assert_eq!(told(8, 255), [0, 0, 0, 8, 2, 0, 1, 1, 0, 0, 0, 1]);
    assert_eq!(told(8, 5), [0, 0, 0, 8, 2]);
}

#[test]
fn a_status_that_is_not_held_is_an_invalid_field() {
    let sense = refusal(Step::Done(status_of(9, 255).respond(&HeldCopies::default())));
    assert_eq!(sense, Sense::invalid_field_in_cdb(FieldPointer::cdb(2)));
}

#[test]
fn held_statuses_are_bounded_and_the_newest_stay() {
    let mut held = HeldCopies::default();
    for list_id in 0..=255 {
        held.hold(list_id, CopyStatus::of(&Outcome::good(), 1, 1024));
    }
    assert_eq!(status_of(255, 255).respond(&held).status(), ropewalk_scsi::Status::Good);
    assert_eq!(status_of(0, 255).respond(&held).status(), ropewalk_scsi::Status::CheckCondition);
}

#[test]
fn the_operating_parameters_are_those_that_are_enforced() {
    let told = data(full().begin(&cdb(16, &[(0, &[0x84, 3]), (12, &[4, 0])])));
    assert_eq!(told.len(), 46);
    assert_eq!(told[..5], [0, 0, 0, 42, 1]);
    assert_eq!(told[8..12], [0, 16, 0, 64]);
    assert_eq!(told[12..16], (16u32 * 32 + 64 * 28).to_be_bytes());
    assert_eq!(told[16..20], (65_535u32 * 512).to_be_bytes());
    assert_eq!((told[37], &told[43..]), (9, &[2, 0x02, 0xe4][..]));
}

#[test]
fn the_third_party_copy_page_lists_what_there_is() {
    let page = data(full().begin(&[0x12, 1, 0x8f, 1, 0, 0]));
    let mut rest = &page[4..];
    let mut kinds = Vec::new();
    while let [a, b, c, d, after @ ..] = rest {
        let (contents, next) = after.split_at(usize::from(u16::from_be_bytes([*c, *d])));
        assert!(contents.len().is_multiple_of(4));
        kinds.push((u16::from_be_bytes([*a, *b]), contents.to_vec()));
        rest = next;
    }
    assert_eq!(kinds.iter().map(|kind| kind.0).collect::<Vec<_>>(), [0x0001, 0x0004, 0x0008, 0x8001]);
    assert_eq!(kinds[0].1, [7, 0x83, 1, 0, 0x84, 2, 0, 3]);
    assert_eq!(kinds[1].1[4..8], [0, 16, 0, 64]);
    assert_eq!(data(full().begin(&[0x12, 0, 0, 0, 96, 0]))[5] & 0x08, 0x08);
}

proptest! {
    #[test]
    fn any_list_is_answered_and_names_only_what_it_lists(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Step::ExtendedCopy(copy) = begun(&bytes) {
            for segment in &copy.segments {
                prop_assert!(segment.source < copy.targets.len() && segment.destination < copy.targets.len());
            }
        }
    }

    #[test]
    fn any_change_of_a_list_is_answered(at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut list = list(7, 0, &[target(&full())], &[segment(0, 0, 9, 0, 9), segment(0, 0, 9, 0, 9)]);
        let at = at.index(list.len());
        list[at] = value;
        if let Step::ExtendedCopy(copy) = begun(&list) {
            for segment in copy.segments {
                if let Ok(ranges) = segment.ranges(&full(), &full()) {
                    prop_assert!(ranges.source_offset + ranges.bytes <= 100_000 * 512);
                    prop_assert!(ranges.destination_offset + ranges.bytes <= 100_000 * 512);
                }
            }
        }
    }
}
