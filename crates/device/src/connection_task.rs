//! One connection in full feature phase, from its first PDU to its end.

use crate::session_driver::{Closing, SessionDriver, SessionState};
use framing::{Connection, ConnectionError, Wire};
use pdu::{Cid, Duration};
use session::seam::{Endpoint, LaneLoss};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// The most reads of one poll, because a fast peer could otherwise keep this task busy for ever.
const READS_PER_POLL: u32 = 16;

/// The most times that one poll empties the session's queue, for the same reason: what is sent makes room for more.
const ROUNDS_PER_POLL: u32 = 16;

/// The longest time for the last PDUs of a closing connection to leave.
const FAREWELL: Duration = Duration::from_secs(5);

/// The end of a connection.
#[derive(Debug)]
pub enum End {
    /// The session closed it.
    Closed(Closing),
    /// It cannot continue.
    Failed(ConnectionError),
}

/// Why a connection's turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    /// Nothing is left to do.
    Idle,
    /// The stream accepts no more.
    Blocked,
    /// It had its share; there is more to do.
    Share,
}

impl SessionDriver {
    /// Carries a connection until its end. [`Self::part_with`] must follow.
    pub async fn carry<W: Wire>(self: &Rc<Self>, connection: &mut Connection<W>) -> End {
        poll_fn(|cx| self.poll_connection(connection, cx)).await
    }

    /// Sends the last PDUs of a connection that has ended, closes it, and tells its session and the target's node.
    pub async fn part_with<W: Wire>(self: &Rc<Self>, mut connection: Connection<W>, cid: Cid, end: &End) {
        let lane = connection.lane();
        let loss = match end {
            End::Closed(closing) => closing.loss,
            // The session has already removed a lane that it logged out, whatever happens to its last bytes.
            End::Failed(_) => self.state().closing(lane).map_or(LaneLoss::Broken, |closing| closing.loss),
        };
        let has_last_words = matches!(end, End::Closed(_) | End::Failed(ConnectionError::Fault(_)));
        if loss == LaneLoss::Broken {
            // The session need not wait until they have left: its tasks continue elsewhere, or it ends.
            if has_last_words {
                poll_fn(|cx| self.offer_last_words(&mut connection, cx)).await;
            }
            self.remove_lane(lane, loss);
        }
        if has_last_words {
            let mut patience = self.environment.host.sleep_until(self.now() + FAREWELL);
            poll_fn(|cx| match self.poll_farewell(&mut connection, cx) {
                Poll::Pending => patience.as_mut().poll(cx),
                Poll::Ready(()) => Poll::Ready(()),
            })
            .await;
        }
        drop(connection);
        if loss == LaneLoss::LoggedOut {
            self.remove_lane(lane, loss);
        }
        self.node().lane_closed(self.tsih(), cid);
    }

    fn poll_connection<W: Wire>(
        self: &Rc<Self>,
        connection: &mut Connection<W>,
        cx: &mut Context<'_>,
    ) -> Poll<End> {
        let mut state = self.state();
        let pauses = self.poll_receive(&mut state, connection, cx).and_then(|received| {
            let sent = self.poll_send(&mut state, connection, cx)?;
            Ok((received, sent))
        });
        self.keep_time(&mut state);
        let (received, sent) = match pauses {
            Ok(pauses) => pauses,
            Err(error) => return Poll::Ready(End::Failed(error)),
        };
        let lane = connection.lane();
        let SessionState { session, wakers, .. } = &mut *state;
        wakers.register(lane, cx.waker(), sent == Pause::Blocked);
        wakers.wake_senders(session, Some(lane));
        if let Some(closing) = state.closing(lane) {
            return Poll::Ready(End::Closed(closing));
        }
        if received == Pause::Share || sent == Pause::Share {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Reads and executes.
    fn poll_receive<W: Wire>(
        self: &Rc<Self>,
        state: &mut SessionState,
        connection: &mut Connection<W>,
        cx: &mut Context<'_>,
    ) -> Result<Pause, ConnectionError> {
        let mut scratch = self.environment.scratch.borrow_mut();
        for _ in 0..READS_PER_POLL {
            if state.closing(connection.lane()).is_some() {
                return Ok(Pause::Idle);
            }
            let SessionState { session, buffers, .. } = state;
            let Poll::Ready(received) =
                connection.poll_receive(cx, self.now(), session, buffers, &mut scratch)
            else {
                return Ok(Pause::Idle);
            };
            self.carry_out_events(state);
            received?;
        }
        Ok(Pause::Share)
    }

    /// Sends until nothing is left or the stream accepts no more.
    fn poll_send<W: Wire>(
        self: &Rc<Self>,
        state: &mut SessionState,
        connection: &mut Connection<W>,
        cx: &mut Context<'_>,
    ) -> Result<Pause, ConnectionError> {
        for _ in 0..ROUNDS_PER_POLL {
            let SessionState { session, buffers, .. } = state;
            let sent = connection.poll_send(cx, self.now(), session, buffers);
            self.carry_out_events(state);
            match sent {
                Poll::Pending => return Ok(Pause::Blocked),
                Poll::Ready(result) => result?,
            }
            if !state.session.wants_transmit(connection.lane()) {
                return Ok(Pause::Idle);
            }
        }
        Ok(Pause::Share)
    }

    /// Takes the session's last PDUs, as many as the connection holds.
    fn offer_last_words<W: Wire>(
        self: &Rc<Self>,
        connection: &mut Connection<W>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let mut state = self.state();
        // The farewell finds out whether they can leave.
        let _ = self.poll_send(&mut state, connection, cx);
        self.keep_time(&mut state);
        Poll::Ready(())
    }

    /// Sends the remaining bytes and closes the connection.
    fn poll_farewell<W: Wire>(
        self: &Rc<Self>,
        connection: &mut Connection<W>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let mut state = self.state();
        let SessionState { session, buffers, .. } = &mut *state;
        let sent = connection.poll_send(cx, self.now(), session, buffers);
        self.drain(&mut state);
        drop(state);
        match ready!(sent) {
            // The peer may do with it as it likes.
            Ok(()) => connection.poll_close(cx).map(drop),
            Err(_) => Poll::Ready(()),
        }
    }
}
