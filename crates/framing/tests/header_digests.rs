//! A header digest that fails: the PDU is passed over if the session can do without it and the next one can be found.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod listener;

use block::Slab;
use listener::Listener;
use pdu::{DIGEST_BYTES, InitiatorPdu, Instant, Itt, LaneId, Lun, NopOut, Ttt};
use ropewalk_framing::{BufferTable, Receiver, Sender};
use session::parameters::ConnectionParameters;
use session::seam::{Fault, Payload, Transmit};
use std::io::IoSlice;

const PARAMETERS: ConnectionParameters = ConnectionParameters {
    header_digest: true,
    data_digest: true,
    send_segment_bytes_max: 8192,
    receive_segment_bytes_max: 8192,
};

fn listener(tolerates_holes: bool) -> Listener {
    Listener { tolerates_holes, ..Listener::default() }
}

/// A ping of this tag, as it stands on the wire.
fn ping(tag: u32, data: &[u8]) -> Vec<u8> {
    let pdu = NopOut {
        immediate: true,
        lun: Lun(0),
        itt: Itt(tag),
        ttt: Ttt::NONE,
        cmd_sn: pdu::CmdSn(0),
        exp_stat_sn: pdu::StatSn(0),
        data_segment_bytes: u32::try_from(data.len()).unwrap(),
    };
    let mut sender = Sender::new(&PARAMETERS);
    let header = InitiatorPdu::NopOut(pdu).emit();
    assert!(sender.push(Transmit { header, payload: Payload::Inline(data.to_vec()) }, &buffers()));
    let mut slices = [IoSlice::new(&[]); 16];
    let filled = sender.gather(&mut slices);
    slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect()
}

fn buffers() -> BufferTable {
    BufferTable::new(Slab::new(1 << 20))
}

/// Lets the bytes arrive in pieces of this length.
fn receive(listener: &mut Listener, stream: &[u8], piece_bytes: usize) -> Result<u64, Fault> {
    let mut receiver = Receiver::new(LaneId(0), &PARAMETERS);
    let mut buffers = buffers();
    for piece in stream.chunks(piece_bytes) {
        receiver.feed(piece, Instant::ZERO, listener, &mut buffers)?;
    }
    Ok(receiver.pdus())
}

/// Where the header says how long its data segment is.
const LENGTH: usize = 5;
/// Some field that matters to no framing.
const LUN: usize = 9;

#[test]
fn a_pdu_whose_header_is_corrupted_is_passed_over_with_its_data() {
    for piece_bytes in [1, 7, 4096] {
        let mut broken = ping(2, &[5; 1001]);
        broken[LUN] ^= 1;
        let stream = [ping(1, &[]), broken, ping(3, b"three"), ping(4, &[])].concat();
        let mut listener = listener(true);
        assert_eq!(receive(&mut listener, &stream, piece_bytes), Ok(3));
        assert_eq!(listener.heard, [1, 3, 4]);
        assert_eq!(listener.holes, 1);
        assert_eq!(listener.segments, [b"three"]);
    }
}

#[test]
fn where_the_session_cannot_do_without_the_pdu_the_connection_ends() {
    let mut broken = ping(1, &[]);
    broken[LUN] ^= 1;
    assert_eq!(receive(&mut listener(false), &broken, 4096), Err(Fault::HeaderDigest));
}

#[test]
fn a_corrupted_length_is_found_out_by_the_next_header() {
    let mut broken = ping(1, &[7; 256]);
    broken[LENGTH + 2] = 4;
    let stream = [broken, ping(2, &[]), ping(3, &[]), ping(4, &[])].concat();
    let mut listener = listener(true);
    assert_eq!(receive(&mut listener, &stream, 4096), Err(Fault::HeaderDigest));
    assert_eq!(listener.heard, []);
}

#[test]
fn what_a_corrupted_length_swallows_is_no_sign_of_life() {
    let mut broken = ping(1, &[]);
    broken[LENGTH + 1] = 0x1f;
    let mut receiver = Receiver::new(LaneId(0), &PARAMETERS);
    let (mut listener, mut buffers) = (listener(true), buffers());
    let mut feed = |bytes: &[u8], listener: &mut Listener| {
        receiver.feed(bytes, Instant::ZERO, listener, &mut buffers).unwrap();
    };
    feed(&broken, &mut listener);
    let before = listener.signs_of_life;
    for tag in 2..100 {
        feed(&ping(tag, &[]), &mut listener);
    }
    assert_eq!((listener.signs_of_life, listener.heard.len()), (before, 0));
}

#[test]
fn a_length_that_nobody_may_send_is_not_believed() {
    let mut broken = ping(1, &[]);
    broken[LENGTH] = 0xff;
    assert_eq!(receive(&mut listener(true), &broken, 4096), Err(Fault::HeaderDigest));
}

#[test]
fn holes_far_apart_are_holes_each() {
    let mut broken = ping(9, b"lost");
    let digest = broken.len() - DIGEST_BYTES;
    broken[digest] ^= 1; // The data's digest does not matter in a lost PDU.
    broken[LUN] ^= 1;
    let stream = [&broken[..], &ping(1, &[]), &broken, &ping(2, &[])].concat();
    let mut listener = listener(true);
    assert_eq!(receive(&mut listener, &stream, 3), Ok(2));
    assert_eq!((listener.heard, listener.holes), (vec![1, 2], 2));
}
