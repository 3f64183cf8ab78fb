//! The ports through which a unit is seen: REPORT TARGET PORT GROUPS and what INQUIRY says of them.

mod world;

use ropewalk_scsi::client::{AsymmetricAccessState, target_port_groups};
use ropewalk_scsi::{Disk, FieldPointer, Sense, TargetPort};
use world::{cdb, data, full, port, ported, refusal};

fn report(format: u8, allocation_bytes: u32) -> Vec<u8> {
    cdb(12, &[(0, &[0xa3, format << 5 | 0x0a]), (6, &allocation_bytes.to_be_bytes())])
}

#[test]
fn every_portal_group_is_an_active_optimized_port_group() {
    let told = data(ported().begin(&report(0, 255)));
    let first = [0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3];
    let second = [0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4];
    assert_eq!(told, [&[0, 0, 0, 24][..], &first, &second].concat());
    let groups = target_port_groups(&told).expect("groups");
    assert_eq!(groups.iter().map(|group| group.group).collect::<Vec<_>>(), [1, 2]);
    assert!(groups.iter().all(|group| group.state == AsymmetricAccessState::ActiveOptimized));
}

#[test]
fn ports_of_one_group_are_listed_together() {
    let other = TargetPort { relative_identifier: 9, ..port() };
    let disk = Disk { target_port: Some(port()), other_ports: vec![other], ..full() };
    let told = data(disk.begin(&report(0, 255)));
    assert_eq!(told[4..], [0, 1, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 9]);
}

#[test]
fn the_extended_header_comes_when_asked_for() {
    let (plain, extended) = (data(ported().begin(&report(0, 255))), data(ported().begin(&report(1, 255))));
    assert_eq!(extended[..8], [0, 0, 0, 28, 0x10, 0, 0, 0]);
    assert_eq!(extended[8..], plain[4..]);
}

#[test]
fn other_formats_are_refused() {
    for format in 2..8 {
        let field = FieldPointer::cdb_bit(1, 7);
        assert_eq!(refusal(ported().begin(&report(format, 255))), Sense::invalid_field_in_cdb(field));
    }
}

#[test]
fn a_cut_report_still_tells_its_whole_length() {
    assert_eq!(data(ported().begin(&report(0, 6))), [0, 0, 0, 24, 0, 1]);
}

#[test]
fn a_disk_without_known_ports_reports_none() {
    let field = FieldPointer::cdb_bit(1, 4);
    assert_eq!(refusal(full().begin(&report(0, 255))), Sense::invalid_field_in_cdb(field));
}

#[test]
fn inquiry_tells_implicit_access_and_several_ports() {
    let flags = |disk: &Disk| data(disk.begin(&[0x12, 0, 0, 0, 96, 0]))[5..7].to_vec();
    assert_eq!(flags(&full()), [0x08, 0]);
    assert_eq!(flags(&Disk { target_port: Some(port()), ..full() }), [0x18, 0]);
    assert_eq!(flags(&ported()), [0x18, 0x10]);
}
