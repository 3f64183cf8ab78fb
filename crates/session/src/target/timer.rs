//! The timers of a session: when each expires, and what it then does.

use super::lane::{Lane, Phase};
use super::session::Session;
use crate::liveness::Patience;
use crate::timer::{earlier, timers};
use pdu::{Instant, LaneId};

timers! {
    /// The timers of an open lane.
    pub(super) enum LaneTimer {
        /// The lane is silent: it is pinged, and given up if it stays silent.
        Silence,
        /// The initiator has not acknowledged responses, and is reminded of them.
        Acknowledgement,
    }
}

timers! {
    /// The timers of the whole session.
    pub(super) enum Timer {
        /// A command that others follow has not arrived, and the initiator is reminded of it.
        MissingCommand,
        /// The session looks for late Data-Out.
        LateDataOut,
        /// The tasks of a lost connection are terminated (Time2Retain).
        Retention,
        /// The initiator was asked to log out and has not: its lanes are closed.
        LogoutDemand,
        /// The session stops waiting for data that is owed to aborted tasks.
        Draining,
    }
}

impl Session {
    /// When the first timer expires.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let patience = self.patience();
        let of_lane = |lane: &Lane| LaneTimer::first(|timer| lane.deadline(timer, &patience));
        let lanes = self.lanes.values().map(of_lane).fold(None, earlier);
        earlier(lanes, Timer::first(|timer| self.deadline(timer)))
    }

    /// Expires every timer that is due. Timers that become due meanwhile expire at the next call.
    pub(super) fn expire_timers(&mut self, now: Instant) {
        let lanes = self.lanes.ids();
        for lane in lanes {
            for timer in LaneTimer::ALL {
                let patience = self.patience();
                let deadline = self.lanes.get(lane).and_then(|place| place.deadline(*timer, &patience));
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
        match timer {
            Timer::MissingCommand => self.order.deadline(),
            Timer::LateDataOut => self.sequence_watch,
            Timer::Retention => self.departed.deadline(),
            Timer::LogoutDemand => self.logout_deadline,
            Timer::Draining => self.functions.deadline(),
        }
    }

    fn expires(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::MissingCommand => self.remind_of_command(now),
            Timer::LateDataOut => self.watch_sequences(now),
            Timer::Retention => self.expire_departed(now),
            Timer::LogoutDemand => {
                self.logout_deadline = None;
                self.end(now, false);
            }
            Timer::Draining => self.conclude_functions(now),
        }
    }

    fn lane_expires(&mut self, now: Instant, lane: LaneId, timer: LaneTimer) {
        match timer {
            LaneTimer::Silence => self.lane_is_silent(now, lane),
            LaneTimer::Acknowledgement => self.remind_of_responses(now, lane),
        }
    }
}

impl Lane {
    #[inline]
    fn deadline(&self, timer: LaneTimer, patience: &Patience) -> Option<Instant> {
        if self.phase != Phase::Open {
            return None;
        }
        match timer {
            LaneTimer::Silence => Some(self.liveness.due(patience)),
            LaneTimer::Acknowledgement => self.reminder.due(),
        }
    }
}
