//! Lost connections. At error recovery level 2, their tasks go on until another connection takes them over or their
//! time is up (RFC 7143 §7.1.4.3, §7.5). A connection can be reinstated at every level (§6.3.4).

use super::lane::{Lane, Phase};
use super::logout::Closing;
use super::session::{Session, Standing};
use super::status::StatusNumbers;
use super::task::{Allegiance, Stage, Task};
use crate::lanes::Route;
use pdu::{Cid, Instant, LaneId, StatSn};
use std::time::Duration;

/// The most tasks of lost connections that were answered and not acknowledged. An honest initiator has a few windows of
/// them, however often its connections break; one that leaves more is attacking the target's memory.
const KEPT_ANSWERS_MAX: usize = 1 << 13;

impl Session {
    /// Whether tasks outlive their connection (error recovery level 2).
    pub(super) fn recovers_connections(&self) -> bool {
        self.parameters.error_recovery_level > 1
    }

    /// How long a lost connection's tasks are kept: "Time2Retain … after the initial respite" (§7.5).
    fn retention_time(&self) -> Duration {
        match self.parameters.default_time2retain_s {
            0 => Duration::ZERO,
            seconds => {
                Duration::from_secs(u64::from(self.parameters.default_time2wait_s) + u64::from(seconds))
            }
        }
    }

    /// Notes that a connection broke: its tasks wait for another one.
    pub(super) fn break_away(&mut self, now: Instant, lane: LaneId, state: Lane) {
        if self.departed.has(lane) {
            return;
        }
        let cid = state.cid;
        self.depart(now, lane, cid, state.status);
        let first = self.open_lanes().next();
        if let Some(first) = first {
            let retain_seconds = self.parameters.default_time2retain_s;
            self.report_drop(first, cid, retain_seconds);
        }
        self.give_up_late(now);
    }

    /// Separates a lane from its tasks. Immediate commands do not survive their connection (§7.14).
    fn depart(&mut self, now: Instant, lane: LaneId, cid: Cid, status: StatusNumbers) {
        while let Some(oldest) = self.departed.surplus(self.kept_answers() > KEPT_ANSWERS_MAX) {
            self.give_up_departed(now, oldest);
        }
        let until = now + self.retention_time();
        self.departed.add(lane, cid, status, until);
        for id in self.tasks.select(|task| task.route.uses(lane)) {
            let Some(task) = self.tasks.get_mut(id) else { continue };
            if task.immediate && !task.stage.is_responded() {
                self.silence(now, id);
                continue;
            }
            task.route = Route::over(lane);
            task.data_out.lose_all();
            task.data_in.leave_queue();
            task.allegiance = Allegiance::Original;
            self.settle(now, id);
        }
    }

    /// The number of tasks that were answered on lost connections.
    fn kept_answers(&self) -> usize {
        let is_kept = |task: &Task| task.is_retired && self.departed.has(task.route.request);
        self.tasks.iter().filter(|(_, task)| is_kept(task)).count()
    }

    /// Logs a connection out for recovery: from now on its tasks may be reassigned. `None` if the session neither has
    /// nor remembers a connection of this CID; else its lane, if it was still there.
    pub(super) fn remove_for_recovery(&mut self, now: Instant, cid: Cid) -> Option<Option<LaneId>> {
        let lives = |(_, lane): &(LaneId, &Lane)| {
            lane.cid == cid && lane.phase != Phase::LoggedOut && !lane.is_quiesced
        };
        let living = self.lanes.iter().find(lives).map(|(id, lane)| (id, lane.status.clone()));
        if let Some((lane, status)) = living.clone() {
            self.quiesce(lane);
            self.depart(now, lane, cid, status);
        }
        let departed = self.departed.remove_for_recovery(cid, now + self.retention_time());
        for id in &departed {
            // Waiting commands count as never sent: the initiator sends them again (§11.14).
            for waiting in self.order.forget(|numbered| numbered.lane == *id) {
                self.drop_request(waiting.request);
            }
        }
        (!departed.is_empty()).then_some(living.map(|(lane, _)| lane))
    }

    /// Takes the last ExpStatSN of a lost connection (§11.14.4, §11.12.9): responses before that number have arrived.
    /// Without it, the session would keep them, and fences would wait for them, until their time is up.
    pub(super) fn acknowledge_departed(&mut self, cid: Cid, exp_stat_sn: StatSn) {
        let Some(lane) = self.departed.acknowledge(cid, exp_stat_sn) else { return };
        let has_arrived = |task: &Task| {
            task.route.response == lane
                && matches!(task.stage, Stage::Responded(stat_sn) if stat_sn.precedes(exp_stat_sn))
        };
        self.tasks.select(has_arrived).into_iter().for_each(|id| self.finish(id));
    }

    /// Takes nothing more from a lane, and sends nothing more of its tasks on it.
    fn quiesce(&mut self, id: LaneId) {
        self.drop_exchange(id);
        self.drop_incoming(id);
        let Some(lane) = self.lanes.get_mut(id) else { return };
        if lane.phase == Phase::Open {
            lane.phase = Phase::LoggingOut;
        }
        lane.is_quiesced = true;
        lane.clear_transfers();
        for reply in core::mem::take(&mut lane.replies) {
            self.drop_reply(reply);
        }
    }

    /// Prepares for a connection with this CID, whose login is about to be answered with the present command window.
    /// PDUs that an older connection of that CID still brought would move the window without the initiator's knowledge.
    /// If its tasks are kept, it is therefore logged out now, else by [`Self::add_lane`].
    pub fn make_way(&mut self, now: Instant, cid: Cid) {
        if self.recovers_connections() && self.parameters.default_time2retain_s > 0 {
            self.reinstate_connection(now, cid);
            self.conclude(now);
        }
    }

    /// Logs out an older connection with this CID, because a new one has logged in (§6.3.4): for recovery if this
    /// session recovers connections, else with the end of its tasks.
    pub(super) fn reinstate_connection(&mut self, now: Instant, cid: Cid) {
        if self.recovers_connections() {
            if let Some(Some(old)) = self.remove_for_recovery(now, cid) {
                self.close_lane(old);
            }
            return self.give_up_late(now);
        }
        let is_old = |lane: &Lane| lane.cid == cid && lane.phase != Phase::LoggedOut;
        let old: Vec<LaneId> = self.lanes.select(is_old).collect();
        for lane in old {
            self.restless.push(lane);
            self.terminate(now, Closing::Lane(lane));
            self.close_lane(lane);
        }
    }

    /// Whether commands must wait for terminated tasks of lost connections. Otherwise, what these tasks still write
    /// could collide with commands that the initiator sends in their place.
    pub(super) fn awaits_rest(&self) -> bool {
        !self.restless.is_empty()
    }

    /// Lets commands go on once these tasks have ended.
    pub(super) fn conclude_rest(&mut self, now: Instant) {
        let tasks = &self.tasks;
        self.restless.retain(|lane| {
            tasks.iter().any(|(_, task)| task.route.uses(*lane) && task.stage == Stage::Executing)
        });
        if !self.awaits_rest() && self.standing == Standing::Open {
            if !self.functions.holds_commands() {
                self.hand_out_held(now);
            }
            self.advance(now);
        }
    }

    /// Terminates tasks whose time is up. Ends the session if it has no connection and none that could come back
    /// (§6.3.5).
    pub(super) fn expire_departed(&mut self, now: Instant) {
        self.give_up_late(now);
        if self.lanes.is_empty() && self.departed.is_empty() {
            self.end(now, false);
        }
    }

    pub(super) fn give_up_late(&mut self, now: Instant) {
        for lane in self.departed.late(now) {
            self.give_up_departed(now, lane);
        }
    }

    fn give_up_departed(&mut self, now: Instant, lane: LaneId) {
        self.departed.forget(lane);
        self.restless.push(lane);
        self.terminate_tasks(now, &[lane], true);
    }
}
