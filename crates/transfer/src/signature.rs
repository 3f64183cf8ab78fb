//! Signatures of filesystems, RAID, volume managers and partition tables on a device.
//!
//! Pure: says which parts of a device to read, and what the bytes there mean. A device with any signature is refused. A
//! false hit only costs the user `--overwrite`. The magic number of some formats is only two bytes long, so a [`Check`]
//! of the structure around it keeps random data from being refused too often.

#[cfg(test)]
mod blkid;
mod contents;
mod filesystem;
mod partition_table;
mod raid;
mod volume;

pub use contents::{Contents, windows};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Most formats count in sectors of this length, whatever the device's blocks are.
const SECTOR: u64 = 512;

/// One format, and its magic numbers.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The format with its article, for people.
    pub name: &'static str,
    places: &'static [Place],
    magics: &'static [&'static [u8]],
    check: Option<Check>,
}

/// Whether the structure around a magic number is plausible, given where the magic stands. `None` if that structure
/// does not fit on the device.
type Check = fn(&Contents<'_>, u64) -> Option<bool>;

/// Where a magic number begins, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    FromStart(u64),
    /// The device's length is rounded down to a multiple of `unit`; the magic begins `before` bytes ahead of that.
    FromEnd {
        unit: u64,
        before: u64,
    },
}

use Place::{FromEnd, FromStart};

impl Place {
    /// The offset on a device of this length; `None` if the device is too short.
    fn offset(self, device_bytes: u64) -> Option<u64> {
        match self {
            FromStart(offset) => Some(offset),
            FromEnd { unit, before } => (device_bytes - device_bytes % unit).checked_sub(before),
        }
    }
}

/// `at` bytes into the `number`th sector from the end: the last is number 1.
const fn sector_from_end(number: u64, at: u64) -> Place {
    FromEnd { unit: SECTOR, before: number * SECTOR - at }
}

const fn signature(
    name: &'static str,
    places: &'static [Place],
    magics: &'static [&'static [u8]],
) -> Signature {
    Signature { name, places, magics, check: None }
}

impl Signature {
    const fn checked_by(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    fn marks(&self, contents: &Contents<'_>) -> bool {
        let offsets = self.places.iter().filter_map(|place| place.offset(contents.device_bytes()));
        let mut magics = offsets.flat_map(|at| self.magics.iter().map(move |magic| (at, *magic)));
        magics.any(|(at, magic)| {
            contents.bytes(at, magic.len()) == Some(magic)
                && self.check.is_none_or(|check| check(contents, at) == Some(true))
        })
    }
}

/// Every signature. A volume's own comes before the boot signature that it may share with a partition table, so that
/// the more specific name is found.
fn all() -> impl Iterator<Item = &'static Signature> {
    [volume::SIGNATURES, raid::SIGNATURES, filesystem::SIGNATURES, partition_table::SIGNATURES]
        .into_iter()
        .flatten()
}

/// The first signature that the device bears.
#[must_use]
pub fn find(contents: &Contents<'_>) -> Option<&'static Signature> {
    all().find(|signature| signature.marks(contents))
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::ByteRange;

    /// A device of any length that is zero except for planted bytes.
    struct Sparse {
        device_bytes: u64,
        windows: Vec<(ByteRange, Vec<u8>)>,
    }

    impl Sparse {
        fn new(device_bytes: u64) -> Self {
            let zeroes = |window: ByteRange| (window, vec![0; usize::try_from(window.bytes).unwrap()]);
            Self { device_bytes, windows: windows(device_bytes, 512).into_iter().map(zeroes).collect() }
        }

        fn with(mut self, at: u64, bytes: &[u8]) -> Self {
            let end = at + bytes.len() as u64;
            let holds = |window: &ByteRange| window.offset <= at && end <= window.end();
            let (window, contents) = self.windows.iter_mut().find(|(window, _)| holds(window)).unwrap();
            let start = usize::try_from(at - window.offset).unwrap();
            contents[start..start + bytes.len()].copy_from_slice(bytes);
            self
        }

        fn found(&self) -> Option<&'static str> {
            let windows = self.windows.iter().map(|(window, bytes)| (*window, &bytes[..])).collect();
            find(&Contents::new(self.device_bytes, windows)).map(|signature| signature.name)
        }
    }

    /// Long enough for every place, and not a multiple of any unit.
    const DEVICE_BYTES: u64 = 300 * GIB + 3 * SECTOR;

    #[test]
    fn every_magic_is_found_at_every_place() {
        for signature in all().filter(|signature| signature.check.is_none()) {
            for (place, magic) in
                signature.places.iter().flat_map(|at| signature.magics.iter().map(move |m| (at, m)))
            {
                let device = Sparse::new(DEVICE_BYTES).with(place.offset(DEVICE_BYTES).unwrap(), magic);
                assert_eq!(device.found(), Some(signature.name), "{place:?}");
            }
        }
    }

    #[test]
    fn a_short_magic_alone_is_no_signature() {
        for signature in all().filter(|signature| signature.check.is_some()) {
            for (place, magic) in
                signature.places.iter().flat_map(|at| signature.magics.iter().map(move |m| (at, m)))
            {
                let device = Sparse::new(DEVICE_BYTES).with(place.offset(DEVICE_BYTES).unwrap(), magic);
                assert_eq!(device.found(), None, "{} at {place:?}", signature.name);
            }
        }
    }

    #[test]
    fn a_magic_shorter_than_four_bytes_has_a_check() {
        let boot_signature = "a partition table or boot sector";
        for signature in all().filter(|signature| signature.name != boot_signature) {
            let shortest = signature.magics.iter().map(|magic| magic.len()).min().unwrap();
            assert!(shortest >= 4 || signature.check.is_some(), "{}", signature.name);
        }
    }

    #[test]
    fn a_blank_device_of_any_length_bears_no_signature() {
        for device_bytes in [0, 300, 512, 1024, 4096, 8 * KIB, 100 * KIB, MIB + 512, 65 * MIB, DEVICE_BYTES] {
            assert_eq!(Sparse::new(device_bytes).found(), None, "{device_bytes}");
        }
    }

    #[test]
    fn a_device_of_one_sector_is_looked_at() {
        assert_eq!(Sparse::new(512).with(510, b"\x55\xaa").found(), Some("a partition table or boot sector"));
    }

    #[test]
    fn both_ends_of_a_short_device_are_looked_at() {
        for device_bytes in [64 * KIB, 100 * KIB, 600 * KIB, 3 * MIB, 5 * MIB + 512] {
            let device = Sparse::new(device_bytes).with(device_bytes - 512, b"EFI PART");
            assert_eq!(device.found(), Some("a GUID partition table"), "{device_bytes}");
        }
    }

    #[test]
    fn a_boot_sector_with_a_filesystem_is_named_after_the_filesystem() {
        let device = Sparse::new(DEVICE_BYTES).with(510, b"\x55\xaa").with(3, b"NTFS    ");
        assert_eq!(device.found(), Some("an NTFS filesystem"));
    }

    #[test]
    fn a_structure_is_checked_where_the_magic_is_short() {
        let via = |checksum: u8| {
            let last = DEVICE_BYTES - 512;
            Sparse::new(DEVICE_BYTES)
                .with(last, b"\x55\xaa")
                .with(last + 2, &[1])
                .with(last + 50, &[checksum])
                .found()
        };
        assert_eq!(via(0x00), Some("a VIA RAID member"));
        assert_eq!(via(0x01), None);
        let jmicron = |checksum: [u8; 2]| {
            let last = DEVICE_BYTES - 512;
            Sparse::new(DEVICE_BYTES).with(last, b"JM").with(last + 4, &checksum).found()
        };
        assert_eq!(jmicron([0xb6, 0xb2]), Some("a JMicron RAID member"));
        assert_eq!(jmicron([0xb6, 0xb3]), None);
        let core_storage = Sparse::new(DEVICE_BYTES).with(8, &[1, 0, 0x10, 0]).with(88, b"CS");
        assert_eq!(core_storage.found(), Some("an Apple Core Storage volume"));
        let atari = Sparse::new(DEVICE_BYTES).with(0x1c6, b"\x01GEM\0\0\0\x02\0\0\x10\0");
        assert_eq!(atari.found(), Some("an Atari partition table"));
    }
}
