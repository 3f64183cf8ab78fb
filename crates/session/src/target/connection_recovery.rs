//! Connections that are gone, and the tasks that live on without them until another connection takes them over or their
//! time is up (RFC 7143 §7.1.4.3, §7.5, §6.3.4). Error recovery level 2; reinstatement of a connection at every level.

use super::lane::{Lane, Phase};
use super::logout::Closing;
use super::session::{Session, Standing};
use super::status::StatusNumbers;
use super::task::{Allegiance, Stage, Task};
use crate::lanes::Route;
use pdu::{Cid, Instant, LaneId, StatSn};
use std::time::Duration;

/// Tasks of connections that are gone that were answered and not acknowledged. An initiator has a few windows of them on their
/// way, however often its connections break; who leaves more is after the memory.
const KEPT_ANSWERS_MAX: usize = 1 << 13;

impl Session {
    /// Whether tasks outlive their connection.
    pub(super) fn recovers_connections(&self) -> bool {
        self.parameters.error_recovery_level > 1
    }

    /// How long the tasks of a connection that is gone are kept: "Time2Retain … after the initial respite" (§7.5).
    fn retention_time(&self) -> Duration {
        match self.parameters.default_time2retain_s {
            0 => Duration::ZERO,
            seconds => {
                Duration::from_secs(u64::from(self.parameters.default_time2wait_s) + u64::from(seconds))
            }
        }
    }

    /// A connection broke: its tasks wait for another one.
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

    /// The tasks of a lane lose it. Immediate commands do not survive their connection (§7.14).
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

    /// Tasks that were answered on connections that are gone.
    fn kept_answers(&self) -> usize {
        let is_kept = |task: &Task| task.is_retired && self.departed.has(task.route.request);
        self.tasks.iter().filter(|(_, task)| is_kept(task)).count()
    }

    /// Logs a connection out for recovery: from now on its tasks may be reassigned. `false` if there is none of this
    /// name, or was none lately.
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
            // Commands whose turn had not come count as never sent: the initiator sends them again (§11.14).
            for waiting in self.order.forget(|numbered| numbered.lane == *id) {
                self.drop_request(waiting.request);
            }
        }
        (!departed.is_empty()).then_some(living.map(|(lane, _)| lane))
    }

    /// Takes note of the last ExpStatSN of a connection that is gone (§11.14.4, §11.12.9): its responses before that number have
    /// arrived. Otherwise they were kept, and fences waited for them, until their time is up.
    pub(super) fn acknowledge_departed(&mut self, cid: Cid, exp_stat_sn: StatSn) {
        let Some(lane) = self.departed.acknowledge(cid, exp_stat_sn) else { return };
        let has_arrived = |task: &Task| {
            task.route.response == lane
                && matches!(task.stage, Stage::Responded(stat_sn) if stat_sn.precedes(exp_stat_sn))
        };
        self.tasks.select(has_arrived).into_iter().for_each(|id| self.finish(id));
    }

    /// Nothing is taken from a lane any more, and nothing of its tasks is sent on it.
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

    /// Tells that the login of a connection of this name is about to be answered, with the command window of now. What an
    /// older one still brought would move the window unseen; so where its tasks are kept, it is logged out before that,
    /// else by [`Self::add_lane`].
    pub fn make_way(&mut self, now: Instant, cid: Cid) {
        if self.recovers_connections() && self.parameters.default_time2retain_s > 0 {
            self.reinstate_connection(now, cid);
            self.conclude(now);
        }
    }

    /// A connection of this name logs in: an older one is logged out by that (§6.3.4), for recovery if this session can,
    /// else with the end of its tasks.
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

    /// Whether commands must wait for terminated tasks of connections that are gone: what these still write must not
    /// meet what the initiator sends in their stead.
    pub(super) fn awaits_rest(&self) -> bool {
        !self.restless.is_empty()
    }

    /// Lets commands go on once those tasks have come to rest.
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

    /// Terminates the tasks whose time is up, and the session if nothing is left of it: one without a connection, and
    /// without one that could come back, has failed (§6.3.5).
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
