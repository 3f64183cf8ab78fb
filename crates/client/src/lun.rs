//! One logical unit: reads, writes, and the other operations of a disk.

use crate::driver::{Outcome, Piece, Plan, Shared, Sink};
use crate::durability::Generation;
use crate::retry::CommandKind;
use crate::target::Handle;
use crate::{Error, TargetError, Unit, UsageError, extents, memory};
use block::{Buffer, Payload, Slab};
use pdu::{Cdb, TaskAttribute, TaskManagementOutcome};
use scsi::Extent;
use session::initiator::TaskFunction;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A unit may allow so few blocks in a WRITE SAME or an UNMAP that an operation would need more commands than this. Then its
/// zeroes are written out, and it unmaps nothing.
const COMMANDS_MAX: u64 = 4096;

/// A disk at the other end of a [`crate::Target`].
///
/// Clones are cheap. Every method may be called from any thread, and many calls may be outstanding.
///
/// # Offsets and lengths
/// They count bytes and are multiples of [`Unit::block_bytes`].
///
/// # Buffers
/// A call takes its buffer and returns it with the answer.
///
/// # Order
/// Concurrent operations have no order, with one exception: a write that overlaps an earlier one waits for it, so the
/// later one wins. A read submitted after the answer to a write sees that write.
///
/// # Dropping a future
/// An operation starts when its future is first polled, and then runs to its end even if the future is dropped, because
/// the target may have seen it. Its memory is kept until the target has answered or its nexus is proven dead. After the
/// future of a write is dropped, the blocks hold the old data, the new data, or a mixture by blocks. A later write to
/// the same blocks through the same [`crate::Target`] still waits for it and wins.
///
/// # Losses
/// At error recovery level 0, the loss of a connection ends its iSCSI session. The session is reinstated, and every
/// command that is safe to repeat is repeated (see [`crate::retry::Retry`]); the caller notices only a delay.
/// [`Self::flush`] reports lost writes.
pub struct Lun {
    pub(crate) handle: Arc<Handle>,
    pub(crate) unit: Arc<Unit>,
    /// The last generation that the user of this handle has heard of.
    pub(crate) seen: Arc<AtomicU64>,
}

impl Clone for Lun {
    /// A clone inherits the generation that this handle has heard of, and is told of later losses separately.
    fn clone(&self) -> Self {
        let seen = Arc::new(AtomicU64::new(self.seen.load(Ordering::Acquire)));
        Self { handle: Arc::clone(&self.handle), unit: Arc::clone(&self.unit), seen }
    }
}

/// The result of COMPARE AND WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The blocks matched and have been written.
    Written,
    /// The blocks differed and are unchanged.
    Different {
        /// The first byte that differs, counted from the offset, if the device reports it.
        at: Option<u64>,
    },
}

/// The answer to a command that this library does not know.
#[derive(Debug)]
pub struct Executed {
    /// The memory that was passed in.
    pub data: Option<Payload>,
    /// Data-In bytes that arrived in it.
    pub data_in_bytes: u32,
}

/// The memory of a command.
#[derive(Debug)]
pub enum Transfer {
    /// The command has no data.
    None,
    /// Data from the device, up to the length of the buffer.
    In(Buffer),
    /// Data to the device.
    Out(Payload),
}

/// A task management function over a whole unit, or over all of them (RFC 7143 §11.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Ends the commands of one session of this initiator.
    AbortTaskSet,
    /// Ends the commands of all initiators.
    ClearTaskSet,
    /// Ends the commands of all initiators and returns the unit to its power-on state.
    LogicalUnit,
    /// Does the same to every unit of the target that this initiator may use. The sessions live on.
    TargetWarm,
}

impl Reset {
    fn function(self, lun: pdu::Lun) -> TaskFunction {
        match self {
            Self::AbortTaskSet => TaskFunction::AbortTaskSet(lun),
            Self::ClearTaskSet => TaskFunction::ClearTaskSet(lun),
            Self::LogicalUnit => TaskFunction::LogicalUnitReset(lun),
            Self::TargetWarm => TaskFunction::TargetWarmReset,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::AbortTaskSet => "ABORT TASK SET",
            Self::ClearTaskSet => "CLEAR TASK SET",
            Self::LogicalUnit => "LOGICAL UNIT RESET",
            Self::TargetWarm => "TARGET WARM RESET",
        }
    }
}

impl Lun {
    pub(crate) fn new(handle: Arc<Handle>, unit: Arc<Unit>, generation: Generation) -> Self {
        Self { handle, unit, seen: Arc::new(AtomicU64::new(generation.0)) }
    }

    /// The unit's description of itself when it was opened.
    #[must_use]
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// The slab of this target's buffers. Buffers of other slabs are accepted too.
    #[must_use]
    pub fn slab(&self) -> &Slab {
        &self.shared().slab
    }

    /// Allocates a buffer for a read or a write.
    ///
    /// # Errors
    /// [`UsageError::NoBuffer`] if the budget is used up.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer, Error> {
        Ok(memory::allocate(self.slab(), bytes)?)
    }

    /// Reads `bytes` from `offset` into a buffer of this target's budget.
    ///
    /// # Errors
    /// As [`Self::read_into`], and [`UsageError::NoBuffer`].
    pub async fn read(&self, offset: u64, bytes: usize) -> Result<Buffer, Error> {
        self.extent("READ", offset, bytes as u64)?;
        self.read_into(offset, self.allocate(bytes)?).await
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// The reason for the failure; the buffer then returns to its slab.
    pub async fn read_into(&self, offset: u64, buffer: Buffer) -> Result<Buffer, Error> {
        let extent = self.extent("READ", offset, buffer.len() as u64)?;
        let outcome = self.execute_plan(Plan::read(&self.unit, extent, buffer)).await;
        outcome.result?;
        let unanswered =
            TargetError::Nonsense { command: "READ", lun: self.unit.lun, problem: "the buffer is gone" };
        outcome.buffer.and_then(|payload| payload.try_into_buffer().ok()).ok_or_else(|| unanswered.into())
    }

    /// Writes `payload` at `offset`; keep a clone of the payload if it is needed later. With `fua` the data is durable
    /// on return, otherwise after the next [`Self::flush`].
    ///
    /// # Errors
    /// The reason for the failure. After [`Error::OutcomeUnknown`], and after any error of a write of several commands,
    /// some blocks may have been written.
    pub async fn write(&self, offset: u64, payload: impl Into<Payload>, fua: bool) -> Result<(), Error> {
        let payload = payload.into();
        let extent = self.extent("WRITE", offset, payload.len() as u64)?;
        let plan = Plan::write(&self.unit, extent, payload, fua, &self.seen);
        self.execute_plan(plan).await.result.map(drop)
    }

    /// Makes every write durable that was answered before this call; also waits for outstanding writes.
    ///
    /// # Errors
    /// [`Error::WritesLost`] if a nexus was lost with unflushed writes, or the unit was reset or failed to write its
    /// cache. Repeat every write that was answered since this handle's last successful flush, through whichever handle,
    /// and flush again. Each handle is told once; a clone inherits the reports that its original has not received.
    pub async fn flush(&self) -> Result<(), Error> {
        let (sender, receiver) = futures_channel::oneshot::channel();
        let (lun, seen) = (self.unit.lun, Arc::clone(&self.seen));
        self.shared().with(|driver, _| driver.flush(lun, seen, Sink::Caller(sender)));
        let outcome = receiver.await.unwrap_or_else(|_| Outcome::failed(UsageError::SessionClosed.into()));
        outcome.result.map(drop)
    }

    /// Counts the possible losses of answered writes. Writes are durable if this number is the same before the writes
    /// and after a flush.
    #[must_use]
    pub fn generation(&self) -> Generation {
        let lun = self.unit.lun;
        self.shared()
            .read(|driver| driver.units.get(&lun).map(|unit| unit.durability.generation()))
            .unwrap_or_default()
    }

    /// Makes a range read as zeroes, by WRITE SAME (16) or by writing zeroes. With `may_unmap` the blocks may be
    /// deallocated instead, if the device promises that deallocated blocks read as zeroes (LBPRZ).
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn write_zeroes(&self, offset: u64, bytes: u64, may_unmap: bool) -> Result<(), Error> {
        let extent = self.extent("WRITE SAME", offset, bytes)?;
        self.execute_plan(self.zero_plan(extent, may_unmap)?).await.result.map(drop)
    }

    /// Deallocates a range. Its later contents are defined only with [`Unit::unmapped_reads_zero`], and only for the
    /// blocks that the device did deallocate; use [`Self::write_zeroes`] if zeroes matter.
    ///
    /// # Errors
    /// [`UsageError::Unsupported`] if the device cannot; otherwise as [`Self::write`].
    pub async fn unmap(&self, offset: u64, bytes: u64) -> Result<(), Error> {
        let extent = self.extent("UNMAP", offset, bytes)?;
        self.execute_plan(self.unmap_plan(extent)?).await.result.map(drop)
    }

    /// Writes `write` at `offset` if the blocks there equal `compare`. Both have the same length, at most 255 blocks.
    /// Atomic for all initiators. Never repeated after a loss.
    ///
    /// # Errors
    /// [`UsageError::Unsupported`] if the device has no COMPARE AND WRITE of that length; [`Error::OutcomeUnknown`] if
    /// the connection was lost: read the blocks to learn the outcome.
    pub async fn compare_and_write(
        &self,
        offset: u64,
        compare: &[u8],
        write: &[u8],
    ) -> Result<Compared, Error> {
        const COMMAND: &str = "COMPARE AND WRITE";
        let extent = self.extent(COMMAND, offset, compare.len() as u64)?;
        if compare.len() != write.len() {
            return Err(UsageError::Config(
                "the blocks to compare and the blocks to write must have the same length",
            )
            .into());
        }
        if extent.blocks.0 > u64::from(self.unit.limits.compare_and_write_blocks_max) {
            return Err(UsageError::Unsupported { command: COMMAND, lun: self.unit.lun }.into());
        }
        let mut buffer = self.allocate(compare.len() + write.len())?;
        let (first, second) = buffer.split_at_mut(compare.len());
        first.copy_from_slice(compare);
        second.copy_from_slice(write);
        let plan = Plan::compare_and_write(&self.unit, extent, buffer.share());
        match self.execute_plan(plan).await.result {
            Ok(_) => Ok(Compared::Written),
            Err(error) => match error.sense() {
                Some(sense) if sense.is_miscompare() => Ok(Compared::Different { at: sense.information }),
                _ => Err(error),
            },
        }
    }

    /// The allocation of a range (GET LBA STATUS): ascending and without gaps, from `offset`. The answer may end before
    /// the range does; ask again from there. A device without GET LBA STATUS counts as fully allocated.
    ///
    /// # Errors
    /// The reason for the failure.
    pub async fn extents(&self, offset: u64, bytes: u64) -> Result<Vec<block::Extent>, Error> {
        let extent = self.extent("GET LBA STATUS", offset, bytes)?;
        let Some(plan) = self.extents_plan(extent)? else { return Ok(extents::all_data(offset, bytes)) };
        let outcome = self.execute_plan(plan).await;
        extents::parse(&outcome, (offset, bytes), &self.unit)
    }

    /// Ends every command at this unit, or at all, by a task management function. Except with [`Reset::AbortTaskSet`], this
    /// includes the commands of other initiators, which may not be told and may wait for answers that never come.
    ///
    /// # Errors
    /// [`TargetError::Function`] if the target does not carry it out; [`Error::OutcomeUnknown`] if the session was
    /// lost.
    pub async fn reset(&self, reset: Reset) -> Result<(), Error> {
        let lun = self.unit.lun;
        let answer =
            self.shared().with(|driver, now| driver.task_management(lun, reset.function(lun), now))?;
        match answer.await {
            Ok(TaskManagementOutcome::FunctionComplete) => Ok(()),
            Ok(outcome) => Err(TargetError::Function { function: reset.name(), lun, outcome }.into()),
            Err(_) => Err(Error::OutcomeUnknown { command: reset.name(), lun }),
        }
    }

    /// Sends a command that this library does not know as a SIMPLE task: [`Self::execute_as`].
    ///
    /// # Errors
    /// As [`Self::execute_as`].
    pub async fn execute(&self, cdb: Cdb, transfer: Transfer) -> Result<Executed, Error> {
        self.execute_as(TaskAttribute::Simple, cdb, transfer).await
    }

    /// Sends a command that this library does not know. It is repeated only if the target says that it did not begin.
    /// It does not wait for writes to the same blocks, nor do they wait for it.
    ///
    /// # Errors
    /// Any status but GOOD; [`Error::sense`] has the sense data.
    pub async fn execute_as(
        &self,
        attribute: TaskAttribute,
        cdb: Cdb,
        transfer: Transfer,
    ) -> Result<Executed, Error> {
        let bytes = match &transfer {
            Transfer::None => 0,
            Transfer::In(buffer) => buffer.len(),
            Transfer::Out(payload) => payload.len(),
        };
        let plan = Plan {
            lun: self.unit.lun,
            command: "a command",
            kind: CommandKind::Once,
            writes: None,
            dirties: !matches!(transfer, Transfer::In(_)),
            data: transfer,
            pieces: vec![Piece::plain(cdb, u32::try_from(bytes).unwrap_or(u32::MAX))],
            path: None,
            then_flush: None,
            attribute,
        };
        let outcome = self.execute_plan(plan).await;
        Ok(Executed { data_in_bytes: outcome.result?, data: outcome.buffer })
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    async fn execute_plan(&self, plan: Plan) -> Outcome {
        self.shared().execute(plan).await
    }

    /// Converts a range of bytes to blocks.
    pub(crate) fn extent(
        &self,
        command: &'static str,
        offset: u64,
        bytes: u64,
    ) -> Result<Extent, UsageError> {
        let block_bytes = self.unit.block_bytes();
        let block = u64::from(block_bytes);
        if !offset.is_multiple_of(block) || !bytes.is_multiple_of(block) {
            return Err(UsageError::Misaligned { command, offset, bytes, block_bytes });
        }
        let capacity_bytes = self.unit.capacity_bytes();
        match offset.checked_add(bytes) {
            Some(end) if end <= capacity_bytes => Ok(Extent::new(offset / block, bytes / block)),
            _ => Err(UsageError::OutOfRange { command, offset, bytes, capacity_bytes }),
        }
    }

    pub(crate) fn zero_plan(&self, extent: Extent, may_unmap: bool) -> Result<Plan, Error> {
        let lun = self.unit.lun;
        let block_bytes = u64::from(self.unit.block_bytes());
        let refused =
            self.shared().read(|driver| driver.units.get(&lun).is_some_and(|unit| unit.write_same_refused));
        let is_written_out = refused || self.unit.write_same_commands(extent) > COMMANDS_MAX;
        let bytes = if is_written_out { extent.blocks.0 * block_bytes } else { block_bytes };
        let zeroes = memory::zeroes(self.slab(), bytes)?;
        Ok(if is_written_out {
            Plan::write_zeroes_out(&self.unit, extent, zeroes)
        } else {
            Plan::write_zeroes(&self.unit, extent, zeroes, may_unmap)
        })
    }

    pub(crate) fn unmap_plan(&self, extent: Extent) -> Result<Plan, Error> {
        if !self.unit.provisioning.unmap || self.unit.unmap_commands(extent) > COMMANDS_MAX {
            return Err(UsageError::Unsupported { command: "UNMAP", lun: self.unit.lun }.into());
        }
        let extents = self.unit.unmap_extents(extent);
        let lists: Vec<u8> =
            extents.iter().flat_map(|extent| scsi::client::unmap_parameter_list(*extent)).collect();
        let mut buffer = self.allocate(lists.len())?;
        buffer.copy_from_slice(&lists);
        Ok(Plan::unmap(&self.unit, &extents, buffer.share()))
    }

    /// `None` for a device without GET LBA STATUS: all of its blocks count as allocated.
    pub(crate) fn extents_plan(&self, extent: Extent) -> Result<Option<Plan>, Error> {
        let thin = self.unit.provisioning.unmap || self.unit.provisioning.write_same_unmaps;
        if !thin || extent.is_empty() {
            return Ok(None);
        }
        let cdb = scsi::client::get_lba_status(extent.lba, extents::ANSWER_BYTES);
        let buffer = self.allocate(extents::ANSWER_BYTES as usize)?;
        Ok(Some(Plan::inquire(self.unit.lun, "GET LBA STATUS", cdb, Transfer::In(buffer), None)))
    }
}

impl std::fmt::Debug for Lun {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lun").field("unit", &self.unit).finish_non_exhaustive()
    }
}
