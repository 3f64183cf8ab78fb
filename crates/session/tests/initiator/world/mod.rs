//! An initiator's session with a target played by the test: PDUs go in one by one, what comes out is looked at.

use pdu::{
    BufferId, Cdb, Cid, CmdSn, DataIn, DataSn, Duration, Header, InitiatorPdu, Instant, Isid, Itt, LaneId,
    LogoutOutcome, LogoutRequest, LogoutResponse, Lun, NopIn, R2t, R2tSn, Reject, RejectReason, Residual,
    ScsiCommand, ScsiResponse, ServiceResponse, SnackKind, StatSn, TaskAttribute, TaskManagementOutcome,
    TaskManagementRequest, TaskManagementResponse, Tsih, Ttt, Window,
};
use ropewalk_session::initiator::{Command, Data, Event, Session, TaskId};
use ropewalk_session::parameters::{
    ConnectionParameters, Established, Identity, InitiatorLimits, LaneRole, SessionParameters, SessionType,
    SplitLanes,
};
use ropewalk_session::seam::{
    Allocation, Buffers, Destination, Digest, Endpoint, Fault, LaneLoss, Payload, PayloadRef,
};

pub const FIRST_CMD_SN: CmdSn = CmdSn(7);
pub const FIRST_STAT_SN: StatSn = StatSn(100);
pub const UNIT: Lun = Lun(1 << 48);
pub const WINDOW: Window = Window { exp_cmd_sn: FIRST_CMD_SN, max_cmd_sn: CmdSn(14) };
pub const BUDGET_BYTES: u32 = 1 << 20;

pub fn parameters() -> SessionParameters {
    SessionParameters {
        session_type: SessionType::Normal,
        max_connections: 8,
        initial_r2t: false,
        immediate_data: true,
        first_burst_bytes: 4096,
        max_burst_bytes: 8192,
        max_outstanding_r2t: 2,
        default_time2wait_s: 2,
        default_time2retain_s: 0,
        data_pdu_in_order: true,
        data_sequence_in_order: true,
        error_recovery_level: 0,
        split: SplitLanes::None,
    }
}

/// An initiator allocates nothing for what it receives.
pub struct NoBuffers;

impl Buffers for NoBuffers {
    fn allocate(&mut self, _: u32, _: u32) -> Option<Allocation> {
        None
    }

    fn grow(&mut self, _: BufferId, _: u32) -> bool {
        false
    }
}

pub struct World {
    pub session: Session,
    pub now: Instant,
    /// The StatSN of the next response on each lane.
    pub stat_sn: Vec<StatSn>,
    pub window: Window,
    /// Whether tasks that have lost their connection go to others by themselves.
    pub moves_orphans: bool,
    parameters: SessionParameters,
    next_buffer: u32,
}

impl World {
    pub fn with_connections(lanes: usize) -> Self {
        Self::with_parameters(lanes, parameters())
    }

    pub fn with_parameters(lanes: usize, parameters: SessionParameters) -> Self {
        let limits = InitiatorLimits {
            commands_max: 64,
            ping_after: Duration::from_secs(10),
            ping_timeout: Duration::from_secs(5),
        };
        let mut session = Session::new(parameters, limits, FIRST_CMD_SN);
        for lane in 0..lanes {
            session.add_lane(Instant::ZERO, LaneId(lane as u32), &established(lane as u16, parameters));
        }
        let stat_sn = vec![FIRST_STAT_SN; lanes];
        Self {
            session,
            now: Instant::ZERO,
            stat_sn,
            window: WINDOW,
            moves_orphans: true,
            parameters,
            next_buffer: 0,
        }
    }

    /// A session that recovers what is lost, at this error recovery level.
    pub fn recovering(level: u8, lanes: usize) -> Self {
        let level = SessionParameters {
            error_recovery_level: level,
            max_outstanding_r2t: 1,
            default_time2retain_s: 20,
            ..parameters()
        };
        Self::with_parameters(lanes, level)
    }

    /// Lets time pass, and every timer fire that is due until then.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.session.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.session.handle_timeout(self.now);
            self.reassign_orphans();
        }
        self.now = end;
    }

    /// Gives tasks that have lost their connection to the others, evenly.
    fn reassign_orphans(&mut self) {
        while self.moves_orphans {
            let orphan = self.session.orphans().next();
            let Some(orphan) = orphan else { return };
            let lanes = (0..self.stat_sn.len()).map(|lane| LaneId(lane as u32));
            let usable = lanes.filter(|lane| self.session.lane_state(*lane).accepts_orphans);
            let load = |lane: &LaneId| {
                let state = self.session.lane_state(*lane);
                (state.outstanding_bytes(), state.outstanding_commands)
            };
            let Some(lane) = usable.min_by_key(load) else { return };
            assert!(self.session.reassign(self.now, orphan.task, lane));
        }
    }

    /// Lets a PDU arrive whose data does not match its digest.
    pub fn receive_damaged(&mut self, lane: usize, header: &Header) -> Result<(), Fault> {
        self.receive_header(lane, header)?;
        let received = self.session.receive_data(self.now, LaneId(lane as u32), &[], Digest::Bad);
        self.reassign_orphans();
        received
    }

    /// Pulls what must be SNACKs, all that there are.
    pub fn snacks(&mut self, lane: usize) -> Vec<SnackKind> {
        let kind = |pdu| match pdu {
            InitiatorPdu::Snack(snack) => snack.kind,
            other => panic!("not a SNACK: {other:?}"),
        };
        self.pull_all(lane).into_iter().map(kind).collect()
    }

    /// The ExpStatSN that a ping tells; the ping is answered.
    pub fn acknowledged(&mut self, lane: usize) -> StatSn {
        self.session.ping(self.now, LaneId(lane as u32));
        let Some((InitiatorPdu::NopOut(ping), _)) = self.pull(lane) else { panic!("not a ping") };
        let stat_sn = self.take_stat_sn(lane);
        let answer = NopIn { itt: ping.itt, stat_sn, ..self.nop_in(Ttt::NONE) };
        self.receive(lane, &answer.emit(), &[]).unwrap();
        ping.exp_stat_sn
    }

    pub fn take_stat_sn(&mut self, lane: usize) -> StatSn {
        let taken = self.stat_sn[lane];
        self.stat_sn[lane] = taken.next();
        taken
    }

    /// Lets a PDU arrive whole.
    pub fn receive(&mut self, lane: usize, header: &Header, data: &[u8]) -> Result<Destination, Fault> {
        let destination = self.receive_header(lane, header)?;
        if header.data_segment_bytes() > 0 {
            let inline = if matches!(destination, Destination::Inline { .. }) { data } else { &[] };
            self.session.receive_data(self.now, LaneId(lane as u32), inline, Digest::Good)?;
            self.reassign_orphans();
        }
        Ok(destination)
    }

    pub fn receive_header(&mut self, lane: usize, header: &Header) -> Result<Destination, Fault> {
        let lane = LaneId(lane as u32);
        let received = self.session.receive_header(self.now, lane, header, Digest::Good, &mut NoBuffers);
        self.reassign_orphans();
        received
    }

    fn submit(&mut self, data: Data) -> TaskId {
        let cdb = Cdb::from([0xcd; Cdb::INLINE_BYTES]);
        let command = Command { lun: UNIT, attribute: TaskAttribute::Simple, cdb, data };
        self.session.submit(self.now, command).unwrap()
    }

    fn buffer(&mut self, bytes: u32) -> PayloadRef {
        self.next_buffer += 1;
        PayloadRef { buffer: BufferId(self.next_buffer), offset_bytes: 64, bytes }
    }

    /// Submits a write, not started.
    pub fn submit_write(&mut self, bytes: u32) -> TaskId {
        let place = self.buffer(bytes);
        self.submit(Data::Out(place))
    }

    /// Submits a read, not started.
    pub fn submit_read(&mut self, bytes: u32) -> TaskId {
        let place = self.buffer(bytes);
        self.submit(Data::In(place))
    }

    /// Starts a write and pulls its command.
    pub fn write(&mut self, lane: usize, bytes: u32) -> TaskId {
        let task = self.submit_write(bytes);
        self.started(lane, task)
    }

    /// Starts a read and pulls its command.
    pub fn read(&mut self, lane: usize, bytes: u32) -> TaskId {
        let task = self.submit_read(bytes);
        self.started(lane, task)
    }

    fn started(&mut self, lane: usize, task: TaskId) -> TaskId {
        assert_eq!(self.session.start(self.now, LaneId(lane as u32)), Some(task));
        self.command(lane);
        task
    }

    /// Pulls what must be a command.
    pub fn command(&mut self, lane: usize) -> ScsiCommand {
        match self.pull(lane) {
            Some((InitiatorPdu::ScsiCommand(command), _)) => command,
            other => panic!("not a command: {other:?}"),
        }
    }

    /// Pulls a PDU, which leaves.
    pub fn pull(&mut self, lane: usize) -> Option<(InitiatorPdu, Payload)> {
        self.pull_at_most(lane, BUDGET_BYTES)
    }

    pub fn pull_at_most(&mut self, lane: usize, budget_bytes: u32) -> Option<(InitiatorPdu, Payload)> {
        let lane = LaneId(lane as u32);
        let transmit = self.session.poll_transmit(self.now, lane, budget_bytes)?;
        self.session.transmitted(self.now, lane, 1);
        Some((InitiatorPdu::parse(&transmit.header).unwrap(), transmit.payload))
    }

    /// Pulls all that is left.
    pub fn pull_all(&mut self, lane: usize) -> Vec<InitiatorPdu> {
        std::iter::from_fn(|| self.pull(lane)).map(|(pdu, _)| pdu).collect()
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.session.poll_event()).collect()
    }

    pub fn r2t(&self, task: TaskId, number: u32, offset: u32, bytes: u32) -> R2t {
        R2t {
            lun: UNIT,
            itt: Itt(task.0),
            ttt: Ttt(0x70 + number),
            stat_sn: FIRST_STAT_SN,
            window: self.window,
            r2t_sn: R2tSn(number),
            buffer_offset: offset,
            desired_bytes: bytes,
        }
    }

    pub fn data_in(&self, task: TaskId, number: u32, offset: u32, bytes: u32) -> DataIn {
        DataIn {
            lun: UNIT,
            itt: Itt(task.0),
            ttt: Ttt::NONE,
            final_: true,
            acknowledge: false,
            status: None,
            window: self.window,
            data_sn: DataSn(number),
            buffer_offset: offset,
            data_segment_bytes: bytes,
        }
    }

    /// A good response; takes a StatSN.
    pub fn response(&mut self, lane: usize, task: TaskId) -> ScsiResponse {
        ScsiResponse {
            itt: Itt(task.0),
            response: ServiceResponse::CompletedAtTarget,
            status: 0,
            residual: Residual::None,
            bidirectional_read_residual: Residual::None,
            snack_tag: 0,
            stat_sn: self.take_stat_sn(lane),
            window: self.window,
            exp_data_sn: DataSn(0),
            data_segment_bytes: 0,
        }
    }

    /// The target ends a task, with a good response.
    pub fn answer(&mut self, lane: usize, task: TaskId) {
        let response = self.response(lane, task);
        self.receive(lane, &response.emit(), &[]).unwrap();
    }

    /// A ping of the target, or, without a tag, news of the window.
    pub fn nop_in(&self, ttt: Ttt) -> NopIn {
        NopIn {
            lun: UNIT,
            itt: Itt::NONE,
            ttt,
            stat_sn: FIRST_STAT_SN,
            window: self.window,
            data_segment_bytes: 0,
        }
    }
}

impl World {
    /// Adds a connection of this CID to the session.
    pub fn add_connection(&mut self, cid: u16) -> usize {
        let lane = self.stat_sn.len();
        self.stat_sn.push(FIRST_STAT_SN);
        let established = Established { window: self.window, ..established(cid, self.parameters) };
        self.session.add_lane(self.now, LaneId(lane as u32), &established);
        self.reassign_orphans();
        lane
    }

    pub fn lose(&mut self, lane: usize) {
        self.session.lane_lost(self.now, LaneId(lane as u32), LaneLoss::Broken);
        self.reassign_orphans();
    }

    /// The target has received all commands before this one.
    pub fn acknowledge_before(&mut self, cmd_sn: CmdSn) {
        self.window = Window { exp_cmd_sn: cmd_sn, max_cmd_sn: cmd_sn.plus(8) };
    }

    /// Answers a task management request.
    pub fn answer_function(&mut self, lane: usize, itt: Itt, outcome: TaskManagementOutcome) {
        let stat_sn = self.take_stat_sn(lane);
        let response = TaskManagementResponse { outcome, itt, stat_sn, window: self.window };
        self.receive(lane, &response.emit(), &[]).unwrap();
    }

    /// Refuses a PDU whose header this is.
    pub fn reject(&mut self, lane: usize, reason: RejectReason, what: &Header) -> Result<Destination, Fault> {
        let mut rejected = Vec::new();
        what.write_to(&mut rejected);
        let reject = Reject {
            reason,
            stat_sn: self.take_stat_sn(lane),
            window: self.window,
            next_data_or_r2t_sn: 0,
            data_segment_bytes: rejected.len() as u32,
        };
        self.receive(lane, &reject.emit(), &rejected)
    }

    /// Pulls what must be a task management request.
    pub fn function(&mut self, lane: usize) -> TaskManagementRequest {
        match self.pull(lane) {
            Some((InitiatorPdu::TaskManagementRequest(request), _)) => request,
            other => panic!("not a task management request: {other:?}"),
        }
    }

    /// Answers a ping.
    pub fn answer_ping(&mut self, lane: usize, ping: Itt) {
        let stat_sn = self.take_stat_sn(lane);
        let answer = NopIn { itt: ping, stat_sn, ..self.nop_in(Ttt::NONE) };
        self.receive(lane, &answer.emit(), &[]).unwrap();
    }

    /// Pulls what must be a logout, after pings, and answers it.
    pub fn answer_logout(&mut self, lane: usize, outcome: LogoutOutcome, wait_seconds: u16) -> LogoutRequest {
        let request = loop {
            match self.pull(lane) {
                Some((InitiatorPdu::LogoutRequest(request), _)) => break request,
                Some((InitiatorPdu::NopOut(ping), _)) => self.answer_ping(lane, ping.itt),
                other => panic!("not a logout: {other:?}"),
            }
        };
        let response = LogoutResponse {
            outcome,
            itt: request.itt,
            stat_sn: self.take_stat_sn(lane),
            window: self.window,
            wait_seconds,
            retain_seconds: 20,
        };
        self.receive(lane, &response.emit(), &[]).unwrap();
        request
    }
}

fn established(cid: u16, session: SessionParameters) -> Established {
    Established {
        identity: Identity {
            initiator_name: "iqn.2026-11.org.example:host".into(),
            isid: Isid::random([1, 2, 3], 4),
            target_name: "iqn.2026-11.org.example:disk".into(),
            portal_group_tag: 1,
        },
        tsih: Tsih(1),
        cid: Cid(cid),
        session,
        role: LaneRole::Whole,
        connection: ConnectionParameters {
            header_digest: false,
            data_digest: false,
            send_segment_bytes_max: 1023,
            receive_segment_bytes_max: 2048,
        },
        cmd_sn: FIRST_CMD_SN,
        stat_sn: FIRST_STAT_SN,
        replaced_exp_stat_sn: StatSn(0),
        window: WINDOW,
    }
}
