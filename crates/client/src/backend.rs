//! A remote unit as a [`block::Backend`].

use crate::driver::{Plan, Sink};
use crate::{Error, Lun, TargetError, UsageError, extents};
use block::{Backend, BlockError, BlockErrorKind, Completion, Operation, Pending, Properties, Thin};
use scsi::{AdditionalSense, Extent};
use std::sync::Arc;

impl Backend for Lun {
    fn properties(&self) -> Properties {
        let unit = self.unit();
        let granularity = unit.limits.unmap_granularity_blocks.unwrap_or(1);
        Properties {
            block_bytes: unit.block_bytes(),
            blocks: unit.capacity.blocks,
            read_only: unit.mode.write_protected,
            thin: unit.provisioning.unmap.then(|| Thin {
                granularity_bytes: granularity.saturating_mul(unit.block_bytes()),
                reads_zero: unit.unmapped_reads_zero(),
            }),
            volatile_cache: unit.mode.write_cache,
        }
    }

    fn submit(&self, operation: Operation) -> Pending {
        if let Err(error) = self.properties().check(&operation) {
            return Pending::ready(Completion::refused(operation, error));
        }
        match operation {
            Operation::Read { offset, buffer } => {
                let extent = self.blocks(offset, buffer.len() as u64);
                self.start(Plan::read(self.unit(), extent, buffer))
            }
            Operation::Write { offset, payload, fua } => {
                let extent = self.blocks(offset, payload.len() as u64);
                self.start(Plan::write(self.unit(), extent, payload, fua, &self.seen))
            }
            Operation::WriteZeroes { offset, bytes, may_unmap } => {
                self.start_if_possible(self.zero_plan(self.blocks(offset, bytes), may_unmap))
            }
            Operation::Unmap { offset, bytes } => {
                self.start_if_possible(self.unmap_plan(self.blocks(offset, bytes)))
            }
            Operation::Flush => {
                let (completer, pending) = Pending::channel();
                let (lun, seen) = (self.unit().lun, Arc::clone(&self.seen));
                self.shared().with(|driver, _| driver.flush(lun, seen, Sink::Block(completer)));
                pending
            }
            Operation::Extents { offset, bytes } => self.start_extents(offset, bytes),
            Operation::Space => {
                let error = BlockError::new(BlockErrorKind::Unsupported, "the space of a remote unit");
                Pending::ready(Completion::failed(error))
            }
        }
    }
}

impl Lun {
    /// Converts a checked range of bytes to blocks.
    fn blocks(&self, offset: u64, bytes: u64) -> Extent {
        let block_bytes = u64::from(self.unit().block_bytes());
        Extent::new(offset / block_bytes, bytes / block_bytes)
    }

    fn start(&self, plan: Plan) -> Pending {
        let (completer, pending) = Pending::channel();
        self.shared().with(|driver, _| driver.submit(plan, Sink::Block(completer)));
        pending
    }

    fn start_if_possible(&self, plan: Result<Plan, Error>) -> Pending {
        match plan {
            Ok(plan) => self.start(plan),
            Err(error) => Pending::ready(Completion::failed(block_error(error))),
        }
    }

    fn start_extents(&self, offset: u64, bytes: u64) -> Pending {
        match self.extents_plan(self.blocks(offset, bytes)) {
            Err(error) => Pending::ready(Completion::failed(block_error(error))),
            Ok(None) => Pending::ready(Completion::extents(extents::all_data(offset, bytes))),
            Ok(Some(plan)) => {
                let (completer, pending) = Pending::channel();
                let sink = Sink::Extents { completer, asked: (offset, bytes), unit: Arc::clone(&self.unit) };
                self.shared().with(|driver, _| driver.submit(plan, sink));
                pending
            }
        }
    }
}

/// The error in the terms of block devices.
pub(crate) fn block_error(error: Error) -> BlockError {
    BlockError::new(kind_of(&error), "remote logical unit").with_source(error)
}

fn kind_of(error: &Error) -> BlockErrorKind {
    match error {
        Error::WritesLost { .. } => BlockErrorKind::WritesLost,
        Error::Usage(UsageError::Misaligned { .. }) => BlockErrorKind::Misaligned,
        Error::Usage(UsageError::OutOfRange { .. }) => BlockErrorKind::OutOfRange,
        Error::Usage(
            UsageError::Unsupported { .. }
            | UsageError::Config(_)
            | UsageError::Url(_)
            | UsageError::InitiatorName(_),
        ) => BlockErrorKind::Unsupported,
        Error::Usage(UsageError::NoBuffer { .. } | UsageError::TooManyOperations) => BlockErrorKind::NoSpace,
        Error::Target(TargetError::CheckCondition { sense, .. }) => match sense.additional {
            AdditionalSense::WRITE_PROTECTED | AdditionalSense::LOGICAL_UNIT_SOFTWARE_WRITE_PROTECTED => {
                BlockErrorKind::ReadOnly
            }
            AdditionalSense::SPACE_ALLOCATION_FAILED_WRITE_PROTECT => BlockErrorKind::NoSpace,
            _ if sense.is_unsupported() => BlockErrorKind::Unsupported,
            _ => BlockErrorKind::Medium,
        },
        Error::Target(_) => BlockErrorKind::Medium,
        Error::Usage(UsageError::Closed | UsageError::SessionClosed)
        | Error::Network(_)
        | Error::Login(_)
        | Error::OutcomeUnknown { .. } => BlockErrorKind::Disconnected,
    }
}
