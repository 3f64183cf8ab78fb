//! A world of virtual time: both roles' sessions, joined by real logins and by real bytes over lanes of invented delay,
//! with an invented device behind the target.

pub mod device;
pub mod end;
pub mod login;
pub mod wire;

use device::Device;
use end::End;
use pdu::{Duration, Instant, LaneId, Lun, TaskAttribute, TaskManagementOutcome};
use ropewalk_session::initiator::{self, Command, Completion, Data, TaskId};
use ropewalk_session::parameters::{InitiatorLimits, Offer, SessionParameters, TargetLimits};
use ropewalk_session::seam::{Endpoint, Fault, LaneLoss, PayloadRef};
use ropewalk_session::target::{self, Registry};
use std::collections::{BTreeMap, HashMap};
use wire::{Path, Piece, Random, Stream};

pub const UNIT: Lun = Lun(0);
pub const DEVICE_BYTES: u32 = 1 << 20;
pub const PING_AFTER: Duration = Duration::from_secs(10);
pub const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// What a world is made from.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub initiator: Offer,
    pub target: Offer,
    pub window_commands: u32,
    /// What one pull may take.
    pub budget_bytes: u32,
    pub device_bytes: u32,
    /// A discovery session.
    pub is_discovery: bool,
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            initiator: Offer::default(),
            target: Offer::default(),
            window_commands: 32,
            budget_bytes: 64 << 10,
            device_bytes: DEVICE_BYTES,
            is_discovery: false,
            seed: 1,
        }
    }
}

/// One PDU that is damaged on its way, counted over all lanes in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    pub direction: Direction,
    pub pdu: usize,
    pub part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToTarget,
    ToInitiator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Header,
    Data,
}

const HEADER_AND_DIGEST_BYTES: usize = 52;

impl Damage {
    /// Spoils the bytes of a PDU, but not its lengths: what follows it can still be found.
    fn spoil(self, bytes: &mut [u8]) {
        const TAG: usize = 16;
        let at = match self.part {
            Part::Header => TAG,
            Part::Data => bytes.len() - 1,
        };
        bytes[at] ^= 0x40;
    }
}

/// Both directions of a lane.
struct Wire {
    to_target: Stream,
    to_initiator: Stream,
}

pub struct World {
    pub now: Instant,
    pub settings: Settings,
    pub initiator: End<initiator::Session>,
    pub target: End<target::Session>,
    pub device: Device,
    pub registry: Registry,
    pub random: Random,
    pub parameters: SessionParameters,
    tsih: pdu::Tsih,
    wires: BTreeMap<LaneId, Wire>,
    next_lane: u32,
    /// Lanes that commands may be started on; empty: any.
    pub preferred: Vec<LaneId>,
    pub completed: HashMap<TaskId, Completion>,
    pub lost: HashMap<TaskId, bool>,
    /// What reads brought.
    pub data: HashMap<TaskId, Vec<u8>>,
    lent: BTreeMap<pdu::BufferId, TaskId>,
    /// All other events of the initiator.
    pub events: Vec<initiator::Event>,
    /// How the target's session ended.
    pub target_ended: Option<bool>,
    pub faults: Vec<Fault>,
    pub damage: Option<Damage>,
    /// How many of a thousand PDUs are damaged, at random.
    pub damaged_permille: u64,
    /// PDUs that have left, in each direction.
    pub sent_pdus: [usize; 2],
}

impl World {
    /// A session of as many connections as there are delays, in milliseconds.
    pub fn with_delays(settings: Settings, delays_ms: &[u64]) -> Self {
        let mut world = Self::log_in(settings, Path::of_delay_ms(delays_ms[0]));
        for delay_ms in &delays_ms[1..] {
            world.add_lane(Path::of_delay_ms(*delay_ms));
        }
        world
    }

    pub fn with_connections(lanes: usize) -> Self {
        Self::with_delays(Settings::default(), &vec![5; lanes])
    }

    pub fn initiator_limits() -> InitiatorLimits {
        InitiatorLimits { commands_max: 1024, ping_after: PING_AFTER, ping_timeout: PING_TIMEOUT }
    }

    pub fn target_limits(settings: &Settings) -> TargetLimits {
        TargetLimits {
            window_commands: settings.window_commands,
            immediate_commands_max: 16,
            transfer_bytes_max: settings.device_bytes,
            retained_bytes_max: 2 * settings.device_bytes,
            ping_after: PING_AFTER * 2,
            ping_timeout: PING_TIMEOUT,
        }
    }

    /// Writes at this offset of the device.
    pub fn write(&mut self, offset: u32, bytes: &[u8]) -> TaskId {
        let buffer = self.initiator.memory.add(bytes.to_vec());
        let data = Data::Out(PayloadRef { buffer, offset_bytes: 0, bytes: bytes.len() as u32 });
        self.submit(device::write_at(offset), data)
    }

    /// Reads from this offset of the device.
    pub fn read(&mut self, offset: u32, bytes: u32) -> TaskId {
        let buffer = self.initiator.memory.add(vec![0xee; bytes as usize]);
        self.submit(device::read_at(offset), Data::In(PayloadRef { buffer, offset_bytes: 0, bytes }))
    }

    pub fn hang(&mut self) -> TaskId {
        self.submit(device::hang(), Data::None)
    }

    fn submit(&mut self, cdb: pdu::Cdb, data: Data) -> TaskId {
        let command = Command { lun: UNIT, attribute: TaskAttribute::Simple, cdb, data };
        let task = self.initiator.session.submit(self.now, command).unwrap();
        if let Data::In(place) | Data::Out(place) = data {
            self.lent.insert(place.buffer, task);
        }
        task
    }

    /// Breaks a lane at both ends at once, and whatever is on its way.
    pub fn kill(&mut self, lane: LaneId) {
        self.wires.remove(&lane);
        if self.initiator.close(lane) {
            self.initiator.session.lane_lost(self.now, lane, LaneLoss::Broken);
        }
        if self.target.close(lane) {
            self.target.session.lane_lost(self.now, lane, LaneLoss::Broken);
        }
    }

    /// Lets the initiator alone notice that a lane broke; the target sees nothing.
    pub fn lose_at_initiator(&mut self, lane: LaneId) {
        self.wires.remove(&lane);
        if self.initiator.close(lane) {
            self.initiator.session.lane_lost(self.now, lane, LaneLoss::Broken);
        }
    }

    /// From now on nothing arrives on a lane, and nobody is told.
    pub fn silence(&mut self, lane: LaneId) {
        if let Some(wire) = self.wires.get_mut(&lane) {
            wire.to_initiator.is_silent = true;
            wire.to_target.is_silent = true;
        }
    }

    pub fn lanes(&self) -> Vec<LaneId> {
        self.wires.keys().copied().collect()
    }

    /// Runs until nothing is left to happen but pings.
    pub fn run(&mut self) {
        self.run_until(|world| world.next_at().is_none());
    }

    /// Runs until `done`, which must come to pass.
    pub fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..STEPS_MAX {
            self.settle();
            if done(self) {
                return;
            }
            let timeouts = [self.initiator.session.poll_timeout(), self.target.session.poll_timeout()];
            let next = timeouts.into_iter().flatten().chain(self.next_at()).min();
            let Some(next) = next else { panic!("nothing more happens") };
            self.now = self.now.max(next);
            self.happen();
        }
        panic!("it takes too long");
    }

    /// Runs for this long.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            self.settle();
            let timeouts = [self.initiator.session.poll_timeout(), self.target.session.poll_timeout()];
            let next = timeouts.into_iter().flatten().chain(self.next_at()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.happen();
        }
        self.now = end;
    }

    /// When something happens next, timeouts aside.
    fn next_at(&self) -> Option<Instant> {
        let waiting = |(lane, wire): (&LaneId, &Wire)| {
            let to_target = self.initiator.session.wants_transmit(*lane) && self.initiator.is_open(*lane);
            let to_initiator = self.target.session.wants_transmit(*lane) && self.target.is_open(*lane);
            [
                wire.to_target.arrives_at(),
                wire.to_initiator.arrives_at(),
                to_target.then_some(wire.to_target.room_at()),
                to_initiator.then_some(wire.to_initiator.room_at()),
            ]
        };
        self.wires.iter().flat_map(waiting).flatten().chain(self.device.due_at()).min()
    }

    /// Everything that is due happens.
    fn happen(&mut self) {
        let now = self.now;
        self.device.run(now, &mut self.target);
        pass_time(&mut self.initiator.session, now);
        pass_time(&mut self.target.session, now);
        for lane in self.lanes() {
            while let Some(piece) = self.wires.get_mut(&lane).and_then(|wire| wire.to_target.arrive(now)) {
                if let Some(loss) = deliver(&mut self.target, now, lane, piece, &mut self.faults) {
                    self.close_at_target(lane, loss);
                }
            }
            while let Some(piece) = self.wires.get_mut(&lane).and_then(|wire| wire.to_initiator.arrive(now)) {
                if let Some(loss) = deliver(&mut self.initiator, now, lane, piece, &mut self.faults) {
                    self.close_at_initiator(lane, loss);
                }
            }
        }
    }

    /// Lets everybody do what can be done at this instant.
    fn settle(&mut self) {
        loop {
            let mut busy = self.reassign_orphans();
            busy |= self.start_commands();
            while let Some(event) = self.target.session.poll_event() {
                self.target_event(event);
                busy = true;
            }
            while let Some(event) = self.initiator.session.poll_event() {
                self.initiator_event(event);
                busy = true;
            }
            for lane in self.lanes() {
                busy |= self.transmit(lane);
            }
            if !busy {
                return;
            }
        }
    }

    fn start_commands(&mut self) -> bool {
        let mut started = false;
        while self.initiator.session.demand().is_some() {
            let usable = |lane: &LaneId| self.initiator.session.lane_state(*lane).accepts_commands;
            let preferred: Vec<LaneId> = self.preferred.iter().copied().filter(usable).collect();
            let lanes = if preferred.is_empty() {
                self.lanes().into_iter().filter(usable).collect()
            } else {
                preferred
            };
            let lane = lanes[self.random.below(lanes.len() as u64) as usize];
            assert!(self.initiator.session.start(self.now, lane).is_some());
            started = true;
        }
        started
    }

    /// Gives tasks that have lost their connection to the others, evenly.
    fn reassign_orphans(&mut self) -> bool {
        let mut moved = false;
        loop {
            let orphan = self.initiator.session.orphans().next();
            let Some(orphan) = orphan else { return moved };
            let session = &mut self.initiator.session;
            let usable = self.wires.keys().map(|lane| (session.lane_state(*lane), *lane));
            let usable = usable.filter(|(state, _)| state.accepts_orphans);
            let lane = usable.min_by_key(|(state, _)| state.outstanding_commands).map(|(_, lane)| lane);
            let Some(lane) = lane else { return moved };
            assert!(session.reassign(self.now, orphan.task, lane));
            moved = true;
        }
    }

    fn transmit(&mut self, lane: LaneId) -> bool {
        let Some(wire) = self.wires.get(&lane) else { return false };
        let (now, budget_bytes) = (self.now, self.settings.budget_bytes);
        if self.initiator.session.doubts(lane) {
            self.initiator.session.delivered(now, lane, wire.to_target.delivered_bytes());
        }
        if self.target.session.doubts(lane) {
            self.target.session.delivered(now, lane, wire.to_initiator.delivered_bytes());
        }
        let may_send = wire.to_target.room_at() <= now;
        let may_answer = wire.to_initiator.room_at() <= now;
        let sent = may_send.then(|| self.initiator.pull(now, lane, budget_bytes)).flatten();
        let answered = may_answer.then(|| self.target.pull(now, lane, budget_bytes)).flatten();
        let busy = sent.is_some() || answered.is_some();
        let sent = sent.map(|bytes| self.leaves(Direction::ToTarget, bytes));
        let answered = answered.map(|bytes| self.leaves(Direction::ToInitiator, bytes));
        if let Some(wire) = self.wires.get_mut(&lane) {
            if let Some(bytes) = sent {
                wire.to_target.send(now, &bytes, &mut self.random);
            }
            if let Some(bytes) = answered {
                wire.to_initiator.send(now, &bytes, &mut self.random);
            }
        }
        busy
    }

    /// A PDU leaves, perhaps to be damaged on its way.
    fn leaves(&mut self, direction: Direction, mut bytes: Vec<u8>) -> Vec<u8> {
        let pdu = self.sent_pdus[direction as usize];
        self.sent_pdus[direction as usize] += 1;
        let meant = self.damage.filter(|damage| (damage.direction, damage.pdu) == (direction, pdu));
        let part = if bytes.len() > HEADER_AND_DIGEST_BYTES { Part::Data } else { Part::Header };
        let chance = self.damaged_permille > 0 && self.random.below(1000) < self.damaged_permille;
        if let Some(damage) = meant.or(chance.then_some(Damage { direction, pdu, part })) {
            damage.spoil(&mut bytes);
        }
        bytes
    }

    fn close_at_initiator(&mut self, lane: LaneId, loss: LaneLoss) {
        while let Some(bytes) = self.initiator.pull(self.now, lane, self.settings.budget_bytes) {
            self.wires.get_mut(&lane).unwrap().to_target.send(self.now, &bytes, &mut self.random);
        }
        if self.initiator.close(lane) {
            if let Some(wire) = self.wires.get_mut(&lane) {
                wire.to_target.end(self.now);
            }
            self.initiator.session.lane_lost(self.now, lane, loss);
        }
    }

    fn close_at_target(&mut self, lane: LaneId, loss: LaneLoss) {
        while let Some(bytes) = self.target.pull(self.now, lane, self.settings.budget_bytes) {
            let Some(wire) = self.wires.get_mut(&lane) else { break };
            wire.to_initiator.send(self.now, &bytes, &mut self.random);
        }
        if self.target.close(lane) {
            if let Some(wire) = self.wires.get_mut(&lane) {
                wire.to_initiator.end(self.now);
            }
            self.target.session.lane_lost(self.now, lane, loss);
        }
    }

    fn target_event(&mut self, event: target::Event) {
        match event {
            target::Event::Command(command) => self.device.execute(self.now, &command, &mut self.target),
            target::Event::DataOut(data) => self.device.data_out(self.now, data),
            target::Event::Release(buffer) => {
                self.target.memory.release(buffer);
            }
            target::Event::TaskManagement(function) => {
                let outcome = TaskManagementOutcome::FunctionComplete;
                self.target.session.task_management_done(self.now, function.id, outcome);
            }
            target::Event::CloseLane { lane, loss, fault } => {
                self.faults.extend(fault);
                self.close_at_target(lane, loss);
            }
            target::Event::SendTargets(request) => {
                let record = target::TargetRecord {
                    target_name: login::TARGET.into(),
                    target_addresses: vec!["192.0.2.1:3260,1".into(); 40],
                };
                self.target.session.send_targets(self.now, &request, &vec![record; 30]);
            }
            target::Event::Ended { orderly } => {
                assert_eq!(self.target_ended.replace(orderly), None, "a session ends once");
                self.registry.ended(self.tsih);
            }
            target::Event::Aborted { task } => self.device.abort(self.now, task, &mut self.target),
            target::Event::CommandsCleared { .. } | target::Event::NexusLost => {}
        }
    }

    fn initiator_event(&mut self, event: initiator::Event) {
        match event {
            initiator::Event::Completed(completion) => {
                let task = completion.task;
                assert!(!self.lost.contains_key(&task));
                assert!(self.completed.insert(task, completion).is_none(), "a task completes once");
            }
            initiator::Event::Lost { task, started } => {
                assert!(!self.completed.contains_key(&task));
                assert!(self.lost.insert(task, started).is_none(), "a task is lost once");
            }
            initiator::Event::Release(buffer) => {
                let bytes = self.initiator.memory.release(buffer);
                let task = self.lent.remove(&buffer).unwrap();
                assert!(self.completed.contains_key(&task) || self.lost.contains_key(&task));
                self.data.insert(task, bytes);
            }
            initiator::Event::CloseLane { lane, loss, ref fault } => {
                self.faults.extend(fault.clone());
                self.close_at_initiator(lane, loss);
                self.events.push(event);
            }
            event => self.events.push(event),
        }
    }

    /// Whether every buffer that was lent or allocated has been given back.
    pub fn is_clean(&self) -> bool {
        self.initiator.memory.is_empty() && self.target.memory.is_empty() && self.lent.is_empty()
    }
}

/// More steps than any test needs.
const STEPS_MAX: usize = 100_000;

/// Hands a piece to one end. What makes that end give up the lane, if anything.
fn deliver<S: Endpoint>(
    end: &mut End<S>,
    now: Instant,
    lane: LaneId,
    piece: Piece,
    faults: &mut Vec<Fault>,
) -> Option<LaneLoss> {
    match piece {
        Piece::Bytes(bytes) => {
            let fault = end.receive(now, lane, &bytes).err()?;
            faults.push(fault);
            Some(LaneLoss::Broken)
        }
        Piece::End => Some(LaneLoss::Broken),
    }
}

/// Tells a session the time as often as it wants to be told. A driver must not go round for ever.
fn pass_time(session: &mut impl Endpoint, now: Instant) {
    for _ in 0..8 {
        if session.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        session.handle_timeout(now);
    }
    panic!("a timer stays due however often it expires");
}
