//! Connection recovery: a lane broke, and its tasks go on elsewhere (RFC 7143 §7.1.4.3, §7.5).
//!
//! The broken connection is logged out for recovery: by a request on another lane, or by a login that reinstates it.
//! Then the driver gives each of its tasks a new lane: those that the target has move by TASK REASSIGN (`task_reassign`),
//! the others are sent again (`command_retry`).

use super::ask::Ask;
use super::event::{Event, TaskFunction};
use super::lane::{Lane, Phase};
use super::outgoing::Request;
use super::session::{Life, Session};
use crate::seam::LaneLoss;
use pdu::{
    Cid, Duration, Instant, Itt, LaneId, LogoutOutcome, LogoutReason, LogoutRequest, LogoutResponse, StatSn,
    TaskManagementOutcome,
};
use std::collections::VecDeque;

/// A connection that broke, until all of its tasks are at home elsewhere.
#[derive(Debug)]
pub(super) struct LostConnection {
    /// What it was.
    pub(super) lane: LaneId,
    pub(super) cid: Cid,
    /// What it would have acknowledged next.
    exp_stat_sn: StatSn,
    stage: Stage,
    /// When the target forgets its tasks.
    pub(super) until: Instant,
    /// Tasks that have no home.
    pub(super) orphans: VecDeque<Itt>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// To be logged out; not before this time, if it has not come.
    Broken { not_before: Option<Instant> },
    /// A logout is on its way or being answered.
    LoggingOut { itt: Itt, lane: LaneId, ask: Ask },
    /// Logged out. Its tasks may go elsewhere, not before this time, if it has not come.
    Removed { not_before: Option<Instant> },
}

impl Stage {
    /// When something must be done.
    fn due(&self) -> Option<Instant> {
        match self {
            Self::Broken { not_before } | Self::Removed { not_before } => *not_before,
            Self::LoggingOut { ask, .. } => Some(ask.due()),
        }
    }
}

impl LostConnection {
    /// When its recovery can go on.
    pub(super) fn due(&self) -> Option<Instant> {
        self.stage.due()
    }

    /// Whether its tasks may go elsewhere.
    fn is_removed(&self) -> bool {
        matches!(self.stage, Stage::Removed { not_before: None })
    }
}

/// The more connections wait to be recovered at a time, the more are lost while none comes: this is where it ends.
const LOST_CONNECTIONS_MAX: usize = crate::parameters::MAX_CONNECTIONS as usize;

impl Session {
    /// Whether the tasks of a broken connection go on elsewhere: error recovery level 2, and a target that keeps them.
    pub(super) fn recovers_connections(&self) -> bool {
        self.parameters.error_recovery_level >= 2 && self.parameters.default_time2retain_s > 0
    }

    /// Whether a lane that is gone leaves something to recover.
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

    /// A lane broke.
    pub(super) fn lose_connection(&mut self, now: Instant, lane: LaneId, place: &Lane) {
        let wait = Duration::from_secs(self.parameters.default_time2wait_s.into());
        let default_retain = Duration::from_secs(self.parameters.default_time2retain_s.into());
        let (wait, retain) = place.drop_told.unwrap_or((wait, default_retain));
        // Without time, the target has dropped the tasks: it says so when it is asked for them.
        let retain = if retain == Duration::ZERO { default_retain } else { retain };
        let (not_before, until) = (now + wait, now + wait + retain);
        let orphans = self.orphan_tasks(lane);
        self.reassignments.retain(|reassignment| reassignment.lane != lane);
        for lost in &mut self.lost {
            if matches!(lost.stage, Stage::LoggingOut { lane: by, .. } if by == lane) {
                lost.stage = Stage::Broken { not_before: None };
            }
        }
        let stage = Stage::Broken { not_before: Some(not_before) };
        let exp_stat_sn = place.statuses.next();
        self.lost.push(LostConnection { lane, cid: place.cid, exp_stat_sn, stage, until, orphans });
        if self.lost.len() > LOST_CONNECTIONS_MAX {
            return self.fail();
        }
        let is_last = self.lane_for_requests().is_none();
        self.events.push_back(Event::ConnectionLost { lane, cid: place.cid, is_last, not_before, until });
        self.recover(now);
    }

    /// Takes the tasks of a lane away from it; in the order of their numbers.
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

    /// The orphans of the connections that are logged out.
    pub(super) fn waiting_orphans(&self) -> impl Iterator<Item = Itt> + '_ {
        let is_alive = matches!(self.life, Life::Open | Life::LoggingOut);
        let removed = self.lost.iter().filter(move |lost| is_alive && lost.is_removed());
        removed.flat_map(|lost| lost.orphans.iter().copied())
    }

    /// Takes an orphan out; returns the lane that it had.
    pub(super) fn adopt_orphan(&mut self, itt: Itt) -> Option<LaneId> {
        self.lost.iter_mut().find_map(|lost| {
            let at = lost.orphans.iter().position(|orphan| *orphan == itt)?;
            lost.orphans.remove(at);
            Some(lost.lane)
        })
    }

    /// The ExpStatSN with which a login restarts a connection of this name that was lost (§11.12.9).
    #[must_use]
    pub fn exp_stat_sn(&self, cid: Cid) -> StatSn {
        let lost = self.lost.iter().rev().find(|lost| lost.cid == cid);
        lost.map_or(StatSn(0), |lost| lost.exp_stat_sn)
    }

    /// A connection came. If it has the place of one that broke, that is logged out by it (§6.3.4).
    pub(super) fn reinstate(&mut self, cid: Cid) {
        for lost in self.lost.iter_mut().filter(|lost| lost.cid == cid) {
            lost.stage = Stage::Removed { not_before: None };
        }
    }

    /// Whether a new lane is needed though the session is being logged out.
    pub(super) fn is_recovering(&self) -> bool {
        !self.lost.is_empty()
    }

    /// What was waited for has passed, or a logout was not answered in time.
    pub(super) fn continue_recovery(&mut self, now: Instant) {
        for lost in &mut self.lost {
            match &mut lost.stage {
                Stage::Broken { not_before } | Stage::Removed { not_before } => {
                    not_before.take_if(|not_before| *not_before <= now);
                }
                Stage::LoggingOut { lane, itt, ask } if ask.due() <= now => {
                    let (lane, itt) = (*lane, *itt);
                    if !ask.again(now) {
                        return self.fail();
                    }
                    let request = recovery_logout(itt, lost.cid, lost.exp_stat_sn, self.window.current());
                    if let Some(place) = self.lanes.get_mut(lane) {
                        place.push(Request::Logout(request));
                    }
                }
                Stage::LoggingOut { .. } => {}
            }
        }
    }

    /// Does what can be done now for the connections that broke.
    pub(super) fn recover(&mut self, now: Instant) {
        if !self.is_recovering() || !matches!(self.life, Life::Open | Life::LoggingOut) {
            return;
        }
        for lost in
            self.lost.iter_mut().filter(|lost| matches!(lost.stage, Stage::Broken { not_before: None }))
        {
            let usable = |lane: &Lane| matches!(lane.phase, Phase::Open | Phase::Draining);
            let Some((lane, place)) = self.lanes.iter_mut().find(|(_, lane)| usable(lane)) else { break };
            let itt = self.request_tags.take();
            let request = recovery_logout(itt, lost.cid, lost.exp_stat_sn, self.window.current());
            place.push(Request::Logout(request));
            lost.stage = Stage::LoggingOut { itt, lane, ask: Ask::new(now) };
        }
        let removed: Vec<LaneId> =
            self.lost.iter().filter(|lost| lost.is_removed()).map(|lost| lost.lane).collect();
        removed.into_iter().for_each(|dead| self.plug_holes_of(now, dead));
        let (tasks, reassignments) = (&self.tasks, &self.reassignments);
        for lost in &mut self.lost {
            lost.orphans.retain(|itt| tasks.get(*itt).is_some());
        }
        let before = self.lost.len();
        self.lost.retain(|lost| {
            let waits = reassignments.iter().any(|reassignment| reassignment.dead == lost.lane);
            !lost.is_removed() || !lost.orphans.is_empty() || waits
        });
        self.counters.recovered_lanes += (before - self.lost.len()) as u64;
        self.move_functions(now);
    }

    /// Functions whose lane is gone are asked for elsewhere: those over many tasks on any lane, the abort of one task
    /// where that task is at home again.
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
                    let moves = self.reassignments.iter().any(|reassignment| reassignment.task == task);
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

    /// The answer to a logout for recovery; `false` if this answers none.
    pub(super) fn recovery_logout_answered(&mut self, now: Instant, pdu: &LogoutResponse) -> bool {
        let asked = |lost: &&mut LostConnection| matches!(lost.stage, Stage::LoggingOut { itt, .. } if itt == pdu.itt);
        let Some(lost) = self.lost.iter_mut().find(asked) else { return false };
        let wait = Duration::from_secs(pdu.wait_seconds.into());
        let not_before = Some(now + wait).filter(|_| pdu.wait_seconds > 0);
        match pdu.outcome {
            LogoutOutcome::Closed => {
                lost.stage = Stage::Removed { not_before };
                lost.until = now + wait + Duration::from_secs(pdu.retain_seconds.into());
                if pdu.retain_seconds == 0 {
                    // The target has dropped its tasks: it says so when it is asked for them (§11.15.4).
                    lost.until =
                        now + wait + Duration::from_secs(self.parameters.default_time2retain_s.into());
                }
            }
            // Logged out before: what has become of its tasks the target says when it is asked for them.
            LogoutOutcome::CidNotFound => lost.stage = Stage::Removed { not_before: None },
            // The same again, until the target has forgotten the tasks.
            LogoutOutcome::CleanupFailed if pdu.wait_seconds > 0 => lost.stage = Stage::Broken { not_before },
            LogoutOutcome::CleanupFailed
            | LogoutOutcome::RecoveryNotSupported
            | LogoutOutcome::Unassigned(_) => {
                self.fail();
            }
        }
        self.recover(now);
        true
    }
}

/// On another connection than the one it names; that one's last ExpStatSN goes with it (§11.14.4).
fn recovery_logout(itt: Itt, cid: Cid, exp_stat_sn: StatSn, cmd_sn: pdu::CmdSn) -> LogoutRequest {
    LogoutRequest {
        reason: LogoutReason::RemoveConnectionForRecovery,
        immediate: true,
        itt,
        cid,
        cmd_sn,
        exp_stat_sn,
    }
}
