//! Members of RAID arrays and of other groups of disks, and disks that are mirrored to other hosts.

use super::Place::{FromEnd, FromStart};
use super::{Contents, KIB, MIB, Place, SECTOR, Signature, sector_from_end, signature};

const LAST_SECTOR: Place = sector_from_end(1, 0);

pub(super) const SIGNATURES: &[Signature] = &[
    // Metadata 1.1, 1.2 and 1.0, little-endian; then 0.90, in the byte order of its host.
    signature(
        "a Linux software RAID member",
        &[FromStart(0), FromStart(4 * KIB), FromEnd { unit: 4 * KIB, before: 8 * KIB }],
        &[b"\xfc\x4e\x2b\xa9"],
    ),
    signature(
        "a Linux software RAID member",
        &[FromEnd { unit: 64 * KIB, before: 64 * KIB }],
        &[b"\xfc\x4e\x2b\xa9", b"\xa9\x2b\x4e\xfc"],
    ),
    // The anchor header is in the last block; some controllers put it before 128 KiB of their own.
    signature(
        "a DDF RAID member",
        &[LAST_SECTOR, FromEnd { unit: SECTOR, before: 4 * KIB }, sector_from_end(257, 0)],
        &[b"\xde\x11\xde\x11", b"\x11\xde\x11\xde"],
    ),
    signature(
        "an Intel Matrix RAID member",
        &[sector_from_end(2, 0), FromEnd { unit: SECTOR, before: 8 * KIB }],
        &[b"Intel Raid ISM Cfg Sig. "],
    ),
    signature("an LSI MegaRAID member", &[LAST_SECTOR], &[b"$XIDE$"]),
    signature("an NVIDIA RAID member", &[sector_from_end(2, 0)], &[b"NVIDIA"]),
    signature("a Promise FastTrak RAID member", PROMISE_PLACES, &[b"Promise Technology, Inc."]),
    signature("an Adaptec HostRAID member", &[LAST_SECTOR], &[b"\x37\xfc\x4d\x1e"]),
    signature(
        "a Silicon Image RAID member",
        &[
            sector_from_end(1, 0x60),
            sector_from_end(513, 0x60),
            sector_from_end(1025, 0x60),
            sector_from_end(1537, 0x60),
        ],
        &[b"\0\0\0\x2f"],
    ),
    signature(
        "a HighPoint RAID member",
        &[FromStart(9 * SECTOR + 0x20)],
        &[b"\xf0\x16\x78\x5a", b"\xfd\x16\x78\x5a"],
    ),
    signature(
        "a HighPoint RAID member",
        &[sector_from_end(11, 0)],
        &[b"\xf3\x16\x78\x5a", b"\xfd\x16\x78\x5a"],
    ),
    signature("a VIA RAID member", &[LAST_SECTOR], &[b"\x55\xaa"]).checked_by(via),
    signature("a JMicron RAID member", &[LAST_SECTOR], &[b"JM"]).checked_by(jmicron),
    // Internal metadata of a flexible size, then of the fixed 128 MiB, then external. The last digit is the version.
    signature(
        "a DRBD device",
        &[
            FromEnd { unit: 4 * KIB, before: 4 * KIB - 60 },
            FromEnd { unit: 4 * KIB, before: 128 * MIB - 60 },
            FromStart(60),
        ],
        &[b"\x83\x74\x02\x6a", b"\x83\x74\x02\x6b", b"\x83\x74\x02\x6c", b"\x83\x74\x02\x6d"],
    ),
    signature("a control volume of DRBD Manage", &[FromStart(0)], &[b"$DRBDmgr=q"]),
    signature("a data log of DRBD Proxy", &[FromStart(16)], &[b"DRBDdlh*"]),
];

/// Controllers of different generations disagree about the sector.
const PROMISE_PLACES: &[Place] = &[
    sector_from_end(16, 0),
    sector_from_end(63, 0),
    sector_from_end(255, 0),
    sector_from_end(256, 0),
    sector_from_end(399, 0),
    sector_from_end(591, 0),
    sector_from_end(675, 0),
    sector_from_end(735, 0),
    sector_from_end(911, 0),
    sector_from_end(951, 0),
    sector_from_end(974, 0),
    sector_from_end(991, 0),
    sector_from_end(3087, 0),
];

/// Version 0 or 1, and a checksum over the 50 bytes before it.
fn via(contents: &Contents<'_>, metadata: u64) -> Option<bool> {
    let sum = contents.bytes(metadata, 50)?.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    Some(contents.u8(metadata + 2)? <= 1 && sum == contents.u8(metadata + 50)?)
}

/// The words of the first 128 bytes, among them the checksum, add up to nothing, or to one.
fn jmicron(contents: &Contents<'_>, metadata: u64) -> Option<bool> {
    let words = contents.bytes(metadata, 128)?.as_chunks().0.iter().map(|word| u16::from_le_bytes(*word));
    Some(words.fold(0, u16::wrapping_add) <= 1)
}
