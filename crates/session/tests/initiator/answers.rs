//! What a session makes of what the target says.

use crate::world::{FIRST_CMD_SN, FIRST_STAT_SN, UNIT, World, parameters};
use pdu::{
    AsyncEvent, AsyncMessage, BufferId, Cid, CmdSn, CollapsedStatus, DataIn, InitiatorPdu, Itt, LaneId,
    LogoutReason, RejectReason, Residual, SenseSegment, StatSn, TaskManagementFunction,
    TaskManagementOutcome, TaskManagementResponse, TextResponse, Ttt, Window,
};
use ropewalk_session::initiator::{Event, SendTargets, SubmitError, TaskFunction};
use ropewalk_session::parameters::{SessionParameters, SessionType};
use ropewalk_session::seam::{Destination, Digest, Endpoint, Fault, Payload, PayloadRef};

const CHECK_CONDITION: u8 = 2;

#[test]
fn data_in_goes_straight_into_the_commands_buffer() {
    let mut world = World::with_connections(1);
    let task = world.read(0, 1500);
    let place =
        |offset_bytes, bytes| Destination::Buffer(PayloadRef { buffer: BufferId(1), offset_bytes, bytes });
    let first = world.data_in(task, 0, 0, 1000);
    assert_eq!(world.receive(0, &first.emit(), &[]), Ok(place(64, 1000)));
    let state = world.session.lane_state(LaneId(0));
    assert_eq!((state.outstanding_out_bytes, state.outstanding_in_bytes), (0, 500));

    let status =
        CollapsedStatus { stat_sn: world.take_stat_sn(0), status: 0, residual: Residual::Underflow(200) };
    let last = DataIn { status: Some(status), ..world.data_in(task, 1, 1000, 300) };
    assert_eq!(world.receive_header(0, &last.emit()), Ok(place(1064, 300)));
    assert_eq!(world.events(), [], "the data is not there yet");
    world.session.receive_data(world.now, LaneId(0), &[], Digest::Good).unwrap();
    let events = world.events();
    let Event::Completed(completion) = &events[0] else { panic!() };
    assert_eq!((completion.task, completion.status, completion.delivered), (task, 0, true));
    assert_eq!((completion.data_in_bytes, completion.underflow_bytes), (1300, 200));
    assert_eq!(events[1..], [Event::Release(BufferId(1))]);
}

#[test]
fn sense_data_comes_with_the_completion() {
    let mut world = World::with_connections(1);
    let task = world.write(0, 100);
    let data = SenseSegment { sense: b"sense", rest: b"vendor's" }.emit();
    let mut response = world.response(0, task);
    response.status = CHECK_CONDITION;
    response.residual = Residual::Overflow(9);
    response.data_segment_bytes = data.len() as u32;
    world.receive(0, &response.emit(), &data).unwrap();
    let events = world.events();
    let Event::Completed(completion) = &events[0] else { panic!() };
    assert_eq!((completion.status, completion.sense.as_slice()), (CHECK_CONDITION, b"sense".as_slice()));
    assert_eq!(completion.overflow_bytes, 9);
}

#[test]
fn responses_are_acknowledged_by_what_leaves_next() {
    let mut world = World::with_connections(2);
    let task = world.write(0, 100);
    world.answer(0, task);
    for (lane, expected) in [(0, FIRST_STAT_SN.next()), (1, FIRST_STAT_SN)] {
        world.session.ping(world.now, LaneId(lane as u32));
        let Some((InitiatorPdu::NopOut(ping), _)) = world.pull(lane) else { panic!() };
        assert_eq!(ping.exp_stat_sn, expected);
    }
}

#[test]
fn the_window_bounds_the_commands_that_start() {
    let mut world = World::with_connections(1);
    for _ in 0..8 {
        world.write(0, 1);
    }
    world.submit_write(1);
    assert_eq!(world.session.demand(), None);
    assert_eq!(world.session.start(world.now, LaneId(0)), None);
    world.window = Window { exp_cmd_sn: CmdSn(15), max_cmd_sn: CmdSn(15) };
    let news = world.nop_in(Ttt::NONE);
    world.receive(0, &news.emit(), &[]).unwrap();
    assert!(world.session.start(world.now, LaneId(0)).is_some());
    assert_eq!(world.command(0).cmd_sn, CmdSn(15));
}

#[test]
fn immediate_requests_carry_the_next_number_and_do_not_take_it() {
    let mut world = World::with_connections(1);
    world.write(0, 1);
    world.session.ping(world.now, LaneId(0));
    world.submit_write(1);
    world.session.start(world.now, LaneId(0)).unwrap();
    let Some((InitiatorPdu::NopOut(ping), _)) = world.pull(0) else { panic!() };
    assert_eq!((ping.cmd_sn, ping.immediate), (CmdSn(8), true));
    assert_eq!(world.command(0).cmd_sn, CmdSn(8));
}

#[test]
fn a_ping_of_the_target_is_answered_with_its_tag_and_unit() {
    let mut world = World::with_connections(1);
    let ping = world.nop_in(Ttt(0x1234));
    world.receive(0, &ping.emit(), &[]).unwrap();
    let Some((InitiatorPdu::NopOut(answer), Payload::None)) = world.pull(0) else { panic!() };
    assert_eq!((answer.itt, answer.ttt, answer.lun), (Itt::NONE, Ttt(0x1234), UNIT));
    assert!(answer.immediate);
    let news = world.nop_in(Ttt::NONE);
    world.receive(0, &news.emit(), &[]).unwrap();
    assert_eq!(world.pull(0), None, "news is not answered");
}

#[test]
fn a_buffer_is_not_given_back_while_a_segment_arrives_in_it() {
    let mut world = World::with_connections(2);
    let task = world.read(1, 1000);
    world.session.task_management(world.now, TaskFunction::LogicalUnitReset(UNIT));
    let Some((InitiatorPdu::TaskManagementRequest(request), _)) = world.pull(0) else { panic!() };
    let data_in = world.data_in(task, 0, 0, 500);
    world.receive_header(1, &data_in.emit()).unwrap();
    let done = TaskManagementResponse {
        outcome: TaskManagementOutcome::FunctionComplete,
        itt: request.itt,
        stat_sn: world.take_stat_sn(0),
        window: world.window,
    };
    world.receive(0, &done.emit(), &[]).unwrap();
    let events = world.events();
    assert_eq!(events[0], Event::Lost { task, started: true });
    assert!(!events.contains(&Event::Release(BufferId(1))));
    world.session.receive_data(world.now, LaneId(1), &[], Digest::Good).unwrap();
    assert_eq!(world.events(), [Event::Release(BufferId(1))]);

    let late = world.data_in(task, 1, 500, 500);
    assert_eq!(world.receive(1, &late.emit(), &[]), Ok(Destination::Discard { bytes: 500 }));
}

#[test]
fn responses_are_acknowledged_at_once_while_a_function_over_many_tasks_waits_for_that() {
    let mut world = World::with_connections(2);
    let before = world.write(1, 1);
    let after = world.write(1, 1);
    world.answer(1, before);
    assert_eq!(world.pull(1), None);
    world.session.task_management(world.now, TaskFunction::AbortTaskSet(UNIT));
    let acknowledged = |world: &mut World| match world.pull(1) {
        Some((InitiatorPdu::NopOut(nop), _)) => (nop.exp_stat_sn, nop.itt),
        other => panic!("{other:?}"),
    };
    assert_eq!(acknowledged(&mut world), (StatSn(101), Itt::NONE));
    world.answer(1, after);
    assert_eq!(acknowledged(&mut world), (StatSn(102), Itt::NONE));
}

fn pulled(world: &mut World) -> pdu::Header {
    world.session.poll_transmit(world.now, LaneId(0), 1 << 20).unwrap().header
}

#[test]
fn a_rejected_command_completes_undelivered() {
    let mut world = World::with_connections(1);
    let task = world.submit_write(10);
    world.session.start(world.now, LaneId(0)).unwrap();
    let command = pulled(&mut world);
    world.reject(0, RejectReason::InvalidPduField, &command).unwrap();
    let events = world.events();
    let Event::Completed(completion) = &events[0] else { panic!() };
    assert_eq!((completion.task, completion.delivered), (task, false));
}

#[test]
fn the_number_of_a_rejected_command_is_not_waited_for_in_vain() {
    for level in [0, 2] {
        let mut world = World::recovering(level, 1);
        let task = world.submit_write(10);
        world.session.start(world.now, LaneId(0)).unwrap();
        let command = pulled(&mut world);
        world.reject(0, RejectReason::InvalidPduField, &command).unwrap();
        let abort = world.function(0);
        assert_eq!(abort.function, TaskManagementFunction::AbortTask);
        assert_eq!((abort.referenced_task, abort.ref_cmd_sn), (Itt(task.0), FIRST_CMD_SN));
        assert!(abort.immediate && abort.cmd_sn == FIRST_CMD_SN.next(), "{abort:?}");
        world.acknowledge_before(FIRST_CMD_SN.next());
        world.answer_function(0, abort.itt, TaskManagementOutcome::FunctionComplete);
        assert!(matches!(world.events()[..], [Event::Completed(_), Event::Release(_)]));
    }
}

#[test]
fn a_target_that_counts_a_rejected_command_as_received_waits_for_nothing() {
    let mut world = World::with_connections(1);
    world.submit_write(10);
    world.session.start(world.now, LaneId(0)).unwrap();
    let command = pulled(&mut world);
    world.acknowledge_before(FIRST_CMD_SN.next());
    world.reject(0, RejectReason::InvalidPduField, &command).unwrap();
    assert_eq!(world.pull(0), None);
}

#[test]
fn a_command_that_met_itself_at_the_target_is_not_over() {
    let mut world = World::recovering(1, 1);
    let task = world.submit_write(10);
    world.session.start(world.now, LaneId(0)).unwrap();
    let command = pulled(&mut world);
    world.reject(0, RejectReason::TaskInProgress, &command).unwrap();
    assert_eq!((world.events(), world.pull(0)), (Vec::new(), None));
    world.acknowledge_before(FIRST_CMD_SN.next());
    world.answer(0, task);
    assert!(matches!(&world.events()[0], Event::Completed(completion) if completion.delivered));
}

#[test]
fn a_command_whose_data_was_damaged_on_its_way_cannot_be_repaired() {
    let mut world = World::with_connections(1);
    world.submit_write(10);
    world.session.start(world.now, LaneId(0)).unwrap();
    let command = pulled(&mut world);
    assert_eq!(world.reject(0, RejectReason::DataDigestError, &command), Err(Fault::DataDigest));
}

#[test]
fn a_rejected_request_is_over() {
    let mut world = World::with_connections(1);
    world.session.send_targets(world.now, LaneId(0), &SendTargets::Own).unwrap();
    let text = pulled(&mut world);
    world.reject(0, RejectReason::ProtocolError, &text).unwrap();
    let refused = Event::SendTargetsRefused { lane: LaneId(0), reason: RejectReason::ProtocolError };
    assert_eq!(world.events(), [refused]);

    let function = world.session.task_management(world.now, TaskFunction::TargetWarmReset);
    let request = pulled(&mut world);
    world.reject(0, RejectReason::ImmediateCommandReject, &request).unwrap();
    let response = TaskManagementOutcome::FunctionRejected;
    assert_eq!(world.events(), [Event::FunctionDone { function, response }]);
}

#[test]
fn where_the_place_of_a_rejected_command_cannot_be_filled_the_session_ends() {
    let mut world = World::with_connections(1);
    world.submit_read(512);
    world.session.start(world.now, LaneId(0)).unwrap();
    let command = pulled(&mut world);
    world.reject(0, RejectReason::CommandNotSupported, &command).unwrap();
    assert!(!is_closing(&mut world), "the command is aborted, which fills its place");
    let abort = pulled(&mut world);
    world.reject(0, RejectReason::CommandNotSupported, &abort).unwrap();
    assert!(is_closing(&mut world));
}

fn is_closing(world: &mut World) -> bool {
    world.events().iter().any(|event| matches!(event, Event::CloseLane { .. }))
}

#[test]
fn a_target_that_wants_to_negotiate_gets_an_opportunity() {
    let mut world = World::with_connections(1);
    let message = AsyncMessage {
        event: AsyncEvent::NegotiationRequest { seconds_max: 3 },
        lun: UNIT,
        stat_sn: world.take_stat_sn(0),
        window: world.window,
        data_segment_bytes: 0,
    };
    world.receive(0, &message.emit(), &[]).unwrap();
    let Some((InitiatorPdu::TextRequest(request), Payload::None)) = world.pull(0) else { panic!() };
    assert!(request.final_);
}

#[test]
fn a_lane_is_logged_out_when_its_text_exchange_is_over() {
    let mut world = World::with_connections(2);
    world.session.send_targets(world.now, LaneId(0), &SendTargets::Own).unwrap();
    let Some((InitiatorPdu::TextRequest(request), _)) = world.pull(0) else { panic!() };
    world.session.logout_lane(world.now, LaneId(0));
    assert_eq!(world.pull(0), None);
    let response = TextResponse {
        final_: true,
        continued: false,
        lun: UNIT,
        itt: request.itt,
        ttt: Ttt::NONE,
        stat_sn: world.take_stat_sn(0),
        window: world.window,
        data_segment_bytes: 0,
    };
    world.receive(0, &response.emit(), &[]).unwrap();
    assert_eq!(world.events(), [Event::SendTargets { lane: LaneId(0), text: Vec::new() }]);
    let Some((InitiatorPdu::LogoutRequest(logout), _)) = world.pull(0) else { panic!() };
    assert_eq!((logout.reason, logout.cid), (LogoutReason::CloseConnection, Cid(0)));
}

#[test]
fn a_scsi_event_is_told_with_its_sense_data() {
    let mut world = World::with_connections(1);
    let data = SenseSegment { sense: b"changed", rest: &[] }.emit();
    let message = AsyncMessage {
        event: AsyncEvent::Scsi,
        lun: UNIT,
        stat_sn: world.take_stat_sn(0),
        window: world.window,
        data_segment_bytes: data.len() as u32,
    };
    world.receive(0, &message.emit(), &data).unwrap();
    let events = world.events();
    let [Event::Async(event)] = events.as_slice() else { panic!() };
    assert_eq!((event.lun, event.sense.as_slice()), (UNIT, b"changed".as_slice()));
}

#[test]
fn a_discovery_session_takes_no_commands() {
    let parameters = SessionParameters { session_type: SessionType::Discovery, ..parameters() };
    let mut world = World::with_parameters(1, parameters);
    let command = ropewalk_session::initiator::Command {
        lun: UNIT,
        attribute: pdu::TaskAttribute::Simple,
        cdb: [0; 16].into(),
        data: ropewalk_session::initiator::Data::None,
    };
    assert_eq!(world.session.submit(world.now, command), Err(SubmitError::Discovery));
    world.session.send_targets(world.now, LaneId(0), &SendTargets::All).unwrap();
    let Some((InitiatorPdu::TextRequest(_), Payload::Inline(text))) = world.pull(0) else { panic!() };
    assert_eq!(text, b"SendTargets=All\0");
}
