//! Who may do what while somebody holds a reservation: the tables of SPC-4, SBC-3 and SPC-2.

use crate::world::{READ, Shared, TEST_UNIT_READY, WRITE, ports};
use pdu::TaskAttribute;
use ropewalk_device::unit_state::{NexusId, Reset, UnitState};
use scsi::{AdditionalSense, Outcome, ReservationType, Sense, Status};

const HOLDER: NexusId = NexusId(1);
const REGISTRANT: NexusId = NexusId(2);
const STRANGER: NexusId = NexusId(3);

const REQUEST_SENSE: &[u8] = &[0x03, 0, 0, 0, 18, 0];
const INQUIRY: &[u8] = &[0x12, 0, 0, 0, 96, 0];
const RESERVE: &[u8] = &[0x16, 0, 0, 0, 0, 0];
const RELEASE: &[u8] = &[0x17, 0, 0, 0, 0, 0];
const MODE_SENSE: &[u8] = &[0x1a, 0, 0x3f, 0, 255, 0];
const STOP: &[u8] = &[0x1b, 0, 0, 0, 0, 0];
const START: &[u8] = &[0x1b, 0, 0, 0, 1, 0];
const READ_CAPACITY: &[u8] = &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const VERIFY: &[u8] = &[0x2f, 0, 0, 0, 0, 0, 0, 0, 1, 0];
const SYNCHRONIZE_CACHE: &[u8] = &[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const UNMAP: &[u8] = &[0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const PERSISTENT_RESERVE_IN: &[u8] = &[0x5e, 0, 0, 0, 0, 0, 0, 0, 8, 0];
const PERSISTENT_RESERVE_OUT: &[u8] = &[0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0];
const COMPARE_AND_WRITE: &[u8] = &[0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0];
const REPORT_LUNS: &[u8] = &[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0];
const REPORT_SUPPORTED_OPERATION_CODES: &[u8] = &[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];

const ALWAYS: [&[u8]; 10] = [
    TEST_UNIT_READY,
    REQUEST_SENSE,
    INQUIRY,
    RESERVE,
    RELEASE,
    START,
    READ_CAPACITY,
    PERSISTENT_RESERVE_IN,
    PERSISTENT_RESERVE_OUT,
    REPORT_LUNS,
];
const READING: [&[u8]; 4] = [READ, VERIFY, MODE_SENSE, REPORT_SUPPORTED_OPERATION_CODES];
const WRITING: [&[u8]; 5] = [WRITE, STOP, SYNCHRONIZE_CACHE, UNMAP, COMPARE_AND_WRITE];

/// A unit that `HOLDER` holds, where `REGISTRANT` is registered.
fn held(kind: ReservationType) -> Shared {
    let mut shared = Shared::between([HOLDER, REGISTRANT, STRANGER]);
    shared.register(HOLDER);
    shared.register(REGISTRANT);
    shared.reserve(HOLDER, kind);
    shared
}

fn status(allowed: bool) -> Status {
    if allowed { Status::Good } else { Status::ReservationConflict }
}

/// What each nexus may do under each type: reading and writing of a registrant, then of a stranger.
const MATRIX: [(ReservationType, [bool; 4]); 6] = [
    (ReservationType::WriteExclusive, [true, false, true, false]),
    (ReservationType::ExclusiveAccess, [false, false, false, false]),
    (ReservationType::WriteExclusiveRegistrantsOnly, [true, true, true, false]),
    (ReservationType::ExclusiveAccessRegistrantsOnly, [true, true, false, false]),
    (ReservationType::WriteExclusiveAllRegistrants, [true, true, true, false]),
    (ReservationType::ExclusiveAccessAllRegistrants, [true, true, false, false]),
];

#[test]
fn each_type_holds_up_what_the_tables_say() {
    for (kind, [registrant_reads, registrant_writes, stranger_reads, stranger_writes]) in MATRIX {
        let mut shared = held(kind);
        let rows = [
            (HOLDER, true, true),
            (REGISTRANT, registrant_reads, registrant_writes),
            (STRANGER, stranger_reads, stranger_writes),
        ];
        for (nexus, reads, writes) in rows {
            for cdb in ALWAYS {
                assert_eq!(shared.tried(nexus, cdb), Status::Good, "{kind:?} {nexus:?} {cdb:02x?}");
            }
            for cdb in READING {
                assert_eq!(shared.tried(nexus, cdb), status(reads), "{kind:?} {nexus:?} {cdb:02x?}");
            }
            for cdb in WRITING {
                assert_eq!(shared.tried(nexus, cdb), status(writes), "{kind:?} {nexus:?} {cdb:02x?}");
            }
        }
    }
}

#[test]
fn registrations_alone_hold_nobody_up() {
    let mut shared = Shared::between([HOLDER, STRANGER]);
    shared.register(HOLDER);
    for cdb in READING.into_iter().chain(WRITING) {
        assert_eq!(shared.tried(STRANGER, cdb), Status::Good);
    }
}

#[test]
fn each_unit_has_its_own_reservations() {
    let mut other = Shared::between([HOLDER, STRANGER]);
    let mut shared = held(ReservationType::ExclusiveAccess);
    assert_eq!(shared.tried(STRANGER, READ), Status::ReservationConflict);
    assert_eq!(other.tried(STRANGER, READ), Status::Good);
}

#[test]
fn a_reservation_outlives_its_holders_session_and_knows_its_return() {
    let mut shared = held(ReservationType::ExclusiveAccess);
    let _ = shared.unit.lose(HOLDER);
    assert_eq!(shared.tried(STRANGER, READ), Status::ReservationConflict);
    let again = NexusId(9);
    shared.join(again, ports(HOLDER));
    assert_eq!(shared.tried(again, WRITE), Status::Good);
    let another = NexusId(10);
    shared.join(another, ports(STRANGER));
    assert_eq!(shared.tried(another, WRITE), Status::ReservationConflict);
}

#[test]
fn a_reset_leaves_persistent_reservations() {
    for reset in [Reset::LogicalUnit, Reset::Target] {
        let mut shared = held(ReservationType::WriteExclusive);
        let _ = shared.unit.reset(reset);
        assert!(shared.told(STRANGER).is_some());
        assert_eq!(shared.tried(STRANGER, WRITE), Status::ReservationConflict);
        assert_eq!(shared.tried(STRANGER, READ), Status::Good);
    }
}

#[test]
fn a_conflict_comes_after_news_of_a_reset_and_before_other_news() {
    let mut shared = held(ReservationType::WriteExclusive);
    shared.unit.commands_cleared_by_protocol_event(STRANGER);
    assert_eq!(shared.tried(STRANGER, WRITE), Status::ReservationConflict);
    assert_eq!(shared.told(STRANGER), Some(AdditionalSense::SOME_COMMANDS_CLEARED_BY_ISCSI_PROTOCOL_EVENT));
    let _ = shared.unit.reset(Reset::LogicalUnit);
    let task = shared.new_task(STRANGER);
    let sense = Sense::unit_attention(AdditionalSense::BUS_DEVICE_RESET_FUNCTION_OCCURRED);
    let told = shared.unit.arrive(task, TaskAttribute::Simple, WRITE);
    assert_eq!(told, Err(Outcome::CheckCondition(sense)));
    assert_eq!(shared.tried(STRANGER, WRITE), Status::ReservationConflict);
}

#[test]
fn reserve_shuts_all_others_out() {
    let mut shared = Shared::between([HOLDER, STRANGER]);
    assert!(shared.unit.reserve(HOLDER).is_ok());
    let open = [REQUEST_SENSE, INQUIRY, READ_CAPACITY, REPORT_LUNS, START, RELEASE];
    for cdb in open {
        assert_eq!(shared.tried(STRANGER, cdb), Status::Good, "{cdb:02x?}");
    }
    let shut = [TEST_UNIT_READY, PERSISTENT_RESERVE_IN].into_iter().chain(READING).chain(WRITING);
    for cdb in shut {
        assert_eq!(shared.tried(STRANGER, cdb), Status::ReservationConflict, "{cdb:02x?}");
        assert_eq!(shared.tried(HOLDER, cdb), Status::Good, "{cdb:02x?}");
    }
}

#[test]
fn a_second_reserve_conflicts_unless_it_is_the_holders() {
    let mut shared = Shared::between([HOLDER, STRANGER]);
    assert!(shared.unit.reserve(HOLDER).is_ok());
    assert!(shared.unit.reserve(HOLDER).is_ok());
    assert_eq!(shared.unit.reserve(STRANGER), Err(Outcome::reservation_conflict()));
}

#[test]
fn only_the_holders_release_ends_a_reserve() {
    let mut shared = Shared::between([HOLDER, STRANGER]);
    assert!(shared.unit.reserve(HOLDER).is_ok());
    assert_eq!(shared.unit.release(STRANGER), Outcome::good());
    assert_eq!(shared.tried(STRANGER, READ), Status::ReservationConflict);
    assert_eq!(shared.unit.release(HOLDER), Outcome::good());
    assert_eq!(shared.tried(STRANGER, READ), Status::Good);
}

#[test]
fn reservations_that_outlive_the_session_and_lock_everyone_out() {
    let mut shared = Shared::between([HOLDER, STRANGER]);
    assert!(shared.unit.reserve(HOLDER).is_ok());
    let _ = shared.unit.lose(HOLDER);
    assert_eq!(shared.tried(STRANGER, WRITE), Status::Good);
    // Nor does it come back with its initiator.
    shared.unit.establish(NexusId(9), ports(HOLDER));
    assert_eq!(shared.tried(STRANGER, WRITE), Status::Good);
    assert!(shared.unit.reserve(STRANGER).is_ok());
}

#[test]
fn a_reset_ends_a_reserve() {
    for reset in [Reset::LogicalUnit, Reset::Target] {
        let mut shared = Shared::between([HOLDER, STRANGER]);
        assert!(shared.unit.reserve(HOLDER).is_ok());
        let _ = shared.unit.reset(reset);
        assert!(shared.told(STRANGER).is_some());
        assert_eq!(shared.tried(STRANGER, WRITE), Status::Good);
    }
}

#[test]
fn while_a_unit_is_reserved_persistent_reservations_conflict_for_all() {
    let mut shared = Shared::between([HOLDER, STRANGER]);
    assert!(shared.unit.reserve(HOLDER).is_ok());
    for nexus in [HOLDER, STRANGER] {
        let conflict = shared.change(
            nexus,
            scsi::ReservationKey::NONE,
            crate::world::registering(crate::world::key(nexus)),
        );
        assert_eq!(conflict, Err(Outcome::reservation_conflict()));
    }
    let request = scsi::PersistentReserveIn { what: scsi::ReserveIn::Keys, allocation_bytes: 8 };
    assert_eq!(shared.unit.persistent_reserve_in(&request), Outcome::reservation_conflict());
}

#[test]
fn while_somebody_is_registered_reserve_and_release_conflict() {
    let mut shared = Shared::between([HOLDER, STRANGER]);
    shared.register(HOLDER);
    for nexus in [HOLDER, STRANGER] {
        assert_eq!(shared.unit.reserve(nexus), Err(Outcome::reservation_conflict()));
        assert_eq!(shared.unit.release(nexus), Outcome::reservation_conflict());
    }
}

#[test]
fn reserve_and_release_change_nothing_for_those_who_may_do_all_anyway() {
    for kind in ReservationType::ALL {
        let mut shared = held(kind);
        let registrant = kind.admits_registrants();
        for (nexus, ignored) in [(HOLDER, true), (REGISTRANT, registrant), (STRANGER, false)] {
            assert_eq!(shared.unit.reserve(nexus).is_ok(), ignored, "{kind:?} {nexus:?}");
            assert_eq!(shared.unit.release(nexus).status(), status(ignored), "{kind:?} {nexus:?}");
        }
        assert_eq!(shared.held().map(|held| held.1), Some(kind));
        assert_eq!(shared.tried(HOLDER, WRITE), Status::Good);
    }
}

#[test]
fn a_command_that_waits_for_its_data_is_refused_when_somebody_reserves() {
    let mut shared = Shared::between([HOLDER, STRANGER]);
    shared.register(HOLDER);
    let (mine, waiting) = (shared.arrived(HOLDER, WRITE), shared.arrived(STRANGER, WRITE));
    let reading = shared.arrived(STRANGER, READ);
    let settled = shared.ask(HOLDER, scsi::ReserveAction::Reserve(ReservationType::WriteExclusive));
    assert_eq!(settled.refused, [waiting]);
    for left in [mine, reading] {
        let _ = shared.unit.finish(left);
    }
}

#[test]
fn a_command_that_is_on_the_disk_is_not_refused() {
    let mut shared = Shared::between([HOLDER, STRANGER]);
    let writing = shared.writing(STRANGER);
    let settled = shared.unit.reserve(HOLDER).expect("GOOD");
    assert_eq!(settled.refused, []);
    assert_eq!(shared.unit.finish(writing), []);
}

#[test]
fn a_unit_without_sessions_is_reserved_by_nobody() {
    let mut unit = UnitState::new();
    assert_eq!(unit.reserve(STRANGER), Err(Outcome::internal_failure()));
    assert_eq!(unit.release(STRANGER), Outcome::internal_failure());
}
