//! Tasks whose requests and responses take different lanes. No login negotiates that, so the tests set such routes by
//! hand.

#[path = "../../tests/initiator/world/mod.rs"]
#[allow(
    dead_code,
    clippy::cast_possible_truncation,
    reason = "the tests in `tests/initiator` use the rest; their numbers are small"
)]
mod initiator_world;

use super::{LaneState, TaskId};
use crate::lanes::Route;
use crate::seam::Endpoint;
use initiator_world::{FIRST_CMD_SN, World};
use pdu::{DataSn, Duration, LaneId, LogoutOutcome, TaskManagementFunction, Ttt};

const ROUTE: Route = Route { request: LaneId(0), response: LaneId(1), data_in: LaneId(1) };
const TIME2WAIT: Duration = Duration::from_secs(2);

fn start(world: &mut World, task: TaskId) -> TaskId {
    assert_eq!(world.session.start_on(ROUTE), Some(task));
    world.command(0);
    task
}

/// The number of tasks and of bytes that each lane carries.
fn loads(world: &World) -> Vec<(u32, u64)> {
    let load = |state: LaneState| (state.outstanding_commands, state.outstanding_bytes());
    (0..3).map(|lane| load(world.session.lane_state(LaneId(lane)))).collect()
}

fn complete(world: &mut World, task: TaskId, data_pdus: u32) {
    let mut response = world.response(1, task);
    response.exp_data_sn = DataSn(data_pdus);
    world.receive(1, &response.emit(), &[]).expect("a response in order");
}

#[test]
fn a_read_counts_on_both_lanes_and_its_bytes_on_that_of_the_responses() {
    let mut world = World::with_connections(3);
    let task = world.submit_read(1500);
    start(&mut world, task);
    assert_eq!(loads(&world), [(1, 0), (1, 1500), (0, 0)]);
    let data_in = world.data_in(task, 0, 0, 1000);
    world.receive(1, &data_in.emit(), &[0; 1000]).expect("data in order");
    assert_eq!(loads(&world), [(1, 0), (1, 500), (0, 0)]);
    complete(&mut world, task, 1);
    assert_eq!(loads(&world), [(0, 0); 3]);
}

#[test]
fn a_write_counts_on_both_lanes_and_its_bytes_on_that_of_the_requests() {
    let mut world = World::with_connections(3);
    let task = world.submit_write(6000);
    start(&mut world, task);
    let immediate_bytes = 1020;
    assert_eq!(loads(&world), [(1, 6000 - immediate_bytes), (1, 0), (0, 0)]);
    complete(&mut world, task, 0);
    assert_eq!(loads(&world), [(0, 0); 3]);
}

#[test]
fn a_task_that_loses_either_lane_weighs_nothing_on_the_other_and_is_reassigned() {
    for (lost, left) in [(0, 1), (1, 0)] {
        for reads in [false, true] {
            let mut world = World::recovering(2, 3);
            let task = if reads { world.submit_read(5000) } else { world.submit_write(5000) };
            start(&mut world, task);
            world.acknowledge_before(FIRST_CMD_SN.next());
            let news = world.nop_in(Ttt::NONE);
            world.receive(2, &news.emit(), &[]).expect("news of the window");
            world.lose(lost);
            assert_eq!(loads(&world), [(0, 0); 3], "lane {lost} was lost");
            assert_eq!(world.pull(left), None, "nothing of the task is sent on lane {left}");
            world.pass(TIME2WAIT);
            let over = if lost == 0 { 1 } else { 0 };
            world.answer_logout(over, LogoutOutcome::Closed, 0);
            let asks = |world: &World, lane| world.session.wants_transmit(LaneId(lane));
            let lane = (0..3_u16).find(|lane| asks(&world, (*lane).into())).expect("a lane that asks");
            let request = world.function(lane.into());
            assert_eq!(request.function, TaskManagementFunction::TaskReassign);
            assert_eq!(request.referenced_task.0, task.0);
            assert_eq!(loads(&world).iter().map(|(tasks, _)| tasks).sum::<u32>(), 1);
        }
    }
}

#[test]
fn a_command_that_has_not_left_moves_whole_when_its_responses_lose_their_lane() {
    let mut world = World::recovering(2, 3);
    let task = world.submit_write(5000);
    assert_eq!(world.session.start_on(ROUTE), Some(task));
    world.lose(1);
    assert_eq!(world.pull(0), None);
    assert_eq!(loads(&world), [(0, 0); 3]);
    world.pass(TIME2WAIT);
    world.answer_logout(0, LogoutOutcome::Closed, 0);
    let again = world.command(0);
    assert_eq!((again.itt.0, again.cmd_sn), (task.0, FIRST_CMD_SN));
}
