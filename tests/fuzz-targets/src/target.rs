//! A target's session: connections that have logged in.

use crate::stream::{NUMBER_AT, field};
use block::Slab;
use framing::{BufferTable, Receiver};
use pdu::{Cid, CmdSn, Duration, Instant, Isid, LaneId, StatSn, TaskManagementOutcome, Tsih, Window};
use scsi::{BlockLength, Blocks, Disk, Identity, Limits, Outcome, Provisioning, Status, Step};
use session::parameters::{
    self, ConnectionParameters, Established, LaneRole, SessionParameters, SessionType, SplitLanes,
    TargetLimits,
};
use session::seam::{Endpoint, Fault, LaneLoss, Payload};
use session::target::{Command, DataOut, Event, Response, Session, TargetRecord, TaskId};
use std::collections::{BTreeMap, VecDeque};

/// Commands that an initiator may have on their way.
const WINDOW_COMMANDS: u32 = 16;
/// The longest transfer: small, so that inputs of a few kilobytes reach the bounds.
const TRANSFER_BYTES_MAX: u32 = 64 << 10;
/// Room for every command of the window at its longest.
const BUFFERS_BYTES: usize = (WINDOW_COMMANDS * TRANSFER_BYTES_MAX) as usize;
/// Bytes that arrive between two looks at the session, as from a socket.
const PIECE_BYTES: usize = 1024;
/// What a session keeps to send again: the least that it may, so that the bound is reached.
const RETAINED_BYTES_MAX: u32 = 32 << 10;
const BLOCKS: Blocks = Blocks(2048);
const PING_AFTER: Duration = Duration::from_secs(10);
/// Long enough for every timer of a session.
const LONG: Duration = Duration::from_secs(60);
const FIRST_STAT_SN: StatSn = StatSn(1);

thread_local! {
    /// Empty before and after each input; kept, because mapping memory takes longer than most inputs.
    static SLAB: Slab = Slab::new(BUFFERS_BYTES);
}

/// A session of one connection. The first byte sets its parameters, the rest is what the initiator sends; the session's
/// first CmdSN is the one that the first PDU bears.
///
/// # Panics
/// If the session does, names a buffer twice, sends more than the initiator takes, or keeps anything when it is over.
pub fn pdu_stream_after_login(input: &[u8]) {
    let Some((&settings, stream)) = input.split_first() else { return };
    let mut target = Target::new(settings, CmdSn(field(stream, NUMBER_AT)));
    let lane = target.lane(0);
    for piece in stream.chunks(PIECE_BYTES) {
        target.receive(lane, piece);
    }
    target.end();
}

/// Connections of one session. After the byte of parameters come records: a byte whose low bit names the connection and
/// whose other bits say what happens, and for data two bytes of length and the data. Connections that are gone come
/// back as new ones.
///
/// # Panics
/// As [`pdu_stream_after_login`].
pub fn two_connections_interleaved(input: &[u8]) {
    let Some((&settings, mut records)) = input.split_first() else { return };
    let mut target = Target::new(settings, CmdSn(field(records, RECORD_BYTES + NUMBER_AT)));
    while let Some((&[what, high, low], rest)) = records.split_first_chunk::<RECORD_BYTES>() {
        if target.ended {
            break;
        }
        let lane = target.lane(what & 1);
        let (data, rest) = rest.split_at(rest.len().min(usize::from(u16::from_be_bytes([high, low]))));
        records = rest;
        match what >> 6 {
            1 => target.lose(lane, LaneLoss::Broken),
            2 => target.wait(Duration::from_millis(u64::from(what) * 100)),
            _ => target.receive(lane, data),
        }
    }
    target.end();
}

/// What happens, and two bytes of length.
const RECORD_BYTES: usize = 3;

struct Target {
    now: Instant,
    session: Session,
    parameters: SessionParameters,
    /// The first command's number.
    first: CmdSn,
    buffers: BufferTable,
    lanes: BTreeMap<LaneId, Receiver>,
    next_lane: u32,
    /// The connections that records name.
    named: [Option<LaneId>; 2],
    disk: Disk,
    /// Commands whose Data-Out is on its way.
    writing: BTreeMap<TaskId, (Command, Step)>,
    /// Commands whose end is due, if the device is slow.
    due: VecDeque<(TaskId, Response)>,
    slow: bool,
    ended: bool,
}

impl Target {
    fn new(settings: u8, first: CmdSn) -> Self {
        // There is no third level: these bits say that requests and responses have a connection each.
        let is_split = settings >> 3 & 3 == 3;
        let parameters = SessionParameters {
            session_type: if settings & 0x80 == 0 { SessionType::Normal } else { SessionType::Discovery },
            max_connections: 4,
            initial_r2t: settings & 1 != 0,
            immediate_data: settings & 2 == 0,
            first_burst_bytes: 8 << 10,
            max_burst_bytes: 16 << 10,
            max_outstanding_r2t: 2,
            default_time2wait_s: 1,
            default_time2retain_s: if settings & 4 == 0 { 0 } else { 20 },
            data_pdu_in_order: true,
            data_sequence_in_order: true,
            error_recovery_level: if is_split { 0 } else { settings >> 3 & 3 },
            split: if is_split { SplitLanes::Two } else { SplitLanes::None },
        };
        let limits = TargetLimits {
            window_commands: WINDOW_COMMANDS,
            immediate_commands_max: 4,
            retained_bytes_max: RETAINED_BYTES_MAX,
            transfer_bytes_max: TRANSFER_BYTES_MAX,
            ping_after: PING_AFTER,
            ping_timeout: PING_AFTER,
        };
        Self {
            now: Instant::ZERO,
            session: Session::new(parameters, limits, first),
            parameters,
            first,
            buffers: BufferTable::new(SLAB.with(Slab::clone)),
            lanes: BTreeMap::new(),
            next_lane: 0,
            named: [None; 2],
            disk: disk(),
            writing: BTreeMap::new(),
            due: VecDeque::new(),
            slow: settings & 0x20 != 0,
            ended: false,
        }
    }

    /// The connection of that name, opened if there is none.
    fn lane(&mut self, name: u8) -> LaneId {
        let index = usize::from(name & 1);
        let open = self.named[index].filter(|lane| self.lanes.contains_key(lane));
        open.unwrap_or_else(|| {
            let lane = LaneId(self.next_lane);
            let role = match (self.parameters.split, index) {
                (SplitLanes::None, _) => LaneRole::Whole,
                (_, 0) => LaneRole::Requests,
                (_, _) => LaneRole::Responses,
            };
            self.open(lane, role);
            self.named[index] = Some(lane);
            lane
        })
    }

    fn open(&mut self, lane: LaneId, role: LaneRole) {
        self.next_lane += 1;
        let connection = ConnectionParameters {
            header_digest: false,
            data_digest: false,
            send_segment_bytes_max: 8 << 10,
            receive_segment_bytes_max: 8 << 10,
        };
        let identity = parameters::Identity {
            initiator_name: "iqn.2026-11.org.example:host".to_owned(),
            isid: Isid([0x80, 0, 0, 0, 0, 1]),
            target_name: "iqn.2026-11.org.example:disk".to_owned(),
            portal_group_tag: 1,
        };
        let established = Established {
            identity,
            tsih: Tsih(1),
            // Connections that come back take the number of the one that they replace.
            cid: Cid(u16::from(!lane.0.is_multiple_of(2))),
            session: self.parameters,
            connection,
            role,
            cmd_sn: self.first,
            stat_sn: FIRST_STAT_SN,
            replaced_exp_stat_sn: FIRST_STAT_SN.next(),
            window: Window { exp_cmd_sn: self.first, max_cmd_sn: self.first.plus(WINDOW_COMMANDS - 1) },
        };
        self.lanes.insert(lane, Receiver::new(lane, &connection));
        self.session.add_lane(self.now, lane, &established);
        self.settle();
    }

    fn receive(&mut self, lane: LaneId, bytes: &[u8]) {
        let Some(receiver) = self.lanes.get_mut(&lane) else { return };
        let received = receiver.feed(bytes, self.now, &mut self.session, &mut self.buffers);
        self.settle();
        if received.is_err() {
            self.lose(lane, LaneLoss::Broken);
        }
    }

    fn lose(&mut self, lane: LaneId, loss: LaneLoss) {
        self.pull(lane);
        if self.lanes.remove(&lane).is_some() {
            self.session.lane_lost(self.now, lane, loss);
        }
        self.settle();
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        if self.session.poll_timeout().is_some_and(|at| at <= self.now) {
            self.session.handle_timeout(self.now);
        }
        self.settle();
    }

    /// Lets everybody do what can be done, but a slow device only one thing.
    fn settle(&mut self) {
        let mut ends_left = if self.slow { 1 } else { usize::MAX };
        loop {
            while let Some(event) = self.session.poll_event() {
                self.on(event);
            }
            let lanes: Vec<LaneId> = self.lanes.keys().copied().collect();
            lanes.into_iter().for_each(|lane| self.pull(lane));
            if self.buffers.take_refused() {
                self.session.buffers_available(self.now, &mut self.buffers);
            }
            let end = if ends_left == 0 { None } else { self.due.pop_front() };
            match end {
                Some((task, response)) => self.session.respond(self.now, task, response),
                None if self.is_quiet() => return,
                None => {}
            }
            ends_left = ends_left.saturating_sub(1);
        }
    }

    /// Whether nothing is left to say for the session.
    fn is_quiet(&mut self) -> bool {
        match self.session.poll_event() {
            Some(event) => {
                self.on(event);
                false
            }
            None => !self.lanes.keys().any(|lane| self.session.wants_transmit(*lane)),
        }
    }

    fn pull(&mut self, lane: LaneId) {
        if !self.lanes.contains_key(&lane) {
            return;
        }
        while let Some(transmit) = self.session.poll_transmit(self.now, lane, 4 << 10) {
            assert!(transmit.payload.bytes() <= 8 << 10, "a segment longer than the peer takes");
            assert_eq!(transmit.payload.bytes(), transmit.header.data_segment_bytes() as usize);
            self.session.transmitted(self.now, lane, 1);
        }
    }

    fn on(&mut self, event: Event) {
        assert!(!self.ended, "{event:?} after the end");
        match event {
            Event::Command(command) => self.begin(command),
            Event::DataOut(data) => self.data_arrived(data),
            Event::Aborted { task } => self.abort(task),
            Event::Release(buffer) => {
                assert!(self.buffers.remove(buffer).is_some(), "a buffer is given back once");
            }
            Event::TaskManagement(function) => {
                let outcome = TaskManagementOutcome::FunctionComplete;
                self.session.task_management_done(self.now, function.id, outcome);
            }
            Event::CloseLane { lane, loss, fault } => {
                assert!(fault != Some(Fault::DataDigest), "there are no digests");
                self.lose(lane, loss);
            }
            Event::SendTargets(request) => {
                let record = TargetRecord {
                    target_name: "iqn.2026-11.org.example:disk".to_owned(),
                    target_addresses: vec!["192.0.2.1:3260,1".to_owned(); 20],
                };
                self.session.send_targets(self.now, &request, &vec![record; 20]);
            }
            Event::Ended { .. } => self.ended = true,
            Event::CommandsCleared { .. } | Event::NexusLost => {}
        }
    }

    /// A device server without a disk: what is read is zeroes, what is written is forgotten.
    fn begin(&mut self, command: Command) {
        let step = self.disk.begin(command.cdb.bytes());
        let step = step.with_data_out(command.data_out_bytes.into(), self.disk.block);
        let bytes = u32::try_from(step.data_out_bytes(self.disk.block)).unwrap_or(u32::MAX);
        if bytes > 0 {
            let task = command.task;
            self.writing.insert(task, (command, step));
            return self.session.solicit(self.now, task, bytes, &mut self.buffers);
        }
        self.execute(&command, step);
    }

    fn data_arrived(&mut self, data: DataOut) {
        let Some((command, step)) = self.writing.remove(&data.task) else { return };
        let step = match (step, data.buffer.and_then(|buffer| self.buffers.get(buffer))) {
            (Step::Parameter { .. }, Some(list)) => {
                self.disk.parameter(command.cdb.bytes(), &list[..data.bytes as usize])
            }
            (step, _) => step,
        };
        self.execute(&command, step);
    }

    fn execute(&mut self, command: &Command, step: Step) {
        let in_bytes = step.data_in_bytes(self.disk.block);
        let (data, outcome) = match step {
            Step::Done(Outcome::Good(data)) => (data, Outcome::good()),
            Step::Done(outcome) => (Vec::new(), outcome),
            Step::Read { .. } => (vec![0; usize::try_from(in_bytes).unwrap_or(0)], Outcome::good()),
            _ => (Vec::new(), Outcome::good()),
        };
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        if bytes > 0 {
            self.session.data_in(self.now, command.task, Payload::Inline(data));
        }
        let sense = outcome.sense().map(|sense| sense.to_fixed().to_vec()).unwrap_or_default();
        let wanted_bytes = bytes.max(command.data_out_bytes);
        self.due.push_back((command.task, Response { status: outcome.status().code(), sense, wanted_bytes }));
    }

    fn abort(&mut self, task: TaskId) {
        if self.writing.remove(&task).is_some() {
            let response =
                Response { status: Status::TaskAborted.code(), sense: Vec::new(), wanted_bytes: 0 };
            self.due.push_back((task, response));
        }
    }

    /// The initiator is gone: nothing of it may remain.
    fn end(mut self) {
        let lanes: Vec<LaneId> = self.lanes.keys().copied().collect();
        lanes.into_iter().for_each(|lane| self.lose(lane, LaneLoss::Broken));
        self.slow = false;
        self.settle();
        self.wait(LONG);
        self.session.close(self.now);
        self.settle();
        assert!(self.next_lane == 0 || self.ended, "the session ends when its last connection is gone");
        assert!(self.writing.is_empty(), "no task is left");
        assert_eq!(self.buffers.budget().in_use_bytes(), 0, "every buffer is given back");
    }
}

fn disk() -> Disk {
    Disk {
        identity: Identity::from_name("iqn.2026-11.org.example:disk/0"),
        target_port: None,
        other_ports: Vec::new(),
        block: BlockLength::B512,
        physical_exponent: scsi::PhysicalExponent::default(),
        blocks: BLOCKS,
        removable: false,
        read_only: false,
        write_cache: false,
        provisioning: Provisioning::Thin { zeroes: true, granularity: Blocks(8), threshold: None },
        limits: Limits { transfer_bytes_max: TRANSFER_BYTES_MAX, ..Limits::default() },
    }
}
