//! Which commands there are, as REPORT SUPPORTED OPERATION CODES tells and as they are taken.

use crate::world;
use crate::world::{cdb, data, full, illegal, ported, refusal, removable, thin};
use proptest::prelude::*;
use ropewalk_scsi::{AdditionalSense, Disk, FieldPointer, Outcome, Sense, Step};

const WRITE_SAME_10: u8 = 0x41;
const WRITE_SAME_16: u8 = 0x93;
const MODE_SENSE_6: u8 = 0x1a;
const MODE_SENSE_10: u8 = 0x5a;
const PERSISTENT_RESERVE_OUT: u8 = 0x5f;
const WRITE_EXCLUSIVE: u8 = 1;
const ALL_MODE_PAGES: u8 = 0x3f;

fn report(disk: &Disk, options: u8, code: u8, action: u16, allocation_bytes: u32) -> Step {
    let fields: [(usize, &[u8]); 3] =
        [(0, &[0xa3, 0x0c, options, code]), (4, &action.to_be_bytes()), (6, &allocation_bytes.to_be_bytes())];
    disk.begin(&cdb(12, &fields))
}

/// Operation code, service action and CDB usage data of every command.
fn listed(disk: &Disk) -> Vec<(u8, Option<u16>, Vec<u8>)> {
    let all = data(report(disk, 0, 0, 0, u32::MAX));
    let (descriptors, rest) = all[4..].as_chunks::<8>();
    assert!(rest.is_empty());
    descriptors
        .iter()
        .map(|descriptor| {
            let action = u16::from_be_bytes([descriptor[2], descriptor[3]]);
            let action = (descriptor[5] & 1 != 0).then_some(action);
            let one = data(report(disk, 3, descriptor[0], action.unwrap_or(0), u32::MAX));
            (descriptor[0], action, one[4..].to_vec())
        })
        .collect()
}

/// A CDB of nothing but operation code and service action.
fn bare(code: u8, action: Option<u16>, length: usize) -> Vec<u8> {
    let mut bytes = cdb(length, &[(0, &[code])]);
    if let Some(action) = action {
        bytes[1] = u8::try_from(action).expect("fits");
    }
    bytes
}

#[test]
fn the_list_is_complete_and_in_order() {
    let codes: Vec<u8> = listed(&ported()).into_iter().map(|(code, ..)| code).collect();
    let expected = [
        0x00, 0x03, 0x08, 0x0a, 0x12, 0x15, 0x16, 0x17, 0x1a, 0x1b, 0x25, 0x28, 0x2a, 0x2e, 0x2f, 0x34, 0x35,
        0x37, 0x41, 0x42, 0x4d, 0x55, 0x5a, 0x5e, 0x5e, 0x5e, 0x5e, 0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x5f,
        0x5f, 0x83, 0x84, 0x84, 0x88, 0x89, 0x8a, 0x8b, 0x8e, 0x8f, 0x90, 0x91, 0x93, 0x9e, 0x9e, 0xa0, 0xa3,
        0xa3, 0xa8, 0xaa, 0xae, 0xaf, 0xb7,
    ];
    assert_eq!(codes, expected);
}

#[test]
fn the_length_of_the_list_is_told() {
    let all = data(report(&thin(), 0, 0, 0, u32::MAX));
    assert_eq!(u32::from_be_bytes([all[0], all[1], all[2], all[3]]) as usize, all.len() - 4);
}

#[test]
fn a_cut_list_still_tells_its_whole_length() {
    let whole = data(report(&thin(), 0, 0, 0, u32::MAX));
    assert_eq!(data(report(&thin(), 0, 0, 0, 10)), whole[..10]);
    assert_eq!(data(report(&thin(), 0, 0, 0, 0)), []);
}

#[test]
fn every_listed_command_is_taken() {
    for disk in [full(), thin(), ported(), removable()] {
        for (code, action, usage) in listed(&disk) {
            let mut bytes = bare(code, action, usage.len());
            if [MODE_SENSE_6, MODE_SENSE_10].contains(&code) {
                bytes[2] = ALL_MODE_PAGES;
            }
            if code == PERSISTENT_RESERVE_OUT {
                (bytes[2], bytes[8]) = (WRITE_EXCLUSIVE, 24);
            }
            // Of no blocks they would be refused.
            if let Some(at) = [(WRITE_SAME_10, 8), (WRITE_SAME_16, 13)].iter().find(|(same, _)| *same == code)
            {
                bytes[at.1] = 1;
            }
            let step = disk.begin(&bytes);
            assert!(!matches!(step, Step::Done(Outcome::CheckCondition(_))), "{code:02x}: {step:?}");
        }
    }
}

#[test]
fn every_other_operation_code_is_invalid() {
    let invalid = illegal(AdditionalSense::INVALID_COMMAND_OPERATION_CODE).at(FieldPointer::cdb(0));
    for disk in [full(), thin(), ported(), removable()] {
        let listed = listed(&disk);
        for code in 0..=u8::MAX {
            if !listed.iter().any(|command| command.0 == code) {
                assert_eq!(refusal(disk.begin(&bare(code, None, 16))), invalid, "{code:02x}");
            }
        }
    }
}

#[test]
fn every_other_service_action_is_an_invalid_field() {
    let disk = ported();
    let listed = listed(&disk);
    for code in [0x5e, 0x5f, 0x83, 0x84, 0x9e, 0xa3] {
        for action in (0..32).filter(|action| !listed.iter().any(|c| c.0 == code && c.1 == Some(*action))) {
            let step = disk.begin(&bare(code, Some(action), 16));
            assert_eq!(refusal(step), Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(1, 4)));
        }
    }
}

#[test]
fn every_bit_outside_the_usage_data_is_refused_where_it_stands() {
    let disk = ported();
    for (code, action, usage) in listed(&disk) {
        for (byte, usage) in usage.iter().enumerate().skip(1) {
            let mut usage = *usage;
            if byte == 1 && action.is_some() {
                usage |= 0x1f;
            }
            for bit in (0..8).filter(|bit| usage & (1 << bit) == 0) {
                let mut bytes = bare(code, action, 16);
                bytes[byte] |= 1 << bit;
                let field = FieldPointer::cdb_bit(u16::try_from(byte).expect("fits"), bit);
                assert_eq!(refusal(disk.begin(&bytes)), Sense::invalid_field_in_cdb(field), "{code:02x}");
            }
        }
    }
}

#[test]
fn a_cdb_shorter_than_its_command_is_refused() {
    let disk = ported();
    for (code, action, usage) in listed(&disk) {
        for length in 1..usage.len() {
            let bytes = &bare(code, action, usage.len())[..length];
            let sense = refusal(disk.begin(bytes));
            assert_eq!(sense.additional, AdditionalSense::INVALID_FIELD_IN_CDB, "{code:02x} {length}");
        }
    }
    let sense = refusal(disk.begin(&[]));
    assert_eq!(sense.additional, AdditionalSense::INVALID_COMMAND_OPERATION_CODE);
}

#[test]
fn padding_after_the_cdb_is_ignored() {
    let mut bytes = bare(0x00, None, 16);
    bytes[6..].fill(0xff);
    assert_eq!(thin().begin(&bytes), Step::Done(Outcome::good()));
}

#[test]
fn a_full_disk_has_no_unmap() {
    let sense = refusal(full().begin(&bare(0x42, None, 10)));
    assert_eq!(sense.additional, AdditionalSense::INVALID_COMMAND_OPERATION_CODE);
    assert!(!listed(&full()).iter().any(|command| command.0 == 0x42));
}

#[test]
fn one_command_is_told_with_its_usage_data() {
    let one = data(report(&thin(), 1, 0x28, 0, 100));
    assert_eq!(one, [0, 3, 0, 10, 0x28, 0x18, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0]);
}

#[test]
fn one_command_that_does_not_exist_is_told_as_not_supported() {
    assert_eq!(data(report(&thin(), 1, 0xff, 0, 100)), [0, 1, 0, 0]);
    assert_eq!(data(report(&thin(), 2, 0x9e, 0x1f, 100)), [0, 1, 0, 0]);
    assert_eq!(data(report(&thin(), 3, 0x28, 1, 100)), [0, 1, 0, 0]);
}

#[test]
fn service_actions_must_be_asked_for_as_what_they_are() {
    for (code, action, _) in listed(&thin()) {
        let [plain, with_action] =
            [1, 2].map(|options| report(&thin(), options, code, action.unwrap_or(0), 100));
        let (right, wrong, field) =
            if action.is_some() { (with_action, plain, 3) } else { (plain, with_action, 4) };
        assert_eq!(data(right)[1], 3, "{code:02x}");
        assert_eq!(refusal(wrong), Sense::invalid_field_in_cdb(FieldPointer::cdb(field)), "{code:02x}");
    }
}

#[test]
fn reserved_reporting_options_are_refused() {
    for options in 4..8 {
        let field = FieldPointer::cdb_bit(2, 2);
        assert_eq!(refusal(report(&thin(), options, 0x28, 0, 100)), Sense::invalid_field_in_cdb(field));
    }
}

#[test]
fn timeouts_come_when_asked_for() {
    let timeouts = [0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let one = data(report(&thin(), 0x81, 0x00, 0, 100));
    assert_eq!(one[..4], [0, 0x83, 0, 6]);
    assert_eq!(one[10..], timeouts);
    let all = data(report(&thin(), 0x80, 0, 0, u32::MAX));
    let (descriptors, rest) = all[4..].as_chunks::<20>();
    assert!(rest.is_empty() && !descriptors.is_empty());
    for descriptor in descriptors {
        assert_eq!(descriptor[5] & 2, 2);
        assert_eq!(descriptor[8..], timeouts);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..40), list in proptest::collection::vec(any::<u8>(), 0..200)) {
        for disk in [full(), thin(), ported(), removable(), world::read_only()] {
            let step = disk.begin(&bytes);
            let (out_bytes, in_bytes) = (step.data_out_bytes(disk.block), step.data_in_bytes(disk.block));
            prop_assert!(out_bytes == 0 || in_bytes == 0);
            let _ = step.with_data_out(list.len() as u64, disk.block);
            let _ = disk.parameter(&bytes, &list);
        }
        let _ = ropewalk_scsi::begin_absent(&bytes);
    }

    #[test]
    fn any_fields_of_a_known_command_stay_on_the_disk(which in any::<prop::sample::Index>(), noise in any::<[u8; 16]>()) {
        let disk = ported();
        let listed = listed(&disk);
        let (code, action, usage) = &listed[which.index(listed.len())];
        let mut bytes: Vec<u8> = noise.iter().zip(usage).map(|(noise, usage)| noise & usage).collect();
        bytes[0] = *code;
        if let Some(action) = action {
            bytes[1] = u8::try_from(*action).expect("fits");
        }
        match disk.begin(&bytes) {
            Step::Read { extent, .. } | Step::Write { extent, .. } | Step::Verify { extent, .. }
            | Step::WriteAndVerify { extent, .. } | Step::OrWrite { extent, .. } | Step::PreFetch { extent, .. } => {
                prop_assert!(extent.end().0 <= disk.blocks.0);
                prop_assert!(disk.block.times(extent.blocks) <= disk.limits.transfer_bytes_max.into());
            }
            Step::CompareAndWrite { extent, .. } | Step::WriteSame { extent, .. } | Step::Flush { extent, .. } => {
                prop_assert!(extent.end().0 <= disk.blocks.0);
            }
            _ => {}
        }
    }
}

/// CVE-2024-42416: a service action or operation code was the index into a table without being compared with its length.
#[test]
fn table_index_in_report_supported_operation_codes_cve_2024_42416() {
    const WITH_SERVICE_ACTIONS: [u8; 9] = [0x5e, 0x5f, 0x7f, 0x83, 0x84, 0x9e, 0x9f, 0xa3, 0xa4];
    let disk = full();
    for code in WITH_SERVICE_ACTIONS {
        // The field of a CDB has five bits; beyond a few times that, samples.
        for action in (0..0x400).chain((0x400..=u16::MAX).step_by(31)) {
            let described = data(report(&disk, 3, code, action, u32::MAX));
            let is_known = described[1] & 7 == 3;
            assert!(described.len() == 4 || is_known && action <= 0x1f, "{code:#x}/{action:#x}");
        }
    }
}
