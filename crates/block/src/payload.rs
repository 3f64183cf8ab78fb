//! A part of a filled buffer, for several readers.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::slab::Buffer;

/// A read-only, reference-counted part of a [`Buffer`]: the data of a write, or the source of several socket writes.
/// Cloning and slicing copy no data; the memory returns to its slab with the last clone.
#[derive(Clone)]
pub struct Payload {
    buffer: Arc<Buffer>,
    range: (usize, usize),
}

impl Payload {
    /// The part of a shared buffer, or `None` if `range` is not inside it.
    #[must_use]
    pub fn new(buffer: Arc<Buffer>, range: Range<usize>) -> Option<Self> {
        let inside = range.start <= range.end && range.end <= buffer.len();
        inside.then_some(Self { buffer, range: (range.start, range.end) })
    }

    /// A part of this part (`range` counts from its start), or `None` if `range` is not inside it.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        let inside = range.start <= range.end && range.end <= self.len();
        inside.then(|| Self {
            buffer: Arc::clone(&self.buffer),
            range: (self.range.0 + range.start, self.range.0 + range.end),
        })
    }

    /// The bytes, to be filled; `None` while another clone reads the buffer.
    pub fn get_mut(&mut self) -> Option<&mut [u8]> {
        let (start, end) = self.range;
        Arc::get_mut(&mut self.buffer).map(|buffer| &mut buffer[start..end])
    }

    /// The whole buffer, to fill it again.
    ///
    /// # Errors
    /// The payload itself, if another clone still reads the buffer.
    pub fn try_into_buffer(self) -> Result<Buffer, Self> {
        let range = self.range;
        Arc::try_unwrap(self.buffer).map_err(|buffer| Self { buffer, range })
    }
}

impl From<Buffer> for Payload {
    fn from(buffer: Buffer) -> Self {
        let range = (0, buffer.len());
        Self { buffer: Arc::new(buffer), range }
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.range.0..self.range.1]
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for Payload {
    /// Omits the contents: they may be a customer's.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Payload").field("range", &self.range).finish_non_exhaustive()
    }
}
