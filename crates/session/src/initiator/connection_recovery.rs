//! Connection recovery: the tasks of a broken lane continue on other lanes (RFC 7143 §7.1.4.3, §7.5).
//!
//! First the broken connection is logged out for recovery, by a Logout on another lane or by a login that reinstates
//! it. Then the driver gives each of its tasks a new lane. A task whose command the target has moves by TASK REASSIGN
//! (`task_reassign`); the other commands are sent again (`command_retry`).

use super::ask::Ask;
use super::event::{Event, TaskFunction};
use super::lane::Lane;
use super::lost_connections::Loss;
use super::outgoing::Request;
use super::session::{Life, Session};
use crate::seam::LaneLoss;
use pdu::{Cid, Duration, Instant, Itt, LaneId, LogoutResponse, StatSn, TaskManagementOutcome};
use std::collections::VecDeque;

impl Session {
    /// Whether the tasks of a broken connection continue on another: at error recovery level 2, if the target keeps
    /// them.
    pub(super) fn recovers_connections(&self) -> bool {
        self.parameters.error_recovery_level >= 2 && self.parameters.default_time2retain_s > 0
    }

    /// Whether a lost lane leaves something to recover.
    pub(super) fn leaves_orphans(&self, place: &Lane) -> bool {
        let closed_in_order = place.closing == Some(LaneLoss::LoggedOut);
        let lives = match self.life {
            Life::Open => true,
            // With nothing left to recover, the session is over.
            Life::LoggingOut => !(self.is_leaving() || self.tasks.is_empty() && self.functions.is_empty()),
            Life::Closing { .. } | Life::Ended => false,
        };
        self.recovers_connections() && lives && place.logout.is_none() && !closed_in_order
    }

    /// Notes that a lane broke, and orphans its tasks.
    pub(super) fn lose_connection(&mut self, now: Instant, lane: LaneId, place: &Lane) {
        let wait = Duration::from_secs(self.parameters.default_time2wait_s.into());
        let default_retain = Duration::from_secs(self.parameters.default_time2retain_s.into());
        let (wait, retain) = place.drop_told.unwrap_or((wait, default_retain));
        // A Time2Retain of 0 means that the target has dropped the tasks; its answers to TASK REASSIGN will say so.
        let retain = if retain == Duration::ZERO { default_retain } else { retain };
        let (not_before, until) = (now + wait, now + wait + retain);
        let orphans = self.orphan_tasks(lane);
        self.reassignments.forget_lane(lane);
        let loss = Loss { lane, cid: place.cid, exp_stat_sn: place.statuses.next(), not_before, until };
        if self.lost.push(loss, orphans).is_err() {
            return self.fail();
        }
        let is_last = self.lane_for_requests().is_none();
        self.events.push_back(Event::ConnectionLost { lane, cid: place.cid, is_last, not_before, until });
        self.recover(now);
    }

    /// Orphans the tasks of a lane, and returns them in the order of their CmdSNs.
    fn orphan_tasks(&mut self, lane: LaneId) -> VecDeque<Itt> {
        let first = self.window.told().exp_cmd_sn;
        let mut orphans = Vec::new();
        for task in self.tasks.iter_mut() {
            let Some(home) = task.allegiance.filter(|home| home.route.uses(lane)) else { continue };
            self.lanes.release(home.route, task.unmoved());
            if let Some(place) = self.lanes.get_mut(home.route.request) {
                place.outgoing.forget(task.itt);
            }
            task.lose_home(lane);
            self.incomplete.remove(&task.itt);
            orphans.push((home.cmd_sn.distance_from(first).cast_signed(), task.itt));
        }
        self.unacknowledged.orphan(lane);
        orphans.sort_unstable();
        orphans.into_iter().map(|(_, itt)| itt).collect()
    }

    /// The orphans of connections that have been logged out.
    pub(super) fn waiting_orphans(&self) -> impl Iterator<Item = Itt> + '_ {
        let is_alive = matches!(self.life, Life::Open | Life::LoggingOut);
        self.lost.orphans().filter(move |_| is_alive)
    }

    /// The ExpStatSN that a login carries to restart a lost connection of this CID (§11.12.9).
    #[must_use]
    pub fn exp_stat_sn(&self, cid: Cid) -> StatSn {
        self.lost.exp_stat_sn(cid)
    }

    /// Whether the session needs a new lane although it is being logged out.
    pub(super) fn is_recovering(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Goes on with recovery after Time2Wait has passed or a logout was not answered in time.
    pub(super) fn continue_recovery(&mut self, now: Instant) {
        let Ok(again) = self.lost.continue_at(now, self.window.current()) else { return self.fail() };
        for (lane, request) in again {
            if let Some(place) = self.lanes.get_mut(lane) {
                place.push(Request::Logout(request));
            }
        }
    }

    /// Does everything that can be done now for the broken connections.
    pub(super) fn recover(&mut self, now: Instant) {
        if !self.is_recovering() || !matches!(self.life, Life::Open | Life::LoggingOut) {
            return;
        }
        if self.lost.wants_logout()
            && let Some(lane) = self.lane_for_requests()
            && let Some(place) = self.lanes.get_mut(lane)
        {
            let requests = self.lost.log_out(now, lane, &mut self.request_tags, self.window.current());
            requests.into_iter().for_each(|request| place.push(Request::Logout(request)));
        }
        let removed = self.lost.removed();
        removed.into_iter().for_each(|dead| self.plug_holes_of(now, dead));
        let has_ended = |task| self.tasks.get(task).is_none();
        let recovered = self.lost.end_recovered(has_ended, |dead| self.reassignments.moves_from(dead));
        self.counters.recovered_lanes += recovered as u64;
        self.move_functions(now);
    }

    /// Requests functions again whose lane was lost: a function over many tasks on any lane, ABORT TASK on the task's
    /// new lane.
    fn move_functions(&mut self, now: Instant) {
        let stranded = |function: &&super::task_management::Function| !self.lanes.has(function.lane);
        let stranded: Vec<_> = self.functions.iter().filter(stranded).copied().collect();
        for function in stranded {
            let lane = match function.asked {
                TaskFunction::AbortTask(task) => {
                    let task = Itt(task.0);
                    let Some(found) = self.tasks.get(task) else {
                        self.end_function(function.itt, TaskManagementOutcome::TaskDoesNotExist);
                        continue;
                    };
                    let moves = self.reassignments.moves(task);
                    found.allegiance.map(|home| home.route.request).filter(|_| !moves)
                }
                _ => self.lane_for_requests(),
            };
            let Some((lane, place)) = lane.and_then(|lane| Some((lane, self.lanes.get_mut(lane)?))) else {
                continue;
            };
            place.push(Request::TaskManagement(function.request));
            if let Some(moved) = self.functions.iter_mut().find(|other| other.itt == function.itt) {
                (moved.lane, moved.ask) = (lane, Some(Ask::new(now)));
            }
        }
    }

    /// Takes the answer to a logout for recovery; `false` if this answers none.
    pub(super) fn recovery_logout_answered(&mut self, now: Instant, pdu: &LogoutResponse) -> bool {
        let default_retain = Duration::from_secs(self.parameters.default_time2retain_s.into());
        let Some(answer) = self.lost.logout_answered(now, pdu, default_retain) else { return false };
        if answer.is_err() {
            self.fail();
        }
        self.recover(now);
        true
    }
}
