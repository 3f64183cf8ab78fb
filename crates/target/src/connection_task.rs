//! One connection in full feature phase, from its first PDU to its end.

use crate::shard::Shard;
use device::{Closing, SessionDriver, SessionState};
use framing::ConnectionError;
use pdu::Cid;
use session::parameters::Established;
use session::seam::{Endpoint, LaneLoss};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use transport::Socket;

/// A connection over TCP.
type Connection = framing::Connection<Socket>;

/// The most reads of one poll, because a fast peer could otherwise keep this task busy for ever.
const READS_PER_POLL: u32 = 16;

/// The longest time for the last PDUs of a closing connection to leave.
const FAREWELL: Duration = Duration::from_secs(5);

/// The end of a connection.
enum End {
    /// The session closed it.
    Closed(Closing),
    /// It cannot continue.
    Failed(ConnectionError),
}

/// Carries a connection until it ends, then tells its session and the target's node.
pub(crate) async fn run(
    shard: &Shard,
    driver: Rc<SessionDriver>,
    stream: TcpStream,
    established: Established,
    peer: SocketAddr,
) {
    let Ok(portal) = stream.local_addr() else {
        return driver.node().lane_closed(driver.tsih(), established.cid);
    };
    let lane = driver.add_lane(&established, portal);
    let observer = shard.observer.as_ref().map(|observer| observer.connected(stream.as_fd(), &established));
    let mut connection =
        Connection::new(lane, Socket::from(stream), &established.connection).watched_by(observer);
    let end = poll_fn(|cx| poll(shard, &driver, &mut connection, cx)).await;
    log(&driver, established.cid, peer, &end);
    let loss = match &end {
        End::Closed(closing) => closing.loss,
        // The session has already removed a lane that it logged out, whatever happens to its last bytes.
        End::Failed(_) => driver.state().closing(lane).map_or(LaneLoss::Broken, |closing| closing.loss),
    };
    let has_last_words = matches!(end, End::Closed(_) | End::Failed(ConnectionError::Fault(_)));
    if loss == LaneLoss::Broken {
        // The session need not wait until they have left: its tasks continue elsewhere, or it ends.
        if has_last_words {
            poll_fn(|cx| offer_last_words(shard, &driver, &mut connection, cx)).await;
        }
        driver.remove_lane(lane, loss);
    }
    if has_last_words {
        // The peer may do with it as it likes.
        let _ =
            tokio::time::timeout(FAREWELL, poll_fn(|cx| poll_farewell(shard, &driver, &mut connection, cx)))
                .await;
    }
    drop(connection);
    if loss == LaneLoss::LoggedOut {
        driver.remove_lane(lane, loss);
    }
    driver.node().lane_closed(driver.tsih(), established.cid);
}

fn log(driver: &SessionDriver, cid: Cid, peer: SocketAddr, end: &End) {
    let initiator = &driver.identity().initiator_name;
    match end {
        End::Closed(Closing { loss: LaneLoss::LoggedOut, .. }) => {
            tracing::info!(%peer, initiator, %cid, "connection logged out");
        }
        End::Closed(Closing { fault: Some(fault), .. }) => {
            tracing::warn!(%peer, initiator, %cid, reason = %fault, "connection closed");
        }
        End::Closed(Closing { fault: None, .. }) => {
            tracing::info!(%peer, initiator, %cid, reason = "its session ends", "connection closed");
        }
        End::Failed(error) => tracing::warn!(%peer, initiator, %cid, reason = %error, "connection lost"),
    }
}

fn poll(
    shard: &Shard,
    driver: &Rc<SessionDriver>,
    connection: &mut Connection,
    cx: &mut Context<'_>,
) -> Poll<End> {
    let mut state = driver.state();
    let more = match poll_receive(shard, driver, &mut state, connection, cx) {
        Ok(more) => more,
        Err(error) => return Poll::Ready(End::Failed(error)),
    };
    let is_blocked = match poll_send(shard, driver, &mut state, connection, cx) {
        Ok(is_blocked) => is_blocked,
        Err(error) => return Poll::Ready(End::Failed(error)),
    };
    let lane = connection.lane();
    let SessionState { session, wakers, .. } = &mut *state;
    wakers.register(lane, cx.waker(), is_blocked);
    wakers.wake_senders(session, Some(lane));
    if let Some(closing) = state.closing(lane) {
        return Poll::Ready(End::Closed(closing));
    }
    if more {
        cx.waker().wake_by_ref();
    }
    Poll::Pending
}

/// Reads and executes. `true` if there may be more to read.
fn poll_receive(
    shard: &Shard,
    driver: &Rc<SessionDriver>,
    state: &mut SessionState,
    connection: &mut Connection,
    cx: &mut Context<'_>,
) -> Result<bool, ConnectionError> {
    let mut scratch = shard.scratch.borrow_mut();
    for _ in 0..READS_PER_POLL {
        if state.closing(connection.lane()).is_some() {
            return Ok(false);
        }
        let SessionState { session, buffers, .. } = state;
        let received = connection.poll_receive(cx, shard.clock.now(), session, buffers, &mut scratch);
        driver.drain(state);
        match received {
            Poll::Pending => return Ok(false),
            Poll::Ready(result) => result?,
        }
    }
    Ok(true)
}

/// Sends until nothing is left or the socket accepts no more (`true`). Sent bytes make room for more.
fn poll_send(
    shard: &Shard,
    driver: &Rc<SessionDriver>,
    state: &mut SessionState,
    connection: &mut Connection,
    cx: &mut Context<'_>,
) -> Result<bool, ConnectionError> {
    loop {
        let SessionState { session, buffers, .. } = state;
        let sent = connection.poll_send(cx, shard.clock.now(), session, buffers);
        driver.drain(state);
        match sent {
            Poll::Pending => return Ok(true),
            Poll::Ready(result) => result?,
        }
        if !state.session.wants_transmit(connection.lane()) {
            return Ok(false);
        }
    }
}

/// Takes the session's last PDUs, as many as the connection holds.
fn offer_last_words(
    shard: &Shard,
    driver: &Rc<SessionDriver>,
    connection: &mut Connection,
    cx: &mut Context<'_>,
) -> Poll<()> {
    // The farewell finds out whether they can leave.
    let _ = poll_send(shard, driver, &mut driver.state(), connection, cx);
    Poll::Ready(())
}

/// Sends the remaining bytes and closes the connection.
fn poll_farewell(
    shard: &Shard,
    driver: &Rc<SessionDriver>,
    connection: &mut Connection,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let mut state = driver.state();
    let SessionState { session, buffers, .. } = &mut *state;
    let sent = connection.poll_send(cx, shard.clock.now(), session, buffers);
    driver.drain(&mut state);
    match sent {
        Poll::Pending => Poll::Pending,
        Poll::Ready(Ok(())) => connection.poll_close(cx).map(drop),
        Poll::Ready(Err(_)) => Poll::Ready(()),
    }
}
