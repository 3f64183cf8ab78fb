//! A source or destination of random access, read in pieces that may reach a little beyond its end.

use crate::Error;
use block::{Backend, BlockError, Buffer, ByteRange, Operation, Slab};
use std::sync::Arc;

/// A device, and the last bytes of a file that do not fill a block of it.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) name: String,
    pub(crate) backend: Arc<dyn Backend>,
    /// The bytes after the device's last block, fewer than a block.
    pub(crate) tail: Arc<[u8]>,
}

impl Disk {
    /// A device without a tail.
    pub(crate) fn new(name: impl Into<String>, backend: Arc<dyn Backend>) -> Self {
        Self { name: name.into(), backend, tail: Arc::new([]) }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.backend.properties().bytes() + self.tail.len() as u64
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        self.backend.properties().block_bytes.into()
    }

    /// The contents of a range that begins at a block; zeroes beyond the end.
    pub(crate) async fn read(&self, slab: &Slab, range: ByteRange) -> Result<Buffer, Error> {
        let mut buffer = allocate(slab, range.bytes)?;
        let device_bytes = self.backend.properties().bytes().saturating_sub(range.offset);
        if device_bytes >= range.bytes {
            return self.fill(range.offset, buffer).await;
        }
        let device = self.fill(range.offset, allocate(slab, device_bytes)?).await?;
        buffer.fill(0);
        buffer[..device.len()].copy_from_slice(&device);
        let tail = self.tail.len().min(buffer.len() - device.len());
        buffer[device.len()..device.len() + tail].copy_from_slice(&self.tail[..tail]);
        Ok(buffer)
    }

    async fn fill(&self, offset: u64, buffer: Buffer) -> Result<Buffer, Error> {
        if buffer.is_empty() {
            return Ok(buffer);
        }
        let bytes = buffer.len() as u64;
        let completion = self.backend.submit(Operation::Read { offset, buffer }).await;
        completion.into_buffer().map_err(|source| self.cannot_read(offset, bytes, source))
    }

    fn cannot_read(&self, offset: u64, bytes: u64, source: BlockError) -> Error {
        Error::Read { name: self.name.clone(), offset, bytes, source }
    }
}

pub(crate) fn allocate(slab: &Slab, bytes: u64) -> Result<Buffer, Error> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    slab.allocate(bytes).ok_or(Error::Memory { bytes })
}
