//! A session at the target: what the initiator sends goes in, what it is answered comes out.

use super::counters::Counters;
use super::event::{AsyncMessage, Event, Response, SendTargets, TargetRecord, TaskId, TaskManagementId};
use crate::parameters::{Established, SessionParameters, TargetLimits};
use crate::seam::{Buffers, Destination, Digest, Endpoint, Fault, LaneLoss, Payload, Transmit};
use pdu::{CmdSn, Header, Instant, LaneId, TaskManagementOutcome};

/// A target's session in full feature phase.
#[derive(Debug)]
pub struct Session {
    counters: Counters,
}

impl Session {
    /// A session with no lane yet; `first` is the CmdSN its leading login carried.
    #[must_use]
    pub fn new(parameters: SessionParameters, limits: TargetLimits, first: CmdSn) -> Self {
        let _ = (parameters, limits, first);
        Self { counters: Counters::default() }
    }

    /// A connection whose login is done becomes a lane. Its number must be new to this session.
    pub fn add_lane(&mut self, now: Instant, lane: LaneId, established: &Established) {
        let _ = (now, lane, established);
    }

    /// Asks for the first `bytes` of a command's Data-Out; some of them may be there already.
    /// [`Event::DataOut`] follows when all are.
    pub fn solicit(&mut self, now: Instant, task: TaskId, bytes: u32, buffers: &mut dyn Buffers) {
        let _ = (now, task, bytes, buffers);
    }

    /// Hands over the next piece of a command's Data-In, in order. A buffer is given back by
    /// [`Event::Release`], once per piece.
    pub fn data_in(&mut self, now: Instant, task: TaskId, payload: Payload) {
        let _ = (now, task, payload);
    }

    /// Ends a task. A task that was aborted stays silent.
    pub fn respond(&mut self, now: Instant, task: TaskId, response: Response) {
        let _ = (now, task, response);
    }

    /// Answers [`Event::TaskManagement`].
    pub fn task_management_done(
        &mut self,
        now: Instant,
        id: TaskManagementId,
        response: TaskManagementOutcome,
    ) {
        let _ = (now, id, response);
    }

    /// Answers [`Event::SendTargets`].
    pub fn send_targets(&mut self, now: Instant, request: &SendTargets, records: &[TargetRecord]) {
        let _ = (now, request, records);
    }

    /// Says that buffers have become free, after [`Buffers::grow`] or [`Buffers::allocate`] had none.
    pub fn buffers_available(&mut self, now: Instant, buffers: &mut dyn Buffers) {
        let _ = (now, buffers);
    }

    /// A task fell to another session's CLEAR TASK SET or reset: its response is suppressed.
    pub fn abort(&mut self, now: Instant, task: TaskId) {
        let _ = (now, task);
    }

    /// Tells the initiator something on the session's first lane that still lives, or on the lane it names.
    pub fn async_message(&mut self, now: Instant, message: &AsyncMessage) {
        let _ = (now, message);
    }

    /// Asks the initiator to log out every lane within `seconds`; then the lanes are closed.
    pub fn request_logout(&mut self, now: Instant, seconds: u16) {
        let _ = (now, seconds);
    }

    /// Ends the session: every lane is closed; [`Event::Ended`] comes when every task handed out is responded to.
    pub fn close(&mut self, now: Instant) {
        let _ = now;
    }

    /// Observable numbers.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl Endpoint for Session {
    type Event = Event;

    fn receive_header(
        &mut self,
        _now: Instant,
        _lane: LaneId,
        _header: &Header,
        _digest: Digest,
        _buffers: &mut dyn Buffers,
    ) -> Result<Destination, Fault> {
        Ok(Destination::None)
    }

    fn receive_data(
        &mut self,
        _now: Instant,
        _lane: LaneId,
        _inline: &[u8],
        _digest: Digest,
    ) -> Result<(), Fault> {
        Ok(())
    }

    fn poll_transmit(&mut self, _now: Instant, _lane: LaneId, _budget_bytes: u32) -> Option<Transmit> {
        None
    }

    fn wants_transmit(&self, _lane: LaneId) -> bool {
        false
    }

    fn transmitted(&mut self, _now: Instant, _lane: LaneId, _pdus: u32) {}

    fn lane_lost(&mut self, _now: Instant, _lane: LaneId, _loss: LaneLoss) {}

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}
}
