//! Partition tables and disk labels.

use super::Place::{FromEnd, FromStart};
use super::{Contents, KIB, Place, SECTOR, Signature, sector_from_end, signature};

pub(super) const SIGNATURES: &[Signature] = &[
    signature(
        "a GUID partition table",
        // The backup stands in the last block. Blocks may be of 4 KiB.
        &[
            FromStart(SECTOR),
            FromStart(4 * KIB),
            sector_from_end(1, 0),
            FromEnd { unit: 4 * KIB, before: 4 * KIB },
            FromEnd { unit: SECTOR, before: 4 * KIB },
        ],
        &[b"EFI PART"],
    ),
    // One entry to a block, from the second block on.
    signature(
        "an Apple partition map",
        &[FromStart(SECTOR), FromStart(KIB), FromStart(2 * KIB), FromStart(4 * KIB)],
        &[b"PM\0\0"],
    ),
    signature("a Sun disk label", &[FromStart(508)], &[b"\xda\xbe"]).checked_by(sun),
    signature("a Solaris x86 disk label", &[FromStart(SECTOR + 12)], &[b"\xee\xde\x0d\x60"]),
    // In the first sector or in the second, depending on the processor; big-endian on some.
    signature(
        "a BSD disk label",
        &[FromStart(0), FromStart(64), FromStart(128), FromStart(SECTOR)],
        &[b"\x57\x45\x56\x82", b"\x82\x56\x45\x57"],
    ),
    signature("an SGI volume header", &[FromStart(0)], &[b"\x0b\xe5\xa9\x41"]),
    signature("an AIX volume label", &[FromStart(0)], &[b"\xc9\xc2\xd4\xc1"]),
    signature("an Amiga partition table", AMIGA_PLACES, &[b"RDSK"]),
    signature("an Atari partition table", ATARI_PLACES, ATARI_TYPES).checked_by(atari),
    signature("an Ultrix disk label", &[FromStart(16 * KIB - 72)], &[b"\x57\x29\x03\0"]),
    signature("a UnixWare disk label", &[FromStart(29 * SECTOR + 4)], &[b"\x0d\x60\x5e\xca"]),
    // VOL1, LNX1 and CMS1 in EBCDIC, in the third block of an ECKD disk or the second of an FBA disk.
    signature(
        "a DASD volume label",
        &[FromStart(SECTOR), FromStart(KIB), FromStart(2 * KIB), FromStart(4 * KIB), FromStart(8 * KIB)],
        &[b"\xe5\xd6\xd3\xf1", b"\xd3\xd5\xe7\xf1", b"\xc3\xd4\xe2\xf1"],
    ),
    signature("a loop label of Parted", &[FromStart(0)], &[b"GNU Parted Loopback 0"]),
    signature("a partition table or boot sector", &[FromStart(510)], &[b"\x55\xaa"]),
];

/// The rigid disk block is one of the first sixteen.
const AMIGA_PLACES: &[Place] = &[
    FromStart(0),
    FromStart(SECTOR),
    FromStart(2 * SECTOR),
    FromStart(3 * SECTOR),
    FromStart(4 * SECTOR),
    FromStart(5 * SECTOR),
    FromStart(6 * SECTOR),
    FromStart(7 * SECTOR),
    FromStart(8 * SECTOR),
    FromStart(9 * SECTOR),
    FromStart(10 * SECTOR),
    FromStart(11 * SECTOR),
    FromStart(12 * SECTOR),
    FromStart(13 * SECTOR),
    FromStart(14 * SECTOR),
    FromStart(15 * SECTOR),
];

/// The types of the four entries; the table has no magic of its own.
const ATARI_PLACES: &[Place] =
    &[FromStart(0x1c6 + 1), FromStart(0x1d2 + 1), FromStart(0x1de + 1), FromStart(0x1ea + 1)];

const ATARI_TYPES: &[&[u8]] =
    &[b"GEM", b"BGM", b"XGM", b"LNX", b"SWP", b"RAW", b"MIX", b"UNX", b"F32", b"QWA", b"M68"];

/// An entry that is in use and lies within the device.
fn atari(contents: &Contents<'_>, partition_type: u64) -> Option<bool> {
    const IN_USE: u8 = 0x01;
    let entry = partition_type - 1;
    let (start, length) = (contents.u32_be(entry + 4)?, contents.u32_be(entry + 8)?);
    let sectors = contents.device_bytes() / SECTOR;
    Some(contents.u8(entry)? & IN_USE != 0 && length > 0 && u64::from(start) + u64::from(length) <= sectors)
}

/// The exclusive or of all words, among them the checksum, is zero.
fn sun(contents: &Contents<'_>, magic: u64) -> Option<bool> {
    const MAGIC_AT: u64 = 508;
    let words = contents.bytes(magic - MAGIC_AT, 512)?.as_chunks().0.iter();
    Some(words.fold(0, |all, word| all ^ u16::from_be_bytes(*word)) == 0)
}
