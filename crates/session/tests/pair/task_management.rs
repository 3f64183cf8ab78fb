//! Task management functions, from the request to what becomes of the tasks.

use crate::world::device::GOOD;
use crate::world::{Settings, UNIT, World};
use pdu::{LaneId, TaskManagementOutcome};
use ropewalk_session::initiator::{Event, FunctionId, TaskFunction, TaskId};

fn outcome(world: &World, of: FunctionId) -> Option<TaskManagementOutcome> {
    world.events.iter().find_map(|event| match event {
        Event::FunctionDone { function, response } if *function == of => Some(*response),
        _ => None,
    })
}

#[test]
fn a_task_that_is_aborted_is_lost_and_others_go_on() {
    let mut world = World::with_connections(2);
    let hanging = world.hang();
    world.run();
    let function = world.initiator.session.task_management(world.now, TaskFunction::AbortTask(hanging));
    let write = world.write(0, &[1; 5000]);
    world.run();
    assert_eq!(outcome(&world, function), Some(TaskManagementOutcome::FunctionComplete));
    assert_eq!(world.lost.get(&hanging), Some(&true));
    assert_eq!(world.completed[&write].status, GOOD);
}

#[test]
fn a_task_that_has_not_started_is_aborted_without_a_word() {
    let mut world = World::with_delays(Settings { window_commands: 1, ..Settings::default() }, &[5]);
    let first = world.write(0, &[1; 100]);
    let queued = world.write(0, &[2; 100]);
    let function = world.initiator.session.task_management(world.now, TaskFunction::AbortTask(queued));
    world.run();
    assert_eq!(outcome(&world, function), Some(TaskManagementOutcome::FunctionComplete));
    assert_eq!(world.lost.get(&queued), Some(&false));
    assert!(world.completed.contains_key(&first));
}

#[test]
fn a_task_that_is_no_more_does_not_exist() {
    let mut world = World::with_connections(1);
    let write = world.write(0, &[1; 100]);
    world.run();
    let function = world.initiator.session.task_management(world.now, TaskFunction::AbortTask(write));
    world.run();
    assert_eq!(outcome(&world, function), Some(TaskManagementOutcome::TaskDoesNotExist));
}

#[test]
fn a_reset_ends_the_tasks_of_every_connection_and_no_command_starts_before_it_is_done() {
    let mut world = World::with_delays(Settings::default(), &[40, 3, 17]);
    let hanging: Vec<TaskId> = (0..12).map(|_| world.hang()).collect();
    let written = world.write(0, &[9; 100_000]);
    world.run();
    let function = world.initiator.session.task_management(world.now, TaskFunction::LogicalUnitReset(UNIT));
    let after = world.write(200_000, &[1; 100]);
    assert_eq!(world.initiator.session.demand(), None);
    world.run();
    assert_eq!(outcome(&world, function), Some(TaskManagementOutcome::FunctionComplete));
    assert!(hanging.iter().all(|task| world.lost.get(task) == Some(&true)));
    assert_eq!((world.completed[&written].status, world.completed[&after].status), (GOOD, GOOD));
    assert_eq!((world.faults.as_slice(), world.is_clean()), ([].as_slice(), true));
}

#[test]
fn tasks_of_a_set_are_aborted_while_their_data_moves_on_several_connections() {
    for steps in 1..40 {
        let mut world = World::with_delays(Settings { seed: steps, ..Settings::default() }, &[4, 9, 1]);
        let tasks: Vec<TaskId> = (0..6)
            .map(|index| if index % 2 == 0 { world.write(0, &[1; 300_000]) } else { world.read(0, 300_000) })
            .collect();
        world.run_for(pdu::Duration::from_micros(steps * 1000));
        let function = match steps % 3 {
            0 => TaskFunction::AbortTaskSet(UNIT),
            1 => TaskFunction::ClearTaskSet(UNIT),
            _ => TaskFunction::AbortTask(tasks[steps as usize % 6]),
        };
        let function = world.initiator.session.task_management(world.now, function);
        let after = world.read(0, 100);
        world.run();
        assert!(outcome(&world, function).is_some());
        assert!(tasks.iter().all(|task| world.completed.contains_key(task) != world.lost.contains_key(task)));
        assert!(world.completed.contains_key(&after));
        assert_eq!((world.faults.as_slice(), world.is_clean()), ([].as_slice(), true), "at {steps} ms");
    }
}

#[test]
fn a_lane_with_an_aborted_task_can_be_logged_out() {
    let mut world = World::with_connections(2);
    world.preferred = vec![LaneId(1)];
    let hanging = world.hang();
    world.run();
    world.initiator.session.logout_lane(world.now, LaneId(1));
    world.run();
    assert_eq!(world.lanes().len(), 2);
    world.initiator.session.task_management(world.now, TaskFunction::AbortTask(hanging));
    world.run();
    assert_eq!(world.initiator.session.counters().lanes, 1);
    assert_eq!(world.target.session.counters().lanes, 1);
}
