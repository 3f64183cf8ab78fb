//! What a disk says of itself: INQUIRY, READ CAPACITY, MODE SENSE, REPORT LUNS, REQUEST SENSE.

use crate::world::{cdb, data, full, illegal, port, read_only, refusal, thin};
use ropewalk_scsi::{
    AdditionalSense, BlockLength, Blocks, Disk, FieldPointer, Identity, ModeSettings, Naa, Outcome,
    PhysicalExponent, Provisioning, Sense, SenseFormat, Step, begin_absent,
};

fn inquiry(disk: &Disk, allocation_bytes: u16) -> Vec<u8> {
    data(disk.begin(&cdb(6, &[(0, &[0x12]), (3, &allocation_bytes.to_be_bytes())])))
}

fn page(disk: &Disk, code: u8) -> Vec<u8> {
    let page = data(disk.begin(&[0x12, 1, code, 0xff, 0xff, 0]));
    assert_eq!(page[..2], [0, code]);
    assert_eq!(usize::from(u16::from_be_bytes([page[2], page[3]])), page.len() - 4);
    page[4..].to_vec()
}

#[test]
fn standard_inquiry_describes_an_spc_4_disk() {
    let inquiry = inquiry(&full(), 260);
    assert_eq!(inquiry[..8], [0x00, 0x00, 0x06, 0x12, 91, 0x08, 0x00, 0x02]);
    assert_eq!(inquiry[8..36], *b"ROPEWALKDISK            1   ");
    assert_eq!(inquiry.len(), 96);
    assert_eq!(inquiry[58..66], [0x00, 0xa0, 0x09, 0x60, 0x04, 0x60, 0x04, 0xc0]);
}

#[test]
fn standard_inquiry_is_cut_to_any_allocation_length() {
    let whole = inquiry(&full(), 260);
    for length in 0..=260 {
        assert_eq!(inquiry(&full(), length), whole[..usize::from(length).min(96)]);
    }
}

#[test]
fn strange_characters_do_not_reach_the_ascii_fields() {
    let identity = Identity { vendor: "a\u{e9}\n\u{1f600}bcdefgh".to_owned(), ..full().identity };
    assert_eq!(inquiry(&Disk { identity, ..full() }, 260)[8..16], *b"a???bcde");
}

#[test]
fn a_page_code_without_evpd_is_refused() {
    let sense = refusal(full().begin(&[0x12, 0, 0x83, 0, 255, 0]));
    assert_eq!(sense, Sense::invalid_field_in_cdb(FieldPointer::cdb(2)));
}

#[test]
fn every_listed_page_is_there_and_no_other() {
    let listed = page(&full(), 0x00);
    assert_eq!(listed, [0x00, 0x80, 0x83, 0x86, 0x87, 0x88, 0x8f, 0xb0, 0xb1, 0xb2]);
    for code in 0..=u8::MAX {
        if listed.contains(&code) {
            page(&full(), code);
        } else {
            let sense = refusal(full().begin(&[0x12, 1, code, 0, 255, 0]));
            assert_eq!(sense, Sense::invalid_field_in_cdb(FieldPointer::cdb(2)));
        }
    }
}

/// Association, code set, type and bytes of each designator.
fn designators(disk: &Disk) -> Vec<(u8, u8, u8, Vec<u8>)> {
    let page = page(disk, 0x83);
    let mut rest = &page[..];
    let mut designators = Vec::new();
    while let [first, second, _, length, after @ ..] = rest {
        let (designator, next) = after.split_at(usize::from(*length));
        designators.push((second >> 4 & 3, first & 0xf, second & 0xf, designator.to_vec()));
        rest = next;
    }
    designators
}

#[test]
fn a_unit_is_named_by_naa_vendor_and_scsi_name() {
    let found = designators(&full());
    let naa = full().identity.naa;
    assert_eq!(found[0], (0, 1, 3, naa.0.to_vec()));
    assert_eq!((found[1].0, found[1].1, found[1].2), (0, 2, 1));
    assert!(found[1].3.starts_with(b"ROPEWALK602525"));
    assert_eq!(found[2], (0, 3, 8, format!("{naa}\0\0\0\0").into_bytes()));
    assert_eq!(found.len(), 3);
}

#[test]
fn the_port_is_named_where_it_is_known() {
    let found = designators(&Disk { target_port: Some(port()), ..full() });
    assert_eq!(found[3], (1, 1, 4, vec![0, 0, 0, 3]));
    assert_eq!(found[4], (1, 1, 5, vec![0, 0, 0, 1]));
    assert_eq!((found[5].0, found[5].1, found[5].2), (1, 3, 8));
    assert!(found[5].3.starts_with(b"iqn.2026-01.org.example:disk,t,0x0001\0"));
    assert_eq!((found[6].0, found[6].1, found[6].2), (2, 3, 8));
    assert!(found[6].3.starts_with(b"iqn.2026-01.org.example:disk\0"));
    assert!(found.iter().filter(|designator| designator.2 == 8).all(|d| d.3.len() % 4 == 0));
}

#[test]
fn a_designator_follows_its_name_and_no_vendors_company_id() {
    assert_eq!(Naa::from_name("a"), Naa::from_name("a"));
    assert_ne!(Naa::from_name("a"), Naa::from_name("b"));
    assert!(Naa::from_name("a").to_string().starts_with("naa.6025257"));
}

#[test]
fn long_names_are_cut_and_still_framed() {
    let identity = Identity { serial: "x".repeat(10_000), ..full().identity };
    let target_port = Some(ropewalk_scsi::TargetPort { target_name: "y".repeat(10_000), ..port() });
    let disk = Disk { identity, target_port, ..full() };
    assert_eq!(page(&disk, 0x80).len(), 251);
    assert_eq!(designators(&disk).len(), 7);
}

#[test]
fn block_limits_are_those_that_are_enforced() {
    let page = page(&thin(), 0xb0);
    assert_eq!(page.len(), 0x3c);
    assert_eq!(page[..2], [1, 255]);
    assert_eq!(page[4..8], (32u32 << 20 >> 9).to_be_bytes());
    assert_eq!(page[16..20], u32::MAX.to_be_bytes());
    assert_eq!(page[20..24], 256u32.to_be_bytes());
    assert_eq!(page[24..28], 8u32.to_be_bytes());
    assert_eq!(page[28..32], [0x80, 0, 0, 0]);
    assert_eq!(page[32..40], (1u64 << 22).to_be_bytes());
}

#[test]
fn a_full_disk_has_no_unmap_limits() {
    assert_eq!(page(&full(), 0xb0)[16..32], [0; 16]);
    assert_eq!(page(&full(), 0xb2), [0; 4]);
}

#[test]
fn provisioning_is_told() {
    assert_eq!(page(&thin(), 0xb2), [0, 0xe4, 2, 0]);
    let provisioning = Provisioning::Thin { zeroes: false, granularity: Blocks(1), threshold: None };
    assert_eq!(page(&Disk { provisioning, ..full() }, 0xb2), [0, 0xe0, 2, 0]);
}

#[test]
fn a_disk_does_not_rotate() {
    assert_eq!(page(&full(), 0xb1)[..2], [0, 1]);
}

#[test]
fn capacity_is_told_as_the_last_address() {
    let disk = Disk { block: BlockLength::B4096, ..full() };
    assert_eq!(data(disk.begin(&cdb(10, &[(0, &[0x25])]))), [0, 1, 0x86, 0x9f, 0, 0, 0x10, 0]);
}

#[test]
fn capacity_beyond_four_bytes_is_told_by_the_longer_command() {
    for (blocks, told) in [(1u64 << 32, u32::MAX), ((1 << 32) + 1, u32::MAX), ((1 << 32) - 1, u32::MAX - 1)] {
        let disk = Disk { blocks: Blocks(blocks), ..full() };
        assert_eq!(data(disk.begin(&cdb(10, &[(0, &[0x25])])))[..4], told.to_be_bytes());
        let long = data(disk.begin(&cdb(16, &[(0, &[0x9e, 0x10]), (10, &[0, 0, 0, 255])])));
        assert_eq!(long[..8], (blocks - 1).to_be_bytes());
        assert_eq!(long[8..12], [0, 0, 2, 0]);
        assert_eq!(long.len(), 32);
    }
}

#[test]
fn the_longer_capacity_tells_of_provisioning_and_no_protection() {
    let bytes = cdb(16, &[(0, &[0x9e, 0x10]), (10, &[0, 0, 0, 32])]);
    assert_eq!(data(full().begin(&bytes))[12..16], [0, 0, 0, 0]);
    assert_eq!(data(thin().begin(&bytes))[12..16], [0, 0, 0xc0, 0]);
}

#[test]
fn the_longer_capacity_is_cut_to_any_allocation_length() {
    for length in 0..40 {
        let bytes = cdb(16, &[(0, &[0x9e, 0x10]), (13, &[length])]);
        assert_eq!(data(full().begin(&bytes)).len(), usize::from(length).min(32));
    }
}

/// The answer of a disk whose mode parameters are as they were at first.
fn told(disk: &Disk, step: Step) -> Step {
    match step {
        Step::ModeSense(question) => Step::Done(question.respond(disk, &ModeSettings::default())),
        other => other,
    }
}

fn mode_sense_6(disk: &Disk, flags: u8, page: u8, subpage: u8) -> Step {
    told(disk, disk.begin(&[0x1a, flags, page, subpage, 255, 0]))
}

const DBD: u8 = 0x08;

#[test]
fn mode_sense_returns_all_pages_in_order() {
    for subpage in [0x00, 0xff] {
        let all = data(mode_sense_6(&full(), DBD, 0x3f, subpage));
        assert_eq!(all[..4], [u8::try_from(all.len()).expect("fits") - 1, 0, 0x10, 0]);
        assert_eq!((all[4], all[5], all[6]), (0x08, 0x12, 0x04));
        assert_eq!((all[24], all[25], all[27]), (0x0a, 0x0a, 0x10));
        assert_eq!((all[36], all[37]), (0x1c, 0x0a));
        assert_eq!(all.len(), 48);
    }
}

#[test]
fn the_two_mode_sense_commands_agree() {
    let short = data(mode_sense_6(&full(), 0, 0x3f, 0));
    let long = data(told(&full(), full().begin(&[0x5a, 0, 0x3f, 0, 0, 0, 0, 1, 0, 0])));
    assert_eq!(long[..8], [0, u8::try_from(long.len()).expect("fits") - 2, 0, 0x10, 0, 0, 0, 8]);
    assert_eq!(long[8..], short[4..]);
}

#[test]
fn the_block_descriptor_comes_unless_disabled() {
    let with = data(mode_sense_6(&full(), 0, 0x08, 0));
    assert_eq!(with[3..12], [8, 0, 1, 0x86, 0xa0, 0, 0, 2, 0]);
    assert_eq!(data(mode_sense_6(&full(), DBD, 0x08, 0))[4..], with[12..]);
    let disk = Disk { blocks: Blocks(1 << 40), ..full() };
    assert_eq!(data(mode_sense_6(&disk, 0, 0x08, 0))[4..8], [0xff; 4]);
}

#[test]
fn the_write_cache_bit_follows_the_disk() {
    let disk = Disk { write_cache: false, ..full() };
    assert_eq!(data(mode_sense_6(&disk, DBD, 0x08, 0))[6], 0);
    assert_eq!(data(mode_sense_6(&full(), DBD, 0x08, 0))[6], 4);
}

#[test]
fn write_protection_is_told() {
    assert_eq!(data(mode_sense_6(&read_only(), DBD, 0x3f, 0))[2], 0x90);
}

#[test]
fn nothing_is_saved() {
    let sense = refusal(mode_sense_6(&full(), DBD, 0xc0 | 0x08, 0));
    assert_eq!(sense, illegal(AdditionalSense::SAVING_PARAMETERS_NOT_SUPPORTED));
}

#[test]
fn unknown_mode_pages_are_refused() {
    let sense = refusal(mode_sense_6(&full(), DBD, 0x05, 0));
    assert_eq!(sense, Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(2, 5)));
    let sense = refusal(mode_sense_6(&full(), DBD, 0x0a, 1));
    assert_eq!(sense, Sense::invalid_field_in_cdb(FieldPointer::cdb(3)));
}

fn luns(step: Step) -> Vec<u8> {
    match step {
        Step::ReportLuns(question) => data(Step::Done(question.respond([0, 0x4123_0000_0000_0000]))),
        other => panic!("{other:?}"),
    }
}

fn report_luns(select: u8, allocation_bytes: u8) -> Vec<u8> {
    cdb(12, &[(0, &[0xa0]), (2, &[select]), (9, &[allocation_bytes])])
}

#[test]
fn luns_are_reported_through_any_unit_and_through_none() {
    for select in [0, 2] {
        for step in [full().begin(&report_luns(select, 255)), begin_absent(&report_luns(select, 255))] {
            assert_eq!(
                luns(step),
                [[0, 0, 0, 16, 0, 0, 0, 0], [0; 8], [0x41, 0x23, 0, 0, 0, 0, 0, 0]].concat()
            );
        }
    }
}

#[test]
fn there_are_no_well_known_units() {
    assert_eq!(luns(full().begin(&report_luns(1, 255))), [0; 8]);
}

#[test]
fn a_cut_list_of_luns_tells_its_whole_length() {
    assert_eq!(luns(full().begin(&report_luns(0, 5))), [0, 0, 0, 16, 0]);
}

#[test]
fn unknown_selections_of_luns_are_refused() {
    for step in [full().begin(&report_luns(3, 255)), begin_absent(&report_luns(0x11, 255))] {
        assert_eq!(refusal(step), Sense::invalid_field_in_cdb(FieldPointer::cdb(2)));
    }
}

#[test]
fn request_sense_returns_what_is_pending() {
    let Step::RequestSense(question) = full().begin(&[0x03, 0, 0, 0, 255, 0]) else { panic!() };
    let nothing = data(Step::Done(question.respond(None)));
    assert_eq!((nothing[0], nothing[2], nothing[7], nothing.len()), (0x70, 0, 10, 18));
    let pending = Sense::unit_attention(AdditionalSense::CAPACITY_DATA_HAS_CHANGED);
    let told = data(Step::Done(question.respond(Some(pending))));
    assert_eq!((told[2], told[12], told[13]), (6, 0x2a, 0x09));
}

#[test]
fn request_sense_answers_in_descriptor_format_when_asked() {
    let Step::RequestSense(question) = full().begin(&[0x03, 1, 0, 0, 255, 0]) else { panic!() };
    assert_eq!(data(Step::Done(question.respond(None))), [0x72, 0, 0, 0, 0, 0, 0, 0]);
    let pending = Sense::unit_attention(AdditionalSense::CAPACITY_DATA_HAS_CHANGED);
    assert_eq!(data(Step::Done(question.respond(Some(pending)))), [0x72, 6, 0x2a, 9, 0, 0, 0, 0]);
}

#[test]
fn an_absent_unit_says_so() {
    let inquiry = data(begin_absent(&[0x12, 0, 0, 0, 36, 0]));
    assert_eq!((inquiry[0], inquiry.len()), (0x7f, 36));
    let not_supported = illegal(AdditionalSense::LOGICAL_UNIT_NOT_SUPPORTED);
    for code in [0x00, 0x28, 0x2a, 0x9e, 0xff] {
        assert_eq!(refusal(begin_absent(&cdb(16, &[(0, &[code])]))), not_supported);
    }
    assert_eq!(data(begin_absent(&[0x03, 0, 0, 0, 18, 0])), not_supported.to_fixed());
    assert_eq!(refusal(begin_absent(&[])), not_supported);
}

#[test]
fn fixed_sense_points_at_the_wrong_field() {
    let sense = Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(1, 4)).to_fixed();
    assert_eq!((sense[2], sense[12], sense[13]), (5, 0x24, 0));
    assert_eq!(sense[15..], [0xcc, 0, 1]);
    let sense = Sense::invalid_field_in_parameter_list(300).to_fixed();
    assert_eq!(sense[15..], [0x80, 1, 44]);
}

#[test]
fn fixed_sense_tells_information_only_where_it_fits() {
    let sense = |offset| Outcome::miscompare(offset).sense().copied().expect("fits").to_fixed();
    assert_eq!(sense(0x0102_0304)[..7], [0xf0, 0, 0x0e, 1, 2, 3, 4]);
    assert_eq!(sense(1 << 32)[..7], [0x70, 0, 0x0e, 0, 0, 0, 0]);
}

#[test]
fn descriptor_sense_has_a_descriptor_for_each_thing_told() {
    let field = Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(1, 4)).to_descriptor();
    assert_eq!(field, [0x72, 5, 0x24, 0, 0, 0, 0, 8, 2, 6, 0, 0, 0xcc, 0, 1, 0]);
    let far = Outcome::miscompare(1 << 32).sense().copied().expect("sense").to_bytes(SenseFormat::Descriptor);
    assert_eq!(far, [0x72, 0x0e, 0x1d, 0, 0, 0, 0, 12, 0, 10, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn the_extended_page_tells_of_task_attributes_and_a_volatile_cache() {
    assert_eq!(page(&full(), 0x86)[..3], [0, 7, 1]);
    assert_eq!(page(&Disk { write_cache: false, ..full() }, 0x86)[..3], [0, 7, 0]);
    assert_eq!(page(&full(), 0x86).len(), 0x3c);
}

#[test]
fn mode_pages_are_shared_by_all() {
    assert_eq!(page(&full(), 0x87), [0x3f, 0xff, 0, 0]);
}

#[test]
fn physical_blocks_are_told_as_an_exponent() {
    let disk = |bytes, block| Disk {
        block,
        physical_exponent: PhysicalExponent::from_bytes(bytes, block).expect("a physical block"),
        ..full()
    };
    let bytes = cdb(16, &[(0, &[0x9e, 0x10]), (10, &[0, 0, 0, 32])]);
    assert_eq!(data(disk(4096, BlockLength::B512).begin(&bytes))[13], 3);
    assert_eq!(data(disk(4096, BlockLength::B4096).begin(&bytes))[13], 0);
    for wrong in [0, 256, 5000, 1 << 31] {
        assert_eq!(PhysicalExponent::from_bytes(wrong, BlockLength::B512), None);
    }
}
