//! What all initiators share beside the task set: mode parameters, the medium, and who is told of what.

use pdu::TaskAttribute;
use ropewalk_device::unit_state::{NexusId, NexusTask, Reset, UnitState};
use scsi::{
    AdditionalSense, BlockLength, Blocks, CopyStatus, Disk, HeldCopies, Identity, Limits, MediumAccess,
    ModeSelect, ModeSettings, Outcome, PhysicalExponent, Provisioning, Sense, SenseKey, Step,
};
use session::target::TaskId;

const A: NexusId = NexusId(1);
const B: NexusId = NexusId(2);
const TEST_UNIT_READY: &[u8] = &[0; 6];
const INQUIRY: &[u8] = &[0x12, 0, 0, 0, 96, 0];
const READ: &[u8] = &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
const WRITE: &[u8] = &[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];

fn disk() -> Disk {
    Disk {
        identity: Identity::from_name("disk"),
        target_port: None,
        other_ports: vec![],
        block: BlockLength::B512,
        physical_exponent: PhysicalExponent::default(),
        blocks: Blocks(1000),
        removable: true,
        read_only: false,
        write_cache: true,
        provisioning: Provisioning::Full,
        limits: Limits::default(),
    }
}

/// A unit that both nexuses know and from which neither has to learn anything.
fn quiet() -> UnitState {
    let mut unit = UnitState::new();
    for nexus in [A, B] {
        unit.establish(nexus, crate::world::ports(nexus));
        assert!(sense_of(&mut unit, nexus, TEST_UNIT_READY).is_some());
    }
    unit
}

/// Why a command is not carried out.
fn sense_of(unit: &mut UnitState, nexus: NexusId, cdb: &[u8]) -> Option<Sense> {
    let probe = NexusTask { nexus, task: TaskId(u32::MAX) };
    match unit.arrive(probe, TaskAttribute::Simple, cdb) {
        Ok(()) => {
            assert_eq!(unit.finish(probe), []);
            None
        }
        Err(Outcome::CheckCondition(sense)) => Some(sense),
        Err(other) => panic!("{other:?}"),
    }
}

/// A MODE SELECT of the control page, with descriptor sense and write protection as given.
fn control(descriptor_sense: bool, write_protected: bool) -> ModeSelect {
    let flags = [if descriptor_sense { 4 } else { 0 }, 0x10, if write_protected { 8 } else { 0 }];
    let list = [&[0, 0, 0, 0, 0x0a, 0x0a][..], &flags, &[0; 7]].concat();
    match disk().parameter(&[0x15, 0x10, 0, 0, 16, 0], &list) {
        Step::ModeSelect(select) => select,
        other => panic!("{other:?}"),
    }
}

fn not_ready() -> Sense {
    Sense::new(SenseKey::NotReady, AdditionalSense::MEDIUM_NOT_PRESENT)
}

fn protected() -> Sense {
    Sense::new(SenseKey::DataProtect, AdditionalSense::LOGICAL_UNIT_SOFTWARE_WRITE_PROTECTED)
}

fn prevented() -> Outcome {
    Outcome::CheckCondition(Sense::illegal_request(AdditionalSense::MEDIUM_REMOVAL_PREVENTED))
}

#[test]
fn the_others_are_told_of_changed_mode_parameters() {
    let mut unit = quiet();
    unit.mode_select(A, &control(true, false));
    assert!(unit.mode_settings().descriptor_sense);
    assert_eq!(sense_of(&mut unit, A, TEST_UNIT_READY), None);
    let changed = Sense::unit_attention(AdditionalSense::MODE_PARAMETERS_CHANGED);
    assert_eq!(sense_of(&mut unit, B, TEST_UNIT_READY), Some(changed));
}

#[test]
fn a_mode_select_that_changes_nothing_is_not_told() {
    let mut unit = quiet();
    unit.mode_select(A, &control(false, false));
    assert_eq!(sense_of(&mut unit, B, TEST_UNIT_READY), None);
}

#[test]
fn software_write_protection_refuses_writes_of_all_and_nothing_else() {
    let mut unit = quiet();
    unit.mode_select(A, &control(false, true));
    assert!(sense_of(&mut unit, B, TEST_UNIT_READY).is_some());
    for nexus in [A, B] {
        assert_eq!(sense_of(&mut unit, nexus, WRITE), Some(protected()));
        assert_eq!(sense_of(&mut unit, nexus, READ), None);
    }
    assert_eq!(unit.check_medium(MediumAccess::Write), Err(protected()));
    unit.mode_select(A, &control(false, false));
    assert_eq!(sense_of(&mut unit, A, WRITE), None);
}

#[test]
fn a_reset_undoes_mode_parameters() {
    let mut unit = quiet();
    unit.mode_select(A, &control(true, true));
    assert!(unit.reset(Reset::LogicalUnit).dropped.is_empty());
    assert_eq!(*unit.mode_settings(), ModeSettings::default());
}

#[test]
fn without_a_medium_only_commands_to_the_unit_are_carried_out() {
    let mut unit = quiet();
    assert_eq!(unit.eject(), Outcome::good());
    for cdb in [TEST_UNIT_READY, READ, WRITE] {
        assert_eq!(sense_of(&mut unit, B, cdb), Some(not_ready()));
    }
    assert_eq!(sense_of(&mut unit, B, INQUIRY), None);
    assert_eq!(unit.request_sense(B), Some(not_ready()));
}

#[test]
fn the_others_are_told_that_the_medium_may_have_changed() {
    let mut unit = quiet();
    assert_eq!(unit.eject(), Outcome::good());
    assert_eq!(unit.load(A), Outcome::good());
    assert_eq!(sense_of(&mut unit, A, TEST_UNIT_READY), None);
    let changed = AdditionalSense::NOT_READY_TO_READY_CHANGE_MEDIUM_MAY_HAVE_CHANGED;
    assert_eq!(sense_of(&mut unit, B, TEST_UNIT_READY), Some(Sense::unit_attention(changed)));
    assert_eq!(unit.load(A), Outcome::good());
    assert_eq!(sense_of(&mut unit, B, TEST_UNIT_READY), None);
}

#[test]
fn any_nexus_can_keep_the_medium_in_for_all() {
    let mut unit = quiet();
    unit.prevent_removal(A, true);
    unit.prevent_removal(B, true);
    assert_eq!(unit.eject(), prevented());
    unit.prevent_removal(A, false);
    assert_eq!((unit.eject(), unit.load(A)), (prevented(), prevented()));
    unit.prevent_removal(B, false);
    assert_eq!(unit.eject(), Outcome::good());
}

#[test]
fn prevention_ends_with_its_nexus_and_with_a_reset() {
    let mut unit = quiet();
    unit.prevent_removal(A, true);
    assert!(unit.lose(A).dropped.is_empty());
    assert_eq!(unit.eject(), Outcome::good());
    unit.prevent_removal(A, true);
    assert_eq!(unit.load(B), Outcome::good());
    unit.prevent_removal(B, true);
    assert!(unit.reset(Reset::Target).dropped.is_empty());
    assert_eq!(unit.eject(), Outcome::good());
}

#[test]
fn each_nexus_has_its_own_copies() {
    let mut unit = quiet();
    unit.hold_copy(A, 1, CopyStatus::of(&Outcome::good(), 1, 1));
    assert_ne!(unit.held_copies(A), HeldCopies::default());
    assert_eq!(unit.held_copies(B), HeldCopies::default());
    assert!(unit.lose(A).dropped.is_empty());
    unit.hold_copy(A, 1, CopyStatus::of(&Outcome::good(), 1, 1));
    assert_eq!(unit.held_copies(A), HeldCopies::default());
}
