//! WRITE: the socket was read into a buffer, which now goes to the backend.

use crate::execution::Execution;
use crate::logical_unit::LogicalUnit;
use block::Payload;
use scsi::{Extent, Outcome};
use std::rc::Rc;

impl LogicalUnit {
    /// Writes `data` to `extent`, which has the same length.
    pub(crate) fn start_write(self: Rc<Self>, extent: Extent, fua: bool, data: Option<Payload>) -> Execution {
        let Some(data) = data.filter(|_| !extent.is_empty()) else { return Execution::Done(Outcome::good()) };
        let offset = self.offset_of(extent.lba);
        let outcome = move |unit: &Self, result| match result {
            Ok(_) => Outcome::good(),
            Err(error) => unit.write_failure(offset, &error),
        };
        match self.write(offset, data, fua).try_end(&self) {
            Ok(result) => Execution::Done(outcome(&self, result)),
            Err(write) => Execution::working(async move { outcome(&self, write.end(&self).await) }),
        }
    }
}
