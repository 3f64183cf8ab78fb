//! At error recovery level 2 the tasks of a connection that broke go on over another.

use crate::world::{FIRST_CMD_SN, FIRST_STAT_SN, UNIT, World};
use pdu::{
    AsyncEvent, AsyncMessage, Cid, DataSn, Duration, InitiatorPdu, Itt, LaneId, LogoutOutcome, LogoutReason,
    RejectReason, TaskManagementFunction, TaskManagementOutcome, TaskManagementRequest, Ttt,
};
use ropewalk_session::initiator::{Demand, Event, TaskFunction, TaskId};
use ropewalk_session::seam::{Endpoint, Fault, LaneLoss};

/// DefaultTime2Wait of these sessions.
const WAIT: Duration = Duration::from_secs(2);
/// DefaultTime2Retain.
const RETAIN: Duration = Duration::from_secs(20);

const DONE: TaskManagementOutcome = TaskManagementOutcome::FunctionComplete;

/// The target has these commands, and says so.
fn acknowledge(world: &mut World, lane: usize, commands: u32) {
    world.acknowledge_before(FIRST_CMD_SN.plus(commands));
    let news = world.nop_in(Ttt::NONE);
    world.receive(lane, &news.emit(), &[]).unwrap();
}

/// Loses a lane and logs it out over another.
fn lose_and_log_out(world: &mut World, lane: usize, over: usize) {
    world.lose(lane);
    world.pass(WAIT);
    world.answer_logout(over, LogoutOutcome::Closed, 0);
}

fn finish(world: &mut World, lane: usize, task: TaskId) -> u32 {
    let mut response = world.response(lane, task);
    response.exp_data_sn = DataSn(0);
    world.receive(lane, &response.emit(), &[]).unwrap();
    let completed = world.events().into_iter().find_map(|event| match event {
        Event::Completed(completion) if completion.task == task => Some(completion),
        _ => None,
    });
    let completion = completed.expect("it completes");
    completion.data_out_bytes + completion.data_in_bytes
}

fn is_over(world: &mut World) -> bool {
    let closes = |event: &Event| matches!(event, Event::CloseLane { .. } | Event::Ended { orderly: false });
    world.events().iter().any(closes)
}

#[test]
fn a_broken_connection_is_logged_out_with_its_last_stat_sn_after_time2wait() {
    let mut world = World::recovering(2, 2);
    let (done, task) = (world.write(1, 10), world.write(1, 10));
    finish(&mut world, 1, done);
    world.lose(1);
    let (not_before, until) = (world.now + WAIT, world.now + WAIT + RETAIN);
    let expected = Event::ConnectionLost { lane: LaneId(1), cid: Cid(1), is_last: false, not_before, until };
    assert_eq!(world.events(), [expected]);
    assert_eq!(world.pull(0), None);
    assert_eq!(world.session.exp_stat_sn(Cid(1)), FIRST_STAT_SN.next(), "for a login in its place");
    world.pass(WAIT);
    let request = world.answer_logout(0, LogoutOutcome::Closed, 0);
    assert_eq!((request.reason, request.cid), (LogoutReason::RemoveConnectionForRecovery, Cid(1)));
    assert_eq!((request.exp_stat_sn, request.immediate), (FIRST_STAT_SN.next(), true));
    assert_eq!(world.function(0).referenced_task, Itt(done.0), "its number is not waited for");
    assert_eq!(world.command(0).itt, Itt(task.0));
}

#[test]
fn the_driver_chooses_the_lane_of_a_task_that_has_lost_its_own() {
    let mut world = World::recovering(2, 4);
    world.moves_orphans = false;
    let (read, write) = (world.read(1, 5000), world.write(1, 3000));
    acknowledge(&mut world, 0, 1);
    assert_eq!(world.session.orphans().count(), 0);
    world.lose(1);
    assert_eq!(world.session.orphans().count(), 0, "the connection is not logged out");
    world.pass(WAIT);
    world.answer_logout(0, LogoutOutcome::Closed, 0);
    let orphans: Vec<_> = world.session.orphans().collect();
    let expected = [(read, 0, 5000), (write, 3000, 0)];
    assert_eq!(orphans.len(), expected.len());
    for (orphan, (task, data_out_bytes, data_in_bytes)) in orphans.into_iter().zip(expected) {
        assert_eq!(orphan, Demand { task, data_out_bytes, data_in_bytes });
    }
    assert!(!world.session.reassign(world.now, read, LaneId(1)), "a lane that is gone");
    assert!(world.session.reassign(world.now, read, LaneId(2)));
    assert!(!world.session.reassign(world.now, read, LaneId(3)), "no orphan any more");
    assert!(world.session.reassign(world.now, write, LaneId(3)));
    assert_eq!(world.function(2).referenced_task, Itt(read.0));
    assert_eq!(world.command(3).itt, Itt(write.0));
    assert_eq!(world.session.orphans().count(), 0);
}

#[test]
fn a_lane_that_is_being_logged_out_takes_orphans_only_if_no_other_is_left() {
    let mut world = World::recovering(2, 3);
    let busy = world.write(0, 10);
    world.session.logout_lane(world.now, LaneId(0));
    let accepting = |world: &World| {
        let accepts = |lane: &u32| world.session.lane_state(LaneId(*lane)).accepts_orphans;
        (0..3).filter(accepts).collect::<Vec<u32>>()
    };
    assert_eq!(accepting(&world), [1, 2]);
    world.lose(1);
    assert_eq!(accepting(&world), [2]);
    world.lose(2);
    assert_eq!(accepting(&world), [0]);
    finish(&mut world, 0, busy);
}

#[test]
fn a_command_that_the_target_has_is_reassigned_and_one_that_it_has_not_is_sent_again() {
    let mut world = World::recovering(2, 2);
    let mut tasks = Vec::new();
    for _ in 0..2 {
        tasks.push(world.write(1, 5000));
        world.pull_all(1);
    }
    acknowledge(&mut world, 0, 1);
    lose_and_log_out(&mut world, 1, 0);
    let reassign = world.function(0);
    assert_eq!(
        (reassign.function, reassign.referenced_task, reassign.immediate, reassign.exp_data_sn),
        (TaskManagementFunction::TaskReassign, Itt(tasks[0].0), true, DataSn(0))
    );
    let again = world.command(0);
    assert_eq!((again.itt, again.cmd_sn), (Itt(tasks[1].0), FIRST_CMD_SN.next()));
    world.answer_function(0, reassign.itt, DONE);
    let mut data = world.pull_all(0);
    data.retain(|pdu| !matches!(pdu, InitiatorPdu::DataOut(data) if data.itt == Itt(tasks[1].0)));
    assert_eq!(data, [], "unsolicited data of a task that goes on is sent when it is asked for");
    let r2t = world.r2t(tasks[0], 5, 0, 5000);
    world.receive(0, &r2t.emit(), &[]).unwrap();
    assert_eq!(world.pull_all(0).len(), 5);
    assert_eq!(finish(&mut world, 0, tasks[0]), 5000);
}

#[test]
fn a_read_goes_on_after_what_has_arrived_without_a_gap() {
    let mut world = World::recovering(2, 2);
    let task = world.read(1, 5000);
    acknowledge(&mut world, 0, 1);
    for number in [0, 1, 3] {
        let data = world.data_in(task, number, number * 1000, 1000);
        world.receive(1, &data.emit(), &[]).unwrap();
    }
    lose_and_log_out(&mut world, 1, 0);
    let reassign = world.function(0);
    assert_eq!(reassign.exp_data_sn, DataSn(2));
    world.answer_function(0, reassign.itt, DONE);
    let longer = world.data_in(task, 2, 2000, 1500);
    world.receive(0, &longer.emit(), &[]).unwrap();
    let last = world.data_in(task, 3, 3500, 1500);
    world.receive(0, &last.emit(), &[]).unwrap();
    assert_eq!(finish(&mut world, 0, task), 5000);
}

#[test]
fn a_target_may_begin_a_read_anew() {
    let mut world = World::recovering(2, 2);
    let task = world.read(1, 3000);
    acknowledge(&mut world, 0, 1);
    let data = world.data_in(task, 0, 0, 1000);
    world.receive(1, &data.emit(), &[]).unwrap();
    lose_and_log_out(&mut world, 1, 0);
    let reassign = world.function(0);
    world.answer_function(0, reassign.itt, DONE);
    for (number, offset, bytes) in [(0, 0, 2000), (1, 2000, 1000)] {
        let data = world.data_in(task, number, offset, bytes);
        world.receive(0, &data.emit(), &[]).unwrap();
    }
    assert_eq!(finish(&mut world, 0, task), 3000);
    assert_eq!(world.session.lane_state(LaneId(0)).outstanding_bytes(), 0);
}

#[test]
fn a_task_that_the_target_does_not_know_is_lost() {
    let mut world = World::recovering(2, 2);
    let task = world.write(1, 10);
    acknowledge(&mut world, 0, 1);
    lose_and_log_out(&mut world, 1, 0);
    let reassign = world.function(0);
    world.events();
    world.answer_function(0, reassign.itt, TaskManagementOutcome::TaskDoesNotExist);
    assert_eq!(world.events()[0], Event::Lost { task, started: true });
}

#[test]
fn a_task_that_still_belongs_to_the_old_connection_is_asked_for_again() {
    let mut world = World::recovering(2, 2);
    let task = world.write(1, 10);
    acknowledge(&mut world, 0, 1);
    lose_and_log_out(&mut world, 1, 0);
    let reassign = world.function(0);
    world.answer_function(0, reassign.itt, TaskManagementOutcome::TaskStillAllegiant);
    assert_eq!(world.pull(0), None);
    world.pass(Duration::from_secs(2));
    let asks = |pdu: &InitiatorPdu| matches!(pdu, InitiatorPdu::TaskManagementRequest(_));
    assert_eq!(world.pull_all(0).iter().filter(|pdu| asks(pdu)).count(), 1);
    world.answer_function(0, reassign.itt, DONE);
    assert_eq!(finish(&mut world, 0, task), 10);
}

#[test]
fn a_target_that_cannot_reassign_after_all_ends_the_session() {
    let mut world = World::recovering(2, 2);
    world.write(1, 10);
    acknowledge(&mut world, 0, 1);
    lose_and_log_out(&mut world, 1, 0);
    let reassign = world.function(0);
    world.answer_function(0, reassign.itt, TaskManagementOutcome::ReassignmentNotSupported);
    assert!(is_over(&mut world));
}

#[test]
fn what_comes_for_a_task_proves_that_it_was_reassigned() {
    let mut world = World::recovering(2, 2);
    let task = world.write(1, 10);
    acknowledge(&mut world, 0, 1);
    lose_and_log_out(&mut world, 1, 0);
    let reassign = world.function(0);
    assert_eq!(finish(&mut world, 0, task), 10);
    world.answer_function(0, reassign.itt, TaskManagementOutcome::TaskDoesNotExist);
    assert_eq!(world.events(), []);
}

#[test]
fn commands_go_on_while_a_connection_is_recovered_and_each_ends_once() {
    let mut world = World::recovering(2, 3);
    let tasks: Vec<_> = (0..6).map(|index| world.write(index % 3, 10)).collect();
    acknowledge(&mut world, 0, 6);
    lose_and_log_out(&mut world, 2, 0);
    let reassigned: Vec<_> = [0, 1]
        .into_iter()
        .flat_map(|lane| world.pull_all(lane).into_iter().map(move |pdu| (lane, pdu)).collect::<Vec<_>>())
        .filter_map(|(lane, pdu)| match pdu {
            InitiatorPdu::TaskManagementRequest(request) => Some((lane, request)),
            _ => None,
        })
        .collect();
    assert_eq!(reassigned.iter().map(|(lane, _)| *lane).collect::<Vec<_>>(), [0, 1], "the load is shared");
    for (lane, request) in reassigned {
        world.answer_function(lane, request.itt, DONE);
        finish(&mut world, lane, TaskId(request.referenced_task.0));
    }
    for index in [0, 1, 3, 4] {
        finish(&mut world, index % 3, tasks[index]);
    }
    assert_eq!(world.session.counters().outstanding_commands, 0);
}

#[test]
fn a_connection_that_breaks_while_it_takes_over_is_recovered_too() {
    let mut world = World::recovering(2, 3);
    let task = world.write(2, 10);
    acknowledge(&mut world, 1, 1);
    lose_and_log_out(&mut world, 2, 0);
    world.function(0);
    lose_and_log_out(&mut world, 0, 1);
    let reassign = world.function(1);
    assert_eq!(reassign.referenced_task, Itt(task.0));
    world.answer_function(1, reassign.itt, DONE);
    assert_eq!(finish(&mut world, 1, task), 10);
}

#[test]
fn without_a_lane_the_session_waits_for_one_and_a_login_with_the_old_cid_is_a_logout() {
    let mut world = World::recovering(2, 1);
    let task = world.write(0, 10);
    acknowledge(&mut world, 0, 1);
    world.lose(0);
    assert!(matches!(world.events()[..], [Event::ConnectionLost { is_last: true, cid: Cid(0), .. }]));
    assert_eq!(world.session.demand(), None);
    world.pass(Duration::from_secs(5));
    let lane = world.add_connection(0);
    let reassign = world.function(lane);
    assert_eq!(reassign.function, TaskManagementFunction::TaskReassign);
    world.answer_function(lane, reassign.itt, DONE);
    assert_eq!(finish(&mut world, lane, task), 10);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.events(), []);
}

#[test]
fn a_new_connection_of_another_cid_logs_the_old_one_out() {
    let mut world = World::recovering(2, 1);
    let task = world.write(0, 10);
    acknowledge(&mut world, 0, 1);
    world.lose(0);
    world.pass(WAIT);
    let lane = world.add_connection(1);
    assert_eq!(world.answer_logout(lane, LogoutOutcome::Closed, 1).cid, Cid(0));
    assert_eq!(world.pull(lane), None, "the target wants to be left alone for a second");
    world.pass(Duration::from_secs(1));
    let reassign = world.function(lane);
    world.answer_function(lane, reassign.itt, DONE);
    assert_eq!(finish(&mut world, lane, task), 10);
}

#[test]
fn without_a_new_connection_in_time_the_session_ends() {
    let mut world = World::recovering(2, 1);
    let task = world.write(0, 10);
    let queued = world.submit_write(10);
    world.lose(0);
    world.pass(WAIT + RETAIN - Duration::from_millis(1));
    assert!(!is_over(&mut world));
    world.pass(Duration::from_millis(1));
    let events = world.events();
    assert!(events.contains(&Event::Lost { task, started: true }));
    assert!(events.contains(&Event::Lost { task: queued, started: false }));
    assert_eq!(events.last(), Some(&Event::Ended { orderly: false }));
    assert_eq!(world.session.poll_timeout(), None);
}

#[test]
fn a_lane_that_is_judged_dead_is_closed_and_its_tasks_go_on() {
    let mut world = World::recovering(2, 2);
    let task = world.write(1, 10);
    acknowledge(&mut world, 0, 1);
    let mut closed = None;
    while closed.is_none() {
        world.pull_all(1);
        for pdu in world.pull_all(0) {
            let InitiatorPdu::NopOut(ping) = pdu else { panic!("{pdu:?}") };
            world.answer_ping(0, ping.itt);
        }
        world.pass(Duration::from_secs(1));
        closed = world.events().into_iter().next();
    }
    let fault = Some(Fault::Timeout("a ping"));
    assert_eq!(closed, Some(Event::CloseLane { lane: LaneId(1), loss: LaneLoss::Broken, fault }));
    lose_and_log_out(&mut world, 1, 0);
    let reassign = world.function(0);
    world.answer_function(0, reassign.itt, DONE);
    assert_eq!(finish(&mut world, 0, task), 10);
}

#[test]
fn a_function_over_many_tasks_is_asked_for_on_another_lane() {
    let mut world = World::recovering(2, 2);
    let function = world.session.task_management(world.now, TaskFunction::LogicalUnitReset(UNIT));
    world.function(0);
    world.lose(0);
    let again = world.function(1);
    assert_eq!(again.function, TaskManagementFunction::LogicalUnitReset);
    world.events();
    world.answer_function(1, again.itt, DONE);
    assert_eq!(world.events(), [Event::FunctionDone { function, response: DONE }]);
}

#[test]
fn an_abort_follows_its_task_to_its_new_lane() {
    let mut world = World::recovering(2, 2);
    let task = world.write(1, 10);
    acknowledge(&mut world, 0, 1);
    let function = world.session.task_management(world.now, TaskFunction::AbortTask(task));
    world.function(1);
    lose_and_log_out(&mut world, 1, 0);
    let reassign = world.function(0);
    assert_eq!(world.pull(0), None);
    world.answer_function(0, reassign.itt, DONE);
    let abort = world.function(0);
    assert_eq!((abort.function, abort.referenced_task), (TaskManagementFunction::AbortTask, Itt(task.0)));
    world.events();
    world.answer_function(0, abort.itt, DONE);
    let events = world.events();
    assert!(events.contains(&Event::Lost { task, started: true }));
    assert!(events.contains(&Event::FunctionDone { function, response: DONE }));
}

#[test]
fn a_target_that_breaks_the_protocol_ends_the_session_at_level_2_too() {
    let mut world = World::recovering(2, 2);
    let task = world.read(0, 100);
    let data = world.data_in(task, 0, 1, 100);
    assert!(world.receive(0, &data.emit(), &[]).is_err());
    assert!(is_over(&mut world));
}

#[test]
fn a_connection_that_the_target_drops_is_left_alone_and_kept_for_as_long_as_the_target_says() {
    let mut world = World::recovering(2, 2);
    let event = AsyncEvent::ConnectionDrop { cid: Cid(1), wait_seconds: 7, retain_seconds: 9 };
    let message = AsyncMessage {
        event,
        lun: UNIT,
        stat_sn: world.take_stat_sn(0),
        window: world.window,
        data_segment_bytes: 0,
    };
    world.receive(0, &message.emit(), &[]).unwrap();
    let lane = LaneId(1);
    let events = world.events();
    assert!(events.contains(&Event::CloseLane { lane, loss: LaneLoss::Broken, fault: None }), "{events:?}");
    world.lose(1);
    let not_before = world.now + Duration::from_secs(7);
    let until = not_before + Duration::from_secs(9);
    let lost = Event::ConnectionLost { lane, cid: Cid(1), is_last: false, not_before, until };
    assert_eq!(world.events(), [lost]);
}

#[test]
fn at_level_1_a_broken_connection_ends_the_session() {
    let mut world = World::recovering(1, 2);
    world.write(0, 10);
    world.lose(1);
    assert!(is_over(&mut world));
}

#[test]
fn a_session_is_logged_out_when_its_recovered_tasks_have_ended() {
    let mut world = World::recovering(2, 1);
    let task = world.write(0, 10);
    acknowledge(&mut world, 0, 1);
    world.session.logout(world.now);
    world.lose(0);
    world.pass(WAIT);
    let lane = world.add_connection(0);
    let reassign = world.function(lane);
    world.answer_function(lane, reassign.itt, DONE);
    assert_eq!(finish(&mut world, lane, task), 10);
    let Some((InitiatorPdu::LogoutRequest(logout), _)) = world.pull(lane) else { panic!() };
    assert_eq!(logout.reason, LogoutReason::CloseSession);
}

/// The target has no room for this immediate request.
fn reject_function(world: &mut World, lane: usize, function: &TaskManagementRequest) {
    world.reject(lane, RejectReason::ImmediateCommandReject, &function.emit()).unwrap();
}

#[test]
fn a_reassignment_that_the_target_has_no_room_for_is_asked_for_when_another_is_answered_or_soon() {
    let mut world = World::recovering(2, 2);
    for _ in 0..3 {
        world.write(1, 10);
    }
    acknowledge(&mut world, 0, 3);
    lose_and_log_out(&mut world, 1, 0);
    let asked: Vec<_> = (0..3).map(|_| world.function(0)).collect();
    reject_function(&mut world, 0, &asked[1]);
    reject_function(&mut world, 0, &asked[2]);
    assert_eq!(world.pull(0), None);
    world.answer_function(0, asked[0].itt, DONE);
    assert_eq!(world.function(0).itt, asked[1].itt);
    reject_function(&mut world, 0, &asked[1]);
    assert_eq!(world.pull(0), None);
    world.pass(Duration::from_millis(100));
    for expected in &asked[1..] {
        assert_eq!(world.function(0).itt, expected.itt);
        world.answer_function(0, expected.itt, DONE);
    }
    let counters = world.session.counters();
    assert_eq!((counters.recovered_lanes, counters.reassignments), (1, 3));
}

/// Pulls what must be reassignments, all that there are.
fn reassignments(world: &mut World) -> Vec<TaskManagementRequest> {
    let request = |pdu| match pdu {
        InitiatorPdu::TaskManagementRequest(request) => request,
        other => panic!("not a reassignment: {other:?}"),
    };
    world.pull_all(0).into_iter().map(request).collect()
}

/// So many writes have lost their lane.
fn with_orphans(tasks: u32) -> World {
    let mut world = World::recovering(2, 2);
    for task in 1..=tasks {
        world.write(1, 10);
        acknowledge(&mut world, 0, task);
    }
    lose_and_log_out(&mut world, 1, 0);
    world
}

#[test]
fn reassignments_are_asked_for_by_the_dozen_and_twice_as_many_in_the_next_round_trip() {
    let mut world = with_orphans(60);
    let mut rounds = Vec::new();
    loop {
        let asked = reassignments(&mut world);
        if asked.is_empty() {
            break;
        }
        rounds.push(asked.len());
        asked.iter().for_each(|asked| world.answer_function(0, asked.itt, DONE));
    }
    assert_eq!(rounds, [16, 32, 12]);
    assert_eq!(world.session.counters().recovered_lanes, 1);
}

#[test]
fn a_target_that_takes_few_immediate_requests_is_not_asked_for_ever_more() {
    let mut world = with_orphans(60);
    let (mut granted, mut rounds) = (0, Vec::new());
    while granted < 60 {
        // What was rejected last is asked for after a pause.
        world.pass(Duration::from_millis(100));
        let asked = reassignments(&mut world);
        rounds.push(asked.len());
        let (accepted, rejected) = asked.split_at(asked.len().min(4));
        accepted.iter().for_each(|asked| world.answer_function(0, asked.itt, DONE));
        rejected.iter().for_each(|asked| reject_function(&mut world, 0, asked));
        granted += accepted.len();
    }
    assert_eq!(world.session.counters().recovered_lanes, 1);
    // In the second round there are four more, which were granted before the first was rejected.
    assert!(rounds.iter().all(|asked| *asked <= 20), "{rounds:?}");
}
