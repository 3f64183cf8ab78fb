//! Whatever arrives, and in whatever order, the session neither panics nor leaks nor forgets anything.

use crate::world::*;
use pdu::{Header, InitiatorPdu, LaneId, Opcode, Ttt};
use proptest::prelude::*;
use ropewalk_session::parameters::SessionType;
use ropewalk_session::seam::{Destination, Digest, Endpoint, LaneLoss, Payload};
use ropewalk_session::target::{AsyncMessage, Event, Response, TargetRecord, TaskId, TaskManagementId};
use std::collections::BTreeSet;
use std::time::Duration;

const LANES: u32 = 3;

/// Something that happens to a session.
#[derive(Clone, Debug)]
enum Step {
    /// A command that is in order by itself, up to a few places ahead of its turn.
    Command {
        lane: u32,
        ahead: u32,
        immediate: bool,
        write: bool,
        bytes: u32,
        immediate_bytes: u32,
        more: bool,
    },
    /// The next data PDU that an initiator owes.
    Owed {
        pick: usize,
        is_cut: bool,
    },
    /// A task management request, for the tag of an earlier command.
    Manage {
        lane: u32,
        function: u8,
        ahead: u32,
        back: u32,
    },
    /// A ping or a text request.
    Talk {
        lane: u32,
        ahead: u32,
        immediate: bool,
        text: &'static str,
    },
    Logout {
        lane: u32,
        session: bool,
    },
    /// Any PDU. Fields that decide much are drawn from small ranges, so that PDUs meet each other.
    Arrive {
        lane: u32,
        bhs: Vec<u8>,
        is_cut: bool,
        is_bad: bool,
    },
    Pull {
        lane: u32,
        budget_bytes: u32,
    },
    Solicit {
        pick: usize,
        bytes: u32,
    },
    DataIn {
        pick: usize,
        bytes: usize,
    },
    Respond {
        pick: usize,
    },
    Abort {
        pick: usize,
    },
    FunctionDone,
    Targets,
    Room,
    Wait {
        seconds: u64,
    },
    Tell,
    Lose {
        lane: u32,
        orderly: bool,
    },
}

fn bhs() -> impl Strategy<Value = Vec<u8>> {
    let opcode = prop_oneof![
        10 => prop::sample::select(vec![0x01u8, 0x41, 0x05, 0x05, 0x05]),
        6 => prop::sample::select(vec![0x00u8, 0x40, 0x02, 0x42, 0x04, 0x44, 0x06, 0x46, 0x10]),
        1 => any::<u8>(),
    ];
    let small = 0u32..6;
    let tag = prop_oneof![4 => small.clone(), 1 => Just(u32::MAX), 1 => any::<u32>()];
    let field20 = prop_oneof![3 => 0u32..6, 3 => Just(u32::MAX), 2 => 0u32..5000, 1 => any::<u32>()];
    let cmd_sn = prop_oneof![8 => 7u32..20, 1 => any::<u32>()];
    let stat_sn = prop_oneof![4 => 100u32..110, 1 => any::<u32>()];
    let data_bytes = prop_oneof![3 => Just(0u32), 3 => 0u32..2100, 1 => 0u32..(1 << 24)];
    let tail = prop_oneof![4 => Just([0u8; 16]), 1 => any::<[u8; 16]>()];
    (opcode, any::<u8>(), data_bytes, tag, field20, cmd_sn, stat_sn, tail).prop_map(
        |(opcode, flags, data_bytes, tag, field20, cmd_sn, stat_sn, tail)| {
            let mut bhs = vec![0; Header::BHS_BYTES];
            bhs[0] = opcode;
            // Attributes and function codes that exist are in the low bits.
            bhs[1] = flags & 0xe7;
            bhs[5..8].copy_from_slice(&data_bytes.to_be_bytes()[1..]);
            bhs[9] = 1;
            bhs[16..20].copy_from_slice(&tag.to_be_bytes());
            bhs[20..24].copy_from_slice(&field20.to_be_bytes());
            bhs[24..28].copy_from_slice(&cmd_sn.to_be_bytes());
            bhs[28..32].copy_from_slice(&stat_sn.to_be_bytes());
            bhs[32..].copy_from_slice(&tail);
            bhs
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let lane = 0..LANES;
    let ahead = prop_oneof![6 => Just(0u32), 2 => 1u32..4];
    let command = (
        lane.clone(),
        ahead.clone(),
        prop::bool::weighted(0.1),
        any::<bool>(),
        0u32..20_000,
        0u32..2048,
        any::<bool>(),
    );
    let texts =
        ["", "SendTargets=\0", "SendTargets=All\0", "X-a=b\0", "MaxRecvDataSegmentLength=600\0", "bad"];
    prop_oneof![
        60 => command.prop_map(|(lane, ahead, immediate, write, bytes, immediate_bytes, more)| {
            Step::Command { lane, ahead, immediate, write, bytes, immediate_bytes, more }
        }),
        60 => (any::<usize>(), prop::bool::weighted(0.005)).prop_map(|(pick, is_cut)| Step::Owed { pick, is_cut }),
        6 => (lane.clone(), 1u8..10, ahead.clone(), 0u32..6)
            .prop_map(|(lane, function, ahead, back)| Step::Manage { lane, function, ahead, back }),
        6 => (lane.clone(), ahead, any::<bool>(), prop::sample::select(texts.to_vec()))
            .prop_map(|(lane, ahead, immediate, text)| Step::Talk { lane, ahead, immediate, text }),
        1 => (lane.clone(), prop::bool::weighted(0.2)).prop_map(|(lane, session)| Step::Logout { lane, session }),
        3 => (lane.clone(), bhs(), prop::bool::weighted(0.02), prop::bool::weighted(0.01))
            .prop_map(|(lane, bhs, is_cut, is_bad)| Step::Arrive { lane, bhs, is_cut, is_bad }),
        60 => (lane.clone(), prop_oneof![Just(u32::MAX), 0u32..2000])
            .prop_map(|(lane, budget_bytes)| Step::Pull { lane, budget_bytes }),
        40 => (any::<usize>(), 0u32..20_000).prop_map(|(pick, bytes)| Step::Solicit { pick, bytes }),
        30 => (any::<usize>(), 0usize..9000).prop_map(|(pick, bytes)| Step::DataIn { pick, bytes }),
        30 => any::<usize>().prop_map(|pick| Step::Respond { pick }),
        2 => any::<usize>().prop_map(|pick| Step::Abort { pick }),
        10 => Just(Step::FunctionDone),
        5 => Just(Step::Targets),
        5 => Just(Step::Room),
        2 => (0u64..5).prop_map(|seconds| Step::Wait { seconds }),
        1 => Just(Step::Tell),
        1 => (lane, prop::bool::weighted(0.3)).prop_map(|(lane, orderly)| Step::Lose { lane, orderly }),
    ]
}

/// A driver that does what it must, and keeps account of it.
struct Driver {
    world: World,
    tasks: Vec<TaskId>,
    functions: Vec<TaskManagementId>,
    questions: Vec<ropewalk_session::target::SendTargets>,
    lanes: BTreeSet<u32>,
    /// What was asked for, or announced, and is not sent: lane, tag, transfer, DataSN, offset, end.
    closing: Vec<(u32, LaneLoss)>,
    /// The inline data of the next PDU, if it must make sense.
    text: &'static str,
    initial_r2t: bool,
    owes_for_ever: bool,
    owed: Vec<(u32, u32, Ttt, u32, u32, u32)>,
    last_tag: u32,
    ended: u32,
}

impl Driver {
    fn cmd_sn(&self, ahead: u32) -> u32 {
        self.world.session.counters().exp_cmd_sn.plus(ahead).0
    }

    fn send(&mut self, lane: u32, pdu: &InitiatorPdu) {
        self.arrive(lane, &pdu.emit(), false, false);
    }

    fn command(&mut self, step: &Step) {
        let &Step::Command { lane, ahead, immediate, write, bytes, immediate_bytes, more } = step else {
            return;
        };
        self.last_tag += 1;
        let cmd_sn = self.cmd_sn(ahead);
        let first_burst = bytes.min(4096);
        let (immediate_bytes, more) =
            if write { (immediate_bytes.min(first_burst), more && !self.initial_r2t) } else { (0, false) };
        let command = pdu::ScsiCommand {
            itt: pdu::Itt(self.last_tag),
            immediate,
            read: !write,
            write,
            final_: !more,
            expected_data_bytes: bytes,
            data_segment_bytes: immediate_bytes,
            ..self.world.command(lane as usize, cmd_sn)
        };
        self.send(lane, &InitiatorPdu::ScsiCommand(command));
        if more {
            self.owed.push((lane, self.last_tag, Ttt::NONE, 0, immediate_bytes, first_burst));
        }
    }

    fn send_owed(&mut self, pick: usize, is_cut: bool) {
        let Some(place) = pick.checked_rem(self.owed.len()) else { return };
        let (lane, tag, ttt, sn, offset, end) = self.owed[place];
        let bytes = (end - offset).min(1500);
        let is_last = offset + bytes == end;
        if is_last {
            self.owed.remove(place);
        } else {
            self.owed[place] = (lane, tag, ttt, sn + 1, offset + bytes, end);
        }
        let pdu = self.world.data_out(lane as usize, tag, ttt, sn, offset, bytes);
        let header = InitiatorPdu::DataOut(pdu::DataOut { final_: is_last, ..pdu }).emit();
        self.arrive(lane, &header, is_cut, false);
    }

    fn manage(&mut self, lane: u32, function: u8, ahead: u32, back: u32) {
        self.last_tag += 1;
        let cmd_sn = pdu::CmdSn(self.cmd_sn(ahead));
        let pdu = pdu::TaskManagementRequest {
            function: pdu::TaskManagementFunction::from_wire(function),
            immediate: ahead == 0,
            lun: UNIT,
            itt: pdu::Itt(self.last_tag),
            referenced_task: pdu::Itt(self.last_tag.saturating_sub(back)),
            cmd_sn,
            exp_stat_sn: self.world.ack(lane as usize),
            ref_cmd_sn: pdu::CmdSn(cmd_sn.0.wrapping_sub(back)),
            exp_data_sn: pdu::DataSn(0),
        };
        self.send(lane, &InitiatorPdu::TaskManagementRequest(pdu));
    }

    fn talk(&mut self, lane: u32, ahead: u32, immediate: bool, text: &'static str) {
        self.last_tag += 1;
        let cmd_sn = pdu::CmdSn(self.cmd_sn(ahead));
        let exp_stat_sn = self.world.ack(lane as usize);
        let bytes = u32::try_from(text.len()).unwrap();
        let pdu = match text {
            "bad" => InitiatorPdu::NopOut(pdu::NopOut {
                immediate,
                lun: UNIT,
                itt: pdu::Itt(self.last_tag),
                ttt: Ttt::NONE,
                cmd_sn,
                exp_stat_sn,
                data_segment_bytes: bytes,
            }),
            _ => InitiatorPdu::TextRequest(pdu::TextRequest {
                immediate,
                final_: true,
                continued: false,
                lun: UNIT,
                itt: pdu::Itt(self.last_tag),
                ttt: Ttt::NONE,
                cmd_sn,
                exp_stat_sn,
                data_segment_bytes: bytes,
            }),
        };
        self.text = text;
        self.send(lane, &pdu);
    }

    fn log_out(&mut self, lane: u32, session: bool) {
        self.last_tag += 1;
        let reason = match (session, self.last_tag % 2) {
            (true, _) => pdu::LogoutReason::CloseSession,
            (false, 0) => pdu::LogoutReason::RemoveConnectionForRecovery,
            (false, _) => pdu::LogoutReason::CloseConnection,
        };
        let pdu = pdu::LogoutRequest {
            reason,
            immediate: false,
            itt: pdu::Itt(self.last_tag),
            cid: pdu::Cid(u16::try_from(lane).unwrap()),
            cmd_sn: pdu::CmdSn(self.cmd_sn(0)),
            exp_stat_sn: self.world.ack(lane as usize),
        };
        self.send((lane + 1) % LANES, &InitiatorPdu::LogoutRequest(pdu));
    }

    /// Pulls a PDU, and remembers what it asks for.
    fn pull(&mut self, lane: u32, budget_bytes: u32) {
        match self.world.pull_one(lane as usize, budget_bytes) {
            Some((pdu::TargetPdu::R2t(pdu), _)) => {
                let end = pdu.buffer_offset + pdu.desired_bytes;
                self.owed.push((lane, pdu.itt.0, pdu.ttt, 0, pdu.buffer_offset, end));
            }
            Some((pdu::TargetPdu::NopIn(pdu), _)) if pdu.ttt.is_some() => {
                let answer = pdu::NopOut {
                    immediate: true,
                    lun: pdu.lun,
                    itt: pdu::Itt::NONE,
                    ttt: pdu.ttt,
                    cmd_sn: pdu::CmdSn(0),
                    exp_stat_sn: self.world.ack(lane as usize),
                    data_segment_bytes: 0,
                };
                self.send(lane, &InitiatorPdu::NopOut(answer));
            }
            _ => {}
        }
    }

    fn look(&mut self) {
        for event in self.world.events() {
            assert_eq!(self.ended, 0, "{event:?} after the end");
            match event {
                Event::Command(command) => self.tasks.push(command.task),
                Event::DataOut(done) => assert!(self.tasks.contains(&done.task)),
                Event::Aborted { task } => assert!(self.tasks.contains(&task)),
                Event::TaskManagement(request) => self.functions.push(request.id),
                Event::SendTargets(request) => self.questions.push(request),
                Event::Ended { .. } => {
                    assert!(self.tasks.is_empty() && self.lanes.is_empty());
                    self.ended += 1;
                }
                Event::CloseLane { lane, loss, .. } => self.closing.push((lane.0, loss)),
                Event::CommandsCleared { .. } | Event::NexusLost | Event::Release(_) => {}
            }
        }
        while let Some((lane, loss)) = self.closing.pop() {
            self.lose(lane, loss);
            self.look();
        }
    }

    fn lose(&mut self, lane: u32, loss: LaneLoss) {
        if self.lanes.remove(&lane) {
            self.world.lose(lane as usize, loss);
        }
    }

    fn arrive(&mut self, lane: u32, header: &Header, is_cut: bool, is_bad: bool) {
        let text = core::mem::take(&mut self.text);
        if !self.lanes.contains(&lane) {
            return;
        }
        // A driver reads the AHS first; here there is none.
        if header.ahs_bytes() > 0 {
            return;
        }
        let (world, id) = (&mut self.world, LaneId(lane));
        let received = world.session.receive_header(world.now, id, header, Digest::Good, &mut world.memory);
        let destination = match received {
            Ok(destination) => destination,
            Err(_) => return self.fault(lane),
        };
        let inline = match destination {
            Destination::None => return,
            Destination::Inline { bytes } if bytes as usize == text.len() => text.as_bytes().to_vec(),
            Destination::Inline { bytes } => vec![b'a'; bytes as usize],
            Destination::Discard { .. } => Vec::new(),
            Destination::Buffer(payload) => {
                let buffer = world.memory.buffers.get(&payload.buffer).expect("data goes to a live buffer");
                assert!((payload.offset_bytes + payload.bytes) as usize <= buffer.len());
                Vec::new()
            }
        };
        if is_cut {
            return self.lose(lane, LaneLoss::Broken);
        }
        let digest = if is_bad { Digest::Bad } else { Digest::Good };
        if self.world.session.receive_data(self.world.now, id, &inline, digest).is_err() {
            self.fault(lane);
        }
    }

    /// What is left is sent, then the connection is closed.
    fn fault(&mut self, lane: u32) {
        self.world.pull(lane as usize);
        self.lose(lane, LaneLoss::Broken);
    }

    fn pick(&self, pick: usize) -> Option<TaskId> {
        self.tasks.get(pick.checked_rem(self.tasks.len())?).copied()
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Command { .. } => self.command(&step),
            Step::Owed { pick, is_cut } => self.send_owed(pick, is_cut),
            Step::Manage { lane, function, ahead, back } => self.manage(lane, function, ahead, back),
            Step::Talk { lane, ahead, immediate, text } => self.talk(lane, ahead, immediate, text),
            Step::Logout { lane, session } => self.log_out(lane, session),
            Step::Arrive { lane, bhs, is_cut, is_bad } => {
                let header = Header::new(bhs.try_into().unwrap());
                // Data that is announced so will never come.
                self.owes_for_ever |= header.opcode() == Ok(Opcode::ScsiCommand) && !header.is_final();
                self.arrive(lane, &header, is_cut, is_bad);
            }
            Step::Pull { lane, budget_bytes } => self.pull(lane, budget_bytes),
            Step::Solicit { pick, bytes } => {
                if let Some(task) = self.pick(pick) {
                    self.world.solicit(task, bytes);
                }
            }
            Step::DataIn { pick, bytes } => match self.pick(pick) {
                Some(task) if bytes.is_multiple_of(2) => self.world.data_in(task, &pattern(bytes)),
                Some(task) => {
                    self.world.session.data_in(self.world.now, task, Payload::Inline(pattern(bytes)));
                }
                None => {}
            },
            Step::Respond { pick } => {
                if let Some(task) = self.pick(pick) {
                    self.tasks.retain(|other| *other != task);
                    self.world.respond(task, GOOD, 4096);
                }
            }
            Step::Abort { pick } => {
                if let Some(task) = self.pick(pick) {
                    self.world.session.abort(self.world.now, task);
                }
            }
            Step::FunctionDone => {
                if let Some(id) = self.functions.pop() {
                    let outcome = pdu::TaskManagementOutcome::FunctionComplete;
                    self.world.session.task_management_done(self.world.now, id, outcome);
                }
            }
            Step::Targets => {
                if let Some(request) = self.questions.pop() {
                    let record = TargetRecord { target_name: TARGET.into(), target_addresses: vec![] };
                    self.world.session.send_targets(self.world.now, &request, &[record]);
                }
            }
            Step::Room => {
                self.world.session.buffers_available(self.world.now, &mut self.world.memory);
            }
            Step::Wait { seconds } => {
                self.world.now += Duration::from_secs(seconds);
                self.world.session_timeout();
            }
            Step::Tell => {
                let message = AsyncMessage::SessionDrop { wait_seconds: 1 };
                self.world.session.async_message(self.world.now, &message);
            }
            Step::Lose { lane, orderly: true } => self.lose(lane, LaneLoss::LoggedOut),
            Step::Lose { lane, orderly: false } => self.lose(lane, LaneLoss::Broken),
        }
        self.look();
    }

    /// Does all that is still owed on both sides; then nothing may be left, and the window be as wide as ever.
    fn quiesce(&mut self) {
        for round in 0..40 {
            for lane in self.lanes.clone() {
                for _ in 0..50 {
                    self.pull(lane, u32::MAX);
                }
                let acknowledgement = pdu::NopOut {
                    immediate: true,
                    lun: UNIT,
                    itt: pdu::Itt::NONE,
                    ttt: Ttt::NONE,
                    cmd_sn: pdu::CmdSn(0),
                    exp_stat_sn: self.world.ack(lane as usize),
                    data_segment_bytes: 0,
                };
                self.send(lane, &InitiatorPdu::NopOut(acknowledgement));
                self.look();
            }
            while !self.owed.is_empty() {
                self.play(Step::Owed { pick: 0, is_cut: false });
            }
            while !self.tasks.is_empty() {
                self.play(Step::Respond { pick: 0 });
            }
            while !self.functions.is_empty() {
                self.play(Step::FunctionDone);
            }
            while !self.questions.is_empty() {
                self.play(Step::Targets);
            }
            // Holes that early commands wait for are filled.
            if let Some(&lane) = self.lanes.first().filter(|_| round < 30) {
                self.play(Step::Command {
                    lane,
                    ahead: 0,
                    immediate: false,
                    write: false,
                    bytes: 0,
                    immediate_bytes: 0,
                    more: false,
                });
            }
        }
        let counters = self.world.session.counters();
        let is_open = self.ended == 0 && !self.lanes.is_empty() && !self.owes_for_ever;
        if is_open && counters.early_commands == 0 && counters.departed_lanes == 0 {
            assert_eq!((counters.tasks, counters.immediate_commands), (0, 0), "{counters:?}");
            let width = counters.max_cmd_sn.next().distance_from(counters.exp_cmd_sn);
            assert_eq!(width, 8, "{counters:?}");
        }
    }

    /// Ends the session and settles all accounts.
    fn finish(mut self) {
        self.quiesce();
        self.world.session.close(self.world.now);
        for lane in 0..LANES {
            self.world.pull(lane as usize);
            self.lose(lane, LaneLoss::Broken);
        }
        self.look();
        for task in core::mem::take(&mut self.tasks) {
            let response = Response { status: GOOD, sense: Vec::new(), wanted_bytes: 0 };
            self.world.session.respond(self.world.now, task, response);
        }
        self.look();
        assert_eq!(self.ended, 1, "a session ends, once");
        assert_eq!(self.world.session.counters().tasks, 0);
        self.world.expect_all_buffers_released();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn nothing_that_arrives_breaks_a_session(
        steps in prop::collection::vec(step(), 0..300),
        is_discovery in prop::bool::weighted(0.1),
        initial_r2t: bool,
        max_outstanding_r2t in 1u16..4,
        budget_bytes in prop_oneof![Just(u32::MAX), 0u32..40_000],
        level in 0u8..3,
    ) {
        let mut settings = Settings { budget_bytes, ..Settings::of_level(if is_discovery { 0 } else { level }) };
        settings.session.initial_r2t = initial_r2t;
        settings.session.max_outstanding_r2t = max_outstanding_r2t;
        if is_discovery {
            settings.session.session_type = SessionType::Discovery;
        }
        let mut driver = Driver {
            world: World::with_settings(LANES, settings),
            tasks: Vec::new(),
            functions: Vec::new(),
            questions: Vec::new(),
            lanes: (0..LANES).collect(),
            owed: Vec::new(),
            closing: Vec::new(),
            text: "",
            initial_r2t,
            owes_for_ever: false,
            last_tag: 100,
            ended: 0,
        };
        for step in steps {
            driver.play(step);
        }
        driver.finish();
    }
}
