//! A caller's operation: one or more commands, and one answer.

use super::flush::{Asked, Flush};
use super::request::Request;
use super::slots::{OperationId, RequestId};
use super::{Driver, Plan};
use crate::backend::block_error;
use crate::durability::Generation;
use crate::write_fence::{Entry, Sealing, WriteId};
use crate::{Error, Transfer, Unit, UsageError};
use block::{Completer, Completion, Extent, Payload};
use futures_channel::oneshot;
use pdu::{BufferId, Lun};
use std::sync::Arc;

/// The receiver of an operation's outcome.
pub(crate) enum Sink {
    /// A caller of this library.
    Caller(oneshot::Sender<Outcome>),
    /// A caller of the [`block::Backend`] interface.
    Block(Completer),
    /// A caller of [`block::Backend`] that asked for allocated extents, clipped to its range.
    Extents {
        completer: Completer,
        /// The requested offset and length in bytes.
        asked: (u64, u64),
        unit: Arc<Unit>,
    },
}

/// The end of an operation.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Data-In bytes that arrived, or the error.
    pub result: Result<u32, Error>,
    /// The caller's buffer, returned in any case.
    pub buffer: Option<Payload>,
}

impl Outcome {
    pub fn failed(error: Error) -> Self {
        Self { result: Err(error), buffer: None }
    }
}

/// A sink and its outcome, to be delivered outside the lock.
pub(super) struct Finished {
    sink: Sink,
    outcome: Outcome,
}

impl Finished {
    pub fn new(sink: Sink, outcome: Outcome) -> Self {
        Self { sink, outcome }
    }

    /// Delivers the outcome; ignores a caller that is gone.
    pub fn deliver(self) {
        match self.sink {
            Sink::Caller(sender) => drop(sender.send(self.outcome)),
            Sink::Block(completer) => completer.complete(self.outcome.into_completion()),
            Sink::Extents { completer, asked, unit } => {
                let extents = crate::extents::parse(&self.outcome, asked, &unit);
                completer.complete(extents_completion(extents));
            }
        }
    }
}

fn extents_completion(extents: Result<Vec<Extent>, Error>) -> Completion {
    match extents {
        Ok(extents) => Completion::extents(extents),
        Err(error) => Completion::failed(block_error(error)),
    }
}

impl Outcome {
    fn into_completion(self) -> Completion {
        let buffer = self.buffer.and_then(|payload| payload.try_into_buffer().ok());
        let mut completion = match self.result {
            Ok(_) => Completion::complete(),
            Err(error) => Completion::failed(block_error(error)),
        };
        completion.buffer = buffer;
        completion
    }
}

/// An outstanding operation.
pub(super) struct Operation {
    pub lun: Lun,
    pub command: &'static str,
    /// Commands that have not ended, including waiting ones.
    pub pieces: usize,
    /// The first error.
    pub error: Option<Error>,
    /// Commands whose buffer the protocol may still use.
    pub lent: usize,
    /// The generation in which the first of its writes was acknowledged.
    pub acknowledged_in: Option<Generation>,
    /// Data-In bytes that arrived.
    pub data_in_bytes: u32,
    /// The caller's buffer first, then those that this library added.
    pub buffers: Vec<BufferId>,
    /// Its place in the write fence, if it writes.
    pub write: Option<WriteId>,
    /// Its blocks must stay closed, because one of its commands has an unknown outcome for good.
    pub sealed: bool,
    /// A flush follows a success: force unit access where the device has none.
    pub then_flush: Option<Asked>,
    /// The flushes that this SYNCHRONIZE CACHE is for.
    pub flushes: Vec<Flush>,
    /// `None` for those, which have their own.
    pub sink: Option<Sink>,
    /// Commands that wait for the fence.
    pub held: Vec<RequestId>,
}

impl Operation {
    /// An operation of `pieces` commands.
    pub fn new(lun: Lun, command: &'static str, pieces: usize, sink: Option<Sink>) -> Self {
        Self {
            lun,
            command,
            pieces,
            error: None,
            lent: 0,
            acknowledged_in: None,
            data_in_bytes: 0,
            buffers: Vec::new(),
            write: None,
            sealed: false,
            then_flush: None,
            flushes: Vec::new(),
            sink,
            held: Vec::new(),
        }
    }
}

impl Driver {
    /// Starts an operation. Its outcome, even an immediate one, goes to `sink`.
    pub fn submit(&mut self, plan: Plan, sink: Sink) {
        if let Some(error) = self.refusal(plan.lun) {
            let buffer = plan.data.into_payload();
            self.finished.push(Finished::new(sink, Outcome { result: Err(error), buffer }));
            return;
        }
        let Plan { lun, command, kind, writes, dirties, data, pieces, path, then_flush, attribute } = plan;
        let is_in = matches!(data, Transfer::In(_));
        let then_flush = then_flush.map(Asked::by);
        let operation = Operation { then_flush, ..Operation::new(lun, command, pieces.len(), Some(sink)) };
        let key = self.operations.insert(operation);
        let buffer = data.into_payload().map(|payload| self.lend(key, payload));
        let requests: Vec<RequestId> = pieces
            .into_iter()
            .map(|piece| {
                let data = piece.data(buffer, is_in);
                self.requests.insert(Request {
                    kind,
                    cdb: piece.cdb,
                    data,
                    extent: piece.extent,
                    exact: piece.exact,
                    path,
                    dirties,
                    attribute,
                    ..Request::new(key, lun)
                })
            })
            .collect();
        match writes {
            Some(range) => self.enter_fence(key, lun, range, requests),
            None => self.enqueue_all(requests),
        }
        self.finish_if_done(key);
    }

    /// The error of every operation at this unit, if there is one.
    pub fn refusal(&self, lun: Lun) -> Option<Error> {
        if self.closing {
            return Some(UsageError::SessionClosed.into());
        }
        if let Some(error) = self.end_of(lun) {
            return Some(error);
        }
        (self.operations.len() >= super::OPERATIONS_MAX).then(|| UsageError::TooManyOperations.into())
    }

    fn enter_fence(
        &mut self,
        key: OperationId,
        lun: Lun,
        range: std::ops::Range<u64>,
        requests: Vec<RequestId>,
    ) {
        let Some(unit) = self.units.get_mut(&lun) else { return self.enqueue_all(requests) };
        let (write, entry) = unit.fence.enter(range);
        match entry {
            Entry::Admitted => {
                unit.writes.insert(write, key);
                self.operations[key].write = Some(write);
                self.enqueue_all(requests);
            }
            Entry::Waits => {
                unit.writes.insert(write, key);
                self.operations[key].write = Some(write);
                self.operations[key].held = requests;
            }
            Entry::Sealed => {
                for request in requests {
                    self.end_request(request, Err(UsageError::Closed.into()));
                }
            }
        }
    }

    /// The protocol has released a buffer.
    pub(super) fn released(&mut self, buffer: BufferId) {
        let Some(&key) = self.borrowers.get(&buffer) else { return };
        self.operations[key].lent -= 1;
        self.finish_if_done(key);
    }

    /// Names memory that belongs to an operation until it ends.
    pub(super) fn lend(&mut self, key: OperationId, payload: Payload) -> BufferId {
        let buffer = self.buffers.insert(payload);
        self.operations[key].buffers.push(buffer);
        self.borrowers.insert(buffer, key);
        buffer
    }

    /// Ends the operation when its last command has ended and the protocol has released its memory.
    pub(super) fn finish_if_done(&mut self, key: OperationId) {
        if self.operations.get(key).is_none_or(|operation| operation.pieces > 0 || operation.lent > 0) {
            return;
        }
        let Some(mut operation) = self.operations.remove(key) else { return };
        let mut buffer = None;
        for id in operation.buffers.drain(..).rev() {
            self.borrowers.remove(&id);
            buffer = self.buffers.remove(id);
        }
        if let Some(write) = operation.write {
            self.leave_fence(operation.lun, write, operation.sealed);
        }
        if let (None, Some(since)) = (&operation.error, operation.acknowledged_in)
            && let Some(unit) = self.units.get_mut(&operation.lun)
        {
            unit.durability.operation_ended(since);
        }
        let Some(sink) = operation.sink else {
            return self.end_flushes(operation.lun, operation.flushes, operation.error.as_ref());
        };
        if let (None, Some(asked)) = (&operation.error, operation.then_flush) {
            return self.begin_flush(operation.lun, asked, sink, buffer);
        }
        let result = operation.error.map_or(Ok(operation.data_in_bytes), Err);
        self.finished.push(Finished::new(sink, Outcome { result, buffer }));
    }

    fn leave_fence(&mut self, lun: Lun, write: WriteId, sealed: bool) {
        let Some(unit) = self.units.get_mut(&lun) else { return };
        unit.writes.remove(&write);
        let Sealing { admitted, refused } = if sealed {
            unit.fence.seal(write)
        } else {
            Sealing { admitted: unit.fence.leave(write), refused: Vec::new() }
        };
        let admitted: Vec<OperationId> =
            admitted.into_iter().filter_map(|id| unit.writes.get(&id).copied()).collect();
        let refused: Vec<OperationId> =
            refused.into_iter().filter_map(|id| unit.writes.remove(&id)).collect();
        for key in admitted {
            let held = std::mem::take(&mut self.operations[key].held);
            self.enqueue_all(held);
        }
        for key in refused {
            self.operations[key].write = None;
            for request in std::mem::take(&mut self.operations[key].held) {
                self.end_request(request, Err(UsageError::Closed.into()));
            }
        }
        self.begin_ready_flushes(lun);
    }
}

impl Transfer {
    fn into_payload(self) -> Option<Payload> {
        match self {
            Self::None => None,
            Self::In(buffer) => Some(Payload::from(buffer)),
            Self::Out(payload) => Some(payload),
        }
    }
}
