//! The end of a command: its answer, and the turn of those that waited for it.

use crate::session_driver::{SessionDriver, SessionState};
use crate::target_node::TargetNode;
use crate::unit_state::NexusTask;
use scsi::{Outcome, SenseFormat};
use session::seam;
use session::target::{Response, TaskId};
use std::rc::Rc;

/// Ends the command: answers it, and starts the tasks that waited for it.
pub(crate) fn finish(driver: &Rc<SessionDriver>, state: &mut SessionState, id: TaskId, outcome: Outcome) {
    let Some(task) = state.tasks.remove(&id) else { return };
    driver.environment.tell(|observer| observer.command_ends(driver.tsih, id));
    let failed_read = task.command.data_in_bytes > 0 && outcome.status() != scsi::Status::Good;
    let wanted_bytes = if failed_read { task.delivered_bytes } else { task.wanted_bytes };
    let (format, is_fenced) = (task.unit.sense_format(), task.is_fenced);
    let ending = Ending { outcome, wanted_bytes, format, is_fenced };
    respond(driver, state, id, task.command.data_in_bytes, ending);
    let startable = task.unit.state.borrow_mut().finish(NexusTask { nexus: driver.nexus, task: id });
    start_others(&driver.node, startable);
}

/// Removes a command that was aborted before it started.
pub(crate) fn drop_task(driver: &Rc<SessionDriver>, state: &mut SessionState, id: TaskId) {
    if state.tasks.remove(&id).is_some() {
        let outcome = Outcome::Refused(scsi::Status::TaskAborted);
        let ending = Ending { outcome, wanted_bytes: 0, format: SenseFormat::Fixed, is_fenced: false };
        respond(driver, state, id, 0, ending);
    }
}

/// The answer to a command.
pub(crate) struct Ending {
    pub outcome: Outcome,
    /// The length of the transfer that the command asks for, for the residual count.
    pub wanted_bytes: u32,
    pub format: SenseFormat,
    /// Its response is fenced.
    pub is_fenced: bool,
}

/// Sends parameter data, up to the length that the initiator accepts, and the status.
pub(crate) fn respond(
    driver: &SessionDriver,
    state: &mut SessionState,
    id: TaskId,
    data_in_bytes_max: u32,
    ending: Ending,
) {
    let now = driver.now();
    let Ending { outcome, mut wanted_bytes, format, is_fenced } = ending;
    let status = outcome.status().code();
    let sense = outcome.sense().map(|sense| sense.to_bytes(format)).unwrap_or_default();
    if let Outcome::Good(mut data) = outcome
        && !data.is_empty()
    {
        wanted_bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        data.truncate(data_in_bytes_max as usize);
        state.session.data_in(now, id, seam::Payload::Inline(data));
    }
    let response = Response { status, sense, wanted_bytes };
    if is_fenced {
        state.session.respond_fenced(now, id, response);
    } else {
        state.session.respond(now, id, response);
    }
}

/// Lets commands start that waited for another one, in whichever session. That happens later, because that session's
/// state may be in use now.
pub(crate) fn start_others(node: &Rc<TargetNode>, startable: Vec<NexusTask>) {
    if startable.is_empty() {
        return;
    }
    let environment = Rc::clone(&node.environment);
    let node = Rc::clone(node);
    environment.spawn(async move {
        for task in startable {
            if let Some(driver) = node.session_of(task.nexus) {
                driver.resume(|state| state.startable.push_back(task.task));
            }
        }
    });
}
