//! Captures that lack something, or come from elsewhere.

mod world;

use pdu::{header_digest, padding};
use ropewalk_observe::{CaptureError, LinkType, Options, read_capture};
use world::{World, analyse, data_in, data_out, read, response, write};

#[test]
fn every_link_type_is_followed_on_any_port() {
    for link in [LinkType::Ethernet, LinkType::RawIp, LinkType::LinuxCooked, LinkType::LinuxCooked2] {
        let mut world = World::mid_stream(link, 0).on_port(5555);
        world.at(1).initiator(&read(1, 512)).at(2).target(&data_in(1, 512, true));
        let (report, _) = world.analyse();
        assert_eq!(report.connections.len(), 1, "{link:?}");
        assert_eq!(report.connections[0].initiator.port(), 40_000, "{link:?}");
        assert_eq!(report.connections[0].commands.len(), 1, "{link:?}");
    }
}

#[test]
fn headers_alone_are_enough_while_none_is_cut_off() {
    let mut world = World::mid_stream(LinkType::Ethernet, 102);
    world.at(1).initiator(&write(1, 9000, 1000)).at(2).initiator(&data_out(1, 1000, 8000, true));
    world.at(3).target(&response(1)).at(4).initiator(&read(2, 512)).at(5).target(&data_in(2, 512, true));
    let (report, pdus) = world.analyse();
    let connection = &report.connections[0];
    assert_eq!(pdus.len(), 5);
    assert_eq!(connection.to_target.counters.cut_bytes, 9000);
    assert_eq!(connection.to_target.unknown_bytes, 0);
    assert!(connection.commands.iter().all(|command| command.whole));
}

#[test]
fn after_a_header_that_was_cut_off_the_next_one_at_a_segments_start_is_found() {
    let mut world = World::mid_stream(LinkType::Ethernet, 102);
    // The second PDU's header lies beyond what was kept.
    let both = [write(1, 1000, 1000), data_out(9, 0, 100, true)].concat();
    world.at(1).initiator(&both).at(2).target(&response(1));
    world.at(3).initiator(&read(2, 512)).at(4).target(&data_in(2, 512, true));
    let (report, pdus) = world.analyse();
    let connection = &report.connections[0];
    assert_eq!(pdus.len(), 4);
    assert_eq!(connection.to_target.unknown_bytes, 148);
    let whole: Vec<bool> = connection.commands.iter().map(|command| command.whole).collect();
    assert_eq!(whole, [false, true]);
    assert_eq!(connection.summaries.len(), 1, "only what is whole is summarised");
}

#[test]
fn a_segment_that_the_capture_missed_costs_what_was_in_it() {
    let mut world = World::new();
    world.at(20).initiator(&write(1, 100, 100)).initiator_unseen(&data_out(9, 0, 100, true));
    world.at(21).initiator(&read(2, 512));
    world.at(31).target(&response(1)).at(32).target(&data_in(2, 512, true));
    let (report, pdus) = world.analyse();
    assert_eq!(pdus.len(), 4);
    assert_eq!(report.connections[0].to_target.counters.missed_bytes, 148);
}

#[test]
fn digests_without_a_login_are_found_by_the_first_that_fits() {
    let mut world = World::mid_stream(LinkType::Ethernet, 0);
    let with_digests = |pdu: Vec<u8>, header_bytes: usize| {
        let (header, data) = pdu.split_at(header_bytes);
        let parsed = pdu::Header::new(header.try_into().unwrap());
        assert_eq!(padding(parsed.data_segment_bytes()), 0);
        let data_digest = if data.is_empty() { Vec::new() } else { pdu::digest(data).to_vec() };
        [header, &header_digest(&parsed), data, &data_digest].concat()
    };
    for number in 1..4 {
        world.initiator(&with_digests(write(number, 512, 512), 48));
        world.target(&with_digests(response(number), 48));
    }
    let (report, pdus) = world.analyse();
    assert_eq!(pdus.len(), 6);
    assert_eq!(
        (report.connections[0].header_digest, report.connections[0].data_digest),
        (Some(true), Some(true))
    );
}

#[test]
fn without_digests_none_is_taken_for_one() {
    let mut world = World::mid_stream(LinkType::Ethernet, 0);
    for number in 1..4 {
        world.initiator(&[write(number, 512, 512), data_out(number, 0, 512, true)].concat());
        world.target(&response(number));
    }
    let (report, pdus) = world.analyse();
    assert_eq!(pdus.len(), 9);
    let connection = &report.connections[0];
    assert_eq!((connection.header_digest, connection.data_digest), (Some(false), Some(false)));
}

#[test]
fn other_protocols_are_not_taken_for_iscsi() {
    let mut world = World::mid_stream(LinkType::Ethernet, 0);
    for payload in
        [&b"GET / HTTP/1.1\r\nHost: storage.example.org\r\nAccept: */*\r\n\r\n"[..], &[0; 200], &[0xff; 200]]
    {
        world.initiator(payload).target(payload);
    }
    let (report, pdus) = world.analyse();
    assert!(report.connections.is_empty() && pdus.is_empty());
    assert_eq!(report.capture.connections, 1);
}

#[test]
fn a_capture_that_was_killed_is_read_to_where_it_ends() {
    let mut world = World::mid_stream(LinkType::Ethernet, 0);
    world.initiator(&read(1, 512)).target(&data_in(1, 512, true));
    let capture = world.into_capture();
    let summary = read_capture(&capture[..capture.len() - 10], |_| {}).unwrap();
    assert_eq!((summary.frames, summary.cut_short), (1, true));
}

#[test]
fn a_file_of_another_kind_is_refused() {
    assert_eq!(read_capture(&b"PK\x03\x04 something else"[..], |_| {}), Err(CaptureError::NotACapture));
    assert_eq!(read_capture(&[][..], |_| {}), Err(CaptureError::NotACapture));
}

#[test]
fn pcap_of_either_byte_order_and_resolution_is_read() {
    for (magic, fraction, is_big_endian) in [
        (0xa1b2_c3d4_u32, 5_u32, false),
        (0xa1b2_3c4d, 5000, false),
        (0xa1b2_c3d4, 5, true),
        (0xa1b2_3c4d, 5000, true),
    ] {
        let word = |value: u32| if is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        let half = |value: u16| if is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut file = [word(magic), [half(2), half(4)].concat().try_into().unwrap()].concat();
        for value in [0, 0, 65_535, 101, /* one packet */ 7, fraction, 3, 9] {
            file.extend(word(value));
        }
        file.extend([0x45, 1, 2]);
        let mut times = Vec::new();
        read_capture(&file[..], |frame| times.push((frame.at.0, frame.bytes.len(), frame.wire_bytes)))
            .unwrap();
        assert_eq!(times, [(7_000_005_000, 3, 9)], "{magic:#x} {is_big_endian}");
    }
}

#[test]
fn what_is_assumed_of_digests_holds_where_no_login_was_captured() {
    let mut world = World::mid_stream(LinkType::Ethernet, 102);
    for number in 1..3 {
        let pdu = write(number, 512, 512);
        let (header, data) = pdu.split_at(48);
        world.initiator(&[header, &[1; 4], data, &[2; 4]].concat());
        let answer = [response(number), vec![3; 4]].concat();
        world.target(&answer);
    }
    let digests = ropewalk_observe::Digests { header: Some(true), data: Some(true) };
    let (report, pdus) = analyse(&world.into_capture(), Options { digests, ..Options::default() });
    assert_eq!(pdus.len(), 4);
    assert_eq!(report.connections[0].to_target.unknown_bytes, 0);
}
