//! Copies a source to a destination of random access: requests in any order, with regular flushes. If the destination
//! lost writes, everything since the last flush is written again.

use crate::cutter::{Cutter, Piece};
use crate::depth::Depth;
use crate::input::Input;
use crate::outstanding::{Control, Outstanding, Turn};
use crate::unflushed::{Epoch, Unflushed};
use crate::worker::{Effect, Worker};
use crate::{Error, Phase, disk::Disk, progress};
use block::{BlockError, BlockErrorKind, ByteRange, Extent, Operation, Payload};
use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The number of acknowledged writes that starts a flush, however short they are. It bounds the list of writes to
/// repeat.
const FLUSH_WRITES: usize = 4096;

/// The most losses without a successful flush in between. A restart of the target causes one; more mean that the target
/// or the path to it keeps failing.
const LOSSES_MAX: u32 = 16;

/// The source of the data.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    Disk(&'a Disk),
    Stream(Input<'a>),
}

/// One piece of work, kept until it is durable.
pub(crate) enum Work<'a> {
    /// Read this range from the source and write it.
    Copy(&'a Disk, ByteRange),
    /// Zero this range.
    Zero(ByteRange),
    /// Write data that was read from a stream. All-zero data becomes [`Self::Zero`] instead, to free its memory.
    Put(u64, Payload),
}

/// The end of a request.
enum Event<'a> {
    /// Work that began at this time, by the copy's clock.
    Worked(Duration, Epoch, Work<'a>, Result<Effect, Error>),
    Mapped(Result<Vec<Extent>, BlockError>),
    Streamed(Result<Payload, Error>),
    Flushed(Result<(), BlockError>),
}

/// The rest of the source.
enum Remainder<'a> {
    Disk { disk: &'a Disk, cutter: Cutter, mapping: bool },
    Stream { input: Input<'a>, at: u64, reading: bool, ended: bool },
}

/// A copy under way.
pub(crate) struct Pipeline<'a> {
    worker: Worker<'a>,
    depth: Depth,
    remainder: Remainder<'a>,
    /// Work that comes before anything new: lost writes, and data from the stream.
    ready: VecDeque<Work<'a>>,
    unflushed: Unflushed<Work<'a>>,
    losses_in_a_row: u32,
    /// The checksums of a stream's parts, in order.
    checksums: Vec<u64>,
}

impl<'a> Pipeline<'a> {
    pub(crate) fn new(worker: Worker<'a>, origin: Origin<'a>, depth: Depth) -> Self {
        let remainder = match origin {
            Origin::Disk(disk) => {
                let cutter = Cutter::new(disk.bytes(), worker.request_bytes, worker.unit_bytes);
                Remainder::Disk { disk, cutter, mapping: false }
            }
            Origin::Stream(input) => Remainder::Stream { input, at: 0, reading: false, ended: false },
        };
        Self {
            worker,
            depth,
            remainder,
            ready: VecDeque::new(),
            unflushed: Unflushed::default(),
            losses_in_a_row: 0,
            checksums: Vec::new(),
        }
    }

    /// Writes everything that is left, until all of it is acknowledged. [`Self::flush`] then makes it durable.
    pub(crate) async fn write(&mut self, control: &mut Control) -> Result<(), Error> {
        self.worker.progress.enter(Phase::Copying);
        let mut outstanding = Outstanding::new();
        let outcome = self.work(&mut outstanding, control).await;
        outstanding.drain().await;
        outcome
    }

    /// Makes durable what is acknowledged, if it is not. [`Self::not_flushed`] must be told of an error.
    pub(crate) fn flush(&mut self) -> impl Future<Output = Result<(), BlockError>> + use<'a> {
        let flush = (self.unflushed.writes() > 0).then(|| {
            self.worker.progress.enter(Phase::Flushing);
            self.begin_flush()
        });
        async move {
            match flush {
                Some(flush) => flush.await,
                None => Ok(()),
            }
        }
    }

    /// The length of the source and, for a stream, the checksums of its requests.
    pub(crate) fn written(&self) -> (u64, &[u64]) {
        let bytes = match &self.remainder {
            Remainder::Disk { disk, .. } => disk.bytes(),
            Remainder::Stream { at, .. } => *at,
        };
        (bytes, &self.checksums)
    }

    async fn work(
        &mut self,
        outstanding: &mut Outstanding<'a, Event<'a>>,
        control: &mut Control,
    ) -> Result<(), Error> {
        loop {
            self.learn(outstanding);
            self.begin(outstanding, control);
            self.flush_if_due(outstanding);
            match outstanding.next(control).await? {
                Turn::Done(event) => self.take(event, control.now())?,
                Turn::Look => {}
                Turn::Idle => return Ok(()),
            }
        }
    }

    /// Asks for the source's next extents, or the next part of a stream.
    fn learn(&mut self, outstanding: &mut Outstanding<'a, Event<'a>>) {
        match &mut self.remainder {
            Remainder::Disk { disk, cutter, mapping } => {
                let end = disk.backend.properties().bytes();
                match cutter.unmapped() {
                    Some(offset) if offset >= end => cutter.map_rest_as_data(),
                    Some(offset) if !*mapping => {
                        *mapping = true;
                        let pending = disk.backend.submit(Operation::Extents { offset, bytes: end - offset });
                        outstanding.start(async move { Event::Mapped(pending.await.into_extents()) });
                    }
                    _ => {}
                }
            }
            Remainder::Stream { input, at, reading, ended } => {
                let room = self.ready.is_empty() && self.unflushed.bytes() < self.worker.unflushed_bytes_max;
                if room && !*reading && !*ended && outstanding.len() < self.depth.now() {
                    *reading = true;
                    let (worker, input, offset) = (self.worker, *input, *at);
                    let part = async move { Event::Streamed(worker.next_of_stream(input, offset).await) };
                    outstanding.start_streaming(part);
                }
            }
        }
    }

    /// Begins as many requests as may be under way.
    fn begin(&mut self, outstanding: &mut Outstanding<'a, Event<'a>>, control: &mut Control) {
        let mut admitted = true;
        while admitted
            && outstanding.len() < self.depth.now()
            && self.unflushed.bytes() < self.worker.unflushed_bytes_max
            && let Some(work) = self.next_work()
        {
            admitted = control.admit(work.data_bytes());
            if admitted {
                let (worker, epoch, now) = (self.worker, self.unflushed.epoch(), control.now());
                outstanding.start(async move {
                    let outcome = worker.work(&work).await;
                    Event::Worked(now, epoch, work, outcome)
                });
            } else {
                self.ready.push_front(work);
            }
        }
    }

    fn next_work(&mut self) -> Option<Work<'a>> {
        if let Some(work) = self.ready.pop_front() {
            return Some(work);
        }
        match &mut self.remainder {
            Remainder::Disk { disk, cutter, .. } => cutter.next_piece().map(|piece| match piece {
                Piece::Data(range) => Work::Copy(disk, range),
                Piece::Zero(range) => Work::Zero(range),
            }),
            Remainder::Stream { .. } => None,
        }
    }

    /// The flush begins early enough that writing goes on meanwhile.
    fn flush_if_due(&mut self, outstanding: &mut Outstanding<'a, Event<'a>>) {
        let due = self.unflushed.bytes() >= self.worker.unflushed_bytes_max.div_ceil(2)
            || self.unflushed.writes() >= FLUSH_WRITES;
        if due && !self.unflushed.is_flushing() {
            let flush = self.begin_flush();
            outstanding.start(async move { Event::Flushed(flush.await) });
        }
    }

    fn begin_flush(&mut self) -> impl Future<Output = Result<(), BlockError>> + use<'a> {
        self.unflushed.flush_begins();
        let pending = self.worker.destination.submit(Operation::Flush);
        async move { pending.await.result.map(|_| ()) }
    }

    fn take(&mut self, event: Event<'a>, now: Duration) -> Result<(), Error> {
        match event {
            Event::Worked(began, epoch, work, outcome) => {
                let effect = outcome?;
                if effect == Effect::Written {
                    self.depth.ended(began, now);
                }
                self.worked(epoch, work, effect);
            }
            Event::Mapped(answer) => self.mapped(answer),
            Event::Streamed(part) => self.streamed(part?),
            Event::Flushed(Ok(())) => {
                self.losses_in_a_row = 0;
                self.unflushed.flush_succeeded();
            }
            Event::Flushed(Err(error)) => self.not_flushed(error)?,
        }
        Ok(())
    }

    /// Has the writes repeated that a flush found lost.
    pub(crate) fn not_flushed(&mut self, error: BlockError) -> Result<(), Error> {
        if error.kind() == BlockErrorKind::WritesLost {
            self.lost()
        } else {
            Err(self.worker.cannot_write("flush".to_owned(), error))
        }
    }

    fn worked(&mut self, epoch: Epoch, work: Work<'a>, effect: Effect) {
        let bytes = work.range().bytes;
        progress::add(&self.worker.progress.counts.done, bytes);
        if effect != Effect::Skipped {
            let data_bytes = if effect == Effect::Written { bytes } else { 0 };
            let again = self.unflushed.acknowledged(epoch, data_bytes, work);
            again.into_iter().for_each(|work| self.do_again(work));
        }
    }

    /// Takes the source's extents. A source that cannot report them is read completely.
    fn mapped(&mut self, answer: Result<Vec<Extent>, BlockError>) {
        if let Remainder::Disk { cutter, mapping, .. } = &mut self.remainder {
            *mapping = false;
            let before = cutter.unmapped();
            if let Ok(extents) = answer {
                cutter.map(&extents);
            }
            if cutter.unmapped() == before {
                cutter.map_rest_as_data();
            }
        }
    }

    fn streamed(&mut self, part: Payload) {
        if let Remainder::Stream { at, reading, ended, .. } = &mut self.remainder {
            *reading = false;
            let offset = *at;
            *at += part.len() as u64;
            *ended = (part.len() as u64) < self.worker.request_bytes;
            if !part.is_empty() {
                self.checksums.push(crate::verify::checksum(&part));
                self.ready.push_back(self.worker.work_of(offset, part));
            }
        }
    }

    fn lost(&mut self) -> Result<(), Error> {
        self.losses_in_a_row += 1;
        if self.losses_in_a_row > LOSSES_MAX {
            return Err(Error::NeverDurable {
                name: self.worker.name.to_owned(),
                times: self.losses_in_a_row,
            });
        }
        progress::add(&self.worker.progress.counts.losses, 1);
        let lost: Vec<_> = self.unflushed.lost().collect();
        lost.into_iter().for_each(|work| self.do_again(work));
        Ok(())
    }

    fn do_again(&mut self, work: Work<'a>) {
        let bytes = work.range().bytes;
        let counts = &self.worker.progress.counts;
        counts.done.fetch_sub(bytes, Ordering::Relaxed);
        progress::add(&counts.rewritten, bytes);
        self.ready.push_back(work);
    }
}

impl Work<'_> {
    /// The range of the source that this work copies.
    pub(crate) fn range(&self) -> ByteRange {
        match self {
            Self::Copy(_, range) | Self::Zero(range) => *range,
            Self::Put(offset, payload) => ByteRange { offset: *offset, bytes: payload.len() as u64 },
        }
    }

    /// The bytes that count against the bandwidth limit.
    fn data_bytes(&self) -> u64 {
        match self {
            Self::Zero(_) => 0,
            _ => self.range().bytes,
        }
    }
}
