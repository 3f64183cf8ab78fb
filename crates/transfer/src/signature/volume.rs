//! Volumes: layers that encrypt, cache, pool or transform a device, swap areas, and images of virtual disks.

use super::Place::{FromEnd, FromStart};
use super::{Contents, KIB, MIB, Place, SECTOR, Signature, signature};

pub(super) const SIGNATURES: &[Signature] = &[
    signature("a LUKS volume", &[FromStart(0)], &[b"LUKS\xba\xbe"]),
    signature("a LUKS volume", LUKS_SECOND_HEADERS, &[b"SKUL\xba\xbe"]),
    signature("a BitLocker volume", &[FromStart(3)], &[b"-FVE-FS-"]),
    // The other half looks like FAT.
    signature(
        "a BitLocker volume",
        &[FromStart(160), FromStart(424)],
        &[b"\x3b\xd6\x67\x49\x29\x2e\xd8\x4a\x83\x99\xf6\xa3\x39\xe3\xd0\x01"],
    ),
    signature("an Apple Core Storage volume", &[FromStart(88)], &[b"CS"]).checked_by(core_storage),
    // The label stands in any of the first four sectors.
    signature(
        "an LVM2 physical volume",
        &[FromStart(24), FromStart(SECTOR + 24), FromStart(2 * SECTOR + 24), FromStart(3 * SECTOR + 24)],
        &[b"LVM2 001"],
    ),
    signature("an LVM1 physical volume", &[FromStart(0)], &[b"HM\x01\0", b"HM\x02\0"]),
    signature("a snapshot of device mapper", &[FromStart(0)], &[b"SnAp"]),
    signature("the metadata of a thin pool", &[FromStart(32)], &[b"\xba\x52\x9c\x01\0\0\0\0"]),
    signature("the metadata of a dm-cache", &[FromStart(32)], &[b"\x03\xc4\x18\0\0\0\0\0"]),
    signature("a dm-writecache device", &[FromStart(0)], &[b"\x21\x93\x48\x23"]),
    signature("a hash tree of dm-verity", &[FromStart(0)], &[b"verity\0\0"]),
    signature("a dm-integrity device", &[FromStart(0)], &[b"integrt\0"]),
    signature("a VDO volume", &[FromStart(0)], &[b"dmvdo001"]),
    signature(
        "a Stratis pool",
        &[FromStart(SECTOR + 4), FromStart(9 * SECTOR + 4)],
        &[b"!Stra0tis\x86\xff\x02^\x41rh"],
    ),
    signature("a bcache device", &[FromStart(4 * KIB + 24)], &[b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca"]),
    signature("a Ceph BlueStore device", &[FromStart(0)], &[b"bluestore block device"]),
    signature("a VMFS volume", &[FromStart(MIB)], &[b"\x0d\xd0\x01\xc0"]),
    signature("an Oracle ASM disk", &[FromStart(32)], &[b"ORCLDISK"]),
    signature("a Windows dynamic disk", &[FromStart(6 * SECTOR)], &[b"PRIVHEAD"]),
    signature(
        "a hibernated system",
        SWAP_PLACES,
        &[b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001", b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c"],
    ),
    signature("a swap area", SWAP_PLACES, &[b"SWAPSPACE2", b"SWAP-SPACE"]),
    signature("a QCOW image", &[FromStart(0)], &[b"QFI\xfb"]),
    signature("a VMDK image", &[FromStart(0)], &[b"KDMV"]),
    signature("a VHDX image", &[FromStart(0)], &[b"vhdxfile"]),
    signature("a VHD image", &[FromStart(0), FromEnd { unit: SECTOR, before: SECTOR }], &[b"conectix"]),
];

/// The second header of LUKS2, which is left when only the start was wiped, follows a first one of any possible size.
const LUKS_SECOND_HEADERS: &[Place] = &[
    FromStart(16 * KIB),
    FromStart(32 * KIB),
    FromStart(64 * KIB),
    FromStart(128 * KIB),
    FromStart(256 * KIB),
    FromStart(512 * KIB),
    FromStart(MIB),
    FromStart(2 * MIB),
    FromStart(4 * MIB),
];

/// At the end of the first page, whose length depends on the processor.
const SWAP_PLACES: &[Place] = &[
    FromStart(4 * KIB - 10),
    FromStart(8 * KIB - 10),
    FromStart(16 * KIB - 10),
    FromStart(32 * KIB - 10),
    FromStart(64 * KIB - 10),
];

/// Version 1 and the block type of a volume header, 80 bytes before the magic.
fn core_storage(contents: &Contents<'_>, magic: u64) -> Option<bool> {
    const HEADER: u32 = 0x0010_0001;
    Some(contents.u32_le(magic - 80)? == HEADER)
}
