//! What a device that is in use looks like: the marks that filesystems, partition tables and volume managers leave.
//!
//! Pure: says where to look, and what the bytes there mean. Every offset and magic is that of the format's own
//! documentation; a hit by accident only costs the user `--overwrite`.

use block::ByteRange;

/// One mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// What left it, for people.
    pub name: &'static str,
    place: Place,
    magic: &'static [u8],
}

/// Where a mark stands, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    FromStart(u64),
    /// The mark begins this much before the end of the device.
    FromEnd(u64),
}

use Place::{FromEnd, FromStart};

const fn mark(name: &'static str, place: Place, magic: &'static [u8]) -> Signature {
    Signature { name, place, magic }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Filesystems come before the boot signature that some of them share, so that the more telling name is found.
const SIGNATURES: &[Signature] = &[
    mark("an ext2, ext3 or ext4 filesystem", FromStart(1080), b"\x53\xef"),
    mark("an XFS filesystem", FromStart(0), b"XFSB"),
    mark("a btrfs filesystem", FromStart(64 * KIB + 64), b"_BHRfS_M"),
    mark("an NTFS filesystem", FromStart(3), b"NTFS    "),
    mark("an exFAT filesystem", FromStart(3), b"EXFAT   "),
    mark("a ReFS filesystem", FromStart(3), b"ReFS\0\0\0\0"),
    mark("a FAT filesystem", FromStart(54), b"FAT12   "),
    mark("a FAT filesystem", FromStart(54), b"FAT16   "),
    mark("a FAT filesystem", FromStart(82), b"FAT32   "),
    mark("an F2FS filesystem", FromStart(1024), b"\x10\x20\xf5\xf2"),
    mark("an HFS+ filesystem", FromStart(1024), b"H+\0\x04"),
    mark("an HFSX filesystem", FromStart(1024), b"HX\0\x05"),
    mark("an APFS container", FromStart(32), b"NXSB"),
    mark("a GFS2 filesystem", FromStart(64 * KIB), b"\x01\x16\x19\x70"),
    mark("an OCFS2 filesystem", FromStart(8 * KIB), b"OCFSV2"),
    mark("a squashfs filesystem", FromStart(0), b"hsqs"),
    mark("an EROFS filesystem", FromStart(1024), b"\xe2\xe1\xf5\xe0"),
    mark("an ISO 9660 filesystem", FromStart(32 * KIB + 1), b"CD001"),
    mark("a ZFS pool", FromStart(16 * KIB + 20), b"\0\0\0\x07version\0"),
    mark("a VMFS volume", FromStart(MIB), b"\x0d\xd0\x01\xc0"),
    mark("a VMFS filesystem", FromStart(2 * MIB), b"\x5e\xf1\xab\x2f"),
    mark("an LVM2 physical volume", FromStart(24), b"LVM2 001"),
    mark("an LVM2 physical volume", FromStart(512 + 24), b"LVM2 001"),
    mark("an LVM2 physical volume", FromStart(1024 + 24), b"LVM2 001"),
    mark("an LVM2 physical volume", FromStart(1536 + 24), b"LVM2 001"),
    mark("a LUKS volume", FromStart(0), b"LUKS\xba\xbe"),
    // The second header of LUKS2, which is left when only the start was wiped.
    mark("a LUKS volume", FromStart(16 * KIB), b"SKUL\xba\xbe"),
    // At the end of the first page, whose length depends on the processor.
    mark("a swap area", FromStart(4 * KIB - 10), b"SWAPSPACE2"),
    mark("a swap area", FromStart(8 * KIB - 10), b"SWAPSPACE2"),
    mark("a swap area", FromStart(16 * KIB - 10), b"SWAPSPACE2"),
    mark("a swap area", FromStart(64 * KIB - 10), b"SWAPSPACE2"),
    mark("a Linux software RAID member", FromStart(0), b"\xfc\x4e\x2b\xa9"),
    mark("a Linux software RAID member", FromStart(4 * KIB), b"\xfc\x4e\x2b\xa9"),
    mark("a Linux software RAID member", FromEnd(8 * KIB), b"\xfc\x4e\x2b\xa9"),
    mark("a bcache device", FromStart(4 * KIB + 24), b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca"),
    mark("a Ceph BlueStore device", FromStart(0), b"bluestore block device"),
    mark("an Oracle ASM disk", FromStart(32), b"ORCLDISK"),
    mark("a Windows dynamic disk", FromStart(6 * 512), b"PRIVHEAD"),
    mark("a GUID partition table", FromStart(512), b"EFI PART"),
    mark("a GUID partition table", FromStart(4 * KIB), b"EFI PART"),
    mark("the backup of a GUID partition table", FromEnd(512), b"EFI PART"),
    mark("the backup of a GUID partition table", FromEnd(4 * KIB), b"EFI PART"),
    mark("a partition table or boot sector", FromStart(510), b"\x55\xaa"),
];

/// What is read at once: the unit of the longest blocks in use, so that every window is whole blocks.
const WINDOW_BYTES: u64 = 64 * KIB;

/// The parts of a device that must be read to know: ascending, disjoint, whole blocks, a few hundred KiB together.
#[must_use]
pub fn windows(device_bytes: u64) -> Vec<ByteRange> {
    let mut windows: Vec<ByteRange> = Vec::new();
    let mut ranges: Vec<ByteRange> = SIGNATURES.iter().filter_map(|mark| mark.range(device_bytes)).collect();
    ranges.sort_unstable_by_key(|range| range.offset);
    for range in ranges {
        let start = range.offset - range.offset % WINDOW_BYTES;
        let end = range.end().next_multiple_of(WINDOW_BYTES).min(device_bytes);
        match windows.last_mut() {
            Some(last) if start <= last.end() => last.bytes = last.bytes.max(end - last.offset),
            _ => windows.push(ByteRange { offset: start, bytes: end - start }),
        }
    }
    windows
}

/// The first mark that the contents of the [`windows`] bear.
#[must_use]
pub fn find(device_bytes: u64, windows: &[(ByteRange, &[u8])]) -> Option<&'static Signature> {
    SIGNATURES.iter().find(|mark| {
        mark.range(device_bytes).is_some_and(|range| contents(range, windows) == Some(mark.magic))
    })
}

fn contents<'a>(range: ByteRange, windows: &[(ByteRange, &'a [u8])]) -> Option<&'a [u8]> {
    windows.iter().find_map(|(window, bytes)| {
        let start = usize::try_from(range.offset.checked_sub(window.offset)?).ok()?;
        bytes.get(start..start.checked_add(usize::try_from(range.bytes).ok()?)?)
    })
}

impl Signature {
    /// Where it stands on a device of this length, if it fits.
    fn range(&self, device_bytes: u64) -> Option<ByteRange> {
        let offset = match self.place {
            FromStart(offset) => offset,
            FromEnd(before) => device_bytes.checked_sub(before)?,
        };
        let range = ByteRange { offset, bytes: self.magic.len() as u64 };
        (range.end() <= device_bytes).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE_BYTES: u64 = 8 * MIB + 3 * 512;

    fn found(device: &[u8]) -> Option<&'static str> {
        let windows: Vec<_> = windows(device.len() as u64)
            .into_iter()
            .map(|window| {
                (
                    window,
                    &device[usize::try_from(window.offset).unwrap()..usize::try_from(window.end()).unwrap()],
                )
            })
            .collect();
        find(device.len() as u64, &windows).map(|mark| mark.name)
    }

    fn blank() -> Vec<u8> {
        vec![0; usize::try_from(DEVICE_BYTES).unwrap()]
    }

    #[test]
    fn every_mark_is_found_where_it_stands() {
        for mark in SIGNATURES {
            let mut device = blank();
            let range = mark.range(DEVICE_BYTES).unwrap();
            let start = usize::try_from(range.offset).unwrap();
            device[start..start + mark.magic.len()].copy_from_slice(mark.magic);
            assert_eq!(found(&device), Some(mark.name));
        }
    }

    #[test]
    fn a_blank_device_bears_no_mark() {
        assert_eq!(found(&blank()), None);
    }

    #[test]
    fn a_device_shorter_than_every_offset_is_looked_at_as_far_as_it_goes() {
        assert_eq!(found(&[0; 512]), None);
        let mut sector = [0; 512];
        sector[510..].copy_from_slice(b"\x55\xaa");
        assert_eq!(found(&sector), Some("a partition table or boot sector"));
        assert!(windows(0).is_empty());
    }

    #[test]
    fn a_boot_sector_with_a_filesystem_is_named_after_the_filesystem() {
        let mut device = blank();
        device[510..512].copy_from_slice(b"\x55\xaa");
        device[3..11].copy_from_slice(b"NTFS    ");
        assert_eq!(found(&device), Some("an NTFS filesystem"));
    }

    #[test]
    fn little_is_read_of_a_large_device() {
        let windows = windows(1 << 50);
        assert!(windows.iter().map(|window| window.bytes).sum::<u64>() <= 512 * KIB);
        assert!(windows.iter().all(|window| window.offset % 4096 == 0 && window.bytes % 4096 == 0));
    }
}
