//! Logs out one lane while the others go on, or the whole session (RFC 7143 §11.14, §11.15).

use super::ask::Ask;
use super::data_sequence::Arrival;
use super::lane::{Lane, Phase};
use super::outgoing::Request;
use super::session::{Life, Session};
use crate::liveness::Patience;
use crate::parameters::{InitiatorLimits, LaneRole};
use crate::peer_fault::Question;
use crate::seam::{Fault, LaneLoss};
use pdu::{
    Duration, Instant, Itt, LaneId, LogoutOutcome, LogoutReason, LogoutRequest, LogoutResponse, StatSn,
};

/// How long a lane with something outstanding may be silent at error recovery level 1 and above: longer than the
/// longest round trip on Earth.
const QUIET_MAX: Duration = Duration::from_secs(2);

/// A logout request whose answer one lane brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logout {
    itt: Itt,
    reason: LogoutReason,
    asked_at: Instant,
    /// The request, kept to be sent again at error recovery level 1 and above.
    pub(super) request: LogoutRequest,
    pub(super) ask: Option<Ask>,
}

impl Session {
    /// Takes one lane out of the session while the others go on. The lane gets no more commands. When its commands are
    /// answered it is logged out, and [`super::Event::CloseLane`] follows. The last lane that takes commands is logged
    /// out with its session, see [`Self::logout`].
    pub fn logout_lane(&mut self, now: Instant, lane: LaneId) {
        let open = |other: &Lane| other.phase == Phase::Open;
        if self.life != Life::Open || !self.lanes.get(lane).is_some_and(open) {
            return;
        }
        // A split session needs all its lanes.
        if self.lanes.are_split() || !self.lanes.iter().any(|(id, other)| id != lane && open(other)) {
            return self.logout(now);
        }
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.phase = Phase::Draining;
        }
        self.settle(now, lane);
    }

    /// Ends the session in good order. Commands that were not started are lost. When the started ones are answered,
    /// each lane is logged out, the first one last and with the session, and [`super::Event::Ended`] follows.
    pub fn logout(&mut self, now: Instant) {
        if self.life != Life::Open {
            return;
        }
        self.life = Life::LoggingOut;
        self.lose_queued(|_| true);
        for lane in self.lanes.values_mut().filter(|lane| lane.phase == Phase::Open) {
            lane.phase = Phase::Draining;
        }
        if self.lanes.is_empty() {
            self.finish(true);
        } else {
            self.settle_session(now);
        }
    }

    /// Whether an owner that does not wait for the last answer may close all lanes as soon as they have nothing more to
    /// send: the session's own logout is among that. Without it, a target may keep the session for Time2Retain, as Linux
    /// 6.12 does.
    #[must_use]
    pub fn has_said_goodbye(&self) -> bool {
        self.lanes.values().all(|lane| matches!(lane.phase, Phase::LoggingOut | Phase::Closing))
    }

    /// Ends the session with its tasks, because the target will not wait longer for a lane's logout. If only the lane
    /// were logged out, the target would drop the lane's waiting commands and still wait for their CmdSNs (§11.14).
    pub(super) fn logout_at_once(&mut self, now: Instant) {
        self.logout(now);
        if !self.is_idle() {
            self.request_session_logout(now);
        }
    }

    /// Called after something on `lane` has ended: sends the logout if nothing else was outstanding.
    pub(super) fn settle(&mut self, now: Instant, lane: LaneId) {
        if self.life == Life::LoggingOut {
            return self.settle_session(now);
        }
        let has_function = self.functions.iter().any(|function| function.lane == lane);
        let Some(place) = self.lanes.get(lane) else { return };
        if self.life == Life::Open
            && place.phase == Phase::Draining
            && place.load.tasks() == 0
            && place.text.is_none()
            && !has_function
        {
            self.request_logout(now, lane, LogoutReason::CloseConnection);
        }
    }

    fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.functions.is_empty()
    }

    /// Logs the lanes out one by one, and the session over the last one. The standard allows one logout for several
    /// connections, but Linux 6.12 has a use-after-free when it closes such a session.
    pub(super) fn settle_session(&mut self, now: Instant) {
        if !self.is_idle() || self.is_leaving() {
            return;
        }
        if self.lanes.are_split() && self.lanes.with_role(LaneRole::Responses).is_none() {
            // Nothing could bring an answer, so that nobody waits for the target to close its end. Nothing is lost.
            return self.close_all(LaneLoss::Broken, true);
        }
        if self.lanes.len() == 1 || self.lanes.are_split() {
            return self.request_session_logout(now);
        }
        let draining = self.lanes.select(|lane| lane.phase == Phase::Draining);
        let lanes: Vec<LaneId> = draining.skip(1).collect();
        lanes.into_iter().for_each(|lane| self.request_logout(now, lane, LogoutReason::CloseConnection));
    }

    /// Whether the session's logout has been requested. The target then closes the other connections, and this side may
    /// notice that before the answer comes.
    pub(super) fn is_leaving(&self) -> bool {
        let leaves =
            |lane: &Lane| lane.logout.is_some_and(|logout| logout.reason == LogoutReason::CloseSession);
        self.lanes.values().any(leaves)
    }

    fn request_session_logout(&mut self, now: Instant) {
        if self.is_leaving() {
            return;
        }
        let is_draining = |lane: &Lane| lane.phase == Phase::Draining && lane.role.takes_requests();
        let draining = self.lanes.select(is_draining).next();
        if let Some(lane) = draining {
            self.request_logout(now, lane, LogoutReason::CloseSession);
        }
    }

    /// Sends a logout. The lane that brings the answer knows of it.
    fn request_logout(&mut self, now: Instant, asked_on: LaneId, reason: LogoutReason) {
        let itt = self.request_tags.take();
        let cmd_sn = self.window.current();
        let ask = self.recovers().then(|| Ask::new(now));
        let Some(lane) = self.lanes.get_mut(asked_on) else { return };
        let request = LogoutRequest {
            reason,
            immediate: true,
            itt,
            cid: lane.cid,
            cmd_sn,
            // Filled in when the PDU is pulled.
            exp_stat_sn: StatSn::default(),
        };
        lane.push(Request::Logout(request));
        lane.phase = Phase::LoggingOut;
        if self.lanes.are_split() {
            self.lanes.values_mut().for_each(|lane| lane.phase = lane.phase.max(Phase::LoggingOut));
        }
        let responses = self.lanes.of_responses(asked_on).unwrap_or(asked_on);
        if let Some(lane) = self.lanes.get_mut(responses) {
            lane.logout = Some(Logout { itt, reason, asked_at: now, request, ask });
        }
    }

    pub(super) fn receive_logout(
        &mut self,
        now: Instant,
        lane: LaneId,
        pdu: &LogoutResponse,
    ) -> Result<(), Fault> {
        if self.receive_status(lane, pdu.stat_sn)? == Arrival::Repeated {
            return Ok(());
        }
        if self.recovery_logout_answered(now, pdu) {
            return Ok(());
        }
        let logout = self.lanes.get(lane).and_then(|lane| lane.logout);
        let Some(logout) = logout.filter(|logout| logout.itt == pdu.itt) else {
            return self.late_answer(Question::Logout);
        };
        self.end_logout(lane, logout, pdu.outcome);
        Ok(())
    }

    /// The target rejected a logout: ends its lane as if it had been answered.
    pub(super) fn logout_rejected(&mut self, lane: LaneId, itt: Itt) {
        let logout = self.lanes.get(lane).and_then(|lane| lane.logout);
        if let Some(logout) = logout.filter(|logout| logout.itt == itt) {
            self.end_logout(lane, logout, LogoutOutcome::CleanupFailed);
        }
    }

    /// Closes the connections, which are of no use whatever the outcome.
    fn end_logout(&mut self, lane: LaneId, logout: Logout, outcome: LogoutOutcome) {
        if logout.reason == LogoutReason::CloseSession {
            self.close_all(LaneLoss::LoggedOut, outcome == LogoutOutcome::Closed);
        } else {
            self.close_lane(lane, LaneLoss::LoggedOut, None);
        }
    }

    pub(super) fn logout_is_unanswered(&mut self, lane: LaneId) {
        let Some(place) = self.lanes.get(lane) else { return };
        let leaves = place.is_done();
        self.close_lane(lane, LaneLoss::Broken, Some(Fault::Timeout("a logout")));
        if !leaves {
            self.fail();
        }
    }

    /// The target's time limit for a logout of `lane` has passed, and the lane still carries commands.
    pub(super) fn logout_is_overdue(&mut self, now: Instant, lane: LaneId) {
        if let Some(place) = self.lanes.get_mut(lane) {
            place.logout_by = None;
            self.logout_at_once(now);
        }
    }
}

impl Lane {
    /// Whether nothing is lost with this lane: the owner was told to close it, or only the answer to its logout is
    /// missing.
    pub(super) fn is_done(&self) -> bool {
        let leaves = self.logout.is_some_and(|logout| logout.reason == LogoutReason::CloseConnection);
        self.phase == Phase::Closing || leaves
    }

    /// How long the lane may be silent now. On a lane that has fallen silent, a ping reveals what was lost.
    pub(super) fn patience(&self, limits: &InitiatorLimits, recovers: bool) -> Patience {
        let is_loaded = self.load.tasks() > 0 || self.text.is_some();
        let ping_after =
            if is_loaded && recovers { limits.ping_after.min(QUIET_MAX) } else { limits.ping_after };
        Patience { ping_after, ping_timeout: limits.ping_timeout, is_loaded }
    }

    /// The deadline for the answer to its logout.
    pub(super) fn logout_deadline(&self, limits: &InitiatorLimits, recovers: bool) -> Option<Instant> {
        let logout = self.logout?;
        Some(self.liveness.deadline_from(logout.asked_at, &self.patience(limits, recovers)))
    }
}
