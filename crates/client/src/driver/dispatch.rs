//! Chooses the lane of each command when the command can leave.

use super::Driver;
use super::cut::may_be_cut;
use super::lane_sample::{Candidate, MEASUREMENT_AGE_MAX};
use super::path::Path;
use super::queue::Waiting;
use super::slots::RequestId;
use crate::path_id::PathId;
use pdu::{Duration, Instant, LaneId, Lun};
use policy::{Choice, LaneSample, Obstacle};
use session::initiator::{Command, Data, Session, TaskId};

/// Spare lanes are called on when all others have been silent for this long: their path may be dead.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// A spare lane of a session that would not survive its loss gets a piece of a command after this silence, before either end
/// pings it: istgt closes a connection that answers a ping, or pings, while others carry commands ([`super::tail_probe`]).
const SPARE_SILENCE_MAX: Duration = Duration::from_secs(6);

/// The piece.
const SPARE_PIECE_BYTES: u64 = 64 << 10;

impl Driver {
    pub(super) fn enqueue_all(&mut self, requests: Vec<RequestId>) {
        requests.into_iter().for_each(|key| self.enqueue(key));
    }

    /// Queues a command for a lane of its own path, or of any path that carries its unit.
    pub(super) fn enqueue(&mut self, key: RequestId) {
        if !self.requests.contains(key) || self.hold_in_doubt(key) {
            return;
        }
        let request = &self.requests[key];
        let (path, lun) = (request.path, request.lun);
        if let Some(path) = path {
            match self.path_mut(path).filter(|path| path.is_connected()) {
                Some(path) => path.own.push_back(key),
                None => self.give_up_unknown(key),
            }
        } else if self.end_of(lun).is_some() {
            self.doomed.push(key);
        } else if let Some(unit) = self.units.get_mut(&lun) {
            unit.queue.push(key, request.data);
        }
    }

    /// Places commands as long as the policy has a lane for one.
    pub(super) fn dispatch(&mut self, now: Instant) {
        self.look_again = None;
        for at in self.paths.ids() {
            self.place_orphans(at, now);
            self.start_parked(at, now);
            while let Some(&key) = self.paths[at].own.front() {
                self.lanes_shown.clear();
                self.show_path(at, Candidate::Fresh, now);
                let Some(choice) = self.choose(demand(self.requests[key].data), now) else { break };
                if !self.place(key, choice, now) {
                    break;
                }
                self.paths[at].own.pop_front();
            }
        }
        let luns = self.units.len();
        self.turn = self.turn.wrapping_add(1);
        if self.units.values().all(|unit| unit.queue.is_empty()) {
            return;
        }
        for step in 0..luns {
            let Some(lun) = self.units.keys().nth((self.turn + step) % luns).copied() else { continue };
            self.dispatch_unit(lun, now);
        }
    }

    fn dispatch_unit(&mut self, lun: Lun, now: Instant) {
        let connections_wanted = self.connections_wanted();
        loop {
            self.show_unit(lun, now);
            let Some(unit) = self.units.get(&lun) else { return };
            if !unit.queue.heads().any(|head| self.place_head(lun, head, connections_wanted, now)) {
                return;
            }
        }
    }

    fn show_unit(&mut self, lun: Lun, now: Instant) {
        self.lanes_shown.clear();
        for at in self.paths.ids() {
            if self.paths[at].accepted.contains(&lun) {
                self.show_path(at, Candidate::Fresh, now);
            }
        }
    }

    /// The present connections and those still expected. While the first ones are made, nobody knows how many the target
    /// will allow.
    fn connections_wanted(&self) -> usize {
        let of_paths = self.paths.iter().map(Path::working_connections_to_be).sum::<usize>();
        if self.is_beginning { of_paths.max(self.first_connections()) } else { of_paths }
    }

    /// Sends a command at a head of a unit's queue, or its first part, over one of the lanes shown. `false` if the policy
    /// holds it back.
    fn place_head(&mut self, lun: Lun, head: Waiting, connections_wanted: usize, now: Instant) -> bool {
        let key = head.key;
        let request = &self.requests[key];
        let queued_bytes = self.units.get(&lun).map_or(0, |unit| unit.queue.bytes());
        let may_be_cut = connections_wanted > 1 && may_be_cut(request);
        let connections_wanted = u32::try_from(connections_wanted).unwrap_or(u32::MAX);
        let is_growing = self.is_beginning && now < self.growing_until;
        let demand = policy::Demand {
            queued_bytes,
            may_be_cut,
            connections_wanted,
            is_growing,
            ..demand(request.data)
        };
        let Some(choice) = self.choose(demand, now) else { return false };
        let rest = if may_be_cut { self.cut(key, choice.bytes_max) } else { None };
        let is_placed = self.place(key, choice, now);
        if let Some(unit) = self.units.get_mut(&lun) {
            let left = [(!is_placed).then_some(key), rest].into_iter().flatten();
            unit.queue.replace(head, left.map(|key| (key, self.requests[key].data)));
        }
        is_placed
    }

    fn show_path(&mut self, at: PathId, candidate: Candidate, now: Instant) {
        let age_max = self.placement.wants_measurements().then_some(MEASUREMENT_AGE_MAX);
        self.paths[at].show_lanes(now, candidate, age_max, &mut self.lanes_shown);
    }

    /// Spare lanes are out of the policy's sight, unless no other can take the command, or all others are silent.
    fn hide_spare(&mut self) {
        let is_spare = |sample: &LaneSample| sample.obstacle == Some(Obstacle::Spare);
        if self.lanes_shown.iter().any(|sample| sample.is_usable() && !sample.is_silent_for(SILENCE_MAX)) {
            self.lanes_shown.retain(|sample| !is_spare(sample));
        } else {
            let spare = self.lanes_shown.iter_mut().filter(|sample| is_spare(sample));
            spare.for_each(|sample| sample.obstacle = None);
        }
    }

    /// A lane shown that is spare, and must not stay silent.
    fn silent_spare_lane(&self) -> Option<LaneId> {
        let is_silent = |sample: &&LaneSample| {
            sample.obstacle == Some(Obstacle::Spare)
                && sample.load.commands == 0
                && sample.path.is_some_and(|path| path.in_silence >= SPARE_SILENCE_MAX)
        };
        let depends_on = |lane: LaneId| {
            let path = self.paths.iter().find(|path| path.lane_state(lane).is_some());
            path.is_some_and(|path| !path.outlives_connections() && path.working_lanes().next().is_some())
        };
        self.lanes_shown.iter().filter(is_silent).map(|sample| sample.lane).find(|lane| depends_on(*lane))
    }

    /// The policy's choice among the lanes that it is shown; `None` if it holds the command back.
    fn choose(&mut self, demand: policy::Demand, now: Instant) -> Option<Choice> {
        if let Some(lane) = self.silent_spare_lane() {
            return Some(Choice { lane, bytes_max: SPARE_PIECE_BYTES });
        }
        self.hide_spare();
        let shown = &self.lanes_shown;
        if !shown.iter().any(LaneSample::is_usable) {
            return None;
        }
        let chosen = self.placement.place(now, demand, shown);
        debug_assert!(
            chosen.is_some() || !shown.iter().all(LaneSample::is_idle),
            "a policy holds a command back for ever"
        );
        let is_shown = |lane| shown.iter().any(|sample| sample.lane == lane && sample.is_usable());
        let chosen = chosen.filter(|choice| is_shown(choice.lane));
        if chosen.is_none() && self.placement.wants_measurements() {
            self.look_again = Some(now + MEASUREMENT_AGE_MAX);
        }
        chosen
    }

    /// Sends a command over the lane that the policy has chosen. `false` if its session does not take it.
    fn place(&mut self, key: RequestId, Choice { lane, .. }: Choice, now: Instant) -> bool {
        let data = self.requests[key].data;
        let Some(path) = self.paths.iter_mut().find(|path| path.lane_state(lane).is_some()) else {
            return false;
        };
        let request = &mut self.requests[key];
        let command =
            Command { lun: request.lun, attribute: request.attribute, cdb: request.cdb.clone(), data };
        let Some(Ok(task)) = path.core.as_mut().map(|core| core.submit(now, command)) else { return false };
        path.tasks.insert(task, key);
        self.placed += 1;
        (request.placed, request.placed_at) = (self.placed, now);
        if let Some(unit) = self.units.get(&request.lun) {
            request.losses = unit.durability.losses();
        }
        if !matches!(data, Data::None) {
            self.operations[request.operation].lent += 1;
        }
        path.start(now, task, lane);
        true
    }

    /// Gives the commands that have lost their connection to others of the same session.
    fn place_orphans(&mut self, at: PathId, now: Instant) {
        while let Some(orphan) = self.paths[at].core.as_ref().and_then(|core| core.orphans().next()) {
            self.lanes_shown.clear();
            self.show_path(at, Candidate::Orphan, now);
            let demand = policy::Demand { is_urgent: true, ..demand_of(orphan) };
            let Some(Choice { lane, .. }) = self.choose(demand, now) else { return };
            let path = &mut self.paths[at];
            if !path.core.as_mut().is_some_and(|core| core.reassign(now, orphan.task, lane)) {
                return;
            }
            path.wakers.wake(lane);
        }
    }

    /// Starts the commands parked at this path, if its window has opened.
    fn start_parked(&mut self, at: PathId, now: Instant) {
        while let Some(head) = self.paths[at].core.as_ref().and_then(Session::demand) {
            self.lanes_shown.clear();
            self.show_path(at, Candidate::Parked, now);
            let Some(Choice { lane, .. }) = self.choose(demand_of(head), now) else { return };
            self.paths[at].start(now, head.task, lane);
        }
    }
}

fn demand_of(command: session::initiator::Demand) -> policy::Demand {
    whole(command.data_out_bytes, command.data_in_bytes)
}

fn demand(data: Data) -> policy::Demand {
    whole(data.out_bytes(), data.in_bytes())
}

/// The demand of a command that is alone and stays whole.
fn whole(data_out_bytes: u32, data_in_bytes: u32) -> policy::Demand {
    let queued_bytes = u64::from(data_out_bytes) + u64::from(data_in_bytes);
    policy::Demand { data_out_bytes, data_in_bytes, queued_bytes, ..policy::Demand::default() }
}

impl Path {
    /// Starts a command if the window is open; otherwise the session parks it until the window opens.
    fn start(&mut self, now: Instant, task: TaskId, lane: LaneId) {
        let Some(core) = &mut self.core else { return };
        if core.demand().is_some_and(|head| head.task == task) {
            core.start(now, lane);
            self.wakers.wake(lane);
        }
    }
}
