//! Ejecting a medium (SBC-3, START STOP UNIT).

use crate::logical_unit::LogicalUnit;
use scsi::Outcome;

impl LogicalUnit {
    /// Ejects the medium; with `flush`, only after all writes are durable.
    pub(crate) async fn eject(&self, flush: bool) -> Outcome {
        let flushed = if flush { self.flush().await } else { Outcome::good() };
        match flushed {
            Outcome::Good(_) => self.state.borrow_mut().eject(),
            failed => failed,
        }
    }
}
