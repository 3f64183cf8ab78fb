//! The kernel's structures: fields without names, in the machine's own byte order.

/// Integers of a structure of the kernel, by their offsets.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    /// `None` beyond the end.
    #[must_use]
    pub fn u8(&self, offset: usize) -> Option<u8> {
        self.0.get(offset).copied()
    }

    /// `None` beyond the end.
    #[must_use]
    pub fn u16(&self, offset: usize) -> Option<u16> {
        self.at(offset).map(u16::from_ne_bytes)
    }

    /// `None` beyond the end.
    #[must_use]
    pub fn u32(&self, offset: usize) -> Option<u32> {
        self.at(offset).map(u32::from_ne_bytes)
    }

    /// `None` beyond the end.
    #[must_use]
    pub fn u64(&self, offset: usize) -> Option<u64> {
        self.at(offset).map(u64::from_ne_bytes)
    }

    fn at<const BYTES: usize>(&self, offset: usize) -> Option<[u8; BYTES]> {
        self.0.get(offset..)?.first_chunk().copied()
    }
}
