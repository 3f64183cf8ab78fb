//! Requests, so many at a time.

use super::Pattern;
use super::measurement::Measurement;
use crate::sizes::ByteSize;
use anyhow::{Context, ensure};
use block::{Backend, Buffer, ByteRange, Completion, Operation, Payload, Slab};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use initiator::Lun;
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::time::Instant;

pub(super) struct Load {
    lun: Lun,
    pattern: Pattern,
    request_bytes: usize,
    depth: usize,
    /// Requests that fit the disk.
    places: u64,
    /// Of the last request that was started.
    place: Cell<u64>,
}

/// The memory of a request, which the next one reuses.
enum Memory {
    Read(Buffer),
    Write(Payload),
}

/// How often a status is wanted.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

impl Load {
    pub(super) fn new(lun: Lun, pattern: Pattern, request_bytes: u64, depth: usize) -> anyhow::Result<Self> {
        let properties = lun.properties();
        let block_bytes = u64::from(properties.block_bytes);
        ensure!(
            request_bytes.is_multiple_of(block_bytes),
            "requests of {} are not whole blocks of {block_bytes} bytes: choose a multiple",
            ByteSize(request_bytes)
        );
        let places = properties.bytes() / request_bytes;
        ensure!(places > 0, "the disk holds less than one request of {}", ByteSize(request_bytes));
        let place = Cell::new(RandomState::new().hash_one(()));
        Ok(Self { lun, pattern, request_bytes: usize::try_from(request_bytes)?, depth, places, place })
    }

    /// Keeps requests under way until it is time, then waits for the last ones.
    pub(super) async fn run(
        &self,
        until: Instant,
        measurement: &mut Measurement,
        mut status: impl FnMut(&mut Measurement),
    ) -> anyhow::Result<()> {
        let slab = Slab::new(self.request_bytes.next_power_of_two().max(4096).saturating_mul(self.depth + 1));
        let mut running = FuturesUnordered::new();
        for index in 0..self.depth {
            let mut buffer =
                slab.allocate(self.request_bytes).context("no memory for the requests' buffers")?;
            let memory = if self.pattern.writes() {
                fill(&mut buffer, index as u64);
                Memory::Write(buffer.share())
            } else {
                Memory::Read(buffer)
            };
            running.push(self.request(memory));
        }
        let mut ticks = tokio::time::interval_at(Instant::now() + STATUS_INTERVAL, STATUS_INTERVAL);
        loop {
            let ended = tokio::select! {
                ended = running.next() => ended,
                _ = ticks.tick() => {
                    status(measurement);
                    continue;
                }
            };
            let Some(ended) = ended else { break };
            let (memory, latency) = ended?;
            measurement.add(self.request_bytes as u64, latency);
            if Instant::now() < until {
                running.push(self.request(memory));
            }
        }
        measurement.end();
        Ok(())
    }

    /// The memory comes back for the next request.
    async fn request(&self, memory: Memory) -> anyhow::Result<(Memory, Duration)> {
        let range = ByteRange {
            offset: self.next_place() * self.request_bytes as u64,
            bytes: self.request_bytes as u64,
        };
        let begun = Instant::now();
        let (operation, written) = match memory {
            Memory::Read(buffer) => (Operation::Read { offset: range.offset, buffer }, None),
            Memory::Write(payload) => {
                let again = payload.clone();
                (Operation::Write { offset: range.offset, payload, fua: false }, Some(again))
            }
        };
        let Completion { result, buffer } = self.lun.submit(operation).await;
        let latency = begun.elapsed();
        result.with_context(|| format!("a request for {} bytes at {} failed", range.bytes, range.offset))?;
        let memory = written.map(Memory::Write).or(buffer.map(Memory::Read));
        Ok((memory.context("a request lost its memory")?, latency))
    }

    fn next_place(&self) -> u64 {
        let place =
            if self.pattern.is_random() { mix(self.place.get()) } else { self.place.get().wrapping_add(1) };
        self.place.set(place);
        place % self.places
    }
}

/// Contents that no layer between here and the disk can compress or deduplicate.
fn fill(buffer: &mut [u8], seed: u64) {
    let mut word = mix(seed);
    for chunk in buffer.chunks_mut(8) {
        word = mix(word);
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

/// Steele, Lea and Flood's `SplitMix64` (2014), one step.
fn mix(word: u64) -> u64 {
    let mut mixed = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
