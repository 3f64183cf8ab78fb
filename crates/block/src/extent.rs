//! The allocated parts of a device.

/// The most extents in one answer, so that a fragmented device costs bounded memory and time.
pub(crate) const EXTENTS_MAX: usize = 1024;

/// A range of the device in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The number of the first byte, from the start of the device.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

impl ByteRange {
    /// The first byte after it. For ranges that passed [`Properties::check`](crate::Properties::check).
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

/// A part of the device with one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where the part lies.
    pub range: ByteRange,
    /// Whether its blocks are allocated, and how they read.
    pub state: ExtentState,
}

/// The state of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentState {
    /// Allocated, with any contents.
    Data,
    /// Reads as zeroes: not allocated, or known to be zero without reading.
    Zero,
    /// Not allocated; a read returns unspecified data (LBPRZ = 0).
    Unspecified,
}

/// Appends the next extent, or extends the last one if the state is the same.
pub(crate) fn append(extents: &mut Vec<Extent>, next: Extent) {
    match extents.last_mut() {
        Some(last) if last.state == next.state => last.range.bytes += next.range.bytes,
        _ => extents.push(next),
    }
}
