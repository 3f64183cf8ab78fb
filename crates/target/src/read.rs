//! READ: the backend fills a buffer, and the socket is written from it.
//!
//! A short read is one piece. A longer one travels in pieces, a few at a time, so that a slow connection holds
//! little memory, and the disk reads on while the network is busy.

use crate::command::finish;
use crate::logical_unit::LogicalUnit;
use crate::memory::allocated;
use crate::session_driver::{SessionDriver, SessionState};
use block::{Buffer, Completion, Operation, Pending};
use scsi::{Extent, Outcome};
use session::seam::{Payload, PayloadRef};
use session::target::TaskId;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest piece: a command of this length, the usual maximum of initiators, is read at once.
const PIECE_BYTES: u32 = 1 << 20;

/// Pieces of one command that are being read or sent.
const PIECES_MAX: usize = 4;

/// A range of a unit that goes to an initiator.
#[derive(Clone, Copy)]
struct Range {
    offset: u64,
    /// What the initiator takes.
    bytes: u32,
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
    let range = Range { offset: unit.offset_of(extent.lba), bytes: u32::try_from(bytes).unwrap_or(u32::MAX) };
    if range.bytes == 0 {
        return finish(driver, state, id, Outcome::good());
    }
    let flush_first = fua && unit.disk.write_cache;
    if range.bytes <= PIECE_BYTES
        && !flush_first
        && let Some(buffer) = driver.shard.memory.transfers.allocate(unit.whole_blocks(range.bytes))
    {
        return read_at_once(driver, state, id, range, buffer);
    }
    let driver = Rc::clone(driver);
    tokio::task::spawn_local(async move {
        let outcome = read_in_pieces(&driver, &unit, id, range, flush_first).await;
        driver.resume(|state| finish(&driver, state, id, outcome));
    });
}

fn read_at_once(
    driver: &Rc<SessionDriver>,
    state: &mut SessionState,
    id: TaskId,
    range: Range,
    buffer: Buffer,
) {
    let Some(unit) = state.tasks.get(&id).map(|task| Rc::clone(&task.unit)) else { return };
    let pending = unit.backend.submit(Operation::Read { offset: range.offset, buffer });
    let driver_of_end = Rc::clone(driver);
    let end = move |state: &mut SessionState, completion: Completion| {
        let outcome = match completion.into_buffer() {
            Ok(buffer) => {
                deliver(&driver_of_end, state, id, buffer, range.bytes, None);
                Outcome::good()
            }
            Err(error) => unit.read_failure(range.offset, &error),
        };
        finish(&driver_of_end, state, id, outcome);
    };
    match pending.try_take() {
        Ok(completion) => end(state, completion),
        Err(pending) => {
            let driver = Rc::clone(driver);
            tokio::task::spawn_local(async move {
                let completion = pending.await;
                driver.resume(|state| end(state, completion));
            });
        }
    }
}

/// A piece that the backend is reading.
struct Piece {
    range: Range,
    pending: Pending,
    permit: OwnedSemaphorePermit,
}

async fn read_in_pieces(
    driver: &Rc<SessionDriver>,
    unit: &LogicalUnit,
    id: TaskId,
    range: Range,
    flush_first: bool,
) -> Outcome {
    if flush_first {
        let flushed = unit.flush().await;
        if flushed != Outcome::good() {
            return flushed;
        }
    }
    let permits = Arc::new(Semaphore::new(PIECES_MAX));
    let mut reading: VecDeque<Piece> = VecDeque::new();
    let mut rest = range;
    while rest.bytes > 0 || !reading.is_empty() {
        while rest.bytes > 0
            && let Some(piece) = submit_if_possible(driver, unit, rest, &permits)
        {
            rest = rest.after(piece.range);
            reading.push_back(piece);
        }
        let piece = match reading.pop_front() {
            Some(piece) => piece,
            None => {
                let Some(piece) = submit(driver, unit, rest, &permits).await else {
                    return Outcome::internal_failure();
                };
                rest = rest.after(piece.range);
                piece
            }
        };
        let Piece { range, pending, permit } = piece;
        let buffer = match pending.await.into_buffer() {
            Ok(buffer) => buffer,
            Err(error) => return unit.read_failure(range.offset, &error),
        };
        let live = driver.resume(|state| {
            let live = state.tasks.get(&id).is_some_and(|task| !task.aborted);
            if live {
                deliver(driver, state, id, buffer, range.bytes, Some(permit));
            }
            live
        });
        if !live {
            break;
        }
    }
    Outcome::good()
}

/// Starts to read the next piece if there is room for one more.
fn submit_if_possible(
    driver: &SessionDriver,
    unit: &LogicalUnit,
    rest: Range,
    permits: &Arc<Semaphore>,
) -> Option<Piece> {
    let permit = Arc::clone(permits).try_acquire_owned().ok()?;
    let range = rest.first_piece();
    let buffer = driver.shard.memory.transfers.allocate(unit.whole_blocks(range.bytes))?;
    let pending = unit.backend.submit(Operation::Read { offset: range.offset, buffer });
    Some(Piece { range, pending, permit })
}

/// Waits for room, then starts to read the next piece.
async fn submit(
    driver: &SessionDriver,
    unit: &LogicalUnit,
    rest: Range,
    permits: &Arc<Semaphore>,
) -> Option<Piece> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    let range = rest.first_piece();
    let buffer = allocated(&driver.shard.memory.transfers, unit.whole_blocks(range.bytes)).await;
    let pending = unit.backend.submit(Operation::Read { offset: range.offset, buffer });
    Some(Piece { range, pending, permit })
}

/// Hands a filled buffer to the session. It comes back, and with it the permission for another one, by its release.
fn deliver(
    driver: &SessionDriver,
    state: &mut SessionState,
    id: TaskId,
    buffer: Buffer,
    bytes: u32,
    permit: Option<OwnedSemaphorePermit>,
) {
    if let Some(task) = state.tasks.get_mut(&id) {
        task.delivered_bytes += bytes;
    }
    let buffer = state.buffers.insert(buffer.share());
    if let Some(permit) = permit {
        state.pieces.insert(buffer, permit);
    }
    let payload = PayloadRef { buffer, offset_bytes: 0, bytes };
    state.session.data_in(driver.now(), id, Payload::Buffer(payload));
}

impl Range {
    fn first_piece(self) -> Self {
        Self { bytes: self.bytes.min(PIECE_BYTES), ..self }
    }

    fn after(self, piece: Self) -> Self {
        Self { offset: self.offset + u64::from(piece.bytes), bytes: self.bytes - piece.bytes }
    }
}

impl LogicalUnit {
    /// The blocks that contain so many bytes: backends read only whole ones.
    fn whole_blocks(&self, bytes: u32) -> usize {
        bytes.next_multiple_of(self.disk.block.bytes()) as usize
    }
}
