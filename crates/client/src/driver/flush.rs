//! A flush waits for every earlier write, then sends SYNCHRONIZE CACHE on each path that wrote.

use super::operation::{Finished, Operation, Outcome};
use super::request::Request;
use super::{Driver, Sink};
use crate::durability::{FlushMark, Generation};
use crate::path_id::PathId;
use crate::retry::CommandKind;
use crate::write_fence::WriteId;
use crate::{Error, TargetError};
use block::Payload;
use pdu::Lun;
use scsi::client;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A flush that waits for earlier writes.
pub(crate) struct Flush {
    mark: WriteId,
    asked: Asked,
    sink: Sink,
    /// Returned with the outcome.
    buffer: Option<Payload>,
}

/// The losses that the caller of the flush had heard of.
#[derive(Clone)]
pub(super) struct Asked {
    /// The last generation that its handle has heard of by now.
    seen: Arc<AtomicU64>,
    /// The one of which it had heard when it asked. Another operation may have told the handle since.
    known: Generation,
}

impl Asked {
    /// Takes the generation that the handle knows at this moment.
    pub fn by(seen: Arc<AtomicU64>) -> Self {
        let known = Generation(seen.load(Ordering::Acquire));
        Self { seen, known }
    }

    /// Tells the handle of this generation. Whether it is news to whoever asked.
    fn tell(&self, generation: Generation) -> bool {
        self.seen.fetch_max(generation.0, Ordering::AcqRel);
        self.known != generation
    }
}

impl Driver {
    /// Flushes earlier writes for a handle that knows the generation `seen`.
    pub fn flush(&mut self, lun: Lun, seen: Arc<AtomicU64>, sink: Sink) {
        match self.refusal(lun) {
            Some(error) => self.finished.push(Finished::new(sink, Outcome::failed(error))),
            None => self.begin_flush(lun, Asked::by(seen), sink, None),
        }
    }

    pub(super) fn begin_flush(&mut self, lun: Lun, asked: Asked, sink: Sink, buffer: Option<Payload>) {
        let Some(unit) = self.units.get_mut(&lun) else { return };
        let mark = unit.fence.mark();
        unit.flushes.push_back(Flush { mark, asked, sink, buffer });
        self.begin_ready_flushes(lun);
    }

    /// Empties the caches for all flushes whose writes have ended, unless that is being done: of two at a time, the one
    /// that fails may have taken from the device what the other then succeeds without.
    pub(super) fn begin_ready_flushes(&mut self, lun: Lun) {
        let Some(unit) = self.units.get_mut(&lun).filter(|unit| !unit.is_flushing) else { return };
        let fence = &unit.fence;
        let ready = unit.flushes.iter().take_while(|flush| fence.is_clear_before(flush.mark)).count();
        let flushes: Vec<Flush> = unit.flushes.drain(..ready).collect();
        if !flushes.is_empty() {
            unit.is_flushing = true;
            self.synchronize_caches(lun, flushes);
        }
    }

    /// Where nothing was written through this session, any path may flush for those who wrote before.
    fn synchronize_caches(&mut self, lun: Lun, flushes: Vec<Flush>) {
        let Some(unit) = self.units.get(&lun) else { return };
        let long = unit.unit.long_addresses;
        let mut marks: Vec<(Option<PathId>, Option<FlushMark>)> =
            unit.durability.unflushed().map(|(path, mark)| (Some(path), Some(mark))).collect();
        if marks.is_empty() {
            marks.push((None, None));
        }
        let operation = Operation { flushes, ..Operation::new(lun, SYNCHRONIZE_CACHE, marks.len(), None) };
        let operation = self.operations.insert(operation);
        for (path, mark) in marks {
            let cdb = if long { client::synchronize_cache_16() } else { client::synchronize_cache_10() };
            let request = self.requests.insert(Request {
                kind: if path.is_some() { CommandKind::Flush } else { CommandKind::FlushForOthers },
                cdb: cdb.into(),
                path,
                flush: mark,
                ..Request::new(operation, lun)
            });
            self.enqueue(request);
        }
    }

    /// The caches are empty, or `error` says why not. The next flushes may begin.
    pub(super) fn end_flushes(&mut self, lun: Lun, flushes: Vec<Flush>, error: Option<&Error>) {
        let generation = self.units.get_mut(&lun).map(|unit| {
            unit.is_flushing = false;
            unit.durability.generation()
        });
        // A caller who learns that the flush hangs learns of the loss from the next flush. The device's own reason for
        // the failure takes precedence too.
        let hangs = matches!(error, Some(Error::Target(TargetError::Unanswered { .. })));
        let says_why = matches!(
            error,
            Some(Error::Target(
                TargetError::CheckCondition { .. }
                    | TargetError::Changed { .. }
                    | TargetError::Reserved { .. }
                    | TargetError::ReservationLost { .. }
            ))
        );
        for flush in flushes {
            let news = generation.filter(|generation| !hangs && flush.asked.tell(*generation));
            let error = match (news, error) {
                (Some(generation), _) if !says_why => Some(Error::WritesLost { generation }),
                (_, error) => error.cloned(),
            };
            let outcome = Outcome { result: error.map_or(Ok(0), Err), buffer: flush.buffer };
            self.finished.push(Finished::new(flush.sink, outcome));
        }
        self.begin_ready_flushes(lun);
    }
}

pub(super) const SYNCHRONIZE_CACHE: &str = "SYNCHRONIZE CACHE";
