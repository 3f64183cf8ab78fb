//! One logical unit: reads, writes, and what else a disk can do.

use crate::driver::{Data, Outcome, Piece, Plan, Shared, Sink};
use crate::target::Handle;
use crate::{Error, TargetError, Unit, UsageError, extents};
use block::{Buffer, Payload, Slab};
use nexus::initiator::{CommandKind, Generation};
use pdu::{Cdb, TaskAttribute, TaskManagementOutcome};
use scsi::Extent;
use session::initiator::TaskFunction;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A disk at the other end of a [`crate::Target`].
///
/// Cheap to clone; every method may be called from any thread, many at a time.
///
/// # Offsets and lengths
/// Count bytes, and are multiples of [`Unit::block_bytes`].
///
/// # Buffers
/// Are owned: they go in with the call and come back with its answer, so nothing has to outlive anything.
///
/// # Order
/// Operations under way together have no order, except that a write that overlaps an earlier one waits for it: the
/// later one wins. A read that is submitted after a write was answered sees it.
///
/// # Dropping a future
/// An operation starts when its future is first polled. From then on it runs to its end, whether the future is
/// polled, kept or dropped: the target may have seen it, and nothing could call it back. Its memory is kept until
/// the target has answered or its nexus is proven dead. Whoever drops the future of a write does not learn its
/// outcome: the blocks hold the old data, the new, or, block by block, a mixture. A later write to the same
/// blocks through the same [`crate::Target`] still waits for it and wins.
///
/// # Losses
/// When a connection is lost, its iSCSI session is, at error recovery level 0; it is reinstated, and commands
/// that may be repeated safely are (see [`nexus::initiator::Retry`]). What a caller sees of that is a delay.
/// See [`Self::flush`] for what may be lost for good.
pub struct Lun {
    pub(crate) handle: Arc<Handle>,
    unit: Arc<Unit>,
    /// The last generation that whoever uses this handle has heard of.
    pub(crate) seen: Arc<AtomicU64>,
}

impl Clone for Lun {
    /// The clone has heard of what this handle has heard of, and is told of later losses by itself.
    fn clone(&self) -> Self {
        let seen = Arc::new(AtomicU64::new(self.seen.load(Ordering::Acquire)));
        Self { handle: Arc::clone(&self.handle), unit: Arc::clone(&self.unit), seen }
    }
}

/// What COMPARE AND WRITE found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The blocks were as expected and have been written.
    Written,
    /// They were not, and have not been touched.
    Different {
        /// The first byte that differs, counted from the offset, if the device told.
        at: Option<u64>,
    },
}

/// The answer to a command that this library does not know.
#[derive(Debug)]
pub struct Executed {
    /// The memory that went in.
    pub data: Option<Payload>,
    /// Data-In bytes that arrived in it.
    pub data_in_bytes: u32,
}

/// Memory for a command that this library does not know.
#[derive(Debug)]
pub enum Transfer {
    /// No data.
    None,
    /// Data from the device, as much as the buffer is long.
    In(Buffer),
    /// Data to the device.
    Out(Payload),
}

/// A task management function over a whole unit (RFC 7143 §11.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Ends the commands of one session of this initiator.
    AbortTaskSet,
    /// Ends the commands of all initiators.
    ClearTaskSet,
    /// The same, and returns the unit to the state in which it was switched on.
    LogicalUnit,
}

impl Reset {
    fn function(self, lun: pdu::Lun) -> TaskFunction {
        match self {
            Self::AbortTaskSet => TaskFunction::AbortTaskSet(lun),
            Self::ClearTaskSet => TaskFunction::ClearTaskSet(lun),
            Self::LogicalUnit => TaskFunction::LogicalUnitReset(lun),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::AbortTaskSet => "ABORT TASK SET",
            Self::ClearTaskSet => "CLEAR TASK SET",
            Self::LogicalUnit => "LOGICAL UNIT RESET",
        }
    }
}

impl Lun {
    pub(crate) fn new(handle: Arc<Handle>, unit: Arc<Unit>, generation: Generation) -> Self {
        Self { handle, unit, seen: Arc::new(AtomicU64::new(generation.0)) }
    }

    /// What the unit said of itself when it was opened.
    #[must_use]
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// Where buffers come from. Buffers of other slabs do as well.
    #[must_use]
    pub fn slab(&self) -> &Slab {
        &self.shared().slab
    }

    /// A buffer for a read or a write.
    ///
    /// # Errors
    /// [`UsageError::NoBuffer`] if the budget is used up.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer, Error> {
        let budget_bytes = self.slab().budget_bytes();
        self.slab().allocate(bytes).ok_or_else(|| UsageError::NoBuffer { bytes, budget_bytes }.into())
    }

    /// Reads `bytes` from `offset` into a buffer of this session's budget.
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
    /// Why it could not be filled; the buffer then returns to its slab.
    pub async fn read_into(&self, offset: u64, buffer: Buffer) -> Result<Buffer, Error> {
        let extent = self.extent("READ", offset, buffer.len() as u64)?;
        let outcome = self.execute_plan(Plan::read(&self.unit, extent, buffer)).await;
        outcome.result?;
        let unanswered =
            TargetError::Nonsense { command: "READ", lun: self.unit.lun, problem: "the buffer is gone" };
        outcome.buffer.and_then(|payload| payload.try_into_buffer().ok()).ok_or_else(|| unanswered.into())
    }

    /// Writes `payload` at `offset`; keep a clone of it to have it afterwards. With `fua` it is durable when this
    /// answers, otherwise after the next [`Self::flush`].
    ///
    /// # Errors
    /// Why it could not be written. With [`Error::OutcomeUnknown`], and with any error of a write of several
    /// commands, some of it may have been.
    pub async fn write(&self, offset: u64, payload: impl Into<Payload>, fua: bool) -> Result<(), Error> {
        let payload = payload.into();
        let extent = self.extent("WRITE", offset, payload.len() as u64)?;
        let plan = Plan::write(&self.unit, extent, payload, fua, &self.seen);
        self.execute_plan(plan).await.result.map(drop)
    }

    /// Makes every write durable that was answered before this was called; waits for those under way, too.
    ///
    /// # Errors
    /// [`Error::WritesLost`]: a nexus was lost, or the unit was reset or failed to write its cache, when writes had been
    /// answered that were not flushed. They may be lost: write them again, then flush again. Everything answered since this
    /// handle's last successful flush is concerned, through whichever handle it was written. Each handle is told
    /// once; a clone inherits what its original has not heard of yet.
    pub async fn flush(&self) -> Result<(), Error> {
        let (sender, receiver) = futures_channel::oneshot::channel();
        let (lun, seen) = (self.unit.lun, Arc::clone(&self.seen));
        self.shared().with(|driver, _| driver.flush(lun, seen, Sink::Caller(sender)));
        let outcome = receiver.await.unwrap_or_else(|_| Outcome::failed(UsageError::SessionClosed.into()));
        outcome.result.map(drop)
    }

    /// How often answered writes may have been lost so far. If it is the same after a flush as it was before the
    /// writes, they are durable.
    #[must_use]
    pub fn generation(&self) -> Generation {
        let lun = self.unit.lun;
        self.shared()
            .read(|driver| driver.units.get(&lun).map(|unit| unit.durability.generation()))
            .unwrap_or_default()
    }

    /// Makes a range read as zeroes: by WRITE SAME (16), else by writing zeroes out. With `may_unmap` the blocks
    /// may also be deallocated, where the device promises that those read as zeroes (LBPRZ).
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn write_zeroes(&self, offset: u64, bytes: u64, may_unmap: bool) -> Result<(), Error> {
        let extent = self.extent("WRITE SAME", offset, bytes)?;
        self.execute_plan(self.zero_plan(extent, may_unmap)?).await.result.map(drop)
    }

    /// Deallocates a range. What it reads as afterwards is known only with [`Unit::unmapped_reads_zero`], and even
    /// then only for blocks that the device did deallocate: use [`Self::write_zeroes`] where zeroes matter.
    ///
    /// # Errors
    /// [`UsageError::Unsupported`] if the device cannot; otherwise as [`Self::write`].
    pub async fn unmap(&self, offset: u64, bytes: u64) -> Result<(), Error> {
        let extent = self.extent("UNMAP", offset, bytes)?;
        self.execute_plan(self.unmap_plan(extent)?).await.result.map(drop)
    }

    /// Writes `write` at `offset` if the blocks there are as in `compare`; both are equally long, at most 255
    /// blocks. Atomic with regard to all initiators. Never repeated blindly.
    ///
    /// # Errors
    /// [`UsageError::Unsupported`] if the device has no COMPARE AND WRITE of that length;
    /// [`Error::OutcomeUnknown`] if the connection was lost: read the blocks to see what happened.
    pub async fn compare_and_write(
        &self,
        offset: u64,
        compare: &[u8],
        write: &[u8],
    ) -> Result<Compared, Error> {
        const COMMAND: &str = "COMPARE AND WRITE";
        let extent = self.extent(COMMAND, offset, compare.len() as u64)?;
        if compare.len() != write.len() {
            return Err(
                UsageError::Config("what is compared and what is written must be equally long").into()
            );
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

    /// What is allocated of a range (GET LBA STATUS): ascending, without gaps, from `offset`; it may end before
    /// the range does, so ask again from there. A device that cannot tell has data everywhere.
    ///
    /// # Errors
    /// Why it could not be learnt.
    pub async fn extents(&self, offset: u64, bytes: u64) -> Result<Vec<block::Extent>, Error> {
        let extent = self.extent("GET LBA STATUS", offset, bytes)?;
        let Some(plan) = self.extents_plan(extent)? else { return Ok(extents::all_data(offset, bytes)) };
        let outcome = self.execute_plan(plan).await;
        extents::parse(&outcome, (offset, bytes), &self.unit.capacity, self.unit.unmapped_reads_zero())
    }

    /// Ends every command at this unit by a task management function, those of other initiators included except with
    /// [`Reset::AbortTaskSet`]. Their initiators need not be told, and may miss answers for as long as they wait for any.
    ///
    /// # Errors
    /// [`TargetError::Function`] if the target does not do it; [`Error::OutcomeUnknown`] if the session was lost.
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

    /// Sends a command that this library does not know, as a SIMPLE task: [`Self::execute_as`].
    ///
    /// # Errors
    /// As [`Self::execute_as`].
    pub async fn execute(&self, cdb: Cdb, transfer: Transfer) -> Result<Executed, Error> {
        self.execute_as(TaskAttribute::Simple, cdb, transfer).await
    }

    /// Sends a command that this library does not know. It is sent again only if the target says that it did not
    /// begin; it does not wait for writes to the same blocks, and they do not wait for it.
    ///
    /// # Errors
    /// Any status but GOOD; [`Error::sense`] has the sense data.
    pub async fn execute_as(
        &self,
        attribute: TaskAttribute,
        cdb: Cdb,
        transfer: Transfer,
    ) -> Result<Executed, Error> {
        let data = match transfer {
            Transfer::None => Data::None,
            Transfer::In(buffer) => Data::In(buffer),
            Transfer::Out(payload) => Data::Out(payload),
        };
        let bytes = match &data {
            Data::None => 0,
            Data::In(buffer) => buffer.len(),
            Data::Out(payload) => payload.len(),
        };
        let plan = Plan {
            lun: self.unit.lun,
            command: "a command",
            kind: CommandKind::Once,
            writes: None,
            dirties: !matches!(data, Data::In(_)),
            data,
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

    /// The blocks of a range.
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
        let bytes = if refused { extent.blocks.0 * block_bytes } else { block_bytes };
        let budget_bytes = self.slab().budget_bytes();
        let zeroes = crate::driver::zeroes(self.slab(), bytes).ok_or(UsageError::NoBuffer {
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            budget_bytes,
        })?;
        Ok(if refused {
            Plan::write_zeroes_out(&self.unit, extent, zeroes)
        } else {
            Plan::write_zeroes(&self.unit, extent, zeroes, may_unmap)
        })
    }

    pub(crate) fn unmap_plan(&self, extent: Extent) -> Result<Plan, Error> {
        if !self.unit.provisioning.unmap {
            return Err(UsageError::Unsupported { command: "UNMAP", lun: self.unit.lun }.into());
        }
        let extents = self.unit.unmap_extents(extent);
        let lists: Vec<u8> =
            extents.iter().flat_map(|extent| scsi::client::unmap_parameter_list(*extent)).collect();
        let mut buffer = self.allocate(lists.len())?;
        buffer.copy_from_slice(&lists);
        Ok(Plan::unmap(&self.unit, &extents, buffer.share()))
    }

    /// `None` for a device that has nothing to tell: every block of it is allocated.
    pub(crate) fn extents_plan(&self, extent: Extent) -> Result<Option<Plan>, Error> {
        let thin = self.unit.provisioning.unmap || self.unit.provisioning.write_same_unmaps;
        if !thin || extent.is_empty() {
            return Ok(None);
        }
        let cdb = scsi::client::get_lba_status(extent.lba, extents::ANSWER_BYTES);
        let buffer = self.allocate(extents::ANSWER_BYTES as usize)?;
        Ok(Some(Plan::inquire(self.unit.lun, "GET LBA STATUS", cdb, Data::In(buffer), None)))
    }
}

impl std::fmt::Debug for Lun {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lun").field("unit", &self.unit).finish_non_exhaustive()
    }
}
