//! EXTENDED COPY: copies blocks between units without sending them to the initiator (SPC-4).
//!
//! The command can name only units that the initiator may use itself. A copy proceeds piece by piece. Each piece waits
//! for the earlier COMPARE AND WRITE and ORWRITE commands to the same blocks, and later ones wait for it. The copy is
//! not ordered against other commands to the same blocks, which is the initiator's responsibility (SPC-4). Overlapping
//! segments copy forward.

use crate::ending::start_others;
use crate::logical_unit::LogicalUnit;
use crate::memory::PIECE_BYTES;
use crate::piecewise::{Piecewise, let_others_run};
use crate::session_driver::SessionDriver;
use crate::unit_state::{Admission, NexusTask};
use futures_channel::oneshot;
use scsi::{CopySegment, CopyStatus, CopyTarget, ExtendedCopy, Extent, MediumAccess, Outcome};
use session::target::TaskId;
use std::rc::Rc;

/// A copy under way.
pub(crate) struct Copy {
    /// Its session. Only this session's units can be named.
    driver: Rc<SessionDriver>,
    /// The EXTENDED COPY command that asked for it.
    id: TaskId,
    /// Bytes copied so far.
    copied_bytes: u64,
}

/// The part of a segment that is copied at once.
struct Piece<'a> {
    source: &'a Rc<LogicalUnit>,
    source_offset: u64,
    destination: &'a Rc<LogicalUnit>,
    destination_offset: u64,
    bytes: u64,
}

impl Copy {
    pub(crate) fn new(driver: &Rc<SessionDriver>, id: TaskId) -> Self {
        Self { driver: Rc::clone(driver), id, copied_bytes: 0 }
    }

    /// Copies segment by segment. Looks every device up before it copies anything.
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
        self.driver.units.iter().find(|unit| target.names(&unit.disk)).cloned()
    }

    async fn copy(
        &mut self,
        segment: &CopySegment,
        source: &Rc<LogicalUnit>,
        destination: &Rc<LogicalUnit>,
    ) -> Result<(), Outcome> {
        let ranges = segment.ranges(&source.disk, &destination.disk).map_err(Outcome::CheckCondition)?;
        let mut done_bytes = 0;
        while done_bytes < ranges.bytes {
            let piece = Piece {
                source,
                source_offset: ranges.source_offset + done_bytes,
                destination,
                destination_offset: ranges.destination_offset + done_bytes,
                bytes: (ranges.bytes - done_bytes).min(PIECE_BYTES.into()),
            };
            self.copy_in_turn(&piece).await?;
            done_bytes += piece.bytes;
            self.copied_bytes += piece.bytes;
            let_others_run().await;
        }
        Ok(())
    }

    /// Whether a piece may be copied, now that its turn has come. Since the last piece the command may have been
    /// aborted, a reservation may have fenced the initiator off, or the medium may have been ejected.
    fn check(&self, piece: &Piece<'_>) -> Result<(), Outcome> {
        if Piecewise::new(&self.driver, self.id).is_stopped() || piece.destination.disk.read_only {
            return Err(ExtendedCopy::device_failed());
        }
        piece.source.state.borrow().admits_copy(self.driver.nexus, MediumAccess::Read)?;
        piece.destination.state.borrow().admits_copy(self.driver.nexus, MediumAccess::Write)
    }

    /// Copies a piece while no other command reads and writes its blocks.
    async fn copy_in_turn(&self, piece: &Piece<'_>) -> Result<(), Outcome> {
        let task = NexusTask { nexus: self.driver.nexus, task: self.id };
        let occupied = piece.occupied();
        for (unit, extents) in &occupied {
            let admission = unit.state.borrow_mut().occupy(task, extents.clone());
            if admission == Admission::Wait {
                self.wait_for_turn().await;
            }
        }
        let copied = match self.check(piece) {
            Ok(()) => piece.copy().await,
            refused => refused,
        };
        for (unit, _) in &occupied {
            let startable = unit.state.borrow_mut().vacate(task);
            start_others(&self.driver.node, startable);
        }
        if let Some(task) = self.driver.state().tasks.get_mut(&self.id) {
            task.piece_ends.clear();
        }
        copied
    }

    async fn wait_for_turn(&self) {
        let (turn, comes) = oneshot::channel();
        if let Some(task) = self.driver.state().tasks.get_mut(&self.id) {
            task.turn = Some(turn);
        }
        // Only the end of the command drops the other end unsent, and it ends this too.
        let _ = comes.await;
    }
}

impl Piece<'_> {
    /// The blocks and units that it reads and writes, each unit once, in the order in which copies occupy them.
    fn occupied(&self) -> Vec<(&Rc<LogicalUnit>, Vec<Extent>)> {
        let read = self.source.extent_of(self.source_offset, self.bytes);
        let written = self.destination.extent_of(self.destination_offset, self.bytes);
        if Rc::ptr_eq(self.source, self.destination) {
            return vec![(self.source, vec![read, written])];
        }
        let mut occupied = vec![(self.source, vec![read]), (self.destination, vec![written])];
        occupied.sort_by_key(|(unit, _)| unit.number);
        occupied
    }

    async fn copy(&self) -> Result<(), Outcome> {
        let read = self.source.read_piece(self.source_offset, self.bytes).await;
        let data = read.map_err(|_| ExtendedCopy::device_failed())?;
        let write = self.destination.write(self.destination_offset, data.share(), false);
        write.end(self.destination).await.map(drop).map_err(|error| {
            self.destination.write_failure(self.destination_offset, &error);
            ExtendedCopy::device_failed()
        })
    }
}
