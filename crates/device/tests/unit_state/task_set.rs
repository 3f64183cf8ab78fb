//! In what order tasks reach the disk, which never meet there, and what aborting does to them.

use TaskAttribute::{HeadOfQueue, Ordered, Simple};

use pdu::TaskAttribute;
use proptest::prelude::*;
use ropewalk_device::unit_state::{Admission, Cleared, NexusId, NexusTask, Reset, UnitState};
use scsi::{Extent, ModeSelect, Step};
use session::target::TaskId;

const A: NexusId = NexusId(1);
const B: NexusId = NexusId(2);
/// Told to no one: INQUIRY arrives whatever unit attention is pending.
const CDB: &[u8] = &[0x12];

fn task(nexus: NexusId, number: u32) -> NexusTask {
    NexusTask { nexus, task: TaskId(number) }
}

fn read() -> Step {
    Step::Read { extent: Extent::new(0, 100), fua: false }
}

fn write(lba: u64, blocks: u64) -> Step {
    Step::Write { extent: Extent::new(lba, blocks), fua: false }
}

fn compare_and_write(lba: u64) -> Step {
    Step::CompareAndWrite { extent: Extent::new(lba, 1), fua: false }
}

/// A unit with tasks of nexus A, numbered from 0, in this order.
fn with(attributes: &[TaskAttribute]) -> UnitState {
    let mut unit = UnitState::new();
    unit.establish(A, crate::world::ports(A));
    unit.establish(B, crate::world::ports(B));
    for (number, attribute) in (0..).zip(attributes) {
        assert_eq!(unit.arrive(task(A, number), *attribute, CDB), Ok(()));
    }
    unit
}

fn ready(unit: &mut UnitState, number: u32) -> Admission {
    unit.ready(task(A, number), &read())
}

/// What a copy occupies at a unit: a source and a destination.
fn copied() -> Vec<Extent> {
    vec![Extent::new(0, 8), Extent::new(100, 8)]
}

#[test]
fn a_copy_waits_for_a_compare_and_write_at_its_source_or_destination() {
    for lba in [7, 100] {
        let mut unit = with(&[Simple, Simple]);
        assert_eq!(unit.ready(task(A, 0), &compare_and_write(lba)), Admission::Start);
        assert_eq!(unit.occupy(task(A, 1), copied()), Admission::Wait);
        assert_eq!(unit.finish(task(A, 0)), [task(A, 1)]);
        assert_eq!(unit.vacate(task(A, 1)), []);
    }
}

#[test]
fn a_compare_and_write_waits_for_a_copy_that_was_there_before() {
    for lba in [7, 100] {
        let mut unit = with(&[Simple, Simple, Simple]);
        assert_eq!(unit.occupy(task(A, 0), copied()), Admission::Start);
        assert_eq!(unit.ready(task(A, 1), &compare_and_write(lba)), Admission::Wait);
        assert_eq!(unit.ready(task(A, 2), &compare_and_write(50)), Admission::Start);
        assert_eq!(unit.vacate(task(A, 0)), [task(A, 1)]);
    }
}

#[test]
fn copies_and_compare_and_writes_take_turns() {
    let mut unit = with(&[Simple, Simple]);
    assert_eq!(unit.occupy(task(B, 0), copied()), Admission::Start);
    assert_eq!(unit.ready(task(A, 0), &compare_and_write(0)), Admission::Wait);
    // The next copy does not overtake what waits.
    assert_eq!(unit.occupy(task(B, 1), copied()), Admission::Wait);
    assert_eq!(unit.vacate(task(B, 0)), [task(A, 0)]);
    assert_eq!(unit.finish(task(A, 0)), [task(B, 1)]);
}

#[test]
fn copies_wait_neither_for_each_other_nor_for_writes_nor_for_order() {
    let mut unit = with(&[Ordered, Simple]);
    assert_eq!(unit.ready(task(A, 0), &write(0, 8)), Admission::Start);
    assert_eq!(unit.occupy(task(A, 1), copied()), Admission::Start);
    assert_eq!(unit.occupy(task(B, 1), copied()), Admission::Start);
}

#[test]
fn blocks_stay_occupied_when_the_task_set_is_cleared() {
    let mut unit = with(&[Simple, Simple]);
    assert_eq!(unit.occupy(task(B, 7), copied()), Admission::Start);
    assert_eq!(unit.ready(task(A, 0), &compare_and_write(0)), Admission::Wait);
    let cleared = unit.clear_task_set(A);
    assert_eq!((cleared.dropped.len(), cleared.started.len()), (2, 0));
    assert_eq!(cleared.copying, [task(B, 7)]);
    assert_eq!(unit.arrive(task(A, 9), Simple, CDB), Ok(()));
    assert_eq!(unit.ready(task(A, 9), &compare_and_write(0)), Admission::Wait);
    assert_eq!(unit.vacate(task(B, 7)), [task(A, 9)]);
}

#[test]
fn mode_parameters_change_and_a_medium_is_ejected_while_nobody_writes() {
    for terms in [Step::ModeSelect(ModeSelect::default()), Step::Eject { flush: true }] {
        let mut unit = with(&[Simple; 5]);
        assert_eq!(unit.ready(task(A, 0), &write(0, 1)), Admission::Start);
        assert_eq!(unit.ready(task(A, 1), &terms), Admission::Wait);
        assert_eq!(unit.ready(task(A, 2), &write(8, 1)), Admission::Wait);
        assert_eq!(unit.ready(task(A, 3), &terms), Admission::Wait);
        assert_eq!(unit.ready(task(A, 4), &read()), Admission::Start);
        assert_eq!(unit.finish(task(A, 0)), [task(A, 1)]);
        assert_eq!(unit.finish(task(A, 1)), [task(A, 2)]);
        assert_eq!(unit.finish(task(A, 2)), [task(A, 3)]);
    }
}

#[test]
fn simple_tasks_start_in_any_order() {
    let mut unit = with(&[Simple, Simple]);
    assert_eq!(ready(&mut unit, 1), Admission::Start);
    assert_eq!(ready(&mut unit, 0), Admission::Start);
}

#[test]
fn an_ordered_task_waits_for_all_older_ones() {
    let mut unit = with(&[Simple, Simple, Ordered]);
    assert_eq!(ready(&mut unit, 2), Admission::Wait);
    assert_eq!(ready(&mut unit, 0), Admission::Start);
    assert_eq!(unit.finish(task(A, 0)), []);
    assert_eq!(ready(&mut unit, 1), Admission::Start);
    assert_eq!(unit.finish(task(A, 1)), [task(A, 2)]);
}

#[test]
fn newer_tasks_wait_for_an_ordered_one_even_while_its_data_is_on_the_way() {
    let mut unit = with(&[Ordered, Simple, Simple]);
    assert_eq!(ready(&mut unit, 1), Admission::Wait);
    assert_eq!(ready(&mut unit, 0), Admission::Start);
    assert_eq!(ready(&mut unit, 2), Admission::Wait);
    assert_eq!(unit.finish(task(A, 0)), [task(A, 1), task(A, 2)]);
}

#[test]
fn two_ordered_tasks_run_one_after_the_other() {
    let mut unit = with(&[Ordered, Ordered]);
    assert_eq!(ready(&mut unit, 1), Admission::Wait);
    assert_eq!(ready(&mut unit, 0), Admission::Start);
    assert_eq!(unit.finish(task(A, 0)), [task(A, 1)]);
}

#[test]
fn a_task_at_the_head_of_the_queue_waits_for_nobody() {
    let mut unit = with(&[Ordered, Simple, HeadOfQueue]);
    assert_eq!(ready(&mut unit, 2), Admission::Start);
}

#[test]
fn newer_simple_tasks_wait_for_one_at_the_head_of_the_queue() {
    let mut unit = with(&[HeadOfQueue, Simple]);
    assert_eq!(ready(&mut unit, 1), Admission::Wait);
    assert_eq!(ready(&mut unit, 0), Admission::Start);
    assert_eq!(unit.finish(task(A, 0)), [task(A, 1)]);
}

#[test]
fn an_ordered_task_whose_data_is_withheld_stalls_no_other_nexus() {
    let mut unit = with(&[Ordered, Simple]);
    assert_eq!(unit.ready(task(A, 1), &compare_and_write(7)), Admission::Wait);
    for (number, attribute) in [(0, Simple), (1, Ordered)] {
        assert_eq!(unit.arrive(task(B, number), attribute, CDB), Ok(()));
        assert_eq!(unit.ready(task(B, number), &compare_and_write(7)), Admission::Start);
        assert_eq!(unit.finish(task(B, number)), []);
    }
}

#[test]
fn overlapping_plain_writes_do_not_wait() {
    let mut unit = with(&[Simple, Simple]);
    assert_eq!(unit.ready(task(A, 0), &write(0, 8)), Admission::Start);
    assert_eq!(unit.ready(task(A, 1), &write(4, 8)), Admission::Start);
}

#[test]
fn compare_and_write_waits_for_writes_to_its_blocks() {
    for started in
        [write(0, 8), Step::Unmap(vec![Extent::new(90, 1), Extent::new(7, 1)]), compare_and_write(7)]
    {
        let mut unit = with(&[Simple, Simple]);
        assert_eq!(unit.ready(task(A, 0), &started), Admission::Start);
        assert_eq!(unit.ready(task(A, 1), &compare_and_write(7)), Admission::Wait);
        assert_eq!(unit.finish(task(A, 0)), [task(A, 1)]);
    }
}

#[test]
fn compare_and_write_keeps_writes_from_its_blocks_and_from_no_others() {
    let mut unit = with(&[Simple; 4]);
    assert_eq!(unit.ready(task(A, 0), &compare_and_write(7)), Admission::Start);
    assert_eq!(unit.ready(task(A, 1), &write(0, 8)), Admission::Wait);
    assert_eq!(unit.ready(task(A, 2), &write(8, 8)), Admission::Start);
    assert_eq!(unit.ready(task(A, 3), &read()), Admission::Start);
    assert_eq!(unit.finish(task(A, 0)), [task(A, 1)]);
}

#[test]
fn a_waiting_compare_and_write_is_not_overtaken_for_ever() {
    let mut unit = with(&[Simple; 3]);
    assert_eq!(unit.ready(task(A, 0), &write(0, 8)), Admission::Start);
    assert_eq!(unit.ready(task(A, 1), &compare_and_write(7)), Admission::Wait);
    assert_eq!(unit.ready(task(A, 2), &write(7, 1)), Admission::Wait);
    assert_eq!(unit.finish(task(A, 0)), [task(A, 1)]);
    assert_eq!(unit.finish(task(A, 1)), [task(A, 2)]);
}

#[test]
fn an_aborted_task_is_dropped_or_must_first_finish() {
    let mut unit = with(&[Simple, Simple]);
    assert_eq!(ready(&mut unit, 0), Admission::Start);
    assert_eq!(unit.abort_task(task(A, 0)).started, [task(A, 0)]);
    assert_eq!(unit.abort_task(task(A, 1)).dropped, [task(A, 1)]);
    assert_eq!(ready(&mut unit, 1), Admission::Aborted);
}

#[test]
fn aborting_a_task_set_spares_other_nexuses_and_lets_their_tasks_start() {
    let mut unit = with(&[Simple, Simple]);
    for number in [0, 1] {
        assert_eq!(unit.arrive(task(B, number), Simple, CDB), Ok(()));
    }
    assert_eq!(unit.ready(task(B, 0), &write(0, 8)), Admission::Start);
    assert_eq!(unit.ready(task(A, 0), &compare_and_write(7)), Admission::Wait);
    assert_eq!(unit.ready(task(B, 1), &write(7, 1)), Admission::Wait);
    let cleared = unit.abort_task_set(A);
    assert_eq!((cleared.dropped, cleared.started), (vec![task(A, 0), task(A, 1)], vec![]));
    assert_eq!(cleared.startable, [task(B, 1)]);
}

#[test]
fn a_started_task_still_holds_its_blocks_when_aborted() {
    let mut unit = with(&[Simple, Simple]);
    assert_eq!(unit.ready(task(A, 0), &write(7, 1)), Admission::Start);
    assert_eq!(unit.abort_task(task(A, 0)).started, [task(A, 0)]);
    assert_eq!(unit.ready(task(A, 1), &compare_and_write(7)), Admission::Wait);
    assert_eq!(unit.finish(task(A, 0)), [task(A, 1)]);
}

#[test]
fn clearing_and_resetting_affect_every_nexus() {
    let functions: [fn(&mut UnitState) -> Cleared; 2] =
        [|unit| unit.clear_task_set(A), |unit| unit.reset(Reset::LogicalUnit)];
    for clear in functions {
        let mut unit = with(&[Simple]);
        assert_eq!(unit.arrive(task(B, 0), Simple, CDB), Ok(()));
        assert_eq!(unit.ready(task(B, 0), &read()), Admission::Start);
        let cleared = clear(&mut unit);
        assert_eq!((cleared.dropped, cleared.started), (vec![task(A, 0)], vec![task(B, 0)]));
    }
}

fn attribute() -> impl Strategy<Value = TaskAttribute> {
    prop_oneof![6 => Just(Simple), 2 => Just(Ordered), 1 => Just(HeadOfQueue)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(read()),
        (0..16u64, 1..8u64).prop_map(|(lba, blocks)| write(lba, blocks)),
        (0..16u64).prop_map(compare_and_write),
    ]
}

/// Blocks that a step changes, and whether it must be alone there.
fn changes(step: &Step) -> Option<(Extent, bool)> {
    match step {
        Step::Write { extent, .. } => Some((*extent, false)),
        Step::CompareAndWrite { extent, .. } => Some((*extent, true)),
        _ => None,
    }
}

fn may_meet(one: &Step, other: &Step) -> bool {
    match (changes(one), changes(other)) {
        (Some((a, alone)), Some((b, alone_too))) => !(alone || alone_too) || !a.overlaps(b),
        _ => true,
    }
}

/// One task of the property test.
#[derive(Clone, Debug)]
struct Planned {
    nexus: NexusId,
    attribute: TaskAttribute,
    step: Step,
}

fn planned() -> impl Strategy<Value = Planned> {
    let nexus = prop_oneof![Just(A), Just(B)];
    (nexus, attribute(), step()).prop_map(|(nexus, attribute, step)| Planned { nexus, attribute, step })
}

proptest! {
    /// Whatever the order in which data arrives and I/O ends: conflicting tasks never meet, each nexus's tasks
    /// keep their order, and everything ends.
    #[test]
    fn every_task_ends_and_none_meets_what_it_must_not(
        plan in proptest::collection::vec(planned(), 1..24),
        choices in proptest::collection::vec(any::<prop::sample::Index>(), 64),
    ) {
        let mut unit = with(&[]);
        let names: Vec<NexusTask> = (0..).zip(&plan).map(|(number, planned)| task(planned.nexus, number)).collect();
        for (name, planned) in names.iter().zip(&plan) {
            prop_assert_eq!(unit.arrive(*name, planned.attribute, CDB), Ok(()));
        }
        let mut arrived: Vec<usize> = (0..plan.len()).collect();
        let mut unfinished = arrived.clone();
        let mut started: Vec<usize> = Vec::new();
        let mut choices = choices.iter().cycle();
        while !unfinished.is_empty() {
            let actions = arrived.len() + started.len();
            prop_assert!(actions > 0, "{unfinished:?} wait for ever");
            let action = choices.next().expect("endless").index(actions);
            let newly = if action < arrived.len() {
                let chosen = arrived.remove(action);
                let admission = unit.ready(names[chosen], &plan[chosen].step);
                if admission == Admission::Start { vec![names[chosen]] } else { vec![] }
            } else {
                let chosen = started.remove(action - arrived.len());
                unfinished.retain(|other| *other != chosen);
                unit.finish(names[chosen])
            };
            for name in newly {
                let now = names.iter().position(|other| *other == name).expect("planned");
                prop_assert!(started.iter().all(|other| may_meet(&plan[now].step, &plan[*other].step)));
                let own = |older: &&usize| **older < now && plan[**older].nexus == name.nexus;
                let mut older = unfinished.iter().filter(own).map(|older| plan[*older].attribute);
                match plan[now].attribute {
                    Ordered => prop_assert_eq!(older.next(), None),
                    Simple => prop_assert!(older.all(|attribute| attribute == Simple)),
                    _ => {}
                }
                started.push(now);
            }
        }
    }
}
