//! A flush waits for every write before it, then tells each path that wrote to empty the cache behind it.

use super::operation::{Finished, Operation, Outcome};
use super::path::Request;
use super::{Driver, Sink};
use block::Payload;
use nexus::initiator::{CommandKind, FlushMark, PathId, WriteId};
use pdu::Lun;
use scsi::client;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A flush that waits.
pub(crate) struct Flush {
    mark: WriteId,
    seen: Arc<AtomicU64>,
    sink: Sink,
    /// Given back with the outcome.
    buffer: Option<Payload>,
}

impl Driver {
    /// Flushes what has been written before, for whoever knows the generation `seen`.
    pub fn flush(&mut self, lun: Lun, seen: Arc<AtomicU64>, sink: Sink) {
        match self.refusal(lun) {
            Some(error) => self.finished.push(Finished::new(sink, Outcome::failed(error))),
            None => self.begin_flush(lun, seen, sink, None),
        }
    }

    pub(super) fn begin_flush(
        &mut self,
        lun: Lun,
        seen: Arc<AtomicU64>,
        sink: Sink,
        buffer: Option<Payload>,
    ) {
        let Some(unit) = self.units.get_mut(&lun) else { return };
        let mark = unit.fence.mark();
        unit.flushes.push_back(Flush { mark, seen, sink, buffer });
        self.begin_ready_flushes(lun);
    }

    pub(super) fn begin_ready_flushes(&mut self, lun: Lun) {
        while let Some(unit) = self.units.get_mut(&lun)
            && unit.flushes.front().is_some_and(|flush| unit.fence.is_clear_before(flush.mark))
            && let Some(flush) = unit.flushes.pop_front()
        {
            self.synchronize_caches(lun, flush);
        }
    }

    /// Where nothing was written through this session, any path may flush for those who wrote before.
    fn synchronize_caches(&mut self, lun: Lun, flush: Flush) {
        let Some(unit) = self.units.get(&lun) else { return };
        let long = unit.unit.long_addresses;
        let mut marks: Vec<(Option<PathId>, Option<FlushMark>)> =
            unit.durability.unflushed().map(|(path, mark)| (Some(path), Some(mark))).collect();
        if marks.is_empty() {
            marks.push((None, None));
        }
        let operation = self.operations.insert(Operation {
            seen: Some(flush.seen),
            ..Operation::new(lun, SYNCHRONIZE_CACHE, marks.len(), flush.sink)
        });
        if let Some(payload) = flush.buffer {
            self.lend(operation, payload);
        }
        for (path, mark) in marks {
            let cdb = if long { client::synchronize_cache_16() } else { client::synchronize_cache_10() };
            let request = self.requests.insert(Request {
                // With nothing of ours to lose, it may be repeated on any nexus.
                kind: if path.is_some() { CommandKind::Flush } else { CommandKind::Read },
                cdb: cdb.into(),
                path,
                flush: mark,
                ..Request::new(operation, lun)
            });
            self.enqueue(request);
        }
    }
}

pub(super) const SYNCHRONIZE_CACHE: &str = "SYNCHRONIZE CACHE";
