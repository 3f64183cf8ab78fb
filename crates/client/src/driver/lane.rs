//! One connection's turn: receive, process, send.

use super::lane_sample::MEASUREMENT_AGE_MAX;
use super::path::Closing;
use super::{Driver, Shared};
use crate::path_id::PathId;
use framing::ConnectionError;
use pdu::{Instant, LaneId};
use session::seam::{Endpoint, LaneLoss};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most reads in one turn, so that a fast connection does not delay the others.
const READS_PER_TURN: usize = 16;

/// Moves the bytes of one connection until it is closed.
pub(crate) async fn run(shared: Arc<Shared>, path: PathId, lane: LaneId) {
    poll_fn(|cx| shared.with(|driver, now| driver.poll_lane(cx, path, lane, now))).await;
}

impl Driver {
    fn poll_lane(&mut self, cx: &mut Context<'_>, at: PathId, lane: LaneId, now: Instant) -> Poll<()> {
        let Some(path) = self.paths.get_mut(at) else { return Poll::Ready(()) };
        let Some(state) = path.lane(lane) else { return Poll::Ready(()) };
        let is_open = state.closing.is_none();
        path.wakers.register(lane, cx.waker(), false);
        if is_open {
            let received = self.receive(cx, at, lane, now);
            // The target closes a connection as soon as it has logged it out.
            self.drain_events(at, now);
            if let Err(error) = received
                && self.is_open(at, lane)
            {
                self.fail_lane(cx, at, lane, &error, now);
                return Poll::Ready(());
            }
            self.dispatch(now);
        }
        let sent = self.send(cx, at, lane, now);
        let closing = self.paths[at].lane(lane).map(|state| state.closing);
        match (sent, closing) {
            (_, None) => Poll::Ready(()),
            (Ok(()), Some(Some(closing))) if self.awaits_close(cx, at, lane, closing, now) => Poll::Pending,
            (_, Some(Some(closing))) => {
                self.drop_lane(at, lane, closing.loss, now);
                Poll::Ready(())
            }
            (Err(error), Some(None)) => {
                self.fail_lane(cx, at, lane, &error, now);
                Poll::Ready(())
            }
            (Ok(()), Some(None)) => Poll::Pending,
        }
    }

    /// Whether the session wants to keep this connection.
    fn is_open(&self, at: PathId, lane: LaneId) -> bool {
        self.paths[at].lane(lane).is_some_and(|state| state.closing.is_none())
    }

    fn receive(
        &mut self,
        cx: &mut Context<'_>,
        at: PathId,
        lane: LaneId,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        let Some((core, state)) = self.paths[at].core_and_lane(lane) else { return Ok(()) };
        for _ in 0..READS_PER_TURN {
            match state.connection.poll_receive(cx, now, core, &mut self.buffers, &mut self.scratch) {
                Poll::Ready(read) => read?,
                Poll::Pending => return Ok(()),
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    fn send(
        &mut self,
        cx: &mut Context<'_>,
        at: PathId,
        lane: LaneId,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        let wants_measurements = self.placement.wants_measurements();
        let Some((core, state)) = self.paths[at].core_and_lane(lane) else { return Ok(()) };
        if wants_measurements {
            // A long command is sent for longer than what was measured when it was placed is true.
            let _ = state.measure(now, MEASUREMENT_AGE_MAX);
        }
        let sent = state.connection.poll_send(cx, now, core, &self.buffers);
        state.blocked = sent.is_pending();
        self.paths_changed |= self.closing;
        match sent {
            Poll::Ready(result) => result,
            Poll::Pending => Ok(()),
        }
    }

    /// Whether the target has yet to close a connection that it has logged out (RFC 7143 §11.14), while others of the
    /// session carry on. Linux 6.12 crashes if the session's logout reaches it earlier.
    fn awaits_close(
        &mut self,
        cx: &mut Context<'_>,
        at: PathId,
        lane: LaneId,
        closing: Closing,
        now: Instant,
    ) -> bool {
        if closing.loss != LaneLoss::LoggedOut || closing.by <= now {
            return false;
        }
        let Some((_, state)) = self.paths[at].core_and_lane(lane) else { return false };
        state.connection.poll_closed(cx, &mut self.scratch).is_pending()
    }

    /// Fails a broken or untrusted connection. Offers the socket, once, the PDU that explains the failure to the peer.
    fn fail_lane(
        &mut self,
        cx: &mut Context<'_>,
        at: PathId,
        lane: LaneId,
        error: &ConnectionError,
        now: Instant,
    ) {
        let path = &self.paths[at];
        if path.is_logging_out() {
            tracing::debug!(path = %path.id, %lane, %error, "closed after logout");
        } else {
            tracing::warn!(path = %path.id, %lane, portal = %path.portals.leading(), %error, "a connection is lost");
        }
        let is_probed = path.lane(lane).is_some_and(|state| state.tail.is_probed());
        if matches!(error, ConnectionError::Closed) && is_probed && self.probes_tails {
            tracing::info!(path = %path.id, "silent connections are pinged no more: the target closes them");
            self.probes_tails = false;
        }
        if matches!(error, ConnectionError::Fault(_)) {
            // The connection is given up in any case.
            let _ = self.send(cx, at, lane, now);
        }
        self.drop_lane(at, lane, LaneLoss::Broken, now);
    }

    /// Closes a connection and tells the session.
    pub(super) fn drop_lane(&mut self, at: PathId, lane: LaneId, loss: LaneLoss, now: Instant) {
        let path = &mut self.paths[at];
        path.want_no_spare(|state| state.id == lane);
        path.lanes.retain(|state| state.id != lane);
        self.placement.forget(lane);
        self.paths_changed |= self.closing;
        path.wakers.remove(lane);
        if !path.vacancies.is_empty() {
            path.ring();
        }
        if let Some(core) = &mut path.core {
            core.lane_lost(now, lane, loss);
        }
        self.drain_events(at, now);
    }
}
