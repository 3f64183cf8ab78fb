//! The parts of a device that signatures can stand in.

use super::{SECTOR, all};
use block::ByteRange;

/// The windows of a device that hold every signature and the structure around it: ascending, disjoint, whole blocks,
/// about 32 KiB together if blocks are sectors. All are read at once, so a further window costs no round trip; more
/// bytes do, because a new connection sends 14 600 of them in the first round trip and doubles that in each later one
/// (RFC 6928).
#[must_use]
pub fn windows(device_bytes: u64, block_bytes: u64) -> Vec<ByteRange> {
    let unit = block_bytes.max(SECTOR);
    let mut ranges: Vec<(u64, u64)> = all()
        .flat_map(|signature| {
            let magic_bytes = signature.magics.iter().map(|magic| magic.len() as u64).max().unwrap_or(0);
            let offsets = signature.places.iter().filter_map(|place| place.offset(device_bytes));
            offsets.map(move |offset| (offset, offset.saturating_add(magic_bytes)))
        })
        .filter(|(start, _)| *start < device_bytes)
        .collect();
    ranges.sort_unstable();
    let mut windows: Vec<ByteRange> = Vec::new();
    for (start, end) in ranges {
        let start = start - start % unit;
        let end = end.next_multiple_of(unit).min(device_bytes);
        match windows.last_mut() {
            Some(last) if start <= last.end() => last.bytes = last.bytes.max(end - last.offset),
            _ => windows.push(ByteRange { offset: start, bytes: end - start }),
        }
    }
    windows
}

/// A device's length, and what was read of it.
#[derive(Debug)]
pub struct Contents<'a> {
    device_bytes: u64,
    windows: Vec<(ByteRange, &'a [u8])>,
}

impl<'a> Contents<'a> {
    /// `windows` are those that [`windows`] names, each with its bytes.
    #[must_use]
    pub fn new(device_bytes: u64, windows: Vec<(ByteRange, &'a [u8])>) -> Self {
        Self { device_bytes, windows }
    }

    pub(super) fn device_bytes(&self) -> u64 {
        self.device_bytes
    }

    /// `None` if they are not all within one window.
    pub(super) fn bytes(&self, offset: u64, length: usize) -> Option<&'a [u8]> {
        self.windows.iter().find_map(|(window, bytes)| {
            let start = usize::try_from(offset.checked_sub(window.offset)?).ok()?;
            bytes.get(start..start.checked_add(length)?)
        })
    }

    fn array<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        self.bytes(offset, N)?.first_chunk().copied()
    }

    pub(super) fn u8(&self, offset: u64) -> Option<u8> {
        self.array(offset).map(u8::from_le_bytes)
    }

    pub(super) fn u16_le(&self, offset: u64) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub(super) fn u16_be(&self, offset: u64) -> Option<u16> {
        self.array(offset).map(u16::from_be_bytes)
    }

    pub(super) fn u32_le(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(super) fn u32_be(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_read_of_a_large_device() {
        let windows = windows(1 << 50, 512);
        let bytes: u64 = windows.iter().map(|window| window.bytes).sum();
        assert!(bytes <= 40 << 10, "{bytes} bytes");
        assert!(windows.len() <= 48, "{}", windows.len());
    }

    #[test]
    fn the_sector_around_every_magic_is_in_one_window() {
        for device_bytes in [64 << 10, (1 << 20) + SECTOR, (300 << 30) + 3 * SECTOR] {
            let windows = windows(device_bytes, SECTOR);
            let places = all().flat_map(|signature| signature.places);
            for offset in places.filter_map(|place| place.offset(device_bytes)) {
                let sector = offset - offset % SECTOR;
                let holds = |window: &ByteRange| window.offset <= sector && sector + SECTOR <= window.end();
                assert!(offset >= device_bytes || windows.iter().any(holds), "{offset}");
            }
        }
    }

    #[test]
    fn windows_are_whole_blocks_in_order() {
        for block_bytes in [512, 4096, 65536] {
            let device_bytes = (1 << 40) + 3 * block_bytes;
            let windows = windows(device_bytes, block_bytes);
            let whole = |bytes: u64| bytes.is_multiple_of(block_bytes) || bytes == device_bytes;
            assert!(windows.iter().all(|window| whole(window.offset) && whole(window.end())));
            assert!(windows.windows(2).all(|pair| pair[0].end() < pair[1].offset));
        }
    }

    #[test]
    fn nothing_is_read_of_a_device_without_bytes() {
        assert!(windows(0, 512).is_empty());
    }
}
