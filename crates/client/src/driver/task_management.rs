//! Task management functions over a whole unit (RFC 7143 §11.5.1), for callers. [`super::command_limit`] asks for its own.

use super::Driver;
use crate::UsageError;
use futures_channel::oneshot;
use pdu::{Instant, Lun, TaskManagementOutcome};
use session::initiator::{FunctionId, TaskFunction};

impl Driver {
    /// Asks for a function over a path that leads to the unit. The answer is dropped with the path's session.
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

    /// A function was answered: a caller's, or one that this driver asked for.
    pub(super) fn function_done(
        &mut self,
        at: usize,
        function: FunctionId,
        outcome: TaskManagementOutcome,
        now: Instant,
    ) {
        match self.paths[at].functions.remove(&function) {
            // A caller that is gone does not want to know.
            Some(caller) => drop(caller.send(outcome)),
            None => self.aborted(at, function, outcome, now),
        }
    }
}
