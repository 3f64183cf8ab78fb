use super::*;
use crate::relay::buffers::Buffers;
use proptest::prelude::*;

/// Ethernet, IPv4 or IPv6, and TCP with 12 bytes of options, before the payload.
struct Sample {
    is_ipv6: bool,
    payload: Vec<u8>,
    segment_bytes: u16,
}

const TCP_BYTES: usize = 32;
const SEQUENCE_NUMBER: u32 = u32::MAX - 1000;
const IDENTIFICATION: u16 = u16::MAX - 1;
const ALL_FLAGS: u8 = 0x99;

impl Sample {
    fn of(payload_bytes: usize, segment_bytes: u16) -> Self {
        let payload = (0..=250).cycle().take(payload_bytes).collect();
        Self { is_ipv6: false, payload, segment_bytes }
    }

    fn network_bytes(&self) -> usize {
        if self.is_ipv6 { 40 } else { 20 }
    }

    /// As the kernel hands it over: the checksum field holds the sum of the pseudo-header.
    fn frame(&self) -> Frame {
        let mut bytes = vec![2; 12];
        let transport_bytes = u16::try_from(TCP_BYTES + self.payload.len()).unwrap();
        match self.is_ipv6 {
            false => {
                bytes.extend([8, 0, 0x45, 2]);
                bytes.extend((transport_bytes + 20).to_be_bytes());
                bytes.extend(IDENTIFICATION.to_be_bytes());
                bytes.extend([0x40, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 19, 0, 1]);
                let sum = Sum::of(&bytes[14..]).checksum();
                bytes[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            true => {
                bytes.extend([0x86, 0xdd, 0x60, 0x20, 0, 0]);
                bytes.extend(transport_bytes.to_be_bytes());
                bytes.extend([6, 64]);
                bytes.extend([7; 32]);
            }
        }
        bytes.extend([0x80, 1, 0x0c, 0xbc]);
        bytes.extend(SEQUENCE_NUMBER.to_be_bytes());
        let addresses = if self.is_ipv6 { &bytes[22..54] } else { &bytes[26..34] };
        let pseudo_header = Sum::of(addresses).plus(6).plus(transport_bytes.into()).folded();
        bytes.extend([0, 0, 0, 9, 0x80, ALL_FLAGS, 1, 0]);
        bytes.extend(pseudo_header.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend([1; 12]);
        bytes.extend(&self.payload);
        let start = u16::try_from(14 + self.network_bytes()).unwrap();
        let mut offload = vec![1, 0x80 | if self.is_ipv6 { 4 } else { 1 }];
        for number in [start + 32, self.segment_bytes, start, 16] {
            offload.extend(number.to_ne_bytes());
        }
        Frame::new(Offload::parse(&offload.try_into().unwrap()), Buffers::default().copy_of(&bytes))
    }
}

/// A receiver's view of one segment.
#[derive(Debug, PartialEq)]
struct Segment {
    sequence_number: u32,
    identification: u16,
    flags: u8,
    payload: Vec<u8>,
}

/// Receives the frame as the far end's kernel would: checks lengths and checksums.
fn receive(sample: &Sample, mut frame: Frame) -> Segment {
    frame.complete_checksum();
    let (bytes, start) = (frame.bytes(), 14 + sample.network_bytes());
    let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let (addresses, length) = match sample.is_ipv6 {
        false => (&bytes[26..34], usize::from(number(16)) - 20),
        true => (&bytes[22..54], usize::from(number(18))),
    };
    assert_eq!(length, bytes.len() - start);
    if !sample.is_ipv6 {
        assert_eq!(Sum::of(&bytes[14..start]).checksum(), 0, "the header's checksum");
    }
    let covered =
        [addresses, &[0, 6], &u16::try_from(length).unwrap().to_be_bytes(), &bytes[start..]].concat();
    assert_eq!(Sum::of(&covered).checksum(), 0, "TCP's checksum");
    Segment {
        sequence_number: u32::from_be_bytes(bytes[start + 4..start + 8].try_into().unwrap()),
        identification: number(18),
        flags: bytes[start + 13],
        payload: bytes[start + TCP_BYTES..].to_vec(),
    }
}

#[test]
fn the_parts_of_a_super_packet_are_what_an_interface_would_have_sent() {
    for is_ipv6 in [false, true] {
        let sample = Sample { is_ipv6, ..Sample::of(2500, 1000) };
        let mut rest = sample.frame();
        let first = rest.split_first(1);
        let second = rest.split_first(1);
        let segments = [first, second, rest].map(|frame| receive(&sample, frame));
        // ACK; CWR only on the first, PSH and FIN only on the last.
        assert_eq!(segments.each_ref().map(|segment| segment.flags), [0x90, 0x10, 0x19]);
        let numbers =
            segments.each_ref().map(|segment| segment.sequence_number.wrapping_sub(SEQUENCE_NUMBER));
        assert_eq!(numbers, [0, 1000, 2000]);
        if !is_ipv6 {
            let identifications = segments.each_ref().map(|segment| segment.identification);
            assert_eq!(identifications, [0xfffe, 0xffff, 0], "each one more");
        }
        assert_eq!(segments.map(|segment| segment.payload).concat(), sample.payload);
    }
}

#[test]
fn a_super_packet_has_segments_with_headers_of_their_own() {
    assert_eq!(Sample::of(2500, 1000).frame().size(), Size::super_packet(3, 1052, 552));
    assert_eq!(Sample::of(2000, 1000).frame().size(), Size::super_packet(2, 1052, 1052));
    assert_eq!(Sample::of(1000, 1000).frame().size(), Size::single(1052));
}

#[test]
fn a_bit_that_flips_is_found_by_the_checksum() {
    let sample = Sample::of(100, 1000);
    for bit in [20 * 8, 52 * 8, 151 * 8 + 7] {
        let mut frame = sample.frame();
        frame.corrupt(bit);
        let before = frame.bytes().to_vec();
        frame.complete_checksum();
        assert_eq!(frame.bytes(), before, "nobody makes it right again");
        let covered = [&before[26..34], &[0, 6], &132_u16.to_be_bytes(), &before[34..]].concat();
        assert_ne!(Sum::of(&covered).checksum(), 0);
    }
}

#[test]
fn congestion_is_marked_for_those_who_understand_it() {
    for is_ipv6 in [false, true] {
        let sample = Sample { is_ipv6, ..Sample::of(100, 1000) };
        let mut frame = sample.frame();
        assert!(frame.mark_congestion());
        let traffic_class = if is_ipv6 { frame.bytes()[15] >> 4 } else { frame.bytes()[15] };
        assert_eq!(traffic_class & 3, 3);
        receive(&sample, frame);
    }
    let mut deaf = Sample::of(100, 1000).frame();
    deaf.buffer[15] = 0;
    assert!(!deaf.mark_congestion());
}

#[test]
fn packets_of_a_flow_have_its_hash_and_others_another() {
    let frame = |port: u8| {
        let mut bytes = Sample::of(10, 1000).frame().bytes().to_vec();
        bytes[35] = port;
        Frame::new(Offload::default(), Buffers::default().copy_of(&bytes))
    };
    assert_eq!(frame(1).flow(), frame(1).flow());
    assert_ne!(frame(1).flow(), frame(2).flow());
}

proptest! {
    #[test]
    fn wherever_a_super_packet_is_cut_the_same_segments_arrive(
        payload_bytes in 1..20_000_usize,
        segment_bytes in 1..3000_u16,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        is_ipv6: bool,
    ) {
        let sample = Sample { is_ipv6, ..Sample::of(payload_bytes, segment_bytes) };
        let mut rest = sample.frame();
        let whole = rest.size();
        let mut parts = Vec::new();
        for cut in cuts {
            let segments = rest.size().segments();
            if segments > 1 {
                let first = 1 + u32::try_from(cut.index(segments as usize - 1)).unwrap();
                parts.push(rest.split_first(first));
            }
        }
        parts.push(rest);
        let sizes = parts.iter().map(Packet::size);
        prop_assert_eq!(sizes.map(Size::segments).sum::<u32>(), whole.segments());
        let received: Vec<Segment> = parts.into_iter().map(|part| receive(&sample, part)).collect();
        prop_assert_eq!(received.into_iter().flat_map(|segment| segment.payload).collect::<Vec<_>>(), sample.payload);
    }

    #[test]
    fn no_bytes_whatever_are_too_strange(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        ethernet_type in prop_oneof![Just([8, 0]), Just([0x86, 0xdd]), any::<[u8; 2]>()],
        offload: [u8; OFFLOAD_BYTES],
        bit: u64,
    ) {
        let mut bytes = bytes;
        if let Some(field) = bytes.get_mut(12..14) {
            field.copy_from_slice(&ethernet_type);
        }
        let mut frame = Frame::new(Offload::parse(&offload), Buffers::default().copy_of(&bytes));
        frame.mark_congestion();
        while frame.size().segments() > 1 {
            frame.split_first(1);
        }
        frame.duplicate().corrupt(bit);
    }
}
