//! What each initiator is told, when, and by which commands.

use pdu::TaskAttribute;
use ropewalk_device::unit_state::{NexusId, NexusTask, Reset, UnitState};
use scsi::{AdditionalSense, Blocks, Outcome, Sense, SenseKey, Status, Threshold};
use session::target::TaskId;

const A: NexusId = NexusId(1);
const B: NexusId = NexusId(2);
const TEST_UNIT_READY: &[u8] = &[0; 6];
const INQUIRY: &[u8] = &[0x12, 0, 0, 0, 96, 0];
const REPORT_LUNS: &[u8] = &[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0];
const REQUEST_SENSE: &[u8] = &[0x03, 0, 0, 0, 18, 0];

fn task(nexus: NexusId, number: u32) -> NexusTask {
    NexusTask { nexus, task: TaskId(number) }
}

/// What a command is told instead of being carried out.
fn told_by(unit: &mut UnitState, nexus: NexusId, cdb: &[u8]) -> Option<AdditionalSense> {
    let probe = task(nexus, u32::MAX);
    match unit.arrive(probe, TaskAttribute::Simple, cdb) {
        Ok(()) => {
            assert_eq!(unit.finish(probe), []);
            None
        }
        Err(Outcome::CheckCondition(Sense { key: SenseKey::UnitAttention, additional, .. })) => {
            Some(additional)
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// All that is pending, in order.
fn told(unit: &mut UnitState, nexus: NexusId) -> Vec<AdditionalSense> {
    core::iter::from_fn(|| told_by(unit, nexus, TEST_UNIT_READY)).collect()
}

/// A unit that both nexuses know and from which neither has to learn anything.
fn quiet() -> UnitState {
    let mut unit = UnitState::new();
    for nexus in [A, B] {
        unit.establish(nexus, crate::world::ports(nexus));
        told(&mut unit, nexus);
    }
    unit
}

/// Something that each nexus can be told.
const NEWS: AdditionalSense = AdditionalSense::SOME_COMMANDS_CLEARED_BY_ISCSI_PROTOCOL_EVENT;

fn tell_both(unit: &mut UnitState) {
    [A, B].into_iter().for_each(|nexus| unit.commands_cleared_by_protocol_event(nexus));
}

#[test]
fn the_first_contact_tells_of_power_on_once() {
    let mut unit = UnitState::new();
    unit.establish(A, crate::world::ports(A));
    let power_on = AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED;
    assert_eq!(told(&mut unit, A), [power_on]);
    assert_eq!(told(&mut unit, A), []);
}

#[test]
fn each_nexus_is_told_for_itself() {
    let mut unit = quiet();
    tell_both(&mut unit);
    for nexus in [A, B] {
        assert_eq!(told(&mut unit, nexus), [NEWS]);
    }
}

#[test]
fn inquiry_and_report_luns_neither_tell_nor_clear() {
    let mut unit = quiet();
    tell_both(&mut unit);
    assert_eq!(told_by(&mut unit, A, INQUIRY), None);
    assert_eq!(told_by(&mut unit, A, REPORT_LUNS), None);
    assert_eq!(told(&mut unit, A), [NEWS]);
}

#[test]
fn request_sense_tells_and_clears() {
    let mut unit = quiet();
    tell_both(&mut unit);
    assert_eq!(told_by(&mut unit, A, REQUEST_SENSE), None);
    let sense = unit.request_sense(A).expect("pending");
    assert_eq!(sense, Sense::unit_attention(NEWS));
    assert_eq!(unit.request_sense(A), None);
    assert_eq!(told(&mut unit, A), []);
}

/// What a command that writes nothing is told, whatever it is.
fn sense_told_to(unit: &mut UnitState, nexus: NexusId) -> Option<Sense> {
    let probe = task(nexus, u32::MAX);
    match unit.arrive(probe, TaskAttribute::Simple, TEST_UNIT_READY) {
        Ok(()) => {
            assert_eq!(unit.finish(probe), []);
            None
        }
        Err(outcome) => outcome.sense().copied(),
    }
}

const LOST: Sense = Sense::FLUSH_FAILED;

#[test]
fn a_deferred_error_is_told_to_each_nexus_once_but_not_to_whoever_knows() {
    let mut unit = quiet();
    unit.defer_error(LOST, None);
    unit.defer_error(LOST, Some(A));
    for nexus in [A, B] {
        assert_eq!(told_by(&mut unit, nexus, INQUIRY), None);
        assert_eq!(sense_told_to(&mut unit, nexus), Some(LOST.deferred()));
        assert_eq!(sense_told_to(&mut unit, nexus), None);
    }
    unit.defer_error(LOST, Some(A));
    assert_eq!(sense_told_to(&mut unit, A), None);
    assert_eq!(unit.request_sense(B), Some(LOST.deferred()));
    assert_eq!(sense_told_to(&mut unit, B), None);
}

#[test]
fn a_deferred_error_waits_for_an_initiator_that_is_away_and_outlives_a_reset() {
    let mut unit = quiet();
    unit.defer_error(LOST, None);
    let _ = unit.lose(A);
    unit.establish(A, crate::world::ports(A));
    let _ = unit.reset(Reset::LogicalUnit);
    assert_eq!(
        told_by(&mut unit, A, TEST_UNIT_READY),
        Some(AdditionalSense::BUS_DEVICE_RESET_FUNCTION_OCCURRED)
    );
    assert_eq!(sense_told_to(&mut unit, A), Some(LOST.deferred()));
    // Who goes away in order and comes back is as new.
    let _ = unit.leave(B);
    unit.establish(B, crate::world::ports(B));
    assert_eq!(told(&mut unit, B), [AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED]);
}

#[test]
fn a_reset_is_told_to_all_in_place_of_what_was_pending() {
    for (reset, expected) in [
        (Reset::LogicalUnit, AdditionalSense::BUS_DEVICE_RESET_FUNCTION_OCCURRED),
        (Reset::Target, AdditionalSense::SCSI_BUS_RESET_OCCURRED),
    ] {
        let mut unit = quiet();
        tell_both(&mut unit);
        let _ = unit.reset(reset);
        assert_eq!(told(&mut unit, A), [expected]);
        assert_eq!(told(&mut unit, B), [expected]);
    }
}

#[test]
fn clearing_the_task_set_is_told_to_others_that_lost_tasks() {
    let c = NexusId(3);
    let mut unit = quiet();
    unit.establish(c, crate::world::ports(c));
    told(&mut unit, c);
    for nexus in [A, B] {
        assert_eq!(unit.arrive(task(nexus, 0), TaskAttribute::Simple, TEST_UNIT_READY), Ok(()));
    }
    let cleared = unit.clear_task_set(A);
    assert_eq!(cleared.dropped, [task(A, 0), task(B, 0)]);
    assert_eq!(told(&mut unit, A), []);
    assert_eq!(told(&mut unit, B), [AdditionalSense::COMMANDS_CLEARED_BY_ANOTHER_INITIATOR]);
    assert_eq!(told(&mut unit, c), []);
}

#[test]
fn a_nexus_that_comes_back_learns_of_its_loss_and_of_lost_commands() {
    let mut unit = quiet();
    assert_eq!(unit.arrive(task(A, 0), TaskAttribute::Simple, TEST_UNIT_READY), Ok(()));
    let lost = unit.lose(A);
    assert_eq!(lost.dropped, [task(A, 0)]);
    let again = NexusId(9);
    unit.establish(again, crate::world::ports(A));
    let expected = [
        AdditionalSense::I_T_NEXUS_LOSS_OCCURRED,
        AdditionalSense::SOME_COMMANDS_CLEARED_BY_ISCSI_PROTOCOL_EVENT,
    ];
    assert_eq!(told(&mut unit, again), expected);
    assert_eq!(told(&mut unit, B), []);
}

#[test]
fn a_nexus_that_comes_back_is_told_what_it_has_missed() {
    let mut unit = quiet();
    tell_both(&mut unit);
    let _ = unit.lose(A);
    let again = NexusId(9);
    unit.establish(again, crate::world::ports(A));
    assert_eq!(told(&mut unit, again), [AdditionalSense::I_T_NEXUS_LOSS_OCCURRED, NEWS]);
    let _ = unit.lose(B);
    let _ = unit.reset(Reset::LogicalUnit);
    let again = NexusId(10);
    unit.establish(again, crate::world::ports(B));
    let expected =
        [AdditionalSense::BUS_DEVICE_RESET_FUNCTION_OCCURRED, AdditionalSense::I_T_NEXUS_LOSS_OCCURRED];
    assert_eq!(told(&mut unit, again), expected);
}

#[test]
fn who_has_logged_out_begins_anew() {
    let mut unit = quiet();
    tell_both(&mut unit);
    let _ = unit.leave(A);
    unit.establish(A, crate::world::ports(A));
    assert_eq!(told(&mut unit, A), [AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED]);
}

#[test]
fn no_more_lost_nexuses_are_remembered_than_there_is_room_for() {
    let mut unit = quiet();
    let _ = unit.lose(A);
    for other in (100..).take(1024).map(NexusId) {
        unit.establish(other, crate::world::ports(other));
        let _ = unit.lose(other);
    }
    unit.establish(A, crate::world::ports(A));
    assert_eq!(told(&mut unit, A), [AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED]);
}

#[test]
fn commands_lost_with_a_connection_are_told_to_their_own_nexus() {
    let mut unit = quiet();
    unit.commands_cleared_by_protocol_event(A);
    assert_eq!(told(&mut unit, A), [AdditionalSense::SOME_COMMANDS_CLEARED_BY_ISCSI_PROTOCOL_EVENT]);
    assert_eq!(told(&mut unit, B), []);
}

#[test]
fn a_refused_command_is_not_in_the_task_set() {
    let mut unit = quiet();
    tell_both(&mut unit);
    assert!(unit.arrive(task(A, 0), TaskAttribute::Simple, TEST_UNIT_READY).is_err());
    assert_eq!(unit.abort_task_set(A).dropped, []);
}

#[test]
fn there_is_no_auto_contingent_allegiance() {
    let mut unit = quiet();
    let refused = unit.arrive(task(A, 0), TaskAttribute::Aca, TEST_UNIT_READY);
    let sense = Sense::illegal_request(AdditionalSense::INVALID_MESSAGE_ERROR);
    assert_eq!(refused, Err(Outcome::CheckCondition(sense)));
}

#[test]
fn a_full_task_set_says_so() {
    let mut unit = quiet();
    for number in 0..u32::try_from(ropewalk_device::unit_state::TASKS_MAX).expect("fits") {
        assert_eq!(unit.arrive(task(A, number), TaskAttribute::Simple, TEST_UNIT_READY), Ok(()));
    }
    let refused = unit.arrive(task(B, 0), TaskAttribute::Simple, TEST_UNIT_READY);
    assert_eq!(refused, Err(Outcome::Refused(Status::TaskSetFull)));
}

#[test]
fn a_nexus_that_is_not_there_gets_nothing_done() {
    let mut unit = quiet();
    let refused = unit.arrive(task(NexusId(7), 0), TaskAttribute::Simple, INQUIRY);
    assert_eq!(refused, Err(Outcome::internal_failure()));
    assert_eq!(unit.request_sense(NexusId(7)), None);
}

#[test]
fn a_threshold_is_told_to_all_once_each_time_that_it_is_reached() {
    const REACHED: [AdditionalSense; 1] = [AdditionalSense::THIN_PROVISIONING_SOFT_THRESHOLD_REACHED];
    let threshold = Threshold::from_used_percent(75, Blocks(1 << 20)).expect("a threshold");
    let (little, much) = (Blocks(1 << 17), Blocks(1 << 19));
    let mut unit = quiet();
    for (available, expected) in
        [(much, &[][..]), (little, &REACHED), (little, &[]), (much, &[]), (little, &REACHED)]
    {
        unit.can_allocate(available, threshold);
        assert_eq!(told(&mut unit, A), expected);
        assert_eq!(told(&mut unit, B), expected);
    }
    let _ = unit.reset(Reset::LogicalUnit);
    told(&mut unit, A);
    unit.can_allocate(little, threshold);
    assert_eq!(told(&mut unit, A), REACHED);
}

#[test]
fn what_is_told_first_after_tasks_of_others_were_aborted_is_fenced() {
    let mut unit = quiet();
    assert_eq!(unit.arrive(task(B, 0), TaskAttribute::Simple, TEST_UNIT_READY), Ok(()));
    let _ = unit.clear_task_set(A);
    unit.commands_cleared_by_protocol_event(B);
    assert!(!unit.take_fence(A) && !unit.take_fence(B));
    assert!(told_by(&mut unit, B, TEST_UNIT_READY).is_some() && unit.take_fence(B));
    assert!(told_by(&mut unit, B, TEST_UNIT_READY).is_some() && !unit.take_fence(B));
    let _ = unit.reset(Reset::LogicalUnit);
    for nexus in [A, B] {
        assert!(unit.request_sense(nexus).is_some() && unit.take_fence(nexus));
    }
}
