//! Real packets cross the path that was asked for.

use crate::world::{counter, in_lab, lab, link, streams, topology, until};
use ropewalk_lab::netem::{LinkModel, Loss, PathModel, Probability, QueueSize};
use ropewalk_lab::workload::Direction;
use ropewalk_lab::{
    Lab, RecordingTimes, RelayReport, Segmentation, StreamSample, Streams, Tap, Topology, ping,
};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

const MEGABYTE: u64 = 1_000_000;

#[test]
fn a_round_trip_takes_the_time_of_the_path_from_the_first_packet_on() {
    in_lab(|| {
        let delay = Duration::from_millis(5);
        let path = PathModel { backward: Some(link(100, delay * 2)), forward: link(100, delay) };
        let (tap, sightings) = Tap::new(HEADERS_BYTES, 1 << 20);
        let lab = Lab::build(&Topology::new(path), Some(tap)).unwrap();
        let addresses = &lab.server.addresses;
        assert!(addresses.iter().any(IpAddr::is_ipv4) && addresses.iter().any(IpAddr::is_ipv6));
        for address in addresses {
            let round_trips = ping(&lab.client.namespace, *address, 5).unwrap();
            assert_eq!(round_trips.len(), 5, "none is lost");
            assert!(round_trips.iter().all(|round_trip| *round_trip >= delay * 3), "{round_trips:?}");
        }
        assert_eq!(lab.relay.stop().sightings_lost, 0);
        // Who does so waits for another round trip before the first packet.
        assert!(!sightings.iter().any(|frame| asks_who_has_an_address(&frame.beginning)));
    });
}

/// Up to the type of an `ICMPv6` message.
const HEADERS_BYTES: usize = 55;

/// By ARP, or by a neighbour solicitation of IPv6.
fn asks_who_has_an_address(frame: &[u8]) -> bool {
    let (kind, is_solicitation) = (&frame[12..14], frame.len() > 54 && frame[20] == 58 && frame[54] == 135);
    kind == [8, 6] || kind == [0x86, 0xdd] && is_solicitation
}

#[test]
fn bytes_arrive_as_they_were_sent() {
    in_lab(|| {
        let lab = lab(link(200, Duration::from_millis(2)));
        for address in &lab.server.addresses {
            let streams = Streams { to: *address, ..streams(&lab, 4) };
            let carried = streams.carry(&lab, 8 * MEGABYTE, Direction::Write).unwrap();
            assert_eq!(carried.bytes.iter().sum::<u64>(), 8 * MEGABYTE);
        }
    });
}

#[test]
fn every_address_of_a_host_can_be_reached() {
    in_lab(|| {
        let topology = Topology { addresses: 3, ..topology(link(100, Duration::ZERO)) };
        let lab = Lab::build(&topology, None).unwrap();
        assert_eq!(lab.server.addresses.iter().filter(|address| address.is_ipv4()).count(), 3);
        for address in &lab.server.addresses {
            assert_eq!(ping(&lab.client.namespace, *address, 1).unwrap().len(), 1);
        }
    });
}

#[test]
fn the_servers_second_address_may_have_a_path_of_its_own() {
    in_lab(|| {
        let delays = [Duration::from_millis(1), Duration::from_millis(20)];
        let second = Some(PathModel::symmetric(link(100, delays[1])));
        let topology = Topology { addresses: 2, second, ..topology(link(100, delays[0])) };
        let lab = Lab::build(&topology, None).unwrap();
        for addresses in lab.server.addresses.chunks(2) {
            let round_trips =
                addresses.iter().map(|address| ping(&lab.client.namespace, *address, 3).unwrap());
            let shortest: Vec<_> = round_trips.map(|each| *each.iter().min().unwrap()).collect();
            assert!(shortest[0] < delays[1] && shortest[1] >= delays[1] * 2, "{shortest:?}");
        }
        // Three to each of four addresses; the hosts may say a little more.
        let sent = lab.relay.stop().forward.path.sent.segments;
        assert!((12..24).contains(&sent), "packets of both paths are counted: {sent}");
    });
}

#[test]
fn packets_are_as_long_as_the_path_allows() {
    in_lab(|| {
        for mtu in [1280, 1500, 9000] {
            let lab =
                lab(LinkModel { mtu, queue: "1MB".parse().unwrap(), ..link(200, Duration::from_millis(1)) });
            streams(&lab, 1).carry(&lab, MEGABYTE, Direction::Write).unwrap();
            let path = lab.relay.stop().forward.path;
            assert_eq!(path.dropped.oversize.segments, 0);
            // Headers of IP, and of TCP with timestamps.
            let segments = MEGABYTE.div_ceil(u64::from(mtu) - 52);
            assert!((segments..segments * 11 / 10).contains(&path.sent.segments), "{mtu}: {path:?}");
        }
    });
}

#[test]
fn a_path_with_less_room_than_the_hosts_think_loses_long_packets() {
    in_lab(|| {
        let path = LinkModel { mtu: 1400, ..link(100, Duration::ZERO) };
        let lab = Lab::build(&Topology { mtu: Some(1500), ..topology(path) }, None).unwrap();
        let socket = lab.client.namespace.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
        socket.send_to(&[0; 1400], (lab.server.addresses[0], 9)).unwrap();
        until(&lab, |report| report.forward.path.dropped.oversize.segments == 1);
    });
}

#[test]
fn super_packets_have_no_more_segments_than_they_may() {
    in_lab(|| {
        for (segmentation, segments_max) in [(Segmentation::PerPacket, 1), (Segmentation::Offloaded(4), 4)] {
            let topology = Topology { segmentation, ..topology(link(500, Duration::from_millis(1))) };
            let (tap, sightings) = Tap::new(0, 100 << 20);
            let lab = Lab::build(&topology, Some(tap)).unwrap();
            streams(&lab, 2).carry(&lab, 4 * MEGABYTE, Direction::Write).unwrap();
            let report = lab.relay.stop();
            assert_eq!(report.sightings_lost, 0);
            let longest = sightings.iter().map(|sighting| sighting.frame_bytes).max().unwrap();
            assert!(longest > 1448 * (segments_max - 1) && longest <= 66 + 1448 * segments_max, "{longest}");
        }
    });
}

#[test]
fn what_is_lost_and_what_arrives_is_what_the_model_says() {
    in_lab(|| {
        const DATAGRAMS: u64 = 10_000;
        let loss = Loss::Random(Probability::new(0.03).unwrap());
        let queue = QueueSize::Bdp(100_000.0);
        let lab = lab(LinkModel { loss, queue, ..link(100, Duration::from_millis(1)) });
        let socket = lab.client.namespace.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
        for _ in 0..DATAGRAMS {
            socket.send_to(&[0; 100], (lab.server.addresses[0], 9)).unwrap();
        }
        let is_over = |report: &RelayReport| {
            report.forward.path.sent.segments >= DATAGRAMS && report.forward.path.in_flight.segments == 0
        };
        let forward = until(&lab, is_over).forward;
        assert_eq!(forward.frames_out, forward.path.received.segments);
        // What the kernel of a host says by itself, of multicast, may be among the packets.
        let others = forward.path.sent.segments - DATAGRAMS;
        let datagrams = counter(&lab.server.namespace, "Udp", "NoPorts");
        assert!((datagrams..=datagrams + others).contains(&forward.path.received.segments));
        let (lost, sent) = (forward.path.dropped.loss.segments as f64, forward.path.sent.segments as f64);
        let standard_deviation = (sent * 0.03 * 0.97).sqrt();
        assert!((lost - sent * 0.03).abs() < 6.0 * standard_deviation, "{lost} of {sent}");
    });
}

#[test]
fn a_recording_shows_what_had_arrived_when() {
    in_lab(|| {
        // Nothing is lost, so that no stream waits to send again.
        let queue = QueueSize::Bdp(1000.0);
        let lab = lab(LinkModel { queue, ..link(100, Duration::from_millis(1)) });
        let milliseconds = Duration::from_millis;
        let times = RecordingTimes {
            warm_up: milliseconds(40),
            measured: milliseconds(100),
            every: milliseconds(10),
        };
        let recording = streams(&lab, 2).record(&lab, times).unwrap();
        assert_eq!(recording.congestion_controls, ["reno", "reno"]);
        assert!(recording.elapsed >= times.measured);
        let (first, last) = (&recording.samples[0], recording.samples.last().unwrap());
        assert!(last.at_ns - first.at_ns >= 100_000_000);
        let since = |sample: &StreamSample| -> Vec<u64> {
            last.bytes.iter().zip(&sample.bytes).map(|(last, then)| last - then).collect()
        };
        assert!(recording.samples.iter().any(|sample| since(sample) == recording.bytes));
        assert!(
            recording.bytes.iter().zip(&last.bytes).all(|(measured, all)| 0 < *measured && measured < all)
        );
        let is_sorted = |stream: usize| recording.samples.is_sorted_by_key(|sample| sample.bytes[stream]);
        assert!(is_sorted(0) && is_sorted(1));
    });
}
