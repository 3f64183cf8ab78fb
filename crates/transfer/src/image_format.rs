//! Container formats and compressions of disk images, recognized by their first bytes. A plain copy of such a file is
//! not a usable disk.
//!
//! The magic numbers come from the formats' own specifications.

/// A container format or compression of a disk image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// QEMU's copy on write, of any version.
    Qcow2,
    /// A disk of `VMware`: a sparse extent, or the descriptor that names the extents.
    Vmdk,
    /// A disk of Hyper-V (MS-VHDX).
    Vhdx,
    /// Virtual PC. An image of fixed size has its magic number only at its end.
    Vhd,
    /// A dynamic or fixed disk of `VirtualBox`.
    Vdi,
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
    /// The `.xz` file format.
    Xz,
    /// bzip2 (Burrows and Wheeler).
    Bzip2,
    /// The LZ4 frame format.
    Lz4,
}

use ImageFormat::{Bzip2, Gzip, Lz4, Qcow2, Vdi, Vhd, Vhdx, Vmdk, Xz, Zstd};

/// How many bytes of an image's beginning and of its end reveal its format.
pub(crate) const MAGIC_BYTES: usize = 512;

/// Each format's magic number and its offset in bytes.
const MAGICS: &[(ImageFormat, usize, &[u8])] = &[
    (Qcow2, 0, b"QFI\xfb"),
    (Vmdk, 0, b"KDMV"),
    (Vmdk, 0, b"COWD"),
    (Vmdk, 0, b"# Disk DescriptorFile"),
    (Vhdx, 0, b"vhdxfile"),
    (Vhd, 0, b"conectix"),
    (Vdi, 64, b"\x7f\x10\xda\xbe"),
    // 8 is the only compression method that was ever defined.
    (Gzip, 0, b"\x1f\x8b\x08"),
    (Zstd, 0, b"\x28\xb5\x2f\xfd"),
    (Xz, 0, b"\xfd7zXZ\0"),
    (Lz4, 0, b"\x04\x22\x4d\x18"),
];

impl ImageFormat {
    /// The format of an image with this beginning and end. `end` is the image's last [`MAGIC_BYTES`], or empty.
    pub(crate) fn of(beginning: &[u8], end: &[u8]) -> Option<Self> {
        let stands = |(_, at, magic): &&(Self, usize, &[u8])| {
            beginning.get(*at..).is_some_and(|rest| rest.starts_with(magic))
        };
        let found = MAGICS.iter().find(stands).map(|(format, ..)| *format);
        let found = found.or_else(|| is_bzip2(beginning).then_some(Bzip2));
        found.or_else(|| (end.len() == MAGIC_BYTES && end.starts_with(b"conectix")).then_some(Vhd))
    }

    /// The format's stable name.
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

    /// The program that unpacks the format to standard output; `None` if only `qemu-img convert` can.
    #[must_use]
    pub fn decompressor(self) -> Option<&'static str> {
        match self {
            Qcow2 | Vmdk | Vhdx | Vhd | Vdi => None,
            Gzip | Zstd | Xz | Bzip2 | Lz4 => Some(self.name()),
        }
    }
}

/// Whether the image begins with `BZh`, the length of a block, and the first digits of pi, which begin a block.
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
