//! One operation after the other, through the client that ships, and what came of each.

use super::operation::{Kind, Operation};
use super::reserving::is_conflict;
use super::workload::Workload;
use super::{Host, Ledger, UnitBooks};
use crate::checker::{Order, ReadId, Stamp, Version, WriteId};
use crate::random::Random;
use crate::reached::Way;
use crate::unit::{UnitIndex, UnitPlan};
use block::{Buffer, Payload};
use client::{Compared, Error, Lun, Reset, TargetError, Transfer, UsageError};
use pdu::Duration;
use scsi::AdditionalSense;
use scsi::client::{self as command, SenseData};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// The pause before memory is asked for again.
const MEMORY_PAUSE: Duration = Duration::from_millis(5);

/// Bytes of one read of the final read-back.
const READ_BACK_BYTES: u64 = 32 << 10;

const MEDIUM_ERROR: u8 = 0x03;

/// Does a host's operations at one unit. Several futures work with one of these.
pub(super) struct Worker {
    pub host: Rc<Host>,
    pub unit: UnitIndex,
    pub block_bytes: usize,
    handles: [Handle; HANDLES],
    pub workload: RefCell<Workload>,
}

/// One of the handles by which a host uses the unit: each is told of losses by itself.
struct Handle {
    lun: Lun,
    /// The last moment at which it was told that writes may be lost.
    told: Cell<Option<ReadId>>,
}

const HANDLES: usize = 2;

/// What the checker was told when an operation began.
struct Begun {
    write: Option<WriteId>,
    read: Option<ReadId>,
    reservations: Version,
}

/// What an operation brought.
enum Found {
    /// Success without data.
    Nothing,
    /// The blocks that were read, and how many bytes arrived.
    Data(Payload, u32),
    /// COMPARE AND WRITE found something else.
    Different,
}

/// Whether a failed operation can still do something.
pub(super) enum Aftermath {
    /// It never began.
    Nothing,
    /// What it did is done.
    Over,
    /// It may yet be done.
    Open,
}

impl Worker {
    pub fn new(host: Rc<Host>, unit: (UnitIndex, &UnitPlan), lun: Lun, random: Random) -> Self {
        let (index, plan) = unit;
        let block_bytes = plan.disk.block_bytes as usize;
        let workload = RefCell::new(Workload::new(host.index, host.plan.mix.clone(), unit, random));
        let handles = [lun.clone(), lun].map(|lun| Handle { lun, told: Cell::new(None) });
        Self { host, unit: index, block_bytes, handles, workload }
    }

    /// One operation, and what may come with it. `false` if there are no more to begin.
    pub async fn work(&self) -> bool {
        let Some(operation) = self.next() else { return false };
        self.carry_out(&operation).await;
        self.reserve_sometimes().await;
        self.reset_sometimes().await;
        true
    }

    fn next(&self) -> Option<Operation> {
        let mut ledger = self.host.ledger.borrow_mut();
        ledger.budget = ledger.budget.checked_sub(1)?;
        ledger.tally.operations += 1;
        Some(self.workload.borrow_mut().next(&ledger.unit(self.unit).guesses))
    }

    /// Reads a part of the unit, or all of it.
    pub async fn read_back(&self, mut range: Range<u64>) {
        while !range.is_empty() {
            let blocks = (READ_BACK_BYTES / self.block_bytes as u64).min(range.end - range.start);
            let read = self.workload.borrow_mut().read(range.start, blocks);
            self.carry_out(&read).await;
            range.start += blocks;
        }
    }

    async fn reset_sometimes(&self) {
        let reset = {
            let mut workload = self.workload.borrow_mut();
            let one_in = workload.mix.reset_one_in;
            if !workload.random.one_in(one_in) {
                return;
            }
            let resets = [Reset::AbortTaskSet, Reset::ClearTaskSet, Reset::LogicalUnit, Reset::TargetWarm];
            *workload.random.choose(&resets)
        };
        self.host.ledger.borrow_mut().tally.functions += 1;
        self.host.trace(|| format!("unit {}: {reset:?}", self.unit.0));
        let answer = self.lun().reset(reset).await;
        self.host.trace(|| format!("unit {}: {reset:?}: {answer:?}", self.unit.0));
    }

    /// A buffer, as soon as there is one.
    pub(super) async fn memory(&self, bytes: usize) -> Buffer {
        loop {
            match self.lun().allocate(bytes) {
                Ok(buffer) => return buffer,
                Err(_) => self.host.pause(MEMORY_PAUSE).await,
            }
        }
    }

    async fn carry_out(&self, operation: &Operation) {
        let buffer = match operation.kind {
            Kind::Read | Kind::Write { .. } => {
                let mut buffer = self.memory(operation.transfer_bytes(self.block_bytes)).await;
                match operation.kind {
                    Kind::Read => Stamp::poison(&mut buffer),
                    _ => operation.stamp.fill(&mut buffer, operation.lba, self.block_bytes),
                }
                Some(buffer)
            }
            _ => None,
        };
        let begun = self.begin(operation);
        self.host.trace(|| format!("unit {}: {operation}", self.unit.0));
        let result = self.perform(operation, buffer).await;
        self.end(operation, &begun, result);
    }

    fn begin(&self, operation: &Operation) -> Begun {
        let mut ledger = self.host.ledger.borrow_mut();
        let UnitBooks { history, reservations, .. } = ledger.unit(self.unit);
        let reads = matches!(operation.kind, Kind::Read | Kind::Flush | Kind::CompareAndWrite { .. });
        let (order, stamp) = (self.order(operation), operation.stamp);
        let changes = operation.kind.changes_data() && !operation.is_refused(self.block_bytes);
        Begun {
            write: changes.then(|| history.begin_write(operation.range(), stamp, order)),
            read: reads.then(|| history.begin_read()),
            reservations: reservations.version(),
        }
    }

    /// The order that the client promises: writes to the same blocks take effect in the order in which they were asked
    /// for. Commands that it does not know keep none.
    fn order(&self, operation: &Operation) -> Order {
        Order { host: self.host.index, number: (!operation.raw).then_some(operation.number) }
    }

    /// The unit, by any handle.
    pub(super) fn lun(&self) -> &Lun {
        &self.handles[0].lun
    }

    /// The handle by which an operation is done.
    fn handle(&self, operation: &Operation) -> &Handle {
        let [first, second] = &self.handles;
        if operation.number.is_multiple_of(2) { first } else { second }
    }

    async fn perform(&self, operation: &Operation, buffer: Option<Buffer>) -> Result<Found, Error> {
        let (lun, offset) = (&self.handle(operation).lun, operation.lba * self.block_bytes as u64);
        let bytes = u64::from(operation.blocks) * self.block_bytes as u64;
        let nothing = |()| Found::Nothing;
        match (operation.kind, buffer) {
            (Kind::Read, Some(buffer)) if operation.raw => {
                let cdb = command::read_16(scsi::Lba(operation.lba), operation.cdb_blocks()).into();
                let executed = lun.execute_as(operation.attribute, cdb, Transfer::In(buffer)).await?;
                let data = executed.data.map(|data| Found::Data(data, executed.data_in_bytes));
                Ok(data.unwrap_or(Found::Nothing))
            }
            (Kind::Read, Some(buffer)) => {
                let data = lun.read_into(offset, buffer).await?.share();
                let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
                Ok(Found::Data(data, bytes))
            }
            (Kind::Write { fua }, Some(buffer)) if operation.raw => {
                let cdb = command::write_16(scsi::Lba(operation.lba), operation.cdb_blocks(), fua).into();
                let transfer = Transfer::Out(buffer.share());
                lun.execute_as(operation.attribute, cdb, transfer).await.map(|_| Found::Nothing)
            }
            (Kind::Write { fua }, Some(buffer)) => lun.write(offset, buffer, fua).await.map(nothing),
            (Kind::WriteZeroes { may_unmap }, _) => {
                lun.write_zeroes(offset, bytes, may_unmap).await.map(nothing)
            }
            (Kind::CompareAndWrite { expected }, _) => {
                let [mut before, mut after] = [0, 1].map(|_| vec![0; self.block_bytes]);
                expected.fill_block(&mut before, operation.lba);
                operation.stamp.fill_block(&mut after, operation.lba);
                let compared = lun.compare_and_write(offset, &before, &after).await?;
                Ok(if compared == Compared::Written { Found::Nothing } else { Found::Different })
            }
            (Kind::Flush, _) => lun.flush().await.map(nothing),
            _ => {
                let cdb = command::test_unit_ready().into();
                lun.execute_as(operation.attribute, cdb, Transfer::None).await.map(|_| Found::Nothing)
            }
        }
    }

    fn end(&self, operation: &Operation, begun: &Begun, result: Result<Found, Error>) {
        if let Err(error) = &result {
            self.host.trace(|| format!("unit {}: {operation}: {error}", self.unit.0));
        }
        let read = begun.read;
        let ended = match result {
            Ok(found) => self.succeeded(operation, begun, &found),
            Err(error) => self.failed(operation, begun, &error),
        };
        if let Err(problem) = ended {
            self.host.violate(&format!("unit {}: {operation}: {problem}", self.unit.0));
        }
        let mut ledger = self.host.ledger.borrow_mut();
        ledger.progress_at = self.host.runtime.clock.now();
        read.into_iter().for_each(|read| ledger.unit(self.unit).history.end_read(read));
    }

    fn succeeded(&self, operation: &Operation, begun: &Begun, found: &Found) -> Result<(), String> {
        let mut ledger = self.host.ledger.borrow_mut();
        let Ledger { units, tally, .. } = &mut *ledger;
        let UnitBooks { history, reservations, guesses, .. } = &mut units[self.unit.place()];
        let access = operation.kind.access();
        reservations.judge(begun.reservations, self.port(), access, false)?;
        tally.succeeded += 1;
        if operation.is_refused(self.block_bytes) {
            return Err("a part of a block was written".into());
        }
        match (operation.kind, begun.read, found) {
            (Kind::Read, Some(read), Found::Data(data, arrived_bytes)) => {
                if let Some(mismatch) = operation.mismatch {
                    mismatch.judge_read(data, *arrived_bytes, self.block_bytes)?;
                }
                for (lba, block) in operation.range().zip(data.chunks(self.block_bytes)) {
                    let stamp = Stamp::read(block, lba)?;
                    history.observe(read, lba, stamp)?;
                    guess(guesses, lba, stamp);
                }
                tally.blocks_read += u64::from(operation.blocks);
            }
            (Kind::CompareAndWrite { .. }, _, Found::Different) => {
                tally.reached.count(Way::Miscompare);
                begun.write.into_iter().for_each(|write| history.cancel_write(write));
                return Ok(());
            }
            (Kind::CompareAndWrite { expected }, Some(read), _) => {
                tally.reached.count(Way::CompareAndWritten);
                history.compare_and_write(read, operation.lba, expected)?;
            }
            (Kind::Flush, Some(flush), _) => {
                tally.flushes += 1;
                let told = self.handle(operation).told.get();
                history.flushed(flush, self.host.index, told)?;
            }
            _ => {}
        }
        if matches!(operation.kind, Kind::Write { .. }) && self.workload.borrow().is_cut(operation) {
            tally.reached.count(Way::WrittenInPieces);
        }
        if let Some(write) = begun.write {
            history.acknowledge(write, operation.kind == Kind::Write { fua: true });
            operation.range().for_each(|lba| guess(guesses, lba, operation.stamp));
        }
        Ok(())
    }

    fn failed(&self, operation: &Operation, begun: &Begun, error: &Error) -> Result<(), String> {
        let mut ledger = self.host.ledger.borrow_mut();
        let Ledger { units, tally, tap, .. } = &mut *ledger;
        let UnitBooks { history, reservations, .. } = &mut units[self.unit.place()];
        tally.failed += 1;
        if is_conflict(error) {
            tally.reached.count(Way::ReservationConflict);
            let access = operation.kind.access();
            reservations.judge(begun.reservations, self.port(), access, true)?;
        }
        let aftermath = aftermath(error);
        if let Error::WritesLost { .. } = error {
            tally.reached.count(Way::WritesLost);
        }
        // Where the device says why a flush failed, that tells of the loss.
        let tells = matches!(error, Error::WritesLost { .. })
            || operation.kind == Kind::Flush && error.sense().is_some();
        if tells {
            self.handle(operation).told.set(Some(history.moment()));
        }
        let is_refused = operation.is_refused(self.block_bytes)
            && error.sense().is_some_and(SenseData::is_illegal_request);
        let is_spoilt = operation.raw
            && operation.kind == Kind::Read
            && tap.lock().has_refused_data()
            && lacks_data(error);
        match (begun.write, aftermath) {
            _ if is_refused || is_spoilt => {}
            (Some(write), Some(Aftermath::Nothing)) => history.cancel_write(write),
            (Some(write), Some(Aftermath::Over)) => history.end_write(write),
            (Some(write), Some(Aftermath::Open)) => history.leave_open(write),
            (None, Some(_)) => {}
            (_, None) => return Err(format!("it failed: {error}")),
        }
        Ok(())
    }
}

/// What may come of an operation that failed; `None` if it should not have.
pub(super) fn aftermath(error: &Error) -> Option<Aftermath> {
    match error {
        // The client did not send it, or the target did not take it (RFC 7143 §11.17).
        Error::Usage(UsageError::Closed) | Error::Target(TargetError::Status { status: None, .. }) => {
            Some(Aftermath::Nothing)
        }
        Error::WritesLost { .. } => Some(Aftermath::Over),
        Error::OutcomeUnknown { .. } | Error::Target(TargetError::Unanswered { .. }) => Some(Aftermath::Open),
        error if is_conflict(error) => Some(Aftermath::Over),
        error if error.sense().is_some_and(|sense| sense.key == MEDIUM_ERROR) => Some(Aftermath::Over),
        _ => None,
    }
}

/// Whether data of a target came damaged and could not be sent again, as the client says (RFC 7143 §7.8 a.2) or the
/// target (§11.4.7.2).
fn lacks_data(error: &Error) -> bool {
    let codes = [
        AdditionalSense::PROTOCOL_SERVICE_CRC_ERROR,
        AdditionalSense::READ_ERROR_FAILED_RETRANSMISSION_REQUEST,
    ];
    error.sense().is_some_and(|sense| codes.contains(&sense.additional))
}

/// A host has learnt what a block holds, or held a moment ago.
fn guess(guesses: &mut [Stamp], lba: u64, stamp: Stamp) {
    let place = usize::try_from(lba).ok().and_then(|lba| guesses.get_mut(lba));
    place.into_iter().for_each(|place| *place = stamp);
}
