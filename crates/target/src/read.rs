//! READ: the backend fills a buffer, and the socket is written from it.
//!
//! A read travels in pieces. One piece that the backend has at once is on its way before [`start`] returns;
//! otherwise a task of its own reads ahead and hands over piece by piece. A session has a bounded number of pieces
//! on their way, so that an initiator that asks for much and takes nothing holds little memory.

use crate::command::finish;
use crate::logical_unit::LogicalUnit;
use crate::memory::allocated;
use crate::session_driver::{SessionDriver, SessionState};
use block::{BlockError, Buffer, Operation, Pending};
use scsi::{Extent, Outcome};
use session::seam::{Payload, PayloadRef};
use session::target::TaskId;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// The longest piece: a command of this length, the usual maximum of initiators, is read at once.
const PIECE_BYTES: u32 = 1 << 20;

/// Reads up to this length need no permission: the command window bounds them well enough.
const SHORT_BYTES: u32 = 64 << 10;

/// Pieces that one command reads ahead of the network.
const AHEAD_PIECES: usize = 4;

/// How many pieces one session may have on their way, where `budget_bytes` are shared by all: an eighth, at least
/// what one command reads ahead, and no more than fills a long path.
pub(crate) fn pieces_per_session(budget_bytes: usize) -> usize {
    (budget_bytes / 8 / PIECE_BYTES as usize).clamp(AHEAD_PIECES, 64)
}

/// A range of a unit that goes to an initiator.
#[derive(Clone, Copy)]
struct Range {
    offset: u64,
    /// What the initiator takes.
    bytes: u32,
}

impl Range {
    fn first_piece(self) -> Self {
        Self { bytes: self.bytes.min(PIECE_BYTES), ..self }
    }

    fn after(self, piece: Self) -> Self {
        Self { offset: self.offset + u64::from(piece.bytes), bytes: self.bytes - piece.bytes }
    }
}

/// Reads `extent`, as far as the initiator wants it.
pub(crate) fn start(
    driver: &Rc<SessionDriver>,
    state: &mut SessionState,
    id: TaskId,
    extent: Extent,
    fua: bool,
) {
    let Some(task) = state.tasks.get(&id) else { return };
    let unit = Rc::clone(&task.unit);
    let bytes = unit.bytes_of(extent).min(task.command.data_in_bytes.into());
    let rest = Range { offset: unit.offset_of(extent.lba), bytes: u32::try_from(bytes).unwrap_or(u32::MAX) };
    if rest.bytes == 0 {
        return finish(driver, state, id, Outcome::good());
    }
    let flush_first = fua && unit.disk.write_cache;
    let mut read = Read { id, unit, rest, pieces: VecDeque::new() };
    if rest.bytes <= PIECE_BYTES && !flush_first && read.submit_now(driver) {
        match read.try_deliver(driver, state) {
            None => {}
            Some(Ok(())) => return finish(driver, state, id, Outcome::good()),
            Some(Err(outcome)) => return finish(driver, state, id, outcome),
        }
    }
    let driver = Rc::clone(driver);
    tokio::task::spawn_local(async move {
        let outcome = read.run(&driver, flush_first).await.err().unwrap_or_else(Outcome::good);
        driver.resume(|state| finish(&driver, state, id, outcome));
    });
}

/// One READ on its way.
struct Read {
    id: TaskId,
    unit: Rc<LogicalUnit>,
    /// What the backend has not been asked for yet.
    rest: Range,
    /// What it is reading, in order.
    pieces: VecDeque<Piece>,
}

struct Piece {
    range: Range,
    pending: Pending,
    permit: Option<OwnedSemaphorePermit>,
}

impl Read {
    /// Carries the command on to its end.
    ///
    /// # Errors
    /// The outcome of a command that failed.
    async fn run(mut self, driver: &Rc<SessionDriver>, flush_first: bool) -> Result<(), Outcome> {
        if flush_first {
            let flushed = self.unit.flush().await;
            if flushed != Outcome::good() {
                return Err(flushed);
            }
        }
        loop {
            while self.rest.bytes > 0 && self.pieces.len() < AHEAD_PIECES && self.submit_now(driver) {}
            // Only a command that holds nothing waits for room, so there is no circle of waiting.
            if self.pieces.is_empty() && self.rest.bytes > 0 {
                self.submit(driver).await;
            }
            let Some(Piece { range, pending, permit }) = self.pieces.pop_front() else { return Ok(()) };
            let buffer = pending.await.into_buffer();
            let is_wanted = driver.resume(|state| {
                let is_wanted = state.tasks.get(&self.id).is_some_and(|task| !task.aborted);
                if is_wanted {
                    self.deliver(driver, state, range, buffer, permit).map(|()| true)
                } else {
                    Ok(false)
                }
            })?;
            if !is_wanted {
                return Ok(());
            }
        }
    }

    /// Starts to read the next piece, if there is room for it now.
    fn submit_now(&mut self, driver: &SessionDriver) -> bool {
        let range = self.rest.first_piece();
        let permit = if range.bytes <= SHORT_BYTES {
            None
        } else {
            let Ok(permit) = Arc::clone(&driver.read_pieces).try_acquire_owned() else { return false };
            Some(permit)
        };
        let Some(buffer) = driver.shard.memory.transfers.allocate(self.whole_blocks(range)) else {
            return false;
        };
        self.submit_into(range, buffer, permit);
        true
    }

    /// Waits for room, then starts to read the next piece.
    async fn submit(&mut self, driver: &SessionDriver) {
        let range = self.rest.first_piece();
        // The semaphore is never closed; if it were, reading on without it would do no harm.
        let permit = Arc::clone(&driver.read_pieces).acquire_owned().await.ok();
        let buffer = allocated(&driver.shard.memory.transfers, self.whole_blocks(range)).await;
        self.submit_into(range, buffer, permit);
    }

    fn submit_into(&mut self, range: Range, buffer: Buffer, permit: Option<OwnedSemaphorePermit>) {
        let pending = self.unit.backend.submit(Operation::Read { offset: range.offset, buffer });
        self.rest = self.rest.after(range);
        self.pieces.push_back(Piece { range, pending, permit });
    }

    /// Hands the first piece over if the backend is done with it.
    fn try_deliver(
        &mut self,
        driver: &SessionDriver,
        state: &mut SessionState,
    ) -> Option<Result<(), Outcome>> {
        let Piece { range, pending, permit } = self.pieces.pop_front()?;
        match pending.try_take() {
            Ok(completion) => Some(self.deliver(driver, state, range, completion.into_buffer(), permit)),
            Err(pending) => {
                self.pieces.push_front(Piece { range, pending, permit });
                None
            }
        }
    }

    /// Hands a filled buffer to the session. It comes back, and with it the permission for another one, by its
    /// release.
    fn deliver(
        &self,
        driver: &SessionDriver,
        state: &mut SessionState,
        range: Range,
        buffer: Result<Buffer, BlockError>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<(), Outcome> {
        let buffer = buffer.map_err(|error| self.unit.read_failure(range.offset, &error))?;
        if let Some(task) = state.tasks.get_mut(&self.id) {
            task.delivered_bytes += range.bytes;
        }
        let buffer = state.buffers.insert(buffer.share());
        if let Some(permit) = permit {
            state.pieces.insert(buffer, permit);
        }
        let payload = PayloadRef { buffer, offset_bytes: 0, bytes: range.bytes };
        state.session.data_in(driver.now(), self.id, Payload::Buffer(payload));
        Ok(())
    }

    /// The blocks that contain the range: backends read only whole ones.
    fn whole_blocks(&self, range: Range) -> usize {
        range.bytes.next_multiple_of(self.unit.disk.block.bytes()) as usize
    }
}
