//! MODE SELECT: what can be changed, what cannot, and what MODE SENSE says of it.

use crate::world::{cdb, data, full, illegal, refusal};
use ropewalk_scsi::{AdditionalSense, Disk, FieldPointer, ModeSettings, Outcome, Sense, SenseFormat, Step};

const PAGE_FORMAT: u8 = 0x10;
const CACHING: u8 = 0x08;
const CONTROL: u8 = 0x0a;
const CHANGEABLE: u8 = 0x40;
const DEFAULT: u8 = 0x80;

/// The page, with its header, as MODE SENSE (6) tells it.
fn page(disk: &Disk, settings: ModeSettings, code: u8) -> Vec<u8> {
    match disk.begin(&[0x1a, 0x08, code, 0, 255, 0]) {
        Step::ModeSense(question) => data(Step::Done(question.respond(disk, &settings)))[4..].to_vec(),
        other => panic!("{other:?}"),
    }
}

fn select_6(disk: &Disk, list: &[u8]) -> Step {
    let length = u8::try_from(list.len()).expect("fits");
    let bytes = [0x15, PAGE_FORMAT, 0, 0, length, 0];
    assert_eq!(disk.begin(&bytes), Step::Parameter { bytes: length.into() });
    disk.parameter(&bytes, list)
}

fn select_10(disk: &Disk, list: &[u8]) -> Step {
    let bytes = cdb(10, &[(0, &[0x55, PAGE_FORMAT]), (8, &[u8::try_from(list.len()).expect("fits")])]);
    disk.parameter(&bytes, list)
}

/// The settings of a disk that had `before`, after this step.
fn selected(step: Step, before: ModeSettings) -> ModeSettings {
    match step {
        Step::ModeSelect(select) => select.applied_to(before),
        other => panic!("{other:?}"),
    }
}

/// A list of these pages for MODE SELECT (6), without block descriptor.
fn list(pages: &[&[u8]]) -> Vec<u8> {
    [&[0; 4], &pages.concat()[..]].concat()
}

#[test]
fn the_pages_as_they_are_change_nothing() {
    let disk = full();
    for settings in [
        ModeSettings::default(),
        ModeSettings { descriptor_sense: true, write_protected: true, write_through: true },
    ] {
        let pages = [CACHING, CONTROL, 0x1c].map(|code| page(&disk, settings, code));
        let list = list(&pages.each_ref().map(Vec::as_slice));
        assert_eq!(selected(select_6(&disk, &list), settings), settings);
    }
}

#[test]
fn every_changeable_bit_changes_and_is_told() {
    let disk = full();
    let changed = ModeSettings { descriptor_sense: true, write_protected: true, write_through: true };
    let mut pages = Vec::new();
    for code in [CACHING, CONTROL] {
        let mask = page(&disk, ModeSettings::default(), CHANGEABLE | code);
        let mut page = page(&disk, ModeSettings::default(), code);
        page.iter_mut().zip(mask).skip(2).for_each(|(value, mask)| *value ^= mask);
        pages.push(page);
    }
    let after = selected(select_6(&disk, &list(&[&pages[0], &pages[1]])), ModeSettings::default());
    assert_eq!(after, changed);
    assert_eq!([page(&disk, after, CACHING), page(&disk, after, CONTROL)], pages[..]);
    assert_eq!(page(&disk, after, DEFAULT | CONTROL), page(&disk, ModeSettings::default(), CONTROL));
}

#[test]
fn a_page_leaves_alone_what_stands_on_others() {
    let disk = full();
    let before = ModeSettings { write_through: true, ..ModeSettings::default() };
    let mut control = page(&disk, before, CONTROL);
    control[4] |= 0x08;
    let after = selected(select_6(&disk, &list(&[&control])), before);
    assert_eq!(after, ModeSettings { write_protected: true, ..before });
}

#[test]
fn every_other_bit_is_refused_where_it_stands() {
    let disk = full();
    for code in [CACHING, CONTROL, 0x1c] {
        let values = page(&disk, ModeSettings::default(), code);
        let mask = page(&disk, ModeSettings::default(), CHANGEABLE | code);
        for byte in 2..values.len() {
            for bit in (0..8).filter(|bit| mask[byte] & (1 << bit) == 0) {
                let mut wrong = values.clone();
                wrong[byte] ^= 1 << bit;
                let at = u16::try_from(4 + byte).expect("fits");
                let sense = refusal(select_6(&disk, &list(&[&wrong])));
                assert_eq!(sense, Sense::invalid_field_in_parameter_list(at), "{code:02x} {byte} {bit}");
            }
        }
    }
}

#[test]
fn a_disk_without_a_cache_cannot_get_one() {
    let disk = Disk { write_cache: false, ..full() };
    assert_eq!(page(&disk, ModeSettings::default(), CHANGEABLE | CACHING)[2..], [0; 0x12]);
    let mut caching = page(&disk, ModeSettings::default(), CACHING);
    caching[2] |= 0x04;
    assert_eq!(refusal(select_6(&disk, &list(&[&caching]))), Sense::invalid_field_in_parameter_list(6));
}

#[test]
fn a_block_descriptor_may_repeat_what_is_so() {
    let disk = full();
    let control = page(&disk, ModeSettings::default(), CONTROL);
    for blocks in [100_000u32, 0] {
        let descriptor = [blocks.to_be_bytes(), 512u32.to_be_bytes()].concat();
        let six = [&[0, 0, 0, 8], &descriptor[..], &control].concat();
        assert_eq!(selected(select_6(&disk, &six), ModeSettings::default()), ModeSettings::default());
        let ten = [&[0, 0, 0, 0, 0, 0, 0, 8], &descriptor[..], &control].concat();
        assert_eq!(selected(select_10(&disk, &ten), ModeSettings::default()), ModeSettings::default());
    }
}

#[test]
fn neither_capacity_nor_block_length_is_changed() {
    for (blocks, length, at) in [(7u32, 512u32, 4), (0, 4096, 8)] {
        let list = [&[0, 0, 0, 8], &blocks.to_be_bytes()[..], &length.to_be_bytes()].concat();
        assert_eq!(refusal(select_6(&full(), &list)), Sense::invalid_field_in_parameter_list(at));
    }
    assert_eq!(
        refusal(select_6(&full(), &[0, 0, 0, 4, 0, 0, 0, 0])),
        Sense::invalid_field_in_parameter_list(3)
    );
}

#[test]
fn unknown_pages_and_lengths_are_refused() {
    let invalid = Sense::invalid_field_in_parameter_list;
    assert_eq!(refusal(select_6(&full(), &list(&[&[0x05, 0]]))), invalid(4));
    assert_eq!(refusal(select_6(&full(), &list(&[&[0x80 | CONTROL, 10]]))), invalid(4));
    assert_eq!(refusal(select_6(&full(), &list(&[&[CONTROL, 9]]))), invalid(5));
}

#[test]
fn a_cut_list_is_a_length_error() {
    let disk = full();
    let whole = list(&[&page(&disk, ModeSettings::default(), CONTROL)]);
    let length_error = illegal(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR);
    for length in 5..whole.len() {
        assert_eq!(refusal(select_6(&disk, &whole[..length])), length_error, "{length}");
    }
    for length in 1..4 {
        let sense = refusal(disk.begin(&[0x15, PAGE_FORMAT, 0, 0, length, 0]));
        assert_eq!(sense, length_error.at(FieldPointer::cdb(4)));
    }
}

#[test]
fn no_list_is_no_error_and_nothing_is_saved() {
    let disk = full();
    assert_eq!(
        selected(disk.begin(&[0x15, PAGE_FORMAT, 0, 0, 0, 0]), ModeSettings::default()),
        ModeSettings::default()
    );
    let saved = Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(1, 0));
    assert_eq!(refusal(disk.begin(&[0x15, PAGE_FORMAT | 1, 0, 0, 24, 0])), saved);
    let vendor = Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(1, 4));
    assert_eq!(refusal(disk.begin(&[0x15, 0, 0, 0, 24, 0])), vendor);
}

#[test]
fn write_protection_by_mode_parameter_is_told_in_the_header() {
    let settings = ModeSettings { write_protected: true, ..ModeSettings::default() };
    let Step::ModeSense(question) = full().begin(&[0x1a, 0x08, CONTROL, 0, 255, 0]) else { panic!() };
    assert_eq!(data(Step::Done(question.respond(&full(), &settings)))[2], 0x90);
    let Step::ModeSense(question) = full().begin(&cdb(10, &[(0, &[0x5a, 8, CONTROL]), (8, &[255])])) else {
        panic!()
    };
    assert_eq!(data(Step::Done(question.respond(&full(), &settings)))[3], 0x90);
}

#[test]
fn descriptor_sense_is_a_setting() {
    assert_eq!(ModeSettings::default().sense_format(), SenseFormat::Fixed);
    let settings = ModeSettings { descriptor_sense: true, ..ModeSettings::default() };
    assert_eq!(settings.sense_format(), SenseFormat::Descriptor);
    let sense = Outcome::write_protected().sense().copied().expect("sense");
    assert_eq!(sense.to_bytes(settings.sense_format()), sense.to_descriptor());
}
