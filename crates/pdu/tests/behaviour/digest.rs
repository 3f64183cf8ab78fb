//! CRC32C as the standard's examples have it (RFC 7143 §13.1, RFC 3720 appendix B.4).

use proptest::prelude::*;
use ropewalk_pdu::{Crc32c, Header, digest, header_digest};

#[test]
fn thirty_two_zeroes_have_the_digest_of_the_standard() {
    assert_eq!(digest(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
}

#[test]
fn thirty_two_ones_have_the_digest_of_the_standard() {
    assert_eq!(digest(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
}

#[test]
fn thirty_two_incrementing_bytes_have_the_digest_of_the_standard() {
    let bytes: Vec<u8> = (0..32).collect();
    assert_eq!(digest(&bytes), [0x4e, 0x79, 0xdd, 0x46]);
}

#[test]
fn thirty_two_decrementing_bytes_have_the_digest_of_the_standard() {
    let bytes: Vec<u8> = (0..32).rev().collect();
    assert_eq!(digest(&bytes), [0x5c, 0xdb, 0x3f, 0x11]);
}

#[test]
fn the_header_of_the_standards_read_command_has_its_digest() {
    let mut bhs = [0; Header::BHS_BYTES];
    bhs[..2].copy_from_slice(&[0x01, 0xc0]);
    bhs[16] = 0x14;
    bhs[22] = 0x04;
    bhs[27] = 0x14;
    bhs[31] = 0x18;
    bhs[32] = 0x28;
    bhs[40] = 0x02;
    assert_eq!(header_digest(&Header::new(bhs)), [0x56, 0x3a, 0x96, 0xd9]);
}

#[test]
fn the_digest_of_a_header_covers_its_ahs() {
    let mut header = Header::new([0; Header::BHS_BYTES]);
    header.set_ahs(vec![0, 5, 2, 0, 0, 0, 16, 0]).unwrap();
    let mut bytes = Vec::new();
    header.write_to(&mut bytes);
    assert_eq!(header_digest(&header), digest(&bytes));
}

proptest! {
    #[test]
    fn pieces_have_the_digest_of_the_whole(pieces: Vec<Vec<u8>>) {
        let mut crc = Crc32c::new();
        for piece in &pieces {
            crc.update(piece);
        }
        prop_assert_eq!(crc.finish(), digest(&pieces.concat()));
    }
}
