//! Tasks whose requests and responses take different lanes. No login negotiates that, so the tests set such routes by
//! hand.

#[path = "../../tests/target/world/mod.rs"]
#[allow(dead_code, reason = "the tests in `tests/target` use the rest")]
mod target_world;

use super::TaskId;
use crate::lanes::Route;
use crate::seam::LaneLoss;
use pdu::{InitiatorPdu, Itt, LaneId, TaskManagementOutcome};
use target_world::{GOOD, World, pattern, response};

const ROUTE: Route = Route { request: LaneId(0), response: LaneId(1), data_in: LaneId(1) };
const DONE: TaskManagementOutcome = TaskManagementOutcome::FunctionComplete;
const STILL_ALLEGIANT: TaskManagementOutcome = TaskManagementOutcome::TaskStillAllegiant;

/// Routes the responses of a task that came on lane 0 to lane 1.
fn split(world: &mut World, task: TaskId) {
    world.session.tasks.get_mut(task).expect("a task").route = ROUTE;
}

#[test]
fn data_and_status_take_the_lane_of_the_responses() {
    let mut world = World::of_level(2, 3);
    world.read(0, 7, 700);
    let task = world.task();
    split(&mut world, task);
    world.give(task, 0, 700);
    world.respond(task, GOOD, 700);
    assert_eq!(world.pull(0), []);
    assert_eq!(world.pull(1).len(), 2);
}

#[test]
fn a_task_that_loses_either_lane_waits_for_another_and_is_answered_there_alone() {
    for (lost, left) in [(0, 1), (1, 0)] {
        let mut world = World::of_level(2, 3);
        world.read(0, 7, 700);
        let task = world.task();
        split(&mut world, task);
        assert_eq!(world.reassign(2, 7, 0), STILL_ALLEGIANT);
        world.lose(lost, LaneLoss::Broken);
        // Lane `left` carries the message that the other lane is gone.
        world.pull(left);
        world.remove(2, u16::try_from(lost).expect("a small number"));
        world.give(task, 0, 700);
        world.respond(task, GOOD, 700);
        assert_eq!(world.pull(left), []);
        assert_eq!(world.reassign(2, 7, 0), DONE);
        assert_eq!(world.pull(2).len(), 2);
    }
}

#[test]
fn a_status_on_its_way_is_given_again_and_its_old_number_ends_nothing() {
    let mut world = World::of_level(2, 3);
    world.acknowledges = false;
    world.plain(0, 7);
    let task = world.task();
    split(&mut world, task);
    world.respond(task, GOOD, 0);
    assert_eq!(response(&world.pull_only(1)).itt, Itt(7));
    world.lose(0, LaneLoss::Broken);
    world.remove(2, 0);
    world.acknowledges = true;
    world.acknowledge(1);
    assert_eq!(world.reassign(2, 7, 0), DONE);
    assert_eq!(response(&world.pull_only(2)).itt, Itt(7));
}

#[test]
fn data_for_a_task_that_lost_the_lane_of_its_responses_is_passed_over() {
    let mut world = World::of_level(2, 3);
    world.write(0, 7, 2000, &pattern(512), true);
    let task = world.task();
    split(&mut world, task);
    world.lose(1, LaneLoss::Broken);
    let pdu = world.data_out(0, 7, pdu::Ttt::NONE, 0, 512, 1000);
    let counted = world.session.counters().discarded_bytes;
    world.send(0, &InitiatorPdu::DataOut(pdu), &pattern(1000));
    assert_eq!(world.session.counters().discarded_bytes, counted + 1000);
}
