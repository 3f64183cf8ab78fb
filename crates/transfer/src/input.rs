//! A stream as a source: its parts in order, and its expected length.

use crate::Error;
use crate::disk::allocate;
use crate::image_format::{ImageFormat, MAGIC_BYTES};
use crate::stream::Reader;
use block::{Buffer, Completion, Payload, Slab};

/// A stream to be copied.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) reader: &'a Reader,
    /// The length that the stream must have, if the user gave it.
    pub(crate) expected_bytes: Option<u64>,
}

impl Input<'_> {
    /// Waits for the first bytes and returns their format. The bytes can still be read afterwards. An empty stream is
    /// an error, because it is the usual sign of a broken pipeline.
    pub(crate) async fn format(self, slab: &Slab) -> Result<Option<ImageFormat>, Error> {
        let beginning = buffer(self.reader.peek(allocate(slab, MAGIC_BYTES as u64)?).await, 0)?;
        if beginning.is_empty() {
            return Err(Error::NoInput);
        }
        Ok(ImageFormat::of(&beginning, &[]))
    }

    /// The next part, which is shorter than requested, or empty, at the end.
    pub(crate) async fn part(self, slab: &Slab, offset: u64, part_bytes: u64) -> Result<Payload, Error> {
        let part = buffer(self.reader.read(allocate(slab, part_bytes)?).await, offset)?;
        let found_bytes = offset + part.len() as u64;
        match self.expected_bytes {
            Some(expected_bytes) if found_bytes > expected_bytes => {
                Err(Error::InputTooLong { expected_bytes })
            }
            Some(expected_bytes) if (part.len() as u64) < part_bytes && found_bytes < expected_bytes => {
                Err(Error::InputTooShort { expected_bytes, found_bytes })
            }
            _ => Ok(part.share()),
        }
    }
}

fn buffer(completion: Completion, offset: u64) -> Result<Buffer, Error> {
    completion.into_buffer().map_err(|source| Error::Input { offset, source })
}
