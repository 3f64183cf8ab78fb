//! EXTENDED COPY: blocks go from unit to unit without travelling to the initiator (SPC-4).
//!
//! The units are those that the initiator may use itself, and nothing else can be named. A copy is not ordered against
//! other commands to the same blocks, which is the initiator's affair (SPC-4), and overlapping segments copy forward.

use crate::logical_unit::LogicalUnit;
use crate::memory::PIECE_BYTES;
use nexus::target::NexusId;
use scsi::{CopySegment, CopyStatus, CopyTarget, ExtendedCopy, MediumAccess, Outcome};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// A copy under way.
pub(crate) struct Copy<F> {
    /// Whose it is.
    pub nexus: NexusId,
    /// All that its initiator may use.
    pub units: Vec<Rc<LogicalUnit>>,
    /// Whether it should stop: its command was aborted.
    pub stopped: F,
    /// Bytes that were copied.
    copied_bytes: u64,
}

impl<F: Fn() -> bool> Copy<F> {
    pub(crate) fn new(nexus: NexusId, units: Vec<Rc<LogicalUnit>>, stopped: F) -> Self {
        Self { nexus, units, stopped, copied_bytes: 0 }
    }

    /// Copies segment by segment. Every device is found before anything is copied.
    pub(crate) async fn run(mut self, request: &ExtendedCopy) -> (Outcome, CopyStatus) {
        let targets: Option<Vec<_>> = request.targets.iter().map(|target| self.find(target)).collect();
        let Some(targets) = targets else {
            let outcome = ExtendedCopy::unreachable();
            let status = CopyStatus::of(&outcome, 0, 0);
            return (outcome, status);
        };
        let mut segments = 0;
        for segment in &request.segments {
            let (source, destination) = (&targets[segment.source], &targets[segment.destination]);
            segments += 1;
            if let Err(outcome) = self.copy(segment, source, destination).await {
                let status = CopyStatus::of(&outcome, segments, self.copied_bytes);
                return (outcome, status);
            }
        }
        let outcome = Outcome::good();
        let status = CopyStatus::of(&outcome, segments, self.copied_bytes);
        (outcome, status)
    }

    fn find(&self, target: &CopyTarget) -> Option<Rc<LogicalUnit>> {
        self.units.iter().find(|unit| target.names(&unit.disk)).cloned()
    }

    async fn copy(
        &mut self,
        segment: &CopySegment,
        source: &LogicalUnit,
        destination: &LogicalUnit,
    ) -> Result<(), Outcome> {
        let ranges = segment.ranges(&source.disk, &destination.disk).map_err(Outcome::CheckCondition)?;
        source.shared.borrow().admits_copy(self.nexus, MediumAccess::Read)?;
        destination.shared.borrow().admits_copy(self.nexus, MediumAccess::Write)?;
        if destination.disk.read_only {
            return Err(ExtendedCopy::device_failed());
        }
        let mut done_bytes = 0;
        while done_bytes < ranges.bytes {
            if (self.stopped)() {
                return Err(ExtendedCopy::device_failed());
            }
            let bytes = (ranges.bytes - done_bytes).min(PIECE_BYTES.into());
            let failed = |_| ExtendedCopy::device_failed();
            let piece = source.read_piece(ranges.source_offset + done_bytes, bytes).await.map_err(failed)?;
            let offset = ranges.destination_offset + done_bytes;
            let written = destination.write(offset, piece.share(), false).await.result;
            written.map_err(|error| {
                destination.write_failure(offset, &error);
                ExtendedCopy::device_failed()
            })?;
            done_bytes += bytes;
            self.copied_bytes += bytes;
            let_others_run().await;
        }
        Ok(())
    }
}

/// A copy in memory never waits by itself, and would keep the event loop for seconds.
async fn let_others_run() {
    let mut polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
