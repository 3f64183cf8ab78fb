//! Which command goes over which lane, decided when it can leave.

use super::Driver;
use super::path::Path;
use pdu::{Instant, LaneId, Lun};
use policy::LaneState;
use session::initiator::{Command, Data, Session, TaskId};

/// A lane with this much still to leave is not offered another command: better late than behind a stalled
/// connection. It keeps a fast socket fed between two wake-ups.
const UNSENT_BYTES_MAX: u64 = 512 << 10;

/// As long as this many commands of a path wait for its command window, it gets no more.
const PARKED_COMMANDS_MAX: u32 = 1;

impl Driver {
    pub(super) fn enqueue_all(&mut self, requests: Vec<usize>) {
        requests.into_iter().for_each(|key| self.enqueue(key));
    }

    /// A command waits for a lane: of its own path, or of any that carries its unit.
    pub(super) fn enqueue(&mut self, key: usize) {
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
            unit.queue.push_back(key);
        }
    }

    /// Places commands as long as a lane has room for one.
    pub(super) fn dispatch(&mut self, now: Instant) {
        for at in 0..self.paths.len() {
            self.start_parked(at, now);
            while let Some(&key) = self.paths[at].own.front() {
                self.candidates.clear();
                self.paths[at].offer_lanes(None, &mut self.candidates);
                if !self.place(key, now) {
                    break;
                }
                self.paths[at].own.pop_front();
            }
        }
        let luns = self.units.len();
        self.turn = self.turn.wrapping_add(1);
        for step in 0..luns {
            let Some(lun) = self.units.keys().nth((self.turn + step) % luns).copied() else { continue };
            self.dispatch_unit(lun, now);
        }
    }

    fn dispatch_unit(&mut self, lun: Lun, now: Instant) {
        while let Some(&key) = self.units.get(&lun).and_then(|unit| unit.queue.front()) {
            self.candidates.clear();
            for path in &self.paths {
                path.offer_lanes(Some(lun), &mut self.candidates);
            }
            if !self.place(key, now) {
                return;
            }
            if let Some(unit) = self.units.get_mut(&lun) {
                unit.queue.pop_front();
            }
        }
    }

    /// Sends a command over the candidate that the policy chooses. `false` if it chooses none.
    fn place(&mut self, key: usize, now: Instant) -> bool {
        if self.candidates.is_empty() {
            return false;
        }
        let request = &mut self.requests[key];
        let Some(lane) = self.placement.place(now, demand(request.data), &self.candidates) else {
            return false;
        };
        let Some(path) = self.paths.iter_mut().find(|path| path.lane_state(lane).is_some()) else {
            return false;
        };
        let command = Command {
            lun: request.lun,
            attribute: request.attribute,
            cdb: request.cdb.clone(),
            data: request.data,
        };
        let Some(Ok(task)) = path.core.as_mut().map(|core| core.submit(now, command)) else { return false };
        path.tasks.insert(task, key);
        self.placed += 1;
        request.placed = self.placed;
        if let Some(unit) = self.units.get(&request.lun) {
            request.losses = unit.durability.losses();
        }
        if !matches!(request.data, Data::None) {
            self.operations[request.operation].lent += 1;
        }
        path.start(now, task, lane);
        true
    }

    /// The window has opened, perhaps, for a command that this path holds already.
    fn start_parked(&mut self, at: usize, now: Instant) {
        let path = &mut self.paths[at];
        while let Some(demand) = path.core.as_ref().and_then(Session::demand) {
            self.candidates.clear();
            path.offer_open_lanes(&mut self.candidates);
            let wish =
                policy::Demand { data_out_bytes: demand.data_out_bytes, data_in_bytes: demand.data_in_bytes };
            let Some(lane) = self.placement.place(now, wish, &self.candidates) else { return };
            path.start(now, demand.task, lane);
        }
    }
}

fn demand(data: Data) -> policy::Demand {
    let (data_out_bytes, data_in_bytes) = match data {
        Data::None => (0, 0),
        Data::In(payload) => (0, payload.bytes),
        Data::Out(payload) => (payload.bytes, 0),
    };
    policy::Demand { data_out_bytes, data_in_bytes }
}

impl Path {
    /// Appends the lanes that may take a command to `lun`, or to any unit where the caller means this path.
    fn offer_lanes(&self, lun: Option<Lun>, candidates: &mut Vec<LaneState>) {
        let carries = lun.is_none_or(|lun| self.accepted.contains(&lun));
        let Some(core) = &self.core else { return };
        if carries && core.counters().queued_commands < PARKED_COMMANDS_MAX {
            self.offer_open_lanes(candidates);
        }
    }

    fn offer_open_lanes(&self, candidates: &mut Vec<LaneState>) {
        let states = self.lanes.iter().filter_map(|lane| Some((lane.id, self.lane_state(lane.id)?)));
        let open =
            states.filter(|(_, state)| state.accepts_commands && state.unsent_bytes < UNSENT_BYTES_MAX);
        candidates.extend(open.map(|(lane, state)| LaneState {
            lane,
            outstanding_commands: state.outstanding_commands,
            outstanding_bytes: state.outstanding_bytes,
        }));
    }

    /// Starts a command if the window is open; otherwise it is parked with the session until it opens.
    fn start(&mut self, now: Instant, task: TaskId, lane: LaneId) {
        let Some(core) = &mut self.core else { return };
        if core.demand().is_some_and(|head| head.task == task) {
            core.start(now, lane);
            self.wakers.wake(lane);
        }
    }
}
