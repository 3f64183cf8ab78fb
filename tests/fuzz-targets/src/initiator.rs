//! An initiator's session and a target that says anything.

use crate::stream::{EXP_CMD_SN_AT, ITT_AT, MAX_CMD_SN_AT, NUMBER_AT, field, split};
use block::Slab;
use framing::{BufferTable, Receiver};
use pdu::{BufferId, Cid, CmdSn, Duration, Instant, Isid, LaneId, Lun, StatSn, TaskAttribute, Tsih, Window};
use session::initiator::{Command, Data, Event, SendTargets, Session, TaskFunction, TaskId};
use session::parameters::{
    ConnectionParameters, Established, Identity, InitiatorLimits, LaneRole, SessionParameters, SessionType,
    SplitLanes,
};
use session::seam::{Endpoint, LaneLoss, PayloadRef};
use std::collections::BTreeSet;

const LANE: LaneId = LaneId(0);
/// Commands outstanding at once.
const COMMANDS: usize = 8;
/// What a long command transfers, and a short one.
const TRANSFER_BYTES: [u32; 2] = [16 << 10, 512];
const PING_AFTER: Duration = Duration::from_secs(10);
const NAME: &str = "iqn.2026-11.org.example:disk";
/// Initiator task tags below this, on the wire, stand for the commands that are outstanding: the true tags are the
/// session's own choice, which no input could guess.
const ALIASES: u32 = 16;

thread_local! {
    /// Empty before and after each input; kept, because mapping memory takes longer than most inputs.
    static SLAB: Slab = Slab::new(COMMANDS * 2 * TRANSFER_BYTES[0] as usize);
}

/// A stream of bytes from a target. The first byte sets the session's parameters; numbers begin with those that the
/// first PDU bears.
///
/// # Panics
/// If the session does, answers a command twice, or keeps anything when it is over.
pub fn pdu_stream_into_initiator(input: &[u8]) {
    let Some((&settings, mut stream)) = input.split_first() else { return };
    let mut initiator = Initiator::new(settings, stream);
    initiator.settle();
    while let Some((piece, rest)) = split(stream) {
        stream = rest;
        if !initiator.receive(piece.bytes) {
            break;
        }
    }
    initiator.end();
}

struct Initiator {
    now: Instant,
    session: Session,
    receiver: Option<Receiver>,
    buffers: BufferTable,
    /// Commands that have not been answered, in the order in which they were submitted.
    outstanding: Vec<TaskId>,
    /// Buffers that the session holds.
    lent: BTreeSet<u32>,
    submitted: usize,
    ended: bool,
}

impl Initiator {
    fn new(settings: u8, stream: &[u8]) -> Self {
        let parameters = SessionParameters {
            session_type: if settings & 0x80 == 0 { SessionType::Normal } else { SessionType::Discovery },
            max_connections: 1,
            initial_r2t: settings & 1 != 0,
            immediate_data: settings & 2 == 0,
            first_burst_bytes: 2 << 10,
            max_burst_bytes: 8 << 10,
            max_outstanding_r2t: 2,
            default_time2wait_s: 1,
            default_time2retain_s: 0,
            data_pdu_in_order: true,
            data_sequence_in_order: true,
            error_recovery_level: (settings >> 3 & 3).min(2),
            split: SplitLanes::None,
        };
        let limits = InitiatorLimits { commands_max: 64, ping_after: PING_AFTER, ping_timeout: PING_AFTER };
        let first = CmdSn(field(stream, EXP_CMD_SN_AT));
        let connection = ConnectionParameters {
            header_digest: false,
            data_digest: false,
            send_segment_bytes_max: 4 << 10,
            receive_segment_bytes_max: 8 << 10,
        };
        let identity = Identity {
            initiator_name: "iqn.2026-11.org.example:host".to_owned(),
            isid: Isid([0x80, 0, 0, 0, 0, 1]),
            target_name: NAME.to_owned(),
            portal_group_tag: 1,
        };
        let established = Established {
            identity,
            tsih: Tsih(1),
            cid: Cid(0),
            session: parameters,
            connection,
            role: LaneRole::Whole,
            cmd_sn: first,
            stat_sn: StatSn(field(stream, NUMBER_AT)),
            replaced_exp_stat_sn: StatSn(0),
            window: Window { exp_cmd_sn: first, max_cmd_sn: CmdSn(field(stream, MAX_CMD_SN_AT)) },
        };
        let mut session = Session::new(parameters, limits, first);
        session.add_lane(Instant::ZERO, LANE, &established);
        let mut initiator = Self {
            now: Instant::ZERO,
            session,
            receiver: Some(Receiver::new(LANE, &connection)),
            buffers: BufferTable::new(SLAB.with(Slab::clone)),
            outstanding: Vec::new(),
            lent: BTreeSet::new(),
            submitted: 0,
            ended: false,
        };
        initiator.ask(settings);
        initiator
    }

    /// Requests other than commands, so that their answers make sense.
    fn ask(&mut self, settings: u8) {
        let what = if settings & 0x80 == 0 { SendTargets::Own } else { SendTargets::All };
        // A discovery session may refuse what a normal one takes, and the other way about.
        let _ = self.session.send_targets(self.now, LANE, &what);
        self.session.ping(self.now, LANE);
        if settings & 0x40 != 0 {
            self.session.task_management(self.now, TaskFunction::LogicalUnitReset(Lun(0)));
        }
    }

    /// Keeps commands of all directions and two lengths outstanding.
    fn submit(&mut self) {
        while self.outstanding.len() < COMMANDS && !self.ended {
            let bytes = TRANSFER_BYTES[self.submitted / 3 % 2];
            let Some(buffer) = self.buffers.budget().allocate(bytes as usize) else { return };
            let buffer = self.buffers.insert(buffer.share());
            let place = PayloadRef { buffer, offset_bytes: 0, bytes };
            let data = match self.submitted % 3 {
                0 => Data::In(place),
                1 => Data::Out(place),
                _ => Data::None,
            };
            let command =
                Command { lun: Lun(0), attribute: TaskAttribute::Simple, cdb: [0; 16].into(), data };
            let Ok(task) = self.session.submit(self.now, command) else {
                self.buffers.remove(buffer);
                return;
            };
            match data {
                Data::None => drop(self.buffers.remove(buffer)),
                Data::In(_) | Data::Out(_) => assert!(self.lent.insert(buffer.0)),
            }
            self.submitted += 1;
            self.outstanding.push(task);
        }
    }

    /// Takes one PDU, or what there is of it. `false` when the connection is over.
    fn receive(&mut self, pdu: &[u8]) -> bool {
        let mut bytes = pdu.to_vec();
        let alias = field(pdu, ITT_AT);
        if alias < ALIASES
            && let Some(task) = self.outstanding.get(alias as usize)
        {
            bytes[ITT_AT..ITT_AT + 4].copy_from_slice(&task.0.to_be_bytes());
        }
        let Some(receiver) = &mut self.receiver else { return false };
        let received = receiver.feed(&bytes, self.now, &mut self.session, &mut self.buffers);
        self.settle();
        if received.is_err() {
            self.lose(LaneLoss::Broken);
        }
        self.receiver.is_some()
    }

    fn lose(&mut self, loss: LaneLoss) {
        self.pull();
        if self.receiver.take().is_some() {
            self.session.lane_lost(self.now, LANE, loss);
        }
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            self.submit();
            while self.session.start(self.now, LANE).is_some() {}
            self.pull();
            let Some(event) = self.session.poll_event() else { return };
            self.on(&event);
        }
    }

    fn pull(&mut self) {
        if self.receiver.is_none() {
            return;
        }
        while let Some(transmit) = self.session.poll_transmit(self.now, LANE, 4 << 10) {
            assert!(transmit.payload.bytes() <= 4 << 10, "a segment longer than the peer takes");
            assert_eq!(transmit.payload.bytes(), transmit.header.data_segment_bytes() as usize);
            self.session.transmitted(self.now, LANE, 1);
        }
    }

    fn on(&mut self, event: &Event) {
        assert!(!self.ended, "{event:?} after the end");
        match event {
            Event::Completed(completion) => self.answered(completion.task),
            Event::Lost { task, .. } => self.answered(*task),
            Event::Release(BufferId(buffer)) => {
                assert!(self.lent.remove(buffer), "a buffer is given back once");
                self.buffers.remove(BufferId(*buffer));
            }
            Event::CloseLane { loss, .. } => self.lose(*loss),
            Event::Ended { .. } => self.ended = true,
            _ => {}
        }
    }

    fn answered(&mut self, task: TaskId) {
        let index = self.outstanding.iter().position(|outstanding| *outstanding == task);
        assert!(index.is_some(), "a task is answered once");
        index.map(|index| self.outstanding.remove(index));
    }

    /// The target is gone: every command has an end, and every buffer is back.
    fn end(mut self) {
        self.session.close(self.now);
        self.lose(LaneLoss::Broken);
        assert!(self.ended, "the session ends with its connection");
        assert!(self.outstanding.is_empty() && self.lent.is_empty());
        assert_eq!(self.buffers.budget().in_use_bytes(), 0, "every buffer is given back");
    }
}
