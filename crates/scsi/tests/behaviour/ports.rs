//! The ports through which a unit is seen: REPORT TARGET PORT GROUPS and what INQUIRY says of them.

use crate::world::{cdb, data, full, port, ported, refusal};
use ropewalk_scsi::client::{AsymmetricAccessState, target_port_groups};
use ropewalk_scsi::{Disk, FieldPointer, Sense, TargetPort};

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

/// The contents of a VPD page.
fn vital_product_data(disk: &Disk, code: u8) -> Vec<u8> {
    data(disk.begin(&[0x12, 1, code, 2, 0, 0]))[4..].to_vec()
}

#[test]
fn every_port_is_designated_by_the_page_of_scsi_ports() {
    let page = vital_product_data(&ported(), 0x88);
    let mut rest = &page[..];
    let mut ports = Vec::new();
    while let [0, 0, high, low, 0, 0, 0, 0, 0, 0, length_high, length_low, after @ ..] = rest {
        let (designators, next) =
            after.split_at(usize::from(u16::from_be_bytes([*length_high, *length_low])));
        ports.push((u16::from_be_bytes([*high, *low]), designators.to_vec()));
        rest = next;
    }
    assert!(rest.is_empty());
    assert_eq!(ports.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [3, 4]);
    for ((_, designators), group) in ports.iter().zip([1, 2]) {
        assert_eq!(designators[8..16], [0x51, 0x95, 0, 4, 0, 0, 0, group]);
        let name = format!("iqn.2026-01.org.example:disk,t,0x000{group}");
        assert!(String::from_utf8_lossy(designators).contains(&name));
    }
    assert_eq!(vital_product_data(&full(), 0x88), []);
}

#[test]
fn the_port_that_a_command_came_through_is_the_one_that_identifies_the_device() {
    let seen: Vec<Disk> = ported().through_other_ports().collect();
    let [other] = &seen[..] else { panic!("one other port") };
    let relative_port = |disk: &Disk| {
        vital_product_data(disk, 0x83)
            .windows(8)
            .find_map(|designator| designator.strip_prefix(&[0x51, 0x94, 0, 4, 0, 0, 0]).map(<[u8]>::to_vec))
    };
    assert_eq!(relative_port(&ported()), Some(vec![3]));
    assert_eq!(relative_port(other), Some(vec![4]));
    let groups = |disk: &Disk| target_port_groups(&data(disk.begin(&report(0, 255))));
    assert_eq!(groups(other), groups(&ported()));
}
