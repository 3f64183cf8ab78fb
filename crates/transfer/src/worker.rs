//! Does one piece of work: reads it, checks whether it is zero, and writes it in the cheapest safe way.

use crate::disk::allocate;
use crate::input::Input;
use crate::pipeline::Work;
use crate::zeroes::is_zero;
use crate::{Error, Progress, progress};
use block::{Backend, BlockError, BlockErrorKind, ByteRange, Operation, Payload, Slab};
use std::sync::atomic::{AtomicBool, Ordering};

/// How ranges are zeroed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeroing {
    /// Not at all: the destination is zero already.
    Skip,
    /// By a command that may deallocate, because what is deallocated reads as zero (LBPRZ).
    Deallocate,
    /// By a command that writes zeroes.
    Write,
}

/// The effect of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Data was sent.
    Written,
    /// A command zeroed it.
    Zeroed,
    /// Nothing had to be done.
    Skipped,
}

/// The facts that every request needs.
#[derive(Clone, Copy)]
pub(crate) struct Worker<'a> {
    pub(crate) destination: &'a dyn Backend,
    /// The destination's name.
    pub(crate) name: &'a str,
    pub(crate) slab: &'a Slab,
    pub(crate) progress: &'a Progress,
    pub(crate) zeroing: Zeroing,
    pub(crate) request_bytes: u64,
    pub(crate) unit_bytes: u64,
    pub(crate) unflushed_bytes_max: u64,
    /// Whether a request that changes the destination was sent.
    pub(crate) touched: &'a AtomicBool,
    /// Whether the destination has refused a command that zeroes.
    pub(crate) no_zeroing_command: &'a AtomicBool,
}

impl Worker<'_> {
    pub(crate) async fn work(self, work: &Work<'_>) -> Result<Effect, Error> {
        match work {
            Work::Copy(source, range) => {
                let payload = source.read(self.slab, *range).await?.share();
                if is_zero(&payload) {
                    self.zero(*range).await
                } else {
                    self.write(range.offset, payload).await
                }
            }
            Work::Put(offset, payload) => self.write(*offset, self.padded(payload)?).await,
            Work::Zero(range) => self.zero(*range).await,
        }
    }

    /// The next part of a stream, as long as a request; shorter or empty at its end.
    pub(crate) async fn next_of_stream(self, input: Input<'_>, offset: u64) -> Result<Payload, Error> {
        let part = input.part(self.slab, offset, self.request_bytes).await?;
        let capacity_bytes = self.destination.properties().bytes();
        if offset + part.len() as u64 > capacity_bytes {
            return Err(Error::TooLong { name: self.name.to_owned(), capacity_bytes });
        }
        Ok(part)
    }

    /// The work for a part of a stream. All-zero parts are kept as ranges, without their buffer.
    pub(crate) fn work_of<'a>(self, offset: u64, part: Payload) -> Work<'a> {
        if is_zero(&part) {
            let bytes = (part.len() as u64).next_multiple_of(self.unit_bytes);
            Work::Zero(ByteRange { offset, bytes })
        } else {
            Work::Put(offset, part)
        }
    }

    /// The payload in whole blocks of the destination, filled up with zeroes.
    fn padded(self, payload: &Payload) -> Result<Payload, Error> {
        let bytes = payload.len() as u64;
        let padded_bytes = bytes.next_multiple_of(self.unit_bytes);
        if bytes == padded_bytes {
            return Ok(payload.clone());
        }
        let mut buffer = allocate(self.slab, padded_bytes)?;
        buffer.fill(0);
        buffer[..payload.len()].copy_from_slice(payload);
        Ok(buffer.share())
    }

    async fn write(self, offset: u64, payload: Payload) -> Result<Effect, Error> {
        let bytes = payload.len();
        self.touched.store(true, Ordering::Relaxed);
        let write = self.destination.submit(Operation::Write { offset, payload, fua: false });
        let done = write.await.result;
        done.map_err(|source| self.cannot_write(format!("write {bytes} bytes at {offset} of"), source))?;
        progress::add(&self.progress.counts.data, bytes as u64);
        Ok(Effect::Written)
    }

    async fn zero(self, range: ByteRange) -> Result<Effect, Error> {
        if self.zeroing == Zeroing::Skip {
            progress::add(&self.progress.counts.skipped, range.bytes);
            return Ok(Effect::Skipped);
        }
        if self.no_zeroing_command.load(Ordering::Relaxed) {
            return self.write_zeroes(range).await;
        }
        self.touched.store(true, Ordering::Relaxed);
        let ByteRange { offset, bytes } = range;
        let may_unmap = self.zeroing == Zeroing::Deallocate;
        match self.destination.submit(Operation::WriteZeroes { offset, bytes, may_unmap }).await.result {
            Ok(_) => {
                progress::add(&self.progress.counts.zeroed, bytes);
                Ok(Effect::Zeroed)
            }
            Err(error) if error.kind() == BlockErrorKind::Unsupported => {
                self.no_zeroing_command.store(true, Ordering::Relaxed);
                self.write_zeroes(range).await
            }
            Err(source) => Err(self.cannot_write(format!("zero {bytes} bytes at {offset} of"), source)),
        }
    }

    /// Writes zeroes as data, for destinations without a zeroing command.
    async fn write_zeroes(self, range: ByteRange) -> Result<Effect, Error> {
        let mut zeroes = allocate(self.slab, self.request_bytes.min(range.bytes))?;
        zeroes.fill(0);
        let zeroes = zeroes.share();
        let mut offset = range.offset;
        while offset < range.end() {
            let bytes =
                usize::try_from(range.end() - offset).map_or(zeroes.len(), |rest| rest.min(zeroes.len()));
            let Some(payload) = zeroes.slice(0..bytes) else { break };
            self.write(offset, payload).await?;
            offset += bytes as u64;
        }
        Ok(Effect::Written)
    }

    pub(crate) fn cannot_write(self, what: String, source: BlockError) -> Error {
        Error::Write { name: self.name.to_owned(), what, source }
    }
}
