//! Which parts of a device hold something.

/// A query answers with at most this many extents, so that a fragmented device costs bounded memory and time.
pub(crate) const EXTENTS_MAX: usize = 1024;

/// A range of the device in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte.
    pub offset: u64,
    /// Length.
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
    /// Where.
    pub range: ByteRange,
    /// What is there.
    pub state: ExtentState,
}

/// What is known of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentState {
    /// Allocated; may hold anything.
    Data,
    /// Not allocated, or known without reading; reads as zeroes.
    Zero,
    /// Not allocated, and what a read returns is not specified (LBPRZ = 0).
    Unspecified,
}

/// Appends what follows directly: longer if it is more of the same.
pub(crate) fn append(extents: &mut Vec<Extent>, next: Extent) {
    match extents.last_mut() {
        Some(last) if last.state == next.state => last.range.bytes += next.range.bytes,
        _ => extents.push(next),
    }
}
