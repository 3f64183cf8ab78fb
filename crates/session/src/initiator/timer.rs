//! The timers of a session: when each expires, and what it then does.

use super::ask::Ask;
use super::lane::{Lane, Phase};
use super::session::{Life, Session};
use crate::parameters::InitiatorLimits;
use crate::timer::{earlier, timers};
use pdu::{Instant, LaneId};

timers! {
    /// The timers of one lane. Those that send something again are off at error recovery level 0, where nothing is lost
    /// without its connection.
    pub(super) enum LaneTimer {
        /// The lane is silent: it is pinged, and given up if it stays silent.
        Silence,
        /// The lane's own logout was not answered.
        LogoutAnswer,
        /// The target asked for a logout, and will not wait any longer (RFC 7143 §11.9.1).
        LogoutDemand,
        /// Responses are missing: a status SNACK is sent again.
        StatusSnack,
        /// A text request is sent again.
        TextRequest,
        /// A logout request is sent again.
        LogoutRequest,
        /// A ping is sent again.
        Ping,
    }
}

timers! {
    /// The timers of the whole session. All are off at error recovery level 0.
    pub(super) enum Timer {
        /// Reads miss data: a data SNACK is sent again.
        DataSnack,
        /// The first unacknowledged command may be lost: its lane is pinged.
        CommandProbe,
        /// A task management request is sent again.
        FunctionRequest,
        /// The target forgets the tasks of a lost connection (Time2Retain): they are lost.
        Retention,
        /// Recovery of a lost connection may begin or go on (Time2Wait), or its logout is sent again.
        ConnectionRecovery,
        /// A TASK REASSIGN is sent again.
        Reassignment,
    }
}

impl Session {
    /// When the first timer expires.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let recovers = self.recovers();
        let of_lane = |lane: &Lane| LaneTimer::first(|timer| lane.deadline(timer, &self.limits, recovers));
        let lanes = self.lanes.values().map(of_lane).fold(None, earlier);
        if recovers { earlier(lanes, Timer::first(|timer| self.deadline(timer))) } else { lanes }
    }

    /// Expires every timer that is due. Timers that become due meanwhile expire at the next call.
    pub(super) fn expire_timers(&mut self, now: Instant) {
        let recovers = self.recovers();
        let lanes = self.lanes.ids();
        for lane in lanes {
            for timer in LaneTimer::ALL {
                let place = self.lanes.get(lane);
                let deadline = place.and_then(|place| place.deadline(*timer, &self.limits, recovers));
                if deadline.is_some_and(|deadline| deadline <= now) {
                    self.lane_expires(now, lane, *timer);
                }
            }
        }
        for timer in Timer::ALL {
            if self.deadline(*timer).is_some_and(|deadline| deadline <= now) {
                self.expires(now, *timer);
            }
        }
    }

    fn deadline(&self, timer: Timer) -> Option<Instant> {
        if !self.recovers() || !matches!(self.life, Life::Open | Life::LoggingOut) {
            return None;
        }
        match timer {
            Timer::DataSnack => self.incomplete.values().map(Ask::due).min(),
            Timer::CommandProbe => self.unacknowledged.deadline(),
            Timer::FunctionRequest => self.function_deadline(),
            Timer::Retention => self.lost.expiry(),
            Timer::ConnectionRecovery => self.lost.deadline(),
            Timer::Reassignment => self.reassignments.deadline(),
        }
    }

    fn expires(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::DataSnack => self.ask_for_missing_data_again(now),
            Timer::CommandProbe => self.probe_command(now),
            Timer::FunctionRequest => self.ask_for_functions_again(now),
            Timer::Retention => self.fail(),
            Timer::ConnectionRecovery => self.continue_recovery(now),
            Timer::Reassignment => self.reassign_again(now),
        }
    }

    fn lane_expires(&mut self, now: Instant, lane: LaneId, timer: LaneTimer) {
        match timer {
            LaneTimer::Silence => self.lane_is_silent(now, lane),
            LaneTimer::LogoutAnswer => self.logout_is_unanswered(lane),
            LaneTimer::LogoutDemand => self.logout_is_overdue(now, lane),
            LaneTimer::StatusSnack => self.ask_for_statuses_again(now, lane),
            LaneTimer::TextRequest => self.ask_for_text_again(now, lane),
            LaneTimer::LogoutRequest => self.ask_for_logout_again(now, lane),
            LaneTimer::Ping => self.ping_again(now, lane),
        }
    }
}

impl Lane {
    #[inline]
    fn deadline(&self, timer: LaneTimer, limits: &InitiatorLimits, recovers: bool) -> Option<Instant> {
        let is_leaving = self.phase == Phase::LoggingOut;
        if self.phase == Phase::Closing {
            return None;
        }
        match timer {
            LaneTimer::Silence => (!is_leaving).then(|| self.liveness.due(&self.patience(limits, recovers))),
            LaneTimer::LogoutAnswer => self.logout_deadline(limits, recovers),
            LaneTimer::LogoutDemand => self.logout_by.filter(|_| !is_leaving),
            LaneTimer::StatusSnack => self.statuses.asked.map(|ask| ask.due()),
            LaneTimer::TextRequest => self.text.as_ref().filter(|_| recovers).map(|text| text.ask.due()),
            LaneTimer::LogoutRequest => self.logout.and_then(|logout| logout.ask).map(|ask| ask.due()),
            LaneTimer::Ping => self.pings.ask().filter(|_| recovers).map(|ask| ask.due()),
        }
    }
}
