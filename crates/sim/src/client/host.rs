//! One initiator host: its operations, its sessions, and how they come together.

use super::context::Context;
use super::operation::{Kind, Operation, Whereabouts};
use super::path::{LoginOutcome, Path, PathPlan};
use super::workload::{Mix, Workload};
use crate::agenda::Agenda;
use crate::checker::Port;
use crate::network::{Arrival, ConnectionId, Notice, Part, Side};
use crate::random::Random;
use block::Slab;
use framing::BufferTable;
use nexus::initiator::{Entry, WriteFence, WriteId as FenceId};
use pdu::{Duration, Instant, Isid, LaneId, Lun, TaskAttribute};
use policy::{Demand, LaneState, LeastLoaded, Placement};
use session::initiator::{Command, Data, Session, TaskFunction};
use session::seam::{LaneLoss, PayloadRef};
use std::collections::{HashMap, VecDeque};

/// After so long without an answer, a command is taken to have been aborted by a reset, and is aborted. Without any
/// reset there is no reason for silence.
const PATIENCE: Duration = Duration::from_secs(60);

/// After the last fault that concerns a command, it is answered within this: twice as long as it takes to notice a
/// half-open connection and to give up a login.
const RECOVERY: Duration = Duration::from_secs(120);

/// How often that is looked at.
const SWEEP: Duration = Duration::from_secs(20);

/// The pause before a declined command is sent again, doubled each time up to [`PAUSE_DOUBLINGS_MAX`] times.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_DOUBLINGS_MAX: u32 = 6;

/// Blocks of one read of the final read-back.
const READ_BACK_BLOCKS: u64 = 64;

/// Memory for the data of one host's commands.
pub const MEMORY_BYTES: usize = 16 << 20;

/// An initiator host.
pub struct Host {
    pub(super) index: u16,
    pub(super) paths: Vec<Path>,
    pub(super) operations: slab::Slab<Operation>,
    pub(super) fence: WriteFence,
    /// Writes that wait behind the fence.
    pub(super) fenced: HashMap<FenceId, usize>,
    /// Operations that may be sent.
    pub(super) queue: VecDeque<usize>,
    pub(super) pauses: Agenda<usize>,
    pub(super) buffers: BufferTable,
    pub(super) workload: Workload,
    depth: usize,
    /// How many of a hundred commands go to a lane at random.
    astray_percent: u64,
    policy: LeastLoaded,
    sweep_at: Option<Instant>,
    by_connection: HashMap<ConnectionId, usize>,
    /// The final read-back: the block from which on it has not begun.
    reading_back: Option<u64>,
}

/// What a host is to be like.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Its sessions.
    pub paths: Vec<PathPlan>,
    /// Operations that it keeps outstanding.
    pub depth: usize,
    /// What they are.
    pub mix: Mix,
    /// How many of a hundred commands go to a connection at random instead of the policy's.
    pub astray_percent: u64,
}

/// Of hosts; their numbers follow.
const NAME_PREFIX: &str = "iqn.2026-01.org.ropewalk:host-";

/// Which host's which path a session belongs to.
#[must_use]
pub fn port_of(identity: &session::parameters::Identity) -> Option<Port> {
    let host = identity.initiator_name.strip_prefix(NAME_PREFIX)?.parse().ok()?;
    let [.., high, low] = identity.isid.0;
    Some(Port::of(host, u16::from_be_bytes([high, low])))
}

impl Host {
    /// A host that has not begun.
    #[must_use]
    pub fn new(index: u16, plan: &HostPlan, disk_blocks: u64, random: Random) -> Self {
        let name = format!("{NAME_PREFIX}{index}");
        let path = |(qualifier, path): (usize, &PathPlan)| {
            let qualifier = u16::try_from(qualifier).unwrap_or(u16::MAX);
            Path::new(name.clone(), Isid::random([1, 2, 3], qualifier), path.clone())
        };
        Self {
            index,
            paths: plan.paths.iter().enumerate().map(path).collect(),
            operations: slab::Slab::new(),
            fence: WriteFence::default(),
            fenced: HashMap::new(),
            queue: VecDeque::new(),
            pauses: Agenda::default(),
            buffers: BufferTable::new(Slab::new(MEMORY_BYTES)),
            workload: Workload::new(index, plan.mix.clone(), disk_blocks, random),
            depth: plan.depth,
            astray_percent: plan.astray_percent,
            policy: LeastLoaded::default(),
            sweep_at: None,
            by_connection: HashMap::new(),
            reading_back: None,
        }
    }

    /// Whether nothing is wanted any more.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.operations.is_empty()
    }

    /// Whether all its sessions were logged out.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.paths.iter().all(|path| path.over)
    }

    /// Bytes of its buffers that are in use.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.buffers.budget().in_use_bytes()
    }

    /// What hinders its end, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let operations: Vec<String> = self
            .operations
            .iter()
            .take(4)
            .map(|(_, operation)| format!("{:?} {:?}", operation.kind, operation.whereabouts))
            .collect();
        let paths: Vec<String> = self
            .paths
            .iter()
            .map(|path| {
                let up = path.lanes.iter().filter(|lane| lane.is_up()).count();
                let core = path.core.as_ref().map(Session::counters);
                format!("session {:?} {up}/{} lanes, {core:?}", path.key, path.lanes.len())
            })
            .collect();
        format!(
            "host {}: {} operations ({}), {}",
            self.index,
            self.operations.len(),
            operations.join("; "),
            paths.join("; ")
        )
    }

    /// Starts to read the whole disk.
    pub fn read_back(&mut self, context: &mut Context<'_>) {
        self.reading_back = Some(0);
        self.go_on(context);
    }

    /// Logs every session out.
    pub fn log_out(&mut self, context: &mut Context<'_>) {
        for path in 0..self.paths.len() {
            self.paths[path].leaving = true;
            match &mut self.paths[path].core {
                Some(core) => core.logout(context.now),
                // A login on its way is given up.
                None => self.paths[path].end(context),
            }
            self.pump(context, path);
        }
    }

    /// Something happened to one of its connections. `false` if it is not its own.
    pub fn on_notice(&mut self, context: &mut Context<'_>, connection: ConnectionId, notice: Notice) {
        let Some(path) = self.by_connection.get(&connection).copied() else { return };
        if notice == Notice::Arrival {
            match context.network.receive(context.now, connection, Side::Initiator) {
                Some(Arrival::Bytes(bytes)) => self.bytes(context, path, connection, &bytes),
                Some(Arrival::Closed | Arrival::Reset) => {
                    self.by_connection.remove(&connection);
                    self.paths[path].drop_lane(context, connection, LaneLoss::Broken);
                }
                None => {}
            }
        }
        self.pump(context, path);
        self.go_on(context);
    }

    fn bytes(&mut self, context: &mut Context<'_>, path: usize, connection: ConnectionId, bytes: &[u8]) {
        let place = &mut self.paths[path];
        let Some(lane) = place.lane_of(connection) else { return };
        if lane.is_up() {
            return self.pdus(context, path, connection, bytes);
        }
        match place.log_in(context, connection, bytes) {
            LoginOutcome::GoesOn => {}
            LoginOutcome::Leads(rest) => {
                self.reinstated(context, path);
                self.paths[path].connect(context);
                self.learn_connections(path);
                self.pdus(context, path, connection, &rest);
            }
            LoginOutcome::Joins(rest) => self.pdus(context, path, connection, &rest),
            LoginOutcome::Failed => {
                place.drop_lane(context, connection, LaneLoss::Broken);
            }
        }
    }

    fn pdus(&mut self, context: &mut Context<'_>, path: usize, connection: ConnectionId, bytes: &[u8]) {
        let place = &mut self.paths[path];
        let Some(lane) = place.lanes.iter_mut().find(|lane| lane.connection == connection) else { return };
        let (Some(wire), Some(core)) = (lane.wire(), &mut place.core) else { return };
        let received = wire.receive(context.now, bytes, core, &mut self.buffers, context.tap);
        if received.is_err() {
            // What explains it to the peer leaves if it can.
            let _ = wire.send(context.now, core, &self.buffers, context.network, context.tap);
            place.drop_lane(context, connection, LaneLoss::Broken);
        }
    }

    fn learn_connections(&mut self, path: usize) {
        let connections = self.paths[path].lanes.iter().map(|lane| (lane.connection, path));
        self.by_connection.extend(connections);
    }

    /// Whose connection it is.
    #[must_use]
    pub fn owns(&self, connection: ConnectionId) -> bool {
        self.by_connection.contains_key(&connection)
    }

    /// Whether one of its connections has a digest over that part of its PDUs.
    #[must_use]
    pub fn covers(&mut self, connection: ConnectionId, part: Part) -> bool {
        let Some(path) = self.by_connection.get(&connection) else { return false };
        let lane = self.paths[*path].lane_of(connection);
        lane.and_then(|lane| lane.wire()).is_some_and(|wire| wire.covers(part))
    }

    /// When it has something to do by itself.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        let paths = self.paths.iter().filter_map(Path::next_at);
        paths.chain(self.pauses.next_at()).chain(self.sweep_at).min()
    }

    /// Does what is due.
    pub fn on_time(&mut self, context: &mut Context<'_>) {
        let now = context.now;
        while let Some(key) = self.pauses.pop_due(now) {
            self.queue.push_back(key);
        }
        if self.sweep_at.is_some_and(|at| at <= now) {
            self.sweep_at = Some(now + SWEEP).filter(|_| !self.operations.is_empty());
            self.sweep(context);
        }
        for path in 0..self.paths.len() {
            if self.paths[path].next_at().is_some_and(|at| at <= now) {
                self.paths[path].on_time(context);
                self.learn_connections(path);
                self.pump(context, path);
            }
        }
        self.go_on(context);
    }

    /// Commands that were not answered for too long are aborted, if a reset may have done away with them.
    fn sweep(&mut self, context: &mut Context<'_>) {
        let late = self.operations.iter().filter_map(|(key, operation)| match operation.whereabouts {
            Whereabouts::Sent { at, aborting: false, path, .. } if at + PATIENCE <= context.now => {
                Some((key, path, at))
            }
            _ => None,
        });
        for (key, path, at) in late.collect::<Vec<_>>() {
            if context.excuses.may_have_reset(at) {
                self.abort(context, key);
                continue;
            }
            let disturbed = context.excuses.disturbed_until.max(self.paths[path].disturbed_until);
            if at.max(disturbed) + RECOVERY <= context.now {
                let kind = self.operations[key].kind;
                let what = format!("host {}: {kind:?} of session {path} is not answered", self.index);
                context.violate(what);
            }
        }
    }

    /// A fault concerns the session of this connection, until a time.
    pub fn disturb(&mut self, connection: ConnectionId, until: Instant) {
        let Some(path) = self.by_connection.get(&connection) else { return };
        let path = &mut self.paths[*path];
        path.disturbed_until = path.disturbed_until.max(until);
    }

    /// Aborts a command that is with a session.
    pub(super) fn abort(&mut self, context: &mut Context<'_>, key: usize) {
        let Some(operation) = self.operations.get_mut(key) else { return };
        let Whereabouts::Sent { path, task, aborting, .. } = &mut operation.whereabouts else { return };
        let Some(core) = &mut self.paths[*path].core else { return };
        *aborting = true;
        operation.aborted = true;
        context.tally.functions += 1;
        let path = *path;
        core.task_management(context.now, TaskFunction::AbortTask(*task));
        self.pump(context, path);
    }

    /// Ends many tasks at once.
    fn reset_unit(&mut self, context: &mut Context<'_>) {
        let Some(path) = (0..self.paths.len()).find(|path| self.paths[*path].core.is_some()) else { return };
        if let Some(core) = &mut self.paths[path].core {
            context.tally.functions += 1;
            let lun = Lun::from_index(0);
            let function = *context.random.choose(&[
                TaskFunction::LogicalUnitReset(lun),
                TaskFunction::ClearTaskSet(lun),
                TaskFunction::AbortTaskSet(lun),
            ]);
            let reset = core.task_management(context.now, function);
            self.paths[path].resets.push(reset);
            context.excuses.resets_under_way += 1;
        }
        self.pump(context, path);
    }

    /// Asks for more, as long as it may, and sends what can be sent.
    fn go_on(&mut self, context: &mut Context<'_>) {
        while self.operations.len() < self.depth {
            if let Some(lba) = self.reading_back {
                if lba >= self.workload.disk_blocks() {
                    break;
                }
                self.reading_back = Some(lba + READ_BACK_BLOCKS);
                let read = self.workload.read(lba, READ_BACK_BLOCKS);
                let key = self.operations.insert(read);
                self.queue.push_back(key);
            } else {
                if *context.budget == 0 {
                    break;
                }
                *context.budget -= 1;
                self.ask(context);
            }
        }
        self.submit(context);
    }

    fn ask(&mut self, context: &mut Context<'_>) {
        let operation = self.workload.next(context.guesses);
        let (changes, ordered, range) = (operation.kind.changes_data(), operation.ordered, operation.range());
        let key = self.operations.insert(operation);
        if changes && !ordered {
            let (fence, entry) = self.fence.enter(range);
            self.operations[key].fence = Some(fence);
            if entry == Entry::Waits {
                self.fenced.insert(fence, key);
                return;
            }
        }
        self.queue.push_back(key);
        let mix = &self.workload.mix;
        let (abort_one_in, reset_one_in) = (mix.abort_one_in, mix.reset_one_in);
        if context.random.one_in(abort_one_in) {
            let sent = self.operations.iter().filter(|(_, operation)| {
                matches!(operation.whereabouts, Whereabouts::Sent { aborting: false, .. })
            });
            let sent: Vec<usize> = sent.map(|(key, _)| key).collect();
            if !sent.is_empty() {
                let chosen = sent[context.random.index(sent.len())];
                self.abort(context, chosen);
            }
        }
        self.reserve(context);
        if context.random.one_in(reset_one_in) {
            self.reset_unit(context);
        }
    }

    /// Gives what waits to sessions that take it.
    pub(super) fn submit(&mut self, context: &mut Context<'_>) {
        let mut touched = vec![false; self.paths.len()];
        for _ in 0..self.queue.len() {
            let Some(key) = self.queue.pop_front() else { break };
            match self.submit_one(context, key) {
                Some(path) => touched[path] = true,
                None if self.operations.contains(key) => self.queue.push_back(key),
                None => {}
            }
        }
        for (path, _) in touched.iter().enumerate().filter(|(_, touched)| **touched) {
            self.pump(context, path);
        }
    }

    /// The path to which a command was given; `None` if there is none for it now.
    fn submit_one(&mut self, context: &mut Context<'_>, key: usize) -> Option<usize> {
        let is_up = |path: &Path| path.core.is_some() && !path.leaving;
        let bound = self.operations[key].path.or(self.operations[key].ordered.then_some(0));
        let path = if bound.is_some() {
            bound.filter(|path| is_up(&self.paths[*path]))?
        } else {
            let up: Vec<usize> = (0..self.paths.len()).filter(|path| is_up(&self.paths[*path])).collect();
            *up.get(context.random.index(up.len()))?
        };
        let port = self.port(path);
        let operation = self.operations.get_mut(key)?;
        let (bytes_in, bytes_out) = (operation.data_in_bytes(), operation.data_out_bytes());
        let bytes = bytes_in.max(bytes_out);
        let buffer = if bytes > 0 {
            let mut buffer = self.buffers.budget().allocate(bytes)?;
            operation.fill(port, &mut buffer);
            Some(self.buffers.insert(buffer.share()))
        } else {
            None
        };
        let payload =
            |buffer| PayloadRef { buffer, offset_bytes: 0, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) };
        let data = match buffer {
            Some(buffer) if bytes_in > 0 => Data::In(payload(buffer)),
            Some(buffer) => Data::Out(payload(buffer)),
            None => Data::None,
        };
        let command = Command {
            lun: Lun::from_index(0),
            attribute: operation.attribute,
            cdb: operation.cdb(port),
            data,
        };
        let submitted = self.paths[path].core.as_mut()?.submit(context.now, command);
        let Ok(task) = submitted else {
            buffer.into_iter().for_each(|buffer| drop(self.buffers.remove(buffer)));
            return None;
        };
        let at = context.now;
        operation.whereabouts = Whereabouts::Sent { path, task, at, aborting: false };
        operation.buffer = buffer;
        operation.attempts += 1;
        operation.aborted = false;
        self.paths[path].tasks.insert(task, key);
        self.sweep_at.get_or_insert(context.now + SWEEP);
        context.tally.commands += 1;
        context.tally.retries += u64::from(operation.attempts > 1);
        let line = |operation: &Operation, host: u16| {
            let (kind, stamp) = (operation.kind, operation.stamp);
            let (from, to) = (operation.lba, operation.range().end);
            format!("host {host} session {path} task {:#x}: {kind:?} {from}..{to}, {stamp}", task.0)
        };
        let (host, operation) = (self.index, &mut self.operations[key]);
        context.trace(|| line(operation, host));
        self.begin_history(context, key, path);
        Some(path)
    }

    fn begin_history(&mut self, context: &mut Context<'_>, key: usize, path: usize) {
        let operation = &mut self.operations[key];
        operation.begun = context.reservations.version();
        if operation.kind.changes_data() {
            match operation.write {
                Some(write) => context.history.send_again(write),
                None => {
                    let order = super::completion::order(self.index, self.paths[path].key, operation);
                    let write = context.history.begin_write(operation.range(), operation.stamp, order);
                    operation.write = Some(write);
                }
            }
        }
        if matches!(operation.kind, Kind::Read | Kind::Flush | Kind::CompareAndWrite { .. }) {
            operation.read.into_iter().for_each(|read| context.history.end_read(read));
            operation.read = Some(context.history.begin_read());
        }
    }

    /// Places commands, sends, and takes in what the session has to tell, until nothing more comes of it.
    pub(super) fn pump(&mut self, context: &mut Context<'_>, path: usize) {
        loop {
            self.place(context, path);
            let place = &mut self.paths[path];
            let Some(core) = &mut place.core else { return };
            let mut failed = Vec::new();
            for lane in &mut place.lanes {
                let connection = lane.connection;
                let Some(wire) = lane.wire() else { continue };
                if wire.send(context.now, core, &self.buffers, context.network, context.tap).is_err() {
                    failed.push(connection);
                }
            }
            for connection in failed {
                context.violate("an initiator's buffer was gone before its data had left".into());
                self.paths[path].drop_lane(context, connection, LaneLoss::Broken);
            }
            if !self.drain(context, path) {
                return;
            }
        }
    }

    fn place(&mut self, context: &mut Context<'_>, path: usize) {
        let place = &mut self.paths[path];
        let Some(core) = &mut place.core else { return };
        while let Some(demand) = core.demand() {
            let up = place.lanes.iter().filter(|lane| lane.is_up());
            let candidates: Vec<LaneState> = up
                .filter_map(|lane| {
                    let state = core.lane_state(lane.lane);
                    state.accepts_commands.then_some(LaneState {
                        lane: lane.lane,
                        outstanding_commands: state.outstanding_commands,
                        outstanding_bytes: state.outstanding_bytes,
                    })
                })
                .collect();
            let demand =
                Demand { data_out_bytes: demand.data_out_bytes, data_in_bytes: demand.data_in_bytes };
            let lane: Option<LaneId> =
                if !candidates.is_empty() && context.random.percent(self.astray_percent) {
                    Some(candidates[context.random.index(candidates.len())].lane)
                } else {
                    self.policy.place(context.now, demand, &candidates)
                };
            let Some(lane) = lane else { return };
            if core.start(context.now, lane).is_none() {
                return;
            }
        }
    }

    /// A pause before a declined command is sent again.
    pub(super) fn pause(&mut self, context: &Context<'_>, key: usize) {
        let Some(operation) = self.operations.get_mut(key) else { return };
        operation.whereabouts = Whereabouts::Waiting;
        let doublings = operation.attempts.min(PAUSE_DOUBLINGS_MAX);
        self.pauses.push(context.now + PAUSE.saturating_mul(1 << doublings), key);
    }

    /// Whether commands of this attribute keep their order.
    pub(super) fn is_ordered(operation: &Operation) -> bool {
        operation.ordered && operation.attribute == TaskAttribute::Ordered
    }
}
