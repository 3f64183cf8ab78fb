//! One command after another to a few blocks that nobody else touches.

use crate::stamp::{self, BLOCK_BYTES, Version};
use crate::tally::Tally;
use initiator::{Error, Lun};
use ropewalk_interop::dice::Dice;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Blocks of each worker: what it reads and writes at once is from one block up to all of them, 64 KiB.
pub const BLOCKS: usize = 16;

/// One flush in so many commands.
const FLUSH_ONE_IN: usize = 64;

/// A client's share of the disk, and what it holds.
pub struct Worker {
    lun: Lun,
    first_block: u64,
    versions: [Version; BLOCKS],
    dice: Dice,
    tally: Rc<Tally>,
    /// Mean time from one answer to the next command.
    pause: Duration,
}

/// It has told the tally.
struct Stopped;

impl Worker {
    /// The worker of this number.
    pub fn new(lun: Lun, number: usize, seed: u64, pause: Duration, tally: Rc<Tally>) -> Self {
        let first_block = (number * BLOCKS) as u64;
        let dice = Dice::new(seed ^ (first_block + 1));
        Self { lun, first_block, versions: [0; BLOCKS], dice, tally, pause }
    }

    /// Writes every block once, so that the target's memory is no longer growing for that.
    pub async fn prepare(&mut self) {
        // What went wrong, the tally knows.
        let _ = self.write(0, BLOCKS).await;
    }

    /// Commands at random until the load is over; then reads everything once more.
    pub async fn run(&mut self) {
        while !self.tally.over.get() {
            tokio::time::sleep(self.pause.mul_f64(2.0 * self.dice.fraction())).await;
            if self.command().await.is_err() {
                return;
            }
        }
    }

    /// Reads every block.
    pub async fn check(&mut self) {
        let _ = self.read(0, BLOCKS).await;
    }

    async fn command(&mut self) -> Result<(), Stopped> {
        let first = self.dice.below(BLOCKS);
        let blocks = 1 + self.dice.below(BLOCKS - first);
        let asked = Instant::now();
        match self.dice.below(FLUSH_ONE_IN) {
            0 => self.flush().await?,
            even if even % 2 == 0 => self.read(first, blocks).await?,
            _ => self.write(first, blocks).await?,
        }
        self.tally.answered(asked.elapsed());
        Ok(())
    }

    async fn write(&mut self, first: usize, blocks: usize) -> Result<(), Stopped> {
        let mut buffer = self.lun.allocate(blocks * BLOCK_BYTES).map_err(|error| self.stop(&error))?;
        for (at, bytes) in (first..).zip(buffer.chunks_exact_mut(BLOCK_BYTES)) {
            self.versions[at] += 1;
            stamp::fill(bytes, self.block(at), self.versions[at]);
        }
        let written = self.lun.write(self.offset(first), buffer, false).await;
        written.map_err(|error| self.stop(&error))
    }

    async fn read(&mut self, first: usize, blocks: usize) -> Result<(), Stopped> {
        let read = self.lun.read(self.offset(first), blocks * BLOCK_BYTES).await;
        let buffer = read.map_err(|error| self.stop(&error))?;
        for (at, bytes) in (first..).zip(buffer.chunks_exact(BLOCK_BYTES)) {
            if !stamp::holds(bytes, self.block(at), self.versions[at]) {
                self.tally.mismatched(self.block(at));
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Stopped> {
        match self.lun.flush().await {
            Err(Error::WritesLost { .. }) => {
                self.tally.restarts_told.set(self.tally.restarts_told.get() + 1);
                Ok(())
            }
            flushed => flushed.map_err(|error| self.stop(&error)),
        }
    }

    fn stop(&self, error: &Error) -> Stopped {
        self.tally.failed(error.to_string());
        Stopped
    }

    fn block(&self, at: usize) -> u64 {
        self.first_block + at as u64
    }

    fn offset(&self, at: usize) -> u64 {
        self.block(at) * BLOCK_BYTES as u64
    }
}
