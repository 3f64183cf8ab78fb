//! The threshold of a thin disk: VPD page B2h, its mode pages and its log page.

use crate::world::{cdb, data, full, refusal, thin, watched};
use ropewalk_scsi::{Blocks, Disk, FieldPointer, ModeSettings, Outcome, ProvisioningLog, Sense, Step};

const PROVISIONING: (u8, u8) = (0x1c, 0x02);

fn mode_sense(disk: &Disk, values: u8, (page, subpage): (u8, u8)) -> Step {
    match disk.begin(&[0x1a, 0x08, values | page, subpage, 255, 0]) {
        Step::ModeSense(question) => Step::Done(question.respond(disk, &ModeSettings::default())),
        other => other,
    }
}

fn mode_page(disk: &Disk, values: u8, page: (u8, u8)) -> Vec<u8> {
    data(mode_sense(disk, values, page))[4..].to_vec()
}

#[test]
fn the_exponent_makes_threshold_sets_of_a_thousandth_of_the_disk() {
    let page = |disk: &Disk| data(disk.begin(&[0x12, 1, 0xb2, 0, 255, 0]))[4..].to_vec();
    assert_eq!(page(&watched()), [10, 0xe4, 2, 0]);
    assert_eq!(page(&thin()), [0, 0xe4, 2, 0]);
}

#[test]
fn the_threshold_is_a_soft_one_that_is_reached_by_decreasing_availability() {
    let page = mode_page(&watched(), 0, PROVISIONING);
    assert_eq!(page.len(), 24);
    assert_eq!(page[..16], [0x5c, 2, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(page[16..], [0x80, 0x01, 0, 0, 0, 0, 1, 0]);
}

#[test]
fn its_reporting_is_enabled() {
    assert_eq!(mode_page(&watched(), 0, (0x01, 0)), [0x01, 0x0a, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0]);
}

#[test]
fn subpages_come_when_they_are_asked_for() {
    let codes = |page: (u8, u8)| {
        let pages = mode_page(&watched(), 0, page);
        let mut rest = &pages[..];
        let mut codes = Vec::new();
        while let [code, second, after @ ..] = rest {
            let length = if code & 0x40 == 0 { usize::from(*second) } else { 2 + usize::from(after[1]) };
            codes.push(*code);
            rest = &after[length..];
        }
        codes
    };
    assert_eq!(codes((0x3f, 0x00)), [0x01, 0x08, 0x0a, 0x1c]);
    assert_eq!(codes((0x3f, 0xff)), [0x01, 0x08, 0x0a, 0x1c, 0x5c]);
    assert_eq!(codes((0x1c, 0x00)), [0x1c]);
    assert_eq!(codes((0x1c, 0xff)), [0x1c, 0x5c]);
    assert_eq!(codes(PROVISIONING), [0x5c]);
    let subpage = Sense::invalid_field_in_cdb(FieldPointer::cdb(3));
    assert_eq!(refusal(mode_sense(&watched(), 0, (0x1c, 0x01))), subpage);
    assert_eq!(refusal(mode_sense(&watched(), 0, (0x3f, 0x02))), subpage);
}

#[test]
fn a_disk_without_a_threshold_has_none_of_its_pages() {
    for disk in [full(), thin()] {
        assert_eq!(
            refusal(mode_sense(&disk, 0, PROVISIONING)),
            Sense::invalid_field_in_cdb(FieldPointer::cdb(3))
        );
        let page = Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(2, 5));
        assert_eq!(refusal(mode_sense(&disk, 0, (0x01, 0))), page);
        assert_eq!(refusal(log(&disk, 0)), page);
    }
}

#[test]
fn mode_select_takes_the_pages_as_they_are_and_changes_nothing_in_them() {
    let disk = watched();
    for page in [(0x01, 0), PROVISIONING] {
        assert!(mode_page(&disk, 0x40, page)[4..].iter().all(|byte| *byte == 0));
        let mut list = [&[0; 4], &mode_page(&disk, 0, page)[..]].concat();
        let length = u8::try_from(list.len()).expect("fits");
        let cdb = [0x15, 0x10, 0, 0, length, 0];
        assert!(matches!(disk.parameter(&cdb, &list), Step::ModeSelect(_)));
        list[11] ^= 0x80;
        let wrong = Sense::invalid_field_in_parameter_list(11);
        assert_eq!(refusal(disk.parameter(&cdb, &list)), wrong);
    }
}

#[test]
fn mode_select_refuses_a_subpage_of_another_length_or_name() {
    let disk = watched();
    let select = |at: usize, value| {
        let mut list = [&[0; 4], &mode_page(&disk, 0, PROVISIONING)[..]].concat();
        list[at] = value;
        refusal(disk.parameter(&[0x15, 0x10, 0, 0, 28, 0], &list))
    };
    assert_eq!(select(4, 0x4a), Sense::invalid_field_in_parameter_list(4));
    assert_eq!(select(5, 0x01), Sense::invalid_field_in_parameter_list(4));
    assert_eq!(select(7, 12), Sense::invalid_field_in_parameter_list(6));
}

fn log(disk: &Disk, pointer: u16) -> Step {
    disk.begin(&cdb(10, &[(0, &[0x4d, 0, 0x4c]), (5, &pointer.to_be_bytes()), (8, &[255])]))
}

fn question(pointer: u16) -> ProvisioningLog {
    match log(&watched(), pointer) {
        Step::ProvisioningLog(question) => question,
        other => panic!("{other:?}"),
    }
}

fn answer(outcome: Outcome) -> Vec<u8> {
    data(Step::Done(outcome))
}

#[test]
fn the_log_counts_threshold_sets_that_are_available_and_used() {
    let told = answer(question(0).respond(Blocks((7 << 10) + 1), Blocks(3 << 10)));
    let available = [0, 1, 3, 8, 0, 0, 0, 3, 2, 0, 0, 0];
    let used = [0, 2, 3, 8, 0, 0, 0, 7, 1, 0, 0, 0];
    assert_eq!(told, [&[0x0c, 0, 0, 24][..], &available, &used].concat());
    let told = answer(question(2).respond(Blocks(7 << 10), Blocks(0)));
    assert_eq!(told, [&[0x0c, 0, 0, 12][..], &used].concat());
    assert_eq!(refusal(log(&watched(), 3)), Sense::invalid_field_in_cdb(FieldPointer::cdb(5)));
}

#[test]
fn the_log_page_is_listed_where_it_is() {
    let listed = |disk: &Disk| data(disk.begin(&cdb(10, &[(0, &[0x4d]), (8, &[255])])))[4..].to_vec();
    assert_eq!(listed(&watched()), [0x00, 0x0c, 0x2f]);
    assert_eq!(listed(&thin()), [0x00, 0x2f]);
}
