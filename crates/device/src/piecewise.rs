//! Commands that work piece by piece. Between two pieces others are served, and an aborted command ends.

use crate::session_driver::SessionDriver;
use scsi::{Outcome, Status};
use session::target::TaskId;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// The longest range of one zeroing or unmapping operation: a fraction of a second even if the backend must write
/// zeroes, because an operation cannot be stopped.
pub(crate) const ZEROES_BYTES_MAX: u64 = 64 << 20;

/// A command that is carried out piece by piece.
pub(crate) struct Piecewise {
    driver: Rc<SessionDriver>,
    id: TaskId,
}

impl Piecewise {
    pub(crate) fn new(driver: &Rc<SessionDriver>, id: TaskId) -> Self {
        Self { driver: Rc::clone(driver), id }
    }

    /// Whether it should stop: its command was aborted, or its session was lost.
    pub(crate) fn is_stopped(&self) -> bool {
        self.driver.state().tasks.get(&self.id).is_none_or(|task| task.aborted)
    }

    /// Call this between two pieces. It lets other tasks run: a backend in memory never makes the command wait, which
    /// would block the event loop for seconds.
    ///
    /// # Errors
    /// The outcome of a command that should stop. It is not sent.
    pub(crate) async fn go_on(&self) -> Result<(), Outcome> {
        let_others_run().await;
        if self.is_stopped() { Err(Outcome::Refused(Status::TaskAborted)) } else { Ok(()) }
    }
}

/// Cuts a range at multiples of [`ZEROES_BYTES_MAX`], so that no piece frees only a part of a unit that the backend
/// could free whole.
pub(crate) fn zeroing_pieces(mut offset: u64, mut bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    std::iter::from_fn(move || {
        let piece = (offset, bytes.min(ZEROES_BYTES_MAX - offset % ZEROES_BYTES_MAX));
        (offset, bytes) = (offset + piece.1, bytes - piece.1);
        (piece.1 > 0).then_some(piece)
    })
}

/// Lets every other ready task run once.
pub(crate) async fn let_others_run() {
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
