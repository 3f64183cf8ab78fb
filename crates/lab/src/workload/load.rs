//! Requests under way, so many at a time.

use super::contents::Contents;
use super::request::{Direction, Request, RequestSample};
use crate::monotonic_ns;
use block::{Backend, BlockError, Buffer, Completion, Operation, Payload, Slab};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Puts requests to a device.
pub struct Load<'a> {
    device: &'a dyn Backend,
    slab: Slab,
    depth: usize,
    contents: Contents,
}

/// Why a load ended before its requests did.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no memory for its requests.
    #[error("no memory for {depth} requests of {bytes} bytes")]
    Memory {
        /// Requests at a time.
        depth: usize,
        /// Bytes of one.
        bytes: usize,
    },
    /// The device failed one.
    #[error("a {direction:?} of {bytes} bytes at {offset} failed: {source}")]
    Request {
        /// Which way.
        direction: Direction,
        /// Where.
        offset: u64,
        /// How much.
        bytes: u32,
        /// What the device said.
        source: BlockError,
    },
    /// Other data was read than was written.
    #[error("at {offset} other data was read than was written")]
    Mismatch {
        /// The first block that is different.
        offset: u64,
    },
}

/// The memory of a request, which a later one uses again.
enum Memory {
    Read(Buffer),
    Write(Payload),
}

impl<'a> Load<'a> {
    /// A load of at most `depth` requests at a time, each of at most `request_bytes_max`.
    #[must_use]
    pub fn new(device: &'a dyn Backend, depth: u16, request_bytes_max: usize, contents: Contents) -> Self {
        let depth = usize::from(depth);
        // Memory of a write comes back a little after its end.
        let slab = Slab::new(request_bytes_max.next_power_of_two().max(4096).saturating_mul(2 * depth + 1));
        Self { device, slab, depth, contents }
    }

    /// Takes one request after the other, each as soon as there is room and its time has come, until there is none, then
    /// waits for the last ones. `ended` is told of each that has succeeded.
    ///
    /// # Errors
    /// Of the first request that failed; others may be under way then.
    pub async fn run(
        &self,
        requests: impl IntoIterator<Item = Request>,
        mut ended: impl FnMut(&RequestSample),
    ) -> Result<(), LoadError> {
        let begun = Instant::now();
        let block_bytes = u64::from(self.device.properties().block_bytes);
        let (mut requests, mut next) = (requests.into_iter(), None);
        let mut idle = Vec::new();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < self.depth {
                next = next.or_else(|| requests.next());
                let Some(request) = next.take_if(|request| is_due(request, begun)) else { break };
                running.push(self.request(request, idle.pop(), block_bytes));
            }
            let room = running.len() < self.depth;
            let (memory, sample) = match (running.is_empty(), next.filter(|_| room)) {
                (true, None) => return Ok(()),
                (_, Some(Request { not_before, .. })) => tokio::select! {
                    Some(ended) = running.next() => ended?,
                    () = sleep_until(begun + not_before) => continue,
                },
                (false, None) => match running.next().await {
                    Some(ended) => ended?,
                    None => continue,
                },
            };
            idle.push(memory);
            ended(&sample);
        }
    }

    /// Its memory comes back for another request.
    async fn request(
        &self,
        request: Request,
        memory: Option<Memory>,
        block_bytes: u64,
    ) -> Result<(Memory, RequestSample), LoadError> {
        let Request { direction, offset, bytes, .. } = request;
        let (operation, written) = self.operation(request, memory)?;
        let begun_ns = monotonic_ns();
        let Completion { result, buffer } = self.device.submit(operation).await;
        let ended_ns = monotonic_ns();
        result.map_err(|source| LoadError::Request { direction, offset, bytes, source })?;
        let memory = written.map(Memory::Write).or(buffer.map(Memory::Read));
        let memory = memory.ok_or_else(|| self.out_of_memory(bytes as usize))?;
        if let Memory::Read(buffer) = &memory
            && let Some(offset) = self.contents.first_difference(buffer, offset)
        {
            return Err(LoadError::Mismatch { offset });
        }
        let lba = offset / block_bytes;
        Ok((memory, RequestSample { begun_ns, ended_ns, direction, lba, bytes, connection: None }))
    }

    /// What the device is asked, and for a write its memory once more.
    fn operation(
        &self,
        request: Request,
        memory: Option<Memory>,
    ) -> Result<(Operation, Option<Payload>), LoadError> {
        let Request { direction, offset, bytes, .. } = request;
        let bytes = bytes as usize;
        match (direction, memory) {
            (Direction::Write, Some(Memory::Write(payload)))
                if self.contents == Contents::Any && payload.len() == bytes =>
            {
                Ok((Operation::Write { offset, payload: payload.clone(), fua: false }, Some(payload)))
            }
            (direction, memory) => {
                let mut buffer = self.buffer(memory, bytes)?;
                if direction == Direction::Read {
                    return Ok((Operation::Read { offset, buffer }, None));
                }
                self.contents.fill(&mut buffer, offset);
                let payload = buffer.share();
                Ok((Operation::Write { offset, payload: payload.clone(), fua: false }, Some(payload)))
            }
        }
    }

    /// The memory of an earlier request, if it is as long and nobody else has it.
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

fn is_due(request: &Request, begun: Instant) -> bool {
    request.not_before == Duration::ZERO || begun.elapsed() >= request.not_before
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
