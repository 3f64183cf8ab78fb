//! Keeps a number of requests outstanding.

use super::contents::Contents;
use super::request::{Direction, Request, RequestSample};
use crate::monotonic_ns;
use block::{Backend, BlockError, Buffer, Completion, Operation, Payload, Slab};
use futures_util::StreamExt;
use futures_util::future::{Either, ready};
use futures_util::stream::{FuturesOrdered, FuturesUnordered};
use std::future::Future;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

/// Sends requests to a device.
pub struct Load<'a> {
    device: &'a dyn Backend,
    slab: Slab,
    depth: usize,
    contents: Contents,
}

/// The reason why a load ended before its requests did.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum LoadError {
    /// There is no memory for its requests.
    #[error("no memory for {depth} requests of {bytes} bytes; ask for fewer or shorter ones")]
    Memory { depth: usize, bytes: usize },
    /// The device failed a request.
    #[error("a {direction:?} of {bytes} bytes at {offset} failed: {source}")]
    Request { direction: Direction, offset: u64, bytes: u32, source: BlockError },
    /// A read found wrong data.
    #[error("at {offset} other data was read than was written")]
    Mismatch {
        /// The first block that differs.
        offset: u64,
    },
}

/// The memory of a request, which a later one reuses.
enum Memory {
    Read(Buffer),
    Write(Payload),
}

/// A request that is ready for submission.
struct Prepared {
    request: Request,
    operation: Operation,
    /// The memory of a write, a second time.
    written: Option<Payload>,
}

impl<'a> Load<'a> {
    /// A load of at most `depth` concurrent requests, each of at most `request_bytes_max`.
    #[must_use]
    pub fn new(device: &'a dyn Backend, depth: u16, request_bytes_max: usize, contents: Contents) -> Self {
        let depth = usize::from(depth);
        let mut load = Self { device, slab: Slab::new(0), depth, contents };
        // Outstanding; ended writes whose memory returns a little later; prepared; being compared.
        let buffers = 2 * depth + load.ahead() + load.compared_at_once();
        load.slab = Slab::new(request_bytes_max.next_power_of_two().max(4096).saturating_mul(buffers));
        load
    }

    /// Requests prepared before their turn, so that none waits for its contents.
    fn ahead(&self) -> usize {
        if self.contents == Contents::Any { 1 } else { self.depth }
    }

    /// Reads that are compared while others are outstanding.
    fn compared_at_once(&self) -> usize {
        if self.contents == Contents::Any { 0 } else { self.depth }
    }

    /// Submits one request after the other, each as soon as there is room and its time has come, until there are no
    /// more, then waits for the last ones. Calls `ended` for each success. Other threads make the contents of writes
    /// and compare reads, so that takes no time of a request or between two of them.
    ///
    /// # Errors
    /// The error of the first request that failed; others may be outstanding then.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn run(
        &self,
        requests: impl IntoIterator<Item = Request>,
        mut ended: impl FnMut(&RequestSample),
    ) -> Result<(), LoadError> {
        let begun = Instant::now();
        let block_bytes = u64::from(self.device.properties().block_bytes);
        let mut requests = requests.into_iter().fuse();
        let mut idle = Vec::new();
        let mut ahead = FuturesOrdered::new();
        let mut running = FuturesUnordered::new();
        let mut comparing = FuturesUnordered::new();
        loop {
            while ahead.len() < self.ahead()
                && let Some(request) = requests.next()
            {
                ahead.push_back(due(begun, self.prepare(request, idle.pop())?));
            }
            let room = running.len() < self.depth && comparing.len() <= self.compared_at_once();
            tokio::select! {
                Some(prepared) = ahead.next(), if room => running.push(self.carry_out(prepared, block_bytes)),
                Some(outcome) = running.next() => {
                    let (memory, sample) = outcome?;
                    ended(&sample);
                    comparing.push(self.compare(memory, sample.lba * block_bytes));
                }
                Some(compared) = comparing.next() => idle.push(compared?),
                else => return Ok(()),
            }
        }
    }

    /// Returns its memory for another request.
    async fn carry_out(
        &self,
        prepared: Prepared,
        block_bytes: u64,
    ) -> Result<(Memory, RequestSample), LoadError> {
        let Prepared { request: Request { direction, offset, bytes, .. }, operation, written } = prepared;
        let begun_ns = monotonic_ns();
        let Completion { result, buffer } = self.device.submit(operation).await;
        let ended_ns = monotonic_ns();
        result.map_err(|source| LoadError::Request { direction, offset, bytes, source })?;
        let memory = written.map(Memory::Write).or(buffer.map(Memory::Read));
        let memory = memory.ok_or_else(|| self.out_of_memory(bytes as usize))?;
        let lba = offset / block_bytes;
        Ok((memory, RequestSample { begun_ns, ended_ns, direction, lba, bytes, connection: None }))
    }

    /// Checks a read's data.
    fn compare(
        &self,
        memory: Memory,
        offset: u64,
    ) -> impl Future<Output = Result<Memory, LoadError>> + use<> {
        let contents = self.contents;
        match memory {
            Memory::Read(buffer) if contents != Contents::Any => Either::Left(elsewhere(move || {
                let difference = contents.first_difference(&buffer, offset);
                difference.map_or(Ok(Memory::Read(buffer)), |offset| Err(LoadError::Mismatch { offset }))
            })),
            memory => Either::Right(ready(Ok(memory))),
        }
    }

    /// The operation on the device, with the contents of a write.
    fn prepare(
        &self,
        request: Request,
        memory: Option<Memory>,
    ) -> Result<impl Future<Output = Prepared> + use<>, LoadError> {
        let Request { direction, offset, bytes, .. } = request;
        let bytes = bytes as usize;
        let write = move |payload: Payload| {
            let operation = Operation::Write { offset, payload: payload.clone(), fua: false };
            Prepared { request, operation, written: Some(payload) }
        };
        Ok(match (direction, memory) {
            (Direction::Write, Some(Memory::Write(payload)))
                if self.contents == Contents::Any && payload.len() == bytes =>
            {
                Either::Left(ready(write(payload)))
            }
            (Direction::Read, memory) => {
                let operation = Operation::Read { offset, buffer: self.buffer(memory, bytes)? };
                Either::Left(ready(Prepared { request, operation, written: None }))
            }
            (Direction::Write, memory) => {
                let (mut buffer, contents) = (self.buffer(memory, bytes)?, self.contents);
                Either::Right(elsewhere(move || {
                    contents.fill(&mut buffer, offset);
                    write(buffer.share())
                }))
            }
        })
    }

    /// The memory of an earlier request, if it has the right length and no other user.
    fn buffer(&self, memory: Option<Memory>, bytes: usize) -> Result<Buffer, LoadError> {
        let again = match memory {
            Some(Memory::Read(buffer)) => Some(buffer),
            Some(Memory::Write(payload)) => payload.try_into_buffer().ok(),
            None => None,
        };
        let again = again.filter(|buffer| buffer.len() == bytes);
        again.or_else(|| self.slab.allocate(bytes)).ok_or_else(|| self.out_of_memory(bytes))
    }

    fn out_of_memory(&self, bytes: usize) -> LoadError {
        LoadError::Memory { depth: self.depth, bytes }
    }
}

/// Runs on another thread, from now on, whether or not anybody waits for it.
fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = T> {
    let thread = spawn_blocking(work);
    async { thread.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())) }
}

/// Waits for the request's time.
async fn due(begun: Instant, prepared: impl Future<Output = Prepared>) -> Prepared {
    let prepared = prepared.await;
    if prepared.request.not_before > Duration::ZERO {
        sleep_until(begun + prepared.request.not_before).await;
    }
    prepared
}

#[cfg(test)]
mod tests {
    use super::super::{End, Order, Pattern, Replay};
    use super::*;
    use block::Ram;
    use netem::Bytes;

    const DISK_BYTES: u64 = 1 << 20;
    const CONTENTS: Contents = Contents::Known { seed: 1, oldest: 0, newest: 0 };

    fn ram() -> Ram {
        Ram::new(512, DISK_BYTES / 512).unwrap()
    }

    fn pattern(read_percent: u8, requests: u64) -> Pattern {
        Pattern {
            order: Order::Sequential,
            read_percent,
            request_size: Bytes(8192),
            depth: 4,
            end: End::Requests(requests),
            every: None,
            seed: 1,
        }
    }

    fn run(
        device: &dyn Backend,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<Vec<RequestSample>, LoadError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut samples = Vec::new();
        let load = Load::new(device, 4, 1 << 16, CONTENTS);
        runtime.block_on(load.run(requests, |sample| samples.push(*sample)))?;
        Ok(samples)
    }

    fn requests(pattern: &Pattern) -> super::super::Requests {
        pattern.requests(DISK_BYTES, 512).unwrap()
    }

    #[test]
    fn what_was_written_is_read_again_and_every_request_told() {
        let device = ram();
        let places = DISK_BYTES / 8192;
        let written = run(&device, requests(&pattern(0, places))).unwrap();
        assert_eq!(written.len() as u64, places);
        assert!(written.iter().all(|sample| sample.direction == Direction::Write && sample.bytes == 8192));
        let mut lbas: Vec<u64> = written.iter().map(|sample| sample.lba).collect();
        lbas.sort_unstable();
        assert_eq!(lbas, (0..places).map(|place| place * 16).collect::<Vec<_>>());
        let read = run(&device, requests(&pattern(100, places))).unwrap();
        assert!(read.iter().all(|sample| sample.begun_ns <= sample.ended_ns));
    }

    #[test]
    fn other_data_than_was_written_is_an_error_that_says_where() {
        let device = ram();
        run(&device, requests(&pattern(0, 2))).unwrap();
        // The third place was never written.
        let outcome = run(&device, requests(&pattern(100, 3)));
        assert!(matches!(outcome, Err(LoadError::Mismatch { offset: 16384 })), "{outcome:?}");
    }

    #[test]
    fn requests_of_a_list_have_the_lengths_and_the_order_that_it_says() {
        let list = "0, write, 0, 16\n0, write, 16, 1\n0.001, read, 0, 17\n0.002, read, 16, 1\n";
        let replay = Replay { requests: list.parse().unwrap(), depth: 1 };
        let samples = run(&ram(), replay.requests(DISK_BYTES, 512).unwrap()).unwrap();
        let found: Vec<_> = samples.iter().map(|sample| (sample.lba, sample.bytes / 512)).collect();
        assert_eq!(found, [(0, 16), (16, 1), (0, 17), (16, 1)]);
    }
}
