//! WRITE: the socket was read into a buffer, which now goes to the backend.

use crate::command::finish;
use crate::logical_unit::LogicalUnit;
use crate::session_driver::{SessionDriver, SessionState};
use block::Payload;
use scsi::{Extent, Outcome};
use session::target::TaskId;
use std::rc::Rc;

/// Writes `data` to `extent`, which has the same length.
pub(crate) fn start(
    driver: &Rc<SessionDriver>,
    state: &mut SessionState,
    id: TaskId,
    extent: Extent,
    fua: bool,
    data: Option<Payload>,
) {
    let Some(unit) = state.tasks.get(&id).map(|task| Rc::clone(&task.unit)) else { return };
    let Some(data) = data.filter(|_| !extent.is_empty()) else {
        return finish(driver, state, id, Outcome::good());
    };
    let offset = unit.offset_of(extent.lba);
    let outcome = move |unit: &LogicalUnit, result| match result {
        Ok(_) => Outcome::good(),
        Err(error) => unit.write_failure(offset, &error),
    };
    match unit.write(offset, data, fua).try_end(&unit) {
        Ok(result) => finish(driver, state, id, outcome(&unit, result)),
        Err(write) => {
            let environment = Rc::clone(&driver.environment);
            let driver = Rc::clone(driver);
            environment.spawn(async move {
                let outcome = outcome(&unit, write.end(&unit).await);
                driver.resume(|state| finish(&driver, state, id, outcome));
            });
        }
    }
}
