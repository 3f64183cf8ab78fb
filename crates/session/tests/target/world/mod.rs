//! A target's session with an initiator played by the test: PDUs go in one by one, what comes out is looked at.

mod memory;
mod received;
mod settings;

pub use memory::Memory;
pub use received::*;
pub use settings::Settings;

use pdu::{
    BufferId, Cdb, Cid, CmdSn, DataOut, DataSn, Header, InitiatorPdu, Instant, Isid, Itt, LaneId,
    LogoutReason, LogoutRequest, LogoutResponse, Lun, NopOut, ScsiCommand, Snack, SnackKind, StatSn,
    TargetPdu, TaskAttribute, TaskManagementFunction, TaskManagementOutcome, TaskManagementRequest,
    TextRequest, Tsih, Ttt, Window,
};
use ropewalk_session::parameters::{ConnectionParameters, Established, Identity, LaneRole};
use ropewalk_session::seam::{Destination, Digest, Endpoint, Fault, LaneLoss, Payload, PayloadRef};
use ropewalk_session::target::{
    Command, Event, LogicalUnitFunction, Response, Session, TaskId, TaskManagementId,
};
use std::time::Duration;

pub const GOOD: u8 = 0x00;
pub const CHECK_CONDITION: u8 = 0x02;
pub const TASK_SET_FULL: u8 = 0x28;
pub const FIRST_CMD_SN: CmdSn = CmdSn(7);
pub const FIRST_STAT_SN: StatSn = StatSn(100);
pub const UNIT: Lun = Lun(1 << 48);
pub const TARGET: &str = "iqn.2026-11.example:disk";
pub const PING_AFTER: Duration = Duration::from_secs(10);
pub const PING_TIMEOUT: Duration = Duration::from_secs(5);

pub struct World {
    pub session: Session,
    pub memory: Memory,
    pub now: Instant,
    /// What the initiator expects next on each lane.
    pub exp_stat_sn: Vec<StatSn>,
    /// Whether PDUs acknowledge what was received. Off: they repeat what they acknowledged before.
    pub acknowledges: bool,
    acknowledged: Vec<StatSn>,
    /// Events that no test has looked at yet.
    events: Vec<Event>,
    settings: Settings,
}

/// More often than a session wants to be called before it does something.
const WAITS_MAX: u32 = 100;

pub fn established(settings: &Settings, cid: u16) -> Established {
    Established {
        identity: Identity {
            initiator_name: "iqn.2026-11.example:host".into(),
            isid: Isid::random([1, 2, 3], 4),
            target_name: TARGET.into(),
            portal_group_tag: 1,
        },
        tsih: Tsih(1),
        cid: Cid(cid),
        session: settings.session,
        connection: settings.connection,
        role: LaneRole::Whole,
        cmd_sn: FIRST_CMD_SN,
        stat_sn: FIRST_STAT_SN,
        replaced_exp_stat_sn: FIRST_STAT_SN,
        window: Window { exp_cmd_sn: FIRST_CMD_SN, max_cmd_sn: FIRST_CMD_SN },
    }
}

impl World {
    pub fn with_connections(lanes: u32) -> Self {
        Self::with_settings(lanes, Settings::default())
    }

    /// A session of this error recovery level.
    pub fn of_level(error_recovery_level: u8, lanes: u32) -> Self {
        Self::with_settings(lanes, Settings::of_level(error_recovery_level))
    }

    /// Asks for PDUs again, or acknowledges data.
    pub fn snack(&mut self, lane: usize, kind: SnackKind) {
        let pdu = Snack { kind, lun: UNIT, exp_stat_sn: self.ack(lane) };
        self.send(lane, &InitiatorPdu::Snack(pdu), &[]);
    }

    /// Hands over a read's next data, from `offset` of the pattern on, and returns its buffer.
    pub fn give(&mut self, task: TaskId, offset: usize, bytes: usize) -> BufferId {
        let data = pattern(offset + bytes).split_off(offset);
        let buffer = self.memory.add(data);
        let payload = PayloadRef { buffer, offset_bytes: 0, bytes: u32::try_from(bytes).unwrap() };
        self.session.data_in(self.now, task, Payload::Buffer(payload));
        self.collect();
        buffer
    }

    pub fn with_settings(lanes: u32, settings: Settings) -> Self {
        let mut session = Session::new(settings.session, settings.limits, FIRST_CMD_SN);
        for lane in 0..lanes {
            let cid = u16::try_from(lane).unwrap();
            session.add_lane(Instant::ZERO, LaneId(lane), &established(&settings, cid));
        }
        Self {
            session,
            memory: Memory::of(settings.budget_bytes),
            now: Instant::ZERO,
            exp_stat_sn: vec![FIRST_STAT_SN; lanes as usize],
            acknowledges: true,
            acknowledged: vec![FIRST_STAT_SN; lanes as usize],
            events: Vec::new(),
            settings,
        }
    }

    pub fn ack(&mut self, lane: usize) -> StatSn {
        if self.acknowledges {
            self.acknowledged[lane] = self.exp_stat_sn[lane];
        }
        self.acknowledged[lane]
    }

    /// Sends a PDU with its data, as the driver would receive it.
    pub fn try_send(&mut self, lane: usize, header: &Header, data: &[u8]) -> Result<Destination, Fault> {
        let id = LaneId(u32::try_from(lane).unwrap());
        let destination =
            self.session.receive_header(self.now, id, header, Digest::Good, &mut self.memory)?;
        match destination {
            Destination::None => assert!(data.is_empty(), "the data of {header:?} has no destination"),
            Destination::Buffer(PayloadRef { buffer, offset_bytes, bytes }) => {
                assert_eq!(bytes as usize, data.len());
                let place = self.memory.buffers.get_mut(&buffer).expect("data goes to a live buffer");
                place[offset_bytes as usize..][..data.len()].copy_from_slice(data);
                self.session.receive_data(self.now, id, &[], Digest::Good)?;
            }
            Destination::Inline { bytes } => {
                assert_eq!(bytes as usize, data.len());
                self.session.receive_data(self.now, id, data, Digest::Good)?;
            }
            Destination::Discard { bytes } => {
                assert_eq!(bytes as usize, data.len());
                self.session.receive_data(self.now, id, &[], Digest::Good)?;
            }
        }
        self.collect();
        Ok(destination)
    }

    /// Sends a PDU whose data is corrupted on the way.
    pub fn send_damaged(&mut self, lane: usize, pdu: &InitiatorPdu) -> Result<(), Fault> {
        let id = LaneId(u32::try_from(lane).unwrap());
        let header = pdu.emit();
        let destination =
            self.session.receive_header(self.now, id, &header, Digest::Good, &mut self.memory)?;
        if let Destination::Buffer(PayloadRef { buffer, offset_bytes, bytes }) = destination {
            let place = self.memory.buffers.get_mut(&buffer).expect("data goes to a live buffer");
            place[offset_bytes as usize..][..bytes as usize].fill(0xbd);
        }
        let inline = match destination {
            Destination::Inline { bytes } => vec![0xbd; bytes as usize],
            _ => Vec::new(),
        };
        self.session.receive_data(self.now, id, &inline, Digest::Bad)?;
        self.collect();
        Ok(())
    }

    /// Sends a PDU whose header is corrupted on the way.
    pub fn send_lost(&mut self, lane: usize, pdu: &InitiatorPdu) -> Result<Destination, Fault> {
        let id = LaneId(u32::try_from(lane).unwrap());
        self.session.receive_header(self.now, id, &pdu.emit(), Digest::Bad, &mut self.memory)
    }

    pub fn send(&mut self, lane: usize, pdu: &InitiatorPdu, data: &[u8]) -> Destination {
        self.try_send(lane, &pdu.emit(), data).expect("a PDU that is in order")
    }

    fn collect(&mut self) {
        while let Some(event) = self.session.poll_event() {
            if let Event::Release(buffer) = event {
                self.memory.release(buffer);
            } else {
                self.events.push(event);
            }
        }
    }

    pub fn command(&mut self, lane: usize, cmd_sn: u32) -> ScsiCommand {
        ScsiCommand {
            lun: UNIT,
            itt: Itt(cmd_sn),
            immediate: false,
            final_: true,
            read: false,
            write: false,
            attribute: TaskAttribute::Simple,
            expected_data_bytes: 0,
            bidirectional_read_bytes: None,
            cmd_sn: CmdSn(cmd_sn),
            exp_stat_sn: self.ack(lane),
            cdb: Cdb::from([0; 16]),
            data_segment_bytes: 0,
        }
    }

    /// A command without data.
    pub fn plain(&mut self, lane: usize, cmd_sn: u32) {
        let pdu = self.command(lane, cmd_sn);
        self.send(lane, &InitiatorPdu::ScsiCommand(pdu), &[]);
    }

    /// An immediate command without data, of this tag.
    pub fn immediate(&mut self, lane: usize, cmd_sn: u32, itt: u32) {
        let pdu = ScsiCommand { immediate: true, itt: Itt(itt), ..self.command(lane, cmd_sn) };
        self.send(lane, &InitiatorPdu::ScsiCommand(pdu), &[]);
    }

    pub fn read(&mut self, lane: usize, cmd_sn: u32, bytes: u32) {
        let pdu = ScsiCommand { read: true, expected_data_bytes: bytes, ..self.command(lane, cmd_sn) };
        self.send(lane, &InitiatorPdu::ScsiCommand(pdu), &[]);
    }

    /// A write with some immediate data; `more` says whether unsolicited Data-Out follows.
    pub fn write(
        &mut self,
        lane: usize,
        cmd_sn: u32,
        bytes: u32,
        immediate: &[u8],
        more: bool,
    ) -> Destination {
        let pdu = self.write_command(lane, cmd_sn, bytes, immediate.len(), more);
        self.send(lane, &InitiatorPdu::ScsiCommand(pdu), immediate)
    }

    pub fn write_command(
        &mut self,
        lane: usize,
        cmd_sn: u32,
        bytes: u32,
        immediate_bytes: usize,
        more: bool,
    ) -> ScsiCommand {
        ScsiCommand {
            write: true,
            final_: !more,
            expected_data_bytes: bytes,
            data_segment_bytes: u32::try_from(immediate_bytes).unwrap(),
            ..self.command(lane, cmd_sn)
        }
    }

    pub fn data_out(&mut self, lane: usize, itt: u32, ttt: Ttt, sn: u32, offset: u32, bytes: u32) -> DataOut {
        DataOut {
            lun: UNIT,
            itt: Itt(itt),
            ttt,
            final_: false,
            exp_stat_sn: self.ack(lane),
            data_sn: DataSn(sn),
            buffer_offset: offset,
            data_segment_bytes: bytes,
        }
    }

    /// Sends a whole sequence of Data-Out: `data` from `offset` on, with F at its end.
    pub fn sequence(&mut self, lane: usize, itt: u32, ttt: Ttt, offset: u32, data: &[u8]) {
        let segment = self.settings.connection.receive_segment_bytes_max as usize;
        let mut at = 0;
        let mut sn = 0;
        while at < data.len() {
            let piece = &data[at..data.len().min(at + segment)];
            let start = offset + u32::try_from(at).unwrap();
            let bytes = u32::try_from(piece.len()).unwrap();
            at += piece.len();
            let pdu = DataOut { final_: at == data.len(), ..self.data_out(lane, itt, ttt, sn, start, bytes) };
            self.send(lane, &InitiatorPdu::DataOut(pdu), piece);
            sn += 1;
        }
    }

    /// The PDUs of a whole sequence, each with its data.
    pub fn sequence_pdus(
        &mut self,
        lane: usize,
        itt: u32,
        ttt: Ttt,
        offset: u32,
        data: &[u8],
    ) -> Vec<(InitiatorPdu, Vec<u8>)> {
        let segment = self.settings.connection.receive_segment_bytes_max as usize;
        let count = data.len().div_ceil(segment);
        let pieces = data.chunks(segment).enumerate();
        pieces
            .map(|(sn, piece)| {
                let start = offset + u32::try_from(sn * segment).unwrap();
                let bytes = u32::try_from(piece.len()).unwrap();
                let sn32 = u32::try_from(sn).unwrap();
                let pdu = self.data_out(lane, itt, ttt, sn32, start, bytes);
                (InitiatorPdu::DataOut(DataOut { final_: sn + 1 == count, ..pdu }), piece.to_vec())
            })
            .collect()
    }

    pub fn nop(&mut self, lane: usize, itt: Itt, ttt: Ttt, cmd_sn: u32, immediate: bool, data: &[u8]) {
        let pdu = NopOut {
            immediate,
            lun: Lun(0),
            itt,
            ttt,
            cmd_sn: CmdSn(cmd_sn),
            exp_stat_sn: self.ack(lane),
            data_segment_bytes: u32::try_from(data.len()).unwrap(),
        };
        self.send(lane, &InitiatorPdu::NopOut(pdu), data);
    }

    /// Tells what was received, and nothing else.
    pub fn acknowledge(&mut self, lane: usize) {
        self.nop(lane, Itt::NONE, Ttt::NONE, 0, true, &[]);
    }

    pub fn manage(&mut self, lane: usize, function: TaskManagementFunction, cmd_sn: u32, itt: u32) {
        self.manage_task(lane, function, cmd_sn, itt, Itt::NONE, CmdSn(0));
    }

    /// The function that the driver is asked to carry out; what else happened is ignored.
    pub fn function(&mut self) -> Option<(TaskManagementId, LogicalUnitFunction)> {
        self.events().into_iter().find_map(|event| match event {
            Event::TaskManagement(request) => Some((request.id, request.function)),
            _ => None,
        })
    }

    /// The driver has carried a function out.
    pub fn function_done(&mut self, id: TaskManagementId) {
        self.session.task_management_done(self.now, id, TaskManagementOutcome::FunctionComplete);
    }

    /// Asks for a task to go on at this lane, and returns the answer.
    pub fn reassign(&mut self, lane: usize, task: u32, exp_data_sn: u32) -> TaskManagementOutcome {
        self.send_reassign(lane, task, exp_data_sn);
        function_outcome(&self.pull_one(lane, u32::MAX).expect("an answer"))
    }

    pub fn send_reassign(&mut self, lane: usize, task: u32, exp_data_sn: u32) {
        let pdu = TaskManagementRequest {
            function: TaskManagementFunction::TaskReassign,
            immediate: true,
            lun: Lun(0),
            itt: Itt(0x1000 + task),
            referenced_task: Itt(task),
            cmd_sn: self.session.counters().exp_cmd_sn,
            exp_stat_sn: self.ack(lane),
            ref_cmd_sn: CmdSn(0),
            exp_data_sn: DataSn(exp_data_sn),
        };
        self.send(lane, &InitiatorPdu::TaskManagementRequest(pdu), &[]);
    }

    /// Logs a connection out for recovery, by an immediate request on another one, and returns the answer.
    pub fn remove(&mut self, lane: usize, cid: u16) -> LogoutResponse {
        self.remove_after(lane, cid, FIRST_STAT_SN)
    }

    /// As [`Self::remove`]; of that connection the initiator has received all responses before this one.
    pub fn remove_after(&mut self, lane: usize, cid: u16, exp_stat_sn: StatSn) -> LogoutResponse {
        let pdu = LogoutRequest {
            reason: LogoutReason::RemoveConnectionForRecovery,
            immediate: true,
            itt: Itt(0x2000 + u32::from(cid)),
            cid: Cid(cid),
            cmd_sn: self.session.counters().exp_cmd_sn,
            exp_stat_sn,
        };
        self.send(lane, &InitiatorPdu::LogoutRequest(pdu), &[]);
        loop {
            let (pdu, _) = self.pull_one(lane, u32::MAX).expect("a Logout Response");
            if let TargetPdu::LogoutResponse(pdu) = pdu {
                return pdu;
            }
        }
    }

    /// A new connection, of the lane number that is next.
    pub fn join(&mut self, cid: u16, change: impl FnOnce(&mut ConnectionParameters)) -> usize {
        self.join_as(cid, |established| change(&mut established.connection))
    }

    /// As [`Self::join`], with anything of its login changed.
    pub fn join_as(&mut self, cid: u16, change: impl FnOnce(&mut Established)) -> usize {
        let lane = self.exp_stat_sn.len();
        let mut established = established(&self.settings, cid);
        change(&mut established);
        self.exp_stat_sn.push(FIRST_STAT_SN);
        self.acknowledged.push(FIRST_STAT_SN);
        self.session.add_lane(self.now, LaneId(u32::try_from(lane).unwrap()), &established);
        self.collect();
        lane
    }

    /// Lets so many seconds pass, and the session look at the time.
    pub fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.session_timeout();
    }

    pub fn manage_task(
        &mut self,
        lane: usize,
        function: TaskManagementFunction,
        cmd_sn: u32,
        itt: u32,
        referenced_task: Itt,
        ref_cmd_sn: CmdSn,
    ) {
        let pdu = TaskManagementRequest {
            function,
            immediate: true,
            lun: UNIT,
            itt: Itt(itt),
            referenced_task,
            cmd_sn: CmdSn(cmd_sn),
            exp_stat_sn: self.ack(lane),
            ref_cmd_sn,
            exp_data_sn: DataSn(0),
        };
        self.send(lane, &InitiatorPdu::TaskManagementRequest(pdu), &[]);
    }

    pub fn text(&mut self, lane: usize, cmd_sn: u32, itt: u32, ttt: Ttt, text: &str) {
        self.text_part(lane, cmd_sn, itt, ttt, text, false);
    }

    pub fn text_part(&mut self, lane: usize, cmd_sn: u32, itt: u32, ttt: Ttt, text: &str, continued: bool) {
        let pdu = TextRequest {
            immediate: false,
            final_: !continued,
            continued,
            lun: Lun(0),
            itt: Itt(itt),
            ttt,
            cmd_sn: CmdSn(cmd_sn),
            exp_stat_sn: self.ack(lane),
            data_segment_bytes: u32::try_from(text.len()).unwrap(),
        };
        self.send(lane, &InitiatorPdu::TextRequest(pdu), text.as_bytes());
    }

    pub fn logout(&mut self, lane: usize, cmd_sn: u32, reason: LogoutReason, cid: u16) {
        let pdu = LogoutRequest {
            reason,
            immediate: false,
            itt: Itt(cmd_sn),
            cid: Cid(cid),
            cmd_sn: CmdSn(cmd_sn),
            exp_stat_sn: self.ack(lane),
        };
        self.send(lane, &InitiatorPdu::LogoutRequest(pdu), &[]);
    }

    /// Pulls one PDU.
    pub fn pull_one(&mut self, lane: usize, budget_bytes: u32) -> Option<Received> {
        let id = LaneId(u32::try_from(lane).unwrap());
        let wanted = self.session.wants_transmit(id);
        let transmit = self.session.poll_transmit(self.now, id, budget_bytes)?;
        assert!(wanted, "what is pulled was announced");
        assert_eq!(transmit.header.data_segment_bytes() as usize, transmit.payload.bytes());
        let data = match transmit.payload {
            Payload::None => Vec::new(),
            Payload::Inline(data) => data,
            Payload::Buffer(PayloadRef { buffer, offset_bytes, bytes }) => {
                self.memory.buffers[&buffer][offset_bytes as usize..][..bytes as usize].to_vec()
            }
        };
        self.session.transmitted(self.now, id, 1);
        let pdu = TargetPdu::parse(&transmit.header).expect("the target sends what parses");
        let is_replica = |stat_sn: &StatSn| {
            self.settings.session.error_recovery_level > 0 && stat_sn.precedes(self.exp_stat_sn[lane])
        };
        if let Some(stat_sn) = status_number(&pdu).filter(|stat_sn| !is_replica(stat_sn)) {
            assert_eq!(stat_sn, self.exp_stat_sn[lane], "responses are numbered without a gap");
            self.exp_stat_sn[lane] = stat_sn.next();
        }
        self.collect();
        Some((pdu, data))
    }

    /// Pulls all there is.
    pub fn pull(&mut self, lane: usize) -> Vec<Received> {
        core::iter::from_fn(|| self.pull_one(lane, u32::MAX)).collect()
    }

    pub fn pull_only(&mut self, lane: usize) -> Received {
        let mut pulled = self.pull(lane);
        assert_eq!(pulled.len(), 1, "{pulled:?}");
        pulled.remove(0)
    }

    pub fn expect_nothing_sent(&mut self) {
        for lane in 0..self.exp_stat_sn.len() {
            assert_eq!(self.pull(lane), [], "on lane {lane}");
        }
    }

    pub fn events(&mut self) -> Vec<Event> {
        self.collect();
        core::mem::take(&mut self.events)
    }

    /// The commands that were handed out since the last look; nothing else may have happened.
    pub fn executed(&mut self) -> Vec<Command> {
        let command = |event| match event {
            Event::Command(command) => command,
            other => panic!("{other:?} instead of a command"),
        };
        self.events().into_iter().map(command).collect()
    }

    /// The one command that was handed out.
    pub fn task(&mut self) -> TaskId {
        let mut executed = self.executed();
        assert_eq!(executed.len(), 1, "{executed:?}");
        executed.remove(0).task
    }

    pub fn expect_nothing_executed(&mut self) {
        assert_eq!(self.events(), []);
    }

    pub fn solicit(&mut self, task: TaskId, bytes: u32) {
        self.session.solicit(self.now, task, bytes, &mut self.memory);
        self.collect();
    }

    pub fn respond(&mut self, task: TaskId, status: u8, wanted_bytes: u32) {
        let sense = if status == CHECK_CONDITION { vec![0x70, 0, 5] } else { Vec::new() };
        self.session.respond(self.now, task, Response { status, sense, wanted_bytes });
        self.collect();
    }

    /// Hands over Data-In that lies in a buffer.
    pub fn data_in(&mut self, task: TaskId, data: &[u8]) {
        let buffer = self.memory.add(data.to_vec());
        let bytes = u32::try_from(data.len()).unwrap();
        let payload = Payload::Buffer(PayloadRef { buffer, offset_bytes: 0, bytes });
        self.session.data_in(self.now, task, payload);
        self.collect();
    }

    /// What the driver finds in a complete Data-Out.
    pub fn complete_data_out(&mut self) -> Vec<u8> {
        let events = self.events();
        match events.as_slice() {
            [Event::DataOut(done)] => {
                let buffer = done.buffer.expect("data was wanted");
                self.memory.buffers[&buffer][..done.bytes as usize].to_vec()
            }
            other => panic!("{other:?} instead of complete Data-Out"),
        }
    }

    pub fn lose(&mut self, lane: usize, loss: LaneLoss) {
        self.session.lane_lost(self.now, LaneId(u32::try_from(lane).unwrap()), loss);
        self.collect();
    }

    /// Lets time pass, and calls the session when it wants to be called, until something comes of it.
    pub fn wait(&mut self) {
        for _ in 0..WAITS_MAX {
            self.now = self.now.max(self.session.poll_timeout().expect("something is waited for"));
            self.session.handle_timeout(self.now);
            self.collect();
            let lanes = u32::try_from(self.exp_stat_sn.len()).unwrap();
            if !self.events.is_empty() || (0..lanes).any(|lane| self.session.wants_transmit(LaneId(lane))) {
                return;
            }
        }
        panic!("nothing comes of waiting");
    }

    pub fn expect_all_buffers_released(&self) {
        assert_eq!(self.memory.used_bytes, 0);
    }

    /// Lets the session look at the time.
    pub fn session_timeout(&mut self) {
        self.session.handle_timeout(self.now);
        self.collect();
    }
}
