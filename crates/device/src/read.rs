//! READ: the backend fills a buffer, and the socket is written from it.
//!
//! A read travels in pieces. Pieces that the backend lends, and one piece that it has at once, leave before [`start`]
//! returns; otherwise a task of its own reads ahead and hands over piece by piece. The reads of a session have a bounded
//! number of bytes in transit ([`crate::read_memory`]), so an initiator that requests much and accepts nothing holds
//! little memory: those bytes, and one more piece for each connection, which the connection has pulled and not yet given
//! to its socket. Reads of several pieces take turns ([`crate::read_turns`]).

use crate::execution::Execution;
use crate::logical_unit::LogicalUnit;
use crate::memory::allocated;
use crate::permit::{Permit, Permits};
use crate::read_memory::{AHEAD_PIECES, ReadPermit};
use crate::read_turns::Turn;
use crate::session_driver::{SessionDriver, SessionState};
use block::{BlockError, Buffer, Operation, Payload, Pending};
use futures_channel::oneshot;
use futures_util::future::{Either, select};
use scsi::{Extent, Outcome};
use session::seam::{self, PayloadRef};
use session::target::TaskId;
use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;

/// The longest read that needs no permit: the command window bounds such reads well enough.
const SHORT_BYTES: u32 = 64 << 10;

/// A range of a unit that goes to an initiator.
#[derive(Clone, Copy)]
struct Range {
    offset: u64,
    /// The bytes that the initiator accepts.
    bytes: u32,
}

impl Range {
    fn after(self, piece: Self) -> Self {
        Self { offset: self.offset + u64::from(piece.bytes), bytes: self.bytes - piece.bytes }
    }
}

/// Reads `extent`, up to the length that the initiator accepts.
pub(crate) fn start(
    driver: &Rc<SessionDriver>,
    state: &mut SessionState,
    id: TaskId,
    extent: Extent,
    fua: bool,
) -> Execution {
    let Some(task) = state.tasks.get(&id) else { return Execution::Done(Outcome::good()) };
    let unit = Rc::clone(&task.unit);
    let bytes = unit.bytes_of(extent).min(task.command.data_in_bytes.into());
    let rest = Range { offset: unit.offset_of(extent.lba), bytes: u32::try_from(bytes).unwrap_or(u32::MAX) };
    if rest.bytes == 0 {
        return Execution::Done(Outcome::good());
    }
    let flush_first = fua && unit.disk.write_cache;
    let turn = match state.session.data_in_lane(id) {
        Some(lane) if rest.bytes > driver.environment.memory.read_piece_bytes => {
            state.read_turns.of_read(unit.number, lane)
        }
        _ => Turn::Over,
    };
    let mut read = Read { id, unit, rest, pieces: VecDeque::new(), turn };
    if !flush_first && let Some(result) = read.run_now(driver, state) {
        return Execution::Done(result.err().unwrap_or_else(Outcome::good));
    }
    let driver = Rc::clone(driver);
    Execution::working(
        async move { read.run(&driver, flush_first).await.err().unwrap_or_else(Outcome::good) },
    )
}

/// One READ under way.
struct Read {
    id: TaskId,
    unit: Rc<LogicalUnit>,
    /// The part not yet requested from the backend.
    rest: Range,
    /// The pieces at the backend, in order.
    pieces: VecDeque<Piece>,
    turn: Turn,
}

struct Piece {
    range: Range,
    source: Source,
    permit: Option<ReadPermit>,
}

/// The origin of a piece.
enum Source {
    /// The backend copies it.
    Read(Pending),
    /// The backend lends it.
    Lent(Payload),
}

impl Source {
    async fn payload(self) -> Result<Payload, BlockError> {
        match self {
            Self::Read(pending) => pending.await.into_buffer().map(Buffer::share),
            Self::Lent(payload) => Ok(payload),
        }
    }

    /// Its bytes, if they are available.
    fn try_take(self) -> Result<Result<Payload, BlockError>, Self> {
        match self {
            Self::Read(pending) => match pending.try_take() {
                Ok(completion) => Ok(completion.into_buffer().map(Buffer::share)),
                Err(pending) => Err(Self::Read(pending)),
            },
            Self::Lent(payload) => Ok(Ok(payload)),
        }
    }
}

impl Read {
    /// Carries the command to its end.
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
        if let Turn::Ahead(turns) = &self.turn {
            let Some(permit) = self.turn_permit(driver, turns).await else { return Ok(()) };
            self.turn = Turn::begin(permit);
        }
        loop {
            while self.rest.bytes > 0 && self.pieces.len() < AHEAD_PIECES && self.submit_now(driver).is_some()
            {
            }
            // Only a command that holds no unsent piece waits for room; see [`crate::read_memory`].
            if self.pieces.is_empty() && self.rest.bytes > 0 {
                self.submit(driver).await;
            }
            let Some(Piece { range, source, permit }) = self.pieces.pop_front() else { return Ok(()) };
            let payload = source.payload().await;
            let is_wanted = driver.resume(|state| {
                let is_wanted = state.tasks.get(&self.id).is_some_and(|task| !task.aborted);
                if is_wanted {
                    self.deliver(driver, state, range, payload, permit).map(|()| true)
                } else {
                    Ok(false)
                }
            })?;
            if !is_wanted {
                return Ok(());
            }
        }
    }

    /// Hands over everything available without waiting: all that the backend lends, or one piece that it copies, so
    /// that others do not wait long for this command. Returns the result if that was everything.
    fn run_now(&mut self, driver: &SessionDriver, state: &mut SessionState) -> Option<Result<(), Outcome>> {
        if let Turn::Ahead(turns) = &self.turn {
            self.turn = Turn::begin(turns.try_take(1)?);
        }
        while self.rest.bytes > 0 {
            let is_lent = self.submit_now(driver)?;
            if let Err(outcome) = self.try_deliver(driver, state)? {
                return Some(Err(outcome));
            }
            if !is_lent && self.rest.bytes > 0 {
                return None;
            }
        }
        Some(Ok(()))
    }

    /// The permit of `turns`, once it is free; `None` if the command is aborted first.
    async fn turn_permit(&self, driver: &SessionDriver, turns: &Rc<Permits>) -> Option<Permit> {
        let (until_aborted, aborted) = oneshot::channel();
        driver.state().tasks.get_mut(&self.id).filter(|task| !task.aborted)?.until_aborted =
            Some(until_aborted);
        match select(pin!(turns.take(1)), aborted).await {
            Either::Left((permit, _)) => Some(permit),
            Either::Right(_) => None,
        }
    }

    /// Starts to read the next piece, if there is room for it now; `Some(true)` if the backend lends it.
    fn submit_now(&mut self, driver: &SessionDriver) -> Option<bool> {
        let range = self.first_piece(driver);
        if range.bytes <= SHORT_BYTES {
            self.submit_into(
                range,
                driver.environment.memory.transfers.allocate(self.whole_blocks(range))?,
                None,
            );
            return Some(false);
        }
        if let Some(payload) = self.unit.backend.lend(range.offset, range.bytes) {
            let permit = driver.try_take_read_permit(length(&payload))?;
            self.push_lent(payload, permit);
            return Some(true);
        }
        let permit = driver.try_take_read_permit(range.bytes)?;
        let buffer = driver.environment.memory.transfers.allocate(self.whole_blocks(range))?;
        self.submit_into(range, buffer, Some(permit));
        Some(false)
    }

    fn first_piece(&self, driver: &SessionDriver) -> Range {
        Range { bytes: self.rest.bytes.min(driver.environment.memory.read_piece_bytes), ..self.rest }
    }

    /// Waits for room, then starts to read the next piece, or borrows as much.
    async fn submit(&mut self, driver: &Rc<SessionDriver>) {
        let (id, range) = (self.id, self.first_piece(driver));
        driver.resume(|state| state.waiting_reads.begin(&mut state.session, id));
        let permit = driver.take_read_permit(range.bytes).await;
        if let Err(permit) = self.borrow(range, permit) {
            let slab = &driver.environment.memory.transfers;
            let bytes = self.whole_blocks(range);
            let buffer = match slab.allocate(bytes) {
                Some(buffer) => buffer,
                None => driver.blocked(allocated(slab, bytes)).await,
            };
            self.submit_into(range, buffer, Some(permit));
        }
        driver.resume(|state| state.waiting_reads.end(id));
    }

    /// Borrows the part of `range` that the backend lends, perhaps in several pieces. Returns the permit if that is
    /// nothing.
    fn borrow(&mut self, range: Range, mut permit: ReadPermit) -> Result<(), ReadPermit> {
        let end = range.offset + u64::from(range.bytes);
        while self.rest.offset < end
            && let Ok(bytes) = u32::try_from(end - self.rest.offset)
            && let Some(payload) = self.unit.backend.lend(self.rest.offset, bytes)
        {
            let part = permit.split(length(&payload));
            self.push_lent(payload, part);
        }
        if self.rest.offset == range.offset { Err(permit) } else { Ok(()) }
    }

    fn push_lent(&mut self, payload: Payload, permit: ReadPermit) {
        let range = Range { bytes: length(&payload), ..self.rest };
        self.push(Piece { range, source: Source::Lent(payload), permit: Some(permit) });
    }

    fn submit_into(&mut self, range: Range, buffer: Buffer, permit: Option<ReadPermit>) {
        let pending = self.unit.backend.submit(Operation::Read { offset: range.offset, buffer });
        self.push(Piece { range, source: Source::Read(pending), permit });
    }

    /// Adds a requested piece. The last one ends the turn.
    fn push(&mut self, piece: Piece) {
        self.rest = self.rest.after(piece.range);
        self.pieces.push_back(piece);
        if self.rest.bytes == 0 {
            self.turn = Turn::Over;
        }
    }

    /// Hands over the first piece if the backend has finished it.
    fn try_deliver(
        &mut self,
        driver: &SessionDriver,
        state: &mut SessionState,
    ) -> Option<Result<(), Outcome>> {
        let Piece { range, source, permit } = self.pieces.pop_front()?;
        match source.try_take() {
            Ok(payload) => Some(self.deliver(driver, state, range, payload, permit)),
            Err(source) => {
                self.pieces.push_front(Piece { range, source, permit });
                None
            }
        }
    }

    /// Hands a filled buffer to the session. The release of the buffer returns its permit.
    fn deliver(
        &self,
        driver: &SessionDriver,
        state: &mut SessionState,
        range: Range,
        payload: Result<Payload, BlockError>,
        permit: Option<ReadPermit>,
    ) -> Result<(), Outcome> {
        let payload = payload.map_err(|error| self.unit.read_failure(range.offset, &error))?;
        if let Some(task) = state.tasks.get_mut(&self.id) {
            task.delivered_bytes += range.bytes;
        }
        let buffer = state.buffers.insert(payload);
        if let Some(permit) = permit {
            state.pieces.insert(buffer, permit);
        }
        let payload = PayloadRef { buffer, offset_bytes: 0, bytes: range.bytes };
        state.session.data_in(driver.now(), self.id, seam::Payload::Buffer(payload));
        Ok(())
    }

    /// The length of the whole blocks that contain the range: backends read only whole blocks.
    fn whole_blocks(&self, range: Range) -> usize {
        range.bytes.next_multiple_of(self.unit.disk.block.bytes()) as usize
    }
}

fn length(payload: &Payload) -> u32 {
    u32::try_from(payload.len()).unwrap_or(u32::MAX)
}
