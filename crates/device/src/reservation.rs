//! RESERVE, RELEASE and PERSISTENT RESERVE OUT: changes of the rights at a unit (SPC-2, SPC-4).
//!
//! A change that must survive a loss of power is stored before it is in force and before it is answered, so nobody
//! relies on a reservation that a crash would forget. The unit's task set admits one change at a time.

use crate::ending::finish;
use crate::logical_unit::LogicalUnit;
use crate::session_driver::SessionDriver;
use crate::task_management::{in_session_of, quiesce};
use crate::unit_state::{NexusTask, PersistedReservations, Settled};
use scsi::{Outcome, PersistentReserveOut};
use session::target::TaskId;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

/// The end of storing something.
pub type Stored = Pin<Box<dyn Future<Output = io::Result<()>>>>;

/// The storage of one unit's reservations across restarts.
pub trait Persist {
    /// Makes `snapshot` durable in place of the previous one, then resolves. After an error either of the two may be
    /// found later.
    fn store(&self, snapshot: PersistedReservations) -> Stored;
}

/// PERSISTENT RESERVE OUT.
pub(crate) async fn persistent_reserve_out(
    driver: Rc<SessionDriver>,
    task: TaskId,
    unit: Rc<LogicalUnit>,
    request: PersistentReserveOut,
) -> Outcome {
    let task = NexusTask { nexus: driver.nexus, task };
    let change = unit.state.borrow().persistent_reserve_out(task, &request);
    let change = match change {
        Ok(change) => change,
        Err(outcome) => return outcome,
    };
    if let Some(snapshot) = change.to_persist()
        && let Err(error) = unit.store(snapshot.clone()).await
    {
        tracing::error!(lun = unit.number, %error, "reservations cannot be stored");
        unit.state.borrow_mut().not_persisted(change);
        return Outcome::internal_failure();
    }
    let settled = unit.state.borrow_mut().commit(change);
    settle(&driver, settled).await;
    Outcome::good()
}

/// RESERVE (SPC-2): reserves the whole unit for this session's nexus.
pub(crate) async fn reserve(driver: Rc<SessionDriver>, unit: Rc<LogicalUnit>) -> Outcome {
    let settled = unit.state.borrow_mut().reserve(driver.nexus);
    match settled {
        Ok(settled) => settle(&driver, settled).await,
        Err(outcome) => return outcome,
    }
    Outcome::good()
}

/// Answers the commands that the change forbids, and ends the commands that it aborts.
async fn settle(driver: &Rc<SessionDriver>, settled: Settled) {
    for refused in settled.refused {
        in_session_of(driver, refused, |session, state| {
            finish(session, state, refused.task, Outcome::reservation_conflict());
        });
    }
    quiesce(driver, settled.cleared).await;
}

impl LogicalUnit {
    async fn store(&self, snapshot: PersistedReservations) -> io::Result<()> {
        match &self.kept {
            Some(kept) => kept.store(snapshot).await,
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}
