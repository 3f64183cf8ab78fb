//! Filesystems, by the magic numbers of their superblocks. Big-endian and little-endian variants of a format share a
//! name.

use super::Place::{FromEnd, FromStart};
use super::{Contents, GIB, KIB, MIB, SECTOR, Signature, signature};

pub(super) const SIGNATURES: &[Signature] = &[
    signature("an ext2, ext3 or ext4 filesystem", &[FromStart(1080)], &[b"\x53\xef"]).checked_by(ext),
    signature("an XFS filesystem", &[FromStart(0)], &[b"XFSB"]),
    signature("an external log of XFS", &[FromStart(0)], &[b"\xfe\xed\xba\xbe"]),
    signature("an EXFS filesystem", &[FromStart(0)], &[b"EXFS"]),
    signature(
        "a btrfs filesystem",
        &[FromStart(64 * KIB + 64), FromStart(64 * MIB + 64), FromStart(256 * GIB + 64)],
        &[b"_BHRfS_M"],
    ),
    // The second superblock follows the longest possible first one.
    signature(
        "a bcachefs filesystem",
        &[FromStart(4 * KIB + 24), FromStart(MIB + 4 * KIB + 24)],
        &[b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"],
    ),
    signature("an F2FS filesystem", &[FromStart(KIB), FromStart(5 * KIB)], &[b"\x10\x20\xf5\xf2"]),
    signature(
        "a NILFS2 filesystem",
        &[FromStart(KIB + 6), FromEnd { unit: 4 * KIB, before: 4 * KIB - 6 }],
        &[b"\x34\x34"],
    )
    .checked_by(nilfs2),
    signature("a JFS filesystem", &[FromStart(32 * KIB), FromStart(60 * KIB)], &[b"JFS1"]),
    signature(
        "a ReiserFS filesystem",
        &[FromStart(64 * KIB + 52), FromStart(8 * KIB + 52)],
        &[b"ReIsErFs", b"ReIsEr2Fs", b"ReIsEr3Fs"],
    ),
    signature("a ReiserFS filesystem", &[FromStart(8 * KIB + 20)], &[b"ReIsErFs"]),
    signature("a Reiser4 filesystem", &[FromStart(64 * KIB)], &[b"ReIsEr4"]),
    signature("a MINIX filesystem", &[FromStart(KIB + 16)], MINIX_1_AND_2).checked_by(minix_1_and_2),
    signature("a MINIX filesystem", &[FromStart(KIB + 24)], &[b"\x5a\x4d", b"\x4d\x5a"]).checked_by(minix_3),
    signature("an EROFS filesystem", &[FromStart(KIB)], &[b"\xe2\xe1\xf5\xe0"]),
    // Those with their letters in another order were compressed by LZMA before there was a standard for that.
    signature("a squashfs filesystem", &[FromStart(0)], &[b"hsqs", b"sqsh", b"shsq", b"qshs"]),
    signature(
        "a cramfs filesystem",
        &[FromStart(0), FromStart(SECTOR)],
        &[b"\x45\x3d\xcd\x28", b"\x28\xcd\x3d\x45"],
    ),
    signature("a romfs filesystem", &[FromStart(0)], &[b"-rom1fs-"]),
    signature("a UBI device", &[FromStart(0)], &[b"UBI#"]),
    signature("a UBIFS filesystem", &[FromStart(0)], &[b"\x31\x18\x10\x06"]),
    signature("a zonefs filesystem", &[FromStart(0)], &[b"SFOZ"]),
    signature("a GFS or GFS2 filesystem", &[FromStart(64 * KIB)], &[b"\x01\x16\x19\x70"]),
    signature("an OCFS filesystem", &[FromStart(8 * KIB)], &[b"OracleCFS"]),
    signature(
        "an OCFS2 filesystem",
        &[FromStart(KIB), FromStart(2 * KIB), FromStart(4 * KIB), FromStart(8 * KIB)],
        &[b"OCFSV2"],
    ),
    signature("a ScoutFS filesystem", &[FromStart(64 * KIB + 4)], &[b"\x8b\x42\x3c\x10"]),
    signature("an mpool device", &[FromStart(0), FromStart(4 * KIB)], &[b"mpoolDev"]),
    signature(
        "a ZFS pool",
        &[
            FromStart(16 * KIB + 20),
            FromStart(272 * KIB + 20),
            FromEnd { unit: 256 * KIB, before: 496 * KIB - 20 },
            FromEnd { unit: 256 * KIB, before: 240 * KIB - 20 },
        ],
        &[b"\0\0\0\x07version\0"],
    ),
    signature("a VMFS filesystem", &[FromStart(2 * MIB)], &[b"\x5e\xf1\xab\x2f"]),
    signature("an NTFS filesystem", &[FromStart(3)], &[b"NTFS    "]),
    signature("an exFAT filesystem", &[FromStart(3)], &[b"EXFAT   "]),
    signature("a ReFS filesystem", &[FromStart(3)], &[b"ReFS\0\0\0\0"]),
    signature("a FAT filesystem", &[FromStart(54)], &[b"FAT12   ", b"FAT16   ", b"FAT     ", b"MSDOS"]),
    signature("a FAT filesystem", &[FromStart(82)], &[b"FAT32   ", b"MSWIN"]),
    signature("a FAT filesystem", &[FromStart(0)], &[b"\xeb", b"\xe9"]).checked_by(fat),
    signature("an HPFS filesystem", &[FromStart(8 * KIB)], &[b"\x49\xe8\x95\xf9"]),
    signature("an HFS+ filesystem", &[FromStart(KIB)], &[b"H+\0\x04", b"HX\0\x05"]),
    signature("an HFS filesystem", &[FromStart(KIB)], &[b"BD"]).checked_by(hfs),
    signature("an APFS container", &[FromStart(32)], &[b"NXSB"]),
    signature("a UFS filesystem", UFS_PLACES, UFS_MAGICS),
    signature(
        "a VxFS filesystem",
        &[FromStart(KIB), FromStart(8 * KIB)],
        &[b"\xf5\xfc\x01\xa5", b"\xa5\x01\xfc\xf5"],
    ),
    signature("a BeFS filesystem", &[FromStart(32), FromStart(SECTOR + 32)], &[b"BFS1", b"1SFB"]),
    signature("an SCO BFS filesystem", &[FromStart(0)], &[b"\xce\xfa\xad\x1b", b"\x1b\xad\xfa\xce"]),
    // At the end of the superblock, which fills half a block: the 1st, 10th, 16th or 19th block of a kilobyte.
    signature(
        "a System V filesystem",
        &[FromStart(1016), FromStart(9 * KIB + 1016), FromStart(15 * KIB + 1016), FromStart(18 * KIB + 1016)],
        &[b"\x20\x7e\x18\xfd", b"\xfd\x18\x7e\x20"],
    ),
    signature("a Xenix filesystem", &[FromStart(KIB + 1016)], &[b"\x44\x55\x2b\0", b"\0\x2b\x55\x44"]),
    signature("an NSS filesystem", &[FromStart(4 * KIB)], &[b"SPB5"]),
    // Volume structure descriptors (ECMA-167 part 2 §9) begin 32 KiB into the volume, whatever its blocks are.
    signature("a UDF filesystem", &[FromStart(32 * KIB + 1)], &[b"BEA01", b"NSR02", b"NSR03", b"BOOT2"]),
    signature("an ISO 9660 filesystem", &[FromStart(32 * KIB + 1)], &[b"CD001"]),
    signature("a High Sierra filesystem", &[FromStart(32 * KIB + 9)], &[b"CDROM"]),
];

/// Versions 1 and 2, names of 14 and of 30 characters, both byte orders.
const MINIX_1_AND_2: &[&[u8]] =
    &[b"\x7f\x13", b"\x8f\x13", b"\x68\x24", b"\x78\x24", b"\x13\x7f", b"\x13\x8f", b"\x24\x68", b"\x24\x78"];

/// The superblock stands at one of four places; its magic is far inside.
const UFS_PLACES: &[super::Place] =
    &[FromStart(1372), FromStart(8 * KIB + 1372), FromStart(64 * KIB + 1372), FromStart(256 * KIB + 1372)];

/// UFS1, UFS2, long file names, more than 4 GB, feature bits, B1 security; both byte orders.
const UFS_MAGICS: &[&[u8]] = &[
    b"\x54\x19\x01\0",
    b"\0\x01\x19\x54",
    b"\x19\x01\x54\x19",
    b"\x19\x54\x01\x19",
    b"\x14\x50\x09\0",
    b"\0\x09\x50\x14",
    b"\x94\x19\x23\x05",
    b"\x05\x23\x19\x94",
    b"\x12\x56\x19\0",
    b"\0\x19\x56\x12",
    b"\x95\x21\x61\0",
    b"\0\x61\x21\x95",
];

/// Blocks of 1 to 64 KiB, and some of them. An external journal has a superblock like this, too.
fn ext(contents: &Contents<'_>, magic: u64) -> Option<bool> {
    const MAGIC_AT: u64 = 56;
    let superblock = magic - MAGIC_AT;
    let (blocks, log_block_kib) = (contents.u32_le(superblock + 4)?, contents.u32_le(superblock + 24)?);
    Some(blocks > 0 && log_block_kib <= 6)
}

/// Revision 2, the only one, with a superblock and blocks of possible lengths.
fn nilfs2(contents: &Contents<'_>, magic: u64) -> Option<bool> {
    const MAGIC_AT: u64 = 6;
    let superblock = magic - MAGIC_AT;
    let (revision, bytes) = (contents.u32_le(superblock)?, contents.u16_le(superblock + 8)?);
    Some(revision == 2 && (64..=1024).contains(&bytes) && contents.u32_le(superblock + 20)? <= 6)
}

/// Inodes and zones, bitmaps for both, and zones of at most 1 MiB.
fn minix_1_and_2(contents: &Contents<'_>, magic: u64) -> Option<bool> {
    const MAGIC_AT: u64 = 16;
    let superblock = magic - MAGIC_AT;
    let big_endian = matches!(contents.u8(magic)?, 0x13 | 0x24);
    let field =
        |at| if big_endian { contents.u16_be(superblock + at) } else { contents.u16_le(superblock + at) };
    let [inodes, inode_map_blocks, zone_map_blocks, log_zone] = [field(0)?, field(4)?, field(6)?, field(10)?];
    Some(is_minix(inodes.into(), [inode_map_blocks, zone_map_blocks], log_zone))
}

fn minix_3(contents: &Contents<'_>, magic: u64) -> Option<bool> {
    const MAGIC_AT: u64 = 24;
    let superblock = magic - MAGIC_AT;
    let big_endian = contents.u8(magic)? == 0x4d;
    let field =
        |at| if big_endian { contents.u16_be(superblock + at) } else { contents.u16_le(superblock + at) };
    let inodes = if big_endian { contents.u32_be(superblock) } else { contents.u32_le(superblock) };
    Some(is_minix(inodes?, [field(6)?, field(8)?], field(12)?))
}

fn is_minix(inodes: u32, map_blocks: [u16; 2], log_zone: u16) -> bool {
    inodes > 0 && map_blocks.iter().all(|blocks| *blocks > 0) && log_zone <= 10
}

/// Allocation blocks of whole sectors, and some of them.
fn hfs(contents: &Contents<'_>, magic: u64) -> Option<bool> {
    let (blocks, block_bytes) = (contents.u16_be(magic + 18)?, contents.u32_be(magic + 20)?);
    Some(blocks > 0 && block_bytes > 0 && block_bytes.is_multiple_of(512))
}

/// A BIOS parameter block that a FAT filesystem can have: a boot sector need not say more.
fn fat(contents: &Contents<'_>, jump: u64) -> Option<bool> {
    let field = |at| contents.u16_le(jump + at);
    let (sector_bytes, cluster_sectors) = (field(11)?, contents.u8(jump + 13)?);
    let (reserved_sectors, tables, media) = (field(14)?, contents.u8(jump + 16)?, contents.u8(jump + 21)?);
    Some(
        matches!(sector_bytes, 512 | 1024 | 2048 | 4096)
            && cluster_sectors.is_power_of_two()
            && reserved_sectors > 0
            && matches!(tables, 1 | 2)
            && (media == 0xf0 || media >= 0xf8),
    )
}
