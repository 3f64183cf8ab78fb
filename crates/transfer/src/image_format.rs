//! Containers and compressions of disk images, known by their first bytes: copied as they are, they make no disk.
//!
//! The magics are those of the formats' own specifications.

/// What wraps a disk image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// QEMU's copy on write, of any version.
    Qcow2,
    /// `VMware`.
    Vmdk,
    /// Hyper-V.
    Vhdx,
    /// Virtual PC; of fixed length, it is known only by its end.
    Vhd,
    /// `VirtualBox`.
    Vdi,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// The `.xz` file format.
    Xz,
    /// Burrows and Wheeler's.
    Bzip2,
    /// The LZ4 frame format.
    Lz4,
}

use ImageFormat::{Bzip2, Gzip, Lz4, Qcow2, Vdi, Vhd, Vhdx, Vmdk, Xz, Zstd};

/// So much of an image's beginning, and as much of its end, is enough to know.
pub(crate) const MAGIC_BYTES: usize = 512;

/// Where a magic stands, in bytes.
const MAGICS: &[(ImageFormat, usize, &[u8])] = &[
    (Qcow2, 0, b"QFI\xfb"),
    (Vmdk, 0, b"KDMV"),
    (Vmdk, 0, b"COWD"),
    (Vmdk, 0, b"# Disk DescriptorFile"),
    (Vhdx, 0, b"vhdxfile"),
    (Vhd, 0, b"conectix"),
    (Vdi, 64, b"\x7f\x10\xda\xbe"),
    // Of the compression methods, only 8 was ever defined.
    (Gzip, 0, b"\x1f\x8b\x08"),
    (Zstd, 0, b"\x28\xb5\x2f\xfd"),
    (Xz, 0, b"\xfd7zXZ\0"),
    (Lz4, 0, b"\x04\x22\x4d\x18"),
];

impl ImageFormat {
    /// That of an image which begins, and ends, like this. `end` is its last [`MAGIC_BYTES`], or nothing.
    pub(crate) fn of(beginning: &[u8], end: &[u8]) -> Option<Self> {
        let stands = |(_, at, magic): &&(Self, usize, &[u8])| {
            beginning.get(*at..).is_some_and(|rest| rest.starts_with(magic))
        };
        let found = MAGICS.iter().find(stands).map(|(format, ..)| *format);
        let found = found.or_else(|| is_bzip2(beginning).then_some(Bzip2));
        found.or_else(|| (end.len() == MAGIC_BYTES && end.starts_with(b"conectix")).then_some(Vhd))
    }

    /// Its stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Qcow2 => "qcow2",
            Vmdk => "vmdk",
            Vhdx => "vhdx",
            Vhd => "vhd",
            Vdi => "vdi",
            Gzip => "gzip",
            Zstd => "zstd",
            Xz => "xz",
            Bzip2 => "bzip2",
            Lz4 => "lz4",
        }
    }

    /// The program that unpacks it to standard output; `None` where only `qemu-img convert` does.
    #[must_use]
    pub fn decompressor(self) -> Option<&'static str> {
        match self {
            Qcow2 | Vmdk | Vhdx | Vhd | Vdi => None,
            Gzip | Zstd | Xz | Bzip2 | Lz4 => Some(self.name()),
        }
    }
}

/// `BZh`, the length of a block, and the first digits of pi, with which a block begins.
fn is_bzip2(beginning: &[u8]) -> bool {
    matches!(beginning, [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_magic_is_known() {
        for (format, at, magic) in MAGICS {
            let mut beginning = [0; MAGIC_BYTES];
            beginning[*at..at + magic.len()].copy_from_slice(magic);
            assert_eq!(ImageFormat::of(&beginning, &[]), Some(*format));
            // However short the image is.
            assert_eq!(ImageFormat::of(&beginning[..at + magic.len()], &[]), Some(*format));
            assert_eq!(ImageFormat::of(&beginning[..at + magic.len() - 1], &[]), None);
        }
        assert_eq!(ImageFormat::of(b"BZh91AY&SY...", &[]), Some(Bzip2));
    }

    #[test]
    fn a_vhd_of_fixed_length_is_known_by_its_end() {
        let mut end = [0; MAGIC_BYTES];
        end[..8].copy_from_slice(b"conectix");
        assert_eq!(ImageFormat::of(&[0; MAGIC_BYTES], &end), Some(Vhd));
    }

    #[test]
    fn a_raw_image_has_no_format() {
        assert_eq!(ImageFormat::of(&[0; MAGIC_BYTES], &[0; MAGIC_BYTES]), None);
        assert_eq!(ImageFormat::of(&[], &[]), None);
    }
}
