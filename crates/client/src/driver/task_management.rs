//! Task management functions over a whole unit (RFC 7143 §11.5.1), for callers. [`super::command_limit`] sends its own.

use super::Driver;
use crate::UsageError;
use crate::path_id::PathId;
use futures_channel::oneshot;
use pdu::{Instant, Lun, TaskManagementOutcome};
use session::initiator::{FunctionId, TaskFunction};

impl Driver {
    /// Requests a function over a path that leads to the unit. The end of the path's session drops the answer.
    pub fn task_management(
        &mut self,
        lun: Lun,
        function: TaskFunction,
        now: Instant,
    ) -> Result<oneshot::Receiver<TaskManagementOutcome>, UsageError> {
        let path = self.path_to(lun).and_then(|path| self.path_mut(path)).ok_or(UsageError::SessionClosed)?;
        let core = path.core.as_mut().ok_or(UsageError::SessionClosed)?;
        let (sender, receiver) = oneshot::channel();
        let function = core.task_management(now, function);
        path.functions.insert(function, sender);
        Ok(receiver)
    }

    /// Delivers the answer to a function, to its caller or to this driver.
    pub(super) fn function_done(
        &mut self,
        at: PathId,
        function: FunctionId,
        outcome: TaskManagementOutcome,
        now: Instant,
    ) {
        match self.paths[at].functions.remove(&function) {
            // The caller may be gone.
            Some(caller) => drop(caller.send(outcome)),
            None => self.aborted(at, function, outcome, now),
        }
    }
}
