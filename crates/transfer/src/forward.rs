//! Copies a source to a stream: reads in any order, writes in the order of the source.

use crate::depth::Depth;
use crate::disk::Disk;
use crate::outstanding::{Control, Outstanding, Turn};
use crate::pipeline::Origin;
use crate::stream::Writer;
use crate::{Error, Progress, progress, verify};
use block::{BlockError, ByteRange, Payload, Slab};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A copy into a stream.
pub(crate) struct Forward<'a> {
    pub(crate) origin: Origin<'a>,
    pub(crate) writer: &'a Writer,
    /// The destination's name.
    pub(crate) name: &'a str,
    pub(crate) request_bytes: u64,
    /// The most requests that are read ahead or wait to be written, together.
    pub(crate) depth: Depth,
    pub(crate) slab: &'a Slab,
    pub(crate) progress: &'a Progress,
    pub(crate) touched: &'a AtomicBool,
}

/// The progress of a copy, in bytes of the source.
#[derive(Default)]
struct Position {
    asked: u64,
    /// Bytes that were handed to the writer.
    handed: u64,
    /// Requests that were read before their turn to be written.
    early: BTreeMap<u64, Payload>,
    ended: bool,
    /// Requests that were read or are being read, and are not written.
    alive: usize,
    checksums: Vec<u64>,
}

enum Event {
    /// A part that was asked for at this time, by the copy's clock.
    Read(Duration, u64, Result<Payload, Error>),
    Written(u64, Result<(), BlockError>),
}

impl<'a> Forward<'a> {
    /// Copies everything. Returns the length and the checksums of the requests.
    pub(crate) async fn run(mut self, control: &mut Control) -> Result<(u64, Vec<u64>), Error> {
        let mut outstanding = Outstanding::new();
        let mut position = Position::default();
        let outcome = self.work(&mut position, &mut outstanding, control).await;
        outstanding.drain().await;
        outcome?;
        self.writer.flush().await.result.map_err(|source| self.cannot_write("flush", source))?;
        Ok((position.handed, position.checksums))
    }

    async fn work(
        &mut self,
        position: &mut Position,
        outstanding: &mut Outstanding<'a, Event>,
        control: &mut Control,
    ) -> Result<(), Error> {
        loop {
            while position.alive < self.depth.now()
                && let Some(range) = self.next_range(position)
                && control.admit(range.bytes)
            {
                position.asked = range.end();
                position.alive += 1;
                self.start_read(control.now(), range, outstanding);
            }
            match outstanding.next(control).await? {
                Turn::Done(Event::Read(began, offset, payload)) => {
                    self.depth.ended(began, control.now());
                    self.arrived(offset, payload?, position, outstanding);
                }
                Turn::Done(Event::Written(bytes, outcome)) => {
                    outcome.map_err(|source| self.cannot_write("write to", source))?;
                    position.alive -= 1;
                    progress::add(&self.progress.counts.done, bytes);
                    progress::add(&self.progress.counts.data, bytes);
                }
                Turn::Look => {}
                Turn::Idle => return Ok(()),
            }
        }
    }

    /// The next range to read; `None` for a stream, which is read piece by piece.
    fn next_range(&self, position: &Position) -> Option<ByteRange> {
        let offset = position.asked;
        match self.origin {
            Origin::Disk(disk) if offset < disk.bytes() => {
                Some(ByteRange { offset, bytes: self.request_bytes.min(disk.bytes() - offset) })
            }
            Origin::Stream(_) if !position.ended && offset == position.handed => {
                Some(ByteRange { offset, bytes: self.request_bytes })
            }
            _ => None,
        }
    }

    fn start_read(&self, now: Duration, range: ByteRange, outstanding: &mut Outstanding<'a, Event>) {
        let slab = self.slab;
        match self.origin {
            Origin::Disk(disk) => outstanding
                .start(async move { Event::Read(now, range.offset, read_part(disk, slab, range).await) }),
            Origin::Stream(input) => {
                let ByteRange { offset, bytes } = range;
                let part = async move { Event::Read(now, offset, input.part(slab, offset, bytes).await) };
                outstanding.start_streaming(part);
            }
        }
    }

    fn arrived(
        &self,
        offset: u64,
        payload: Payload,
        position: &mut Position,
        outstanding: &mut Outstanding<'a, Event>,
    ) {
        if matches!(self.origin, Origin::Stream(_)) {
            position.asked = offset + payload.len() as u64;
            position.ended = (payload.len() as u64) < self.request_bytes;
        }
        if payload.is_empty() {
            position.alive -= 1;
            return;
        }
        position.early.insert(offset, payload);
        while let Some(payload) = position.early.remove(&position.handed) {
            let bytes = payload.len() as u64;
            position.handed += bytes;
            position.checksums.push(verify::checksum(&payload));
            self.touched.store(true, Ordering::Relaxed);
            let pending = self.writer.write(payload);
            outstanding
                .start_streaming(async move { Event::Written(bytes, pending.await.result.map(|_| ())) });
        }
    }

    fn cannot_write(&self, what: &str, source: BlockError) -> Error {
        Error::Write { name: self.name.to_owned(), what: what.to_owned(), source }
    }
}

/// Reads a part of a disk, to the byte.
async fn read_part(disk: &Disk, slab: &Slab, range: ByteRange) -> Result<Payload, Error> {
    let whole = ByteRange { bytes: range.bytes.next_multiple_of(disk.block_bytes()), ..range };
    let mut buffer = disk.read(slab, whole).await?;
    buffer.truncate(usize::try_from(range.bytes).unwrap_or(usize::MAX));
    Ok(buffer.share())
}
