//! PERSISTENT RESERVE OUT: what each service action changes, who is told, and when it is refused (SPC-4).

use crate::world::{Shared, WRITE, key, ports, ports_of_user, preempting, register, registering};
use pdu::Isid;
use ropewalk_device::unit_state::{
    Admission, Cleared, InitiatorPort, NexusId, Ports, REGISTRATIONS_MAX, RelativePort, Settled, UnitState,
};
use scsi::{
    AdditionalSense, Extent, FieldPointer, Outcome, Register, RegisterAndMove, ReservationKey,
    ReservationType, ReserveAction, ReserveIn, Sense, Status, TransportId,
};

const A: NexusId = NexusId(1);
const B: NexusId = NexusId(2);
const C: NexusId = NexusId(3);
const CONFLICT: Outcome = Outcome::Refused(Status::ReservationConflict);

/// Three initiators, all registered.
fn registered() -> Shared {
    let mut shared = Shared::between([A, B, C]);
    [A, B, C].into_iter().for_each(|nexus| shared.register(nexus));
    shared
}

fn held_by(nexus: NexusId, kind: ReservationType) -> Shared {
    let mut shared = registered();
    shared.reserve(nexus, kind);
    shared
}

fn holder(nexus: NexusId, kind: ReservationType) -> Option<(ReservationKey, ReservationType)> {
    Some((if kind.is_all_registrants() { ReservationKey::NONE } else { key(nexus) }, kind))
}

fn invalid(byte: u16) -> Outcome {
    Outcome::CheckCondition(Sense::invalid_field_in_parameter_list(byte))
}

fn invalid_flag(byte: u16, bit: u8) -> Outcome {
    let field = FieldPointer { in_cdb: false, byte, bit: Some(bit) };
    let additional = AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST;
    Outcome::CheckCondition(Sense::illegal_request(additional).at(field))
}

fn illegal(additional: AdditionalSense) -> Outcome {
    Outcome::CheckCondition(Sense::illegal_request(additional))
}

fn id(nexus: NexusId) -> TransportId {
    let initiator_name = format!("iqn.2026-01.org.example:host{}", nexus.0);
    TransportId { initiator_name, isid: Some([0x80, 0, 0, 0, 0, 0]) }
}

fn moving(to: TransportId, relative_target_port: u16, unregister: bool) -> ReserveAction {
    let new_key = ReservationKey(0x999);
    ReserveAction::Move(RegisterAndMove { new_key, unregister, persist: false, relative_target_port, to })
}

#[test]
fn who_registers_is_known_by_its_key() {
    let shared = registered();
    assert_eq!(shared.keys(), [key(A), key(B), key(C)]);
    assert_eq!(shared.generation(), 3);
    assert_eq!(shared.held(), None);
}

#[test]
fn who_is_registered_must_tell_its_key_to_change_it() {
    let mut shared = registered();
    let new_key = ReservationKey(77);
    assert_eq!(shared.change(A, ReservationKey::NONE, registering(new_key)), Err(CONFLICT));
    assert_eq!(shared.change(A, key(B), registering(new_key)), Err(CONFLICT));
    let _ = shared.ask(A, registering(new_key));
    assert!(shared.keys().contains(&new_key) && !shared.keys().contains(&key(A)));
}

#[test]
fn who_is_not_registered_has_no_key_to_tell() {
    let mut shared = Shared::between([A]);
    assert_eq!(shared.refusal(A, registering(key(A))), CONFLICT);
}

#[test]
fn an_existing_key_can_be_ignored() {
    let mut shared = registered();
    let new_key = ReservationKey(77);
    let action = ReserveAction::Register(Register { ignore_existing_key: true, ..register(new_key) });
    assert!(shared.change(A, ReservationKey(12345), action).is_ok());
    assert!(shared.keys().contains(&new_key));
    assert_eq!(shared.keys().len(), 3);
}

#[test]
fn registering_no_key_when_not_registered_does_nothing() {
    let mut shared = Shared::between([A]);
    for ignore_existing_key in [false, true] {
        let register = Register { ignore_existing_key, ..register(ReservationKey::NONE) };
        assert!(shared.change(A, ReservationKey::NONE, ReserveAction::Register(register)).is_ok());
    }
    assert_eq!((shared.keys(), shared.generation()), (Vec::new(), 0));
}

#[test]
fn a_change_of_key_leaves_the_holder_the_holder() {
    let mut shared = held_by(A, ReservationType::WriteExclusive);
    let new_key = ReservationKey(77);
    let _ = shared.ask(A, registering(new_key));
    assert_eq!(shared.held(), Some((new_key, ReservationType::WriteExclusive)));
}

#[test]
fn nobody_but_a_registrant_with_its_key_asks_for_anything() {
    for action in [
        ReserveAction::Reserve(ReservationType::WriteExclusive),
        ReserveAction::Release(ReservationType::WriteExclusive),
        ReserveAction::Clear,
        preempting(A, ReservationType::WriteExclusive),
        moving(id(C), 1, false),
    ] {
        let mut shared = Shared::between([A, B]);
        shared.register(A);
        assert_eq!(shared.refusal(B, action.clone()), CONFLICT, "{action:?}");
        assert_eq!(shared.change(A, key(B), action.clone()), Err(CONFLICT), "{action:?}");
    }
}

#[test]
fn a_second_reservation_conflicts_unless_it_is_the_same() {
    for kind in ReservationType::ALL {
        let mut shared = held_by(A, kind);
        for other in ReservationType::ALL {
            let same = other == kind;
            let own = shared.change(A, key(A), ReserveAction::Reserve(other));
            assert_eq!(own.is_ok(), same, "{kind:?} {other:?}");
            let others = shared.change(B, key(B), ReserveAction::Reserve(other));
            assert_eq!(others.is_ok(), same && kind.is_all_registrants(), "{kind:?} {other:?}");
        }
        assert_eq!(shared.held(), holder(A, kind));
    }
}

#[test]
fn reserving_and_releasing_do_not_count() {
    let mut shared = held_by(A, ReservationType::WriteExclusive);
    let _ = shared.ask(A, ReserveAction::Release(ReservationType::WriteExclusive));
    assert_eq!(shared.generation(), 3);
}

#[test]
fn a_release_is_told_to_registrants_that_relied_on_it() {
    for kind in ReservationType::ALL {
        let mut shared = held_by(A, kind);
        let _ = shared.ask(A, ReserveAction::Release(kind));
        assert_eq!(shared.held(), None);
        let told = kind.admits_registrants().then_some(AdditionalSense::RESERVATIONS_RELEASED);
        assert_eq!((shared.told(A), shared.told(B), shared.told(C)), (None, told, told), "{kind:?}");
    }
}

#[test]
fn who_does_not_hold_a_reservation_releases_nothing() {
    let mut shared = held_by(A, ReservationType::ExclusiveAccess);
    assert_eq!(shared.ask(B, ReserveAction::Release(ReservationType::ExclusiveAccess)), Settled::default());
    assert_eq!(shared.held(), holder(A, ReservationType::ExclusiveAccess));
}

#[test]
fn a_release_of_another_type_is_invalid() {
    let mut shared = held_by(A, ReservationType::ExclusiveAccess);
    let refused = shared.refusal(A, ReserveAction::Release(ReservationType::WriteExclusive));
    assert_eq!(refused, illegal(AdditionalSense::INVALID_RELEASE_OF_PERSISTENT_RESERVATION));
    assert_eq!(shared.held(), holder(A, ReservationType::ExclusiveAccess));
}

#[test]
fn a_reservation_ends_with_its_holders_registration() {
    for kind in ReservationType::ALL {
        let mut shared = held_by(A, kind);
        let _ = shared.ask(A, registering(ReservationKey::NONE));
        let all = kind.is_all_registrants();
        assert_eq!(shared.held(), if all { holder(A, kind) } else { None }, "{kind:?}");
        let relied = kind.admits_registrants() && !all;
        assert_eq!(shared.told(B), relied.then_some(AdditionalSense::RESERVATIONS_RELEASED), "{kind:?}");
    }
}

#[test]
fn a_reservation_of_all_registrants_ends_with_the_last() {
    let mut shared = held_by(A, ReservationType::ExclusiveAccessAllRegistrants);
    for nexus in [A, B, C] {
        assert!(shared.held().is_some());
        let _ = shared.ask(nexus, registering(ReservationKey::NONE));
    }
    assert_eq!(shared.held(), None);
}

#[test]
fn clear_ends_all_and_is_told_to_the_others() {
    let mut shared = held_by(A, ReservationType::WriteExclusive);
    let _ = shared.ask(B, ReserveAction::Clear);
    assert_eq!((shared.keys(), shared.held(), shared.generation()), (Vec::new(), None, 4));
    let told = Some(AdditionalSense::RESERVATIONS_PREEMPTED);
    assert_eq!((shared.told(A), shared.told(B), shared.told(C)), (told, None, told));
}

#[test]
fn a_holder_is_preempted_and_the_reservation_taken_over() {
    for kind in [ReservationType::WriteExclusive, ReservationType::ExclusiveAccessRegistrantsOnly] {
        let mut shared = held_by(A, kind);
        let _ = shared.ask(B, preempting(A, kind));
        assert_eq!((shared.keys(), shared.held()), (vec![key(B), key(C)], holder(B, kind)));
        assert_eq!(shared.generation(), 4);
        assert_eq!(shared.told(A), Some(AdditionalSense::REGISTRATIONS_PREEMPTED));
        assert_eq!((shared.told(B), shared.told(C)), (None, None));
        assert_eq!(shared.tried(A, WRITE), Status::ReservationConflict);
    }
}

#[test]
fn registrants_are_told_when_preempting_changes_the_type() {
    for kind in [ReservationType::WriteExclusive, ReservationType::WriteExclusiveRegistrantsOnly] {
        let mut shared = held_by(A, kind);
        let _ = shared.ask(B, preempting(A, ReservationType::ExclusiveAccess));
        assert_eq!(shared.held(), holder(B, ReservationType::ExclusiveAccess));
        assert_eq!(shared.told(C), Some(AdditionalSense::RESERVATIONS_RELEASED), "{kind:?}");
    }
}

#[test]
fn who_holds_nothing_loses_its_registration_only() {
    let mut shared = held_by(A, ReservationType::WriteExclusive);
    let _ = shared.ask(B, preempting(C, ReservationType::ExclusiveAccess));
    assert_eq!(
        (shared.keys(), shared.held()),
        (vec![key(A), key(B)], holder(A, ReservationType::WriteExclusive))
    );
    assert_eq!((shared.told(A), shared.told(C)), (None, Some(AdditionalSense::REGISTRATIONS_PREEMPTED)));
}

#[test]
fn a_key_that_nobody_has_cannot_be_preempted() {
    let mut shared = held_by(A, ReservationType::WriteExclusive);
    assert_eq!(shared.refusal(B, preempting(NexusId(50), ReservationType::WriteExclusive)), CONFLICT);
    assert_eq!(shared.generation(), 3);
}

#[test]
fn preempting_no_key_takes_over_from_all_registrants() {
    let everybody = |abort| ReserveAction::Preempt {
        victim: ReservationKey::NONE,
        kind: Some(ReservationType::ExclusiveAccess),
        abort,
    };
    let mut shared = held_by(A, ReservationType::WriteExclusiveAllRegistrants);
    let _ = shared.ask(B, everybody(false));
    assert_eq!((shared.keys(), shared.held()), (vec![key(B)], holder(B, ReservationType::ExclusiveAccess)));
    let told = Some(AdditionalSense::REGISTRATIONS_PREEMPTED);
    assert_eq!((shared.told(A), shared.told(B), shared.told(C)), (told, None, told));
    // With any other type, or none, it names nobody.
    assert_eq!(shared.refusal(B, everybody(false)), invalid(8));
    assert_eq!(registered().refusal(B, everybody(true)), invalid(8));
}

#[test]
fn one_of_all_registrants_can_be_preempted_without_the_reservation() {
    let kind = ReservationType::WriteExclusiveAllRegistrants;
    let mut shared = held_by(A, kind);
    let _ = shared.ask(B, preempting(A, ReservationType::ExclusiveAccess));
    assert_eq!((shared.keys(), shared.held()), (vec![key(B), key(C)], holder(B, kind)));
}

#[test]
fn a_holder_may_preempt_itself_to_change_its_type() {
    let mut shared = held_by(A, ReservationType::WriteExclusive);
    let _ = shared.ask(A, preempting(A, ReservationType::ExclusiveAccess));
    assert_eq!(shared.held(), holder(A, ReservationType::ExclusiveAccess));
    assert_eq!((shared.keys().len(), shared.told(A)), (3, None));
}

#[test]
fn preempting_a_holder_needs_a_type() {
    let mut shared = held_by(A, ReservationType::WriteExclusive);
    let action = ReserveAction::Preempt { victim: key(A), kind: None, abort: false };
    let sense = Sense::invalid_field_in_cdb(FieldPointer::cdb(2));
    assert_eq!(shared.refusal(B, action), Outcome::CheckCondition(sense));
}

#[test]
fn preempting_without_abort_lets_started_tasks_end_and_refuses_the_others() {
    let mut shared = held_by(A, ReservationType::WriteExclusive);
    let (_, waiting) = (shared.writing(A), shared.arrived(A, WRITE));
    let settled = shared.ask(B, preempting(A, ReservationType::WriteExclusive));
    assert_eq!(settled, Settled { refused: vec![waiting], cleared: Cleared::default() });
}

#[test]
fn preempt_and_abort_ends_all_tasks_of_the_preempted_and_of_nobody_else() {
    let kind = ReservationType::WriteExclusiveRegistrantsOnly;
    let mut shared = held_by(A, kind);
    let (started, waiting) = (shared.writing(A), shared.arrived(A, WRITE));
    let (_mine, _bystanders) = (shared.writing(B), shared.arrived(C, WRITE));
    let settled = shared.ask(B, ReserveAction::Preempt { victim: key(A), kind: Some(kind), abort: true });
    assert_eq!(settled.refused, []);
    assert_eq!((settled.cleared.started, settled.cleared.dropped), (vec![started], vec![waiting]));
    let told = [shared.told(A), shared.told(A), shared.told(A)];
    let (cleared, preempted) =
        (AdditionalSense::COMMANDS_CLEARED_BY_ANOTHER_INITIATOR, AdditionalSense::REGISTRATIONS_PREEMPTED);
    assert_eq!(told, [Some(cleared), Some(preempted), None]);
}

#[test]
fn preempt_and_abort_waits_for_what_a_lost_session_of_the_preempted_still_writes() {
    let kind = ReservationType::WriteExclusiveRegistrantsOnly;
    let preempting = || ReserveAction::Preempt { victim: key(A), kind: Some(kind), abort: true };
    for is_over in [false, true] {
        let mut shared = held_by(A, kind);
        let writing = shared.writing(A);
        assert_eq!(shared.unit.lose(A).started, [writing]);
        if is_over {
            assert_eq!(shared.unit.finish(writing), []);
        }
        let settled = shared.ask(B, preempting());
        assert_eq!(settled.cleared.started, if is_over { vec![] } else { vec![writing] });
    }
}

#[test]
fn preempt_and_abort_waits_for_the_blocks_that_a_lost_session_of_the_preempted_still_copies() {
    let kind = ReservationType::WriteExclusiveRegistrantsOnly;
    let mut shared = held_by(A, kind);
    let copy = shared.new_task(A);
    assert_eq!(shared.unit.occupy(copy, vec![Extent::new(0, 1)]), Admission::Start);
    assert_eq!(shared.unit.lose(A).copying, [copy]);
    let settled = shared.ask(B, ReserveAction::Preempt { victim: key(A), kind: Some(kind), abort: true });
    assert_eq!(settled.cleared.copying, [copy]);
}

#[test]
fn a_reservation_is_moved_with_its_type() {
    for unregister in [false, true] {
        let mut shared = held_by(A, ReservationType::ExclusiveAccess);
        let _ = shared.ask(A, moving(id(NexusId(9)), 1, unregister));
        assert_eq!(shared.held(), Some((ReservationKey(0x999), ReservationType::ExclusiveAccess)));
        assert_eq!(shared.keys().contains(&key(A)), !unregister);
        shared.join(NexusId(9), ports(NexusId(9)));
        assert_eq!(shared.tried(NexusId(9), WRITE), Status::Good);
        assert_eq!(shared.tried(A, WRITE), Status::ReservationConflict);
    }
}

#[test]
fn only_a_single_holder_can_move_its_reservation() {
    assert_eq!(registered().refusal(A, moving(id(B), 1, false)), CONFLICT);
    let mut shared = held_by(A, ReservationType::ExclusiveAccess);
    assert_eq!(shared.refusal(B, moving(id(C), 1, false)), CONFLICT);
    let mut shared = held_by(A, ReservationType::ExclusiveAccessAllRegistrants);
    assert_eq!(shared.refusal(A, moving(id(C), 1, false)), CONFLICT);
}

#[test]
fn a_reservation_moves_to_another_port_that_there_is() {
    let mut shared = held_by(A, ReservationType::ExclusiveAccess);
    assert_eq!(shared.refusal(A, moving(id(B), 2, false)), invalid(18), "no such target port");
    assert_eq!(shared.refusal(A, moving(id(A), 1, false)), invalid(24), "to itself");
    let device = TransportId { isid: None, ..id(B) };
    assert_eq!(shared.refusal(A, moving(device, 1, false)), invalid(24), "to no port in particular");
    let ReserveAction::Move(to) = moving(id(B), 1, false) else { panic!("made as such") };
    let no_key = RegisterAndMove { new_key: ReservationKey::NONE, ..to };
    assert_eq!(shared.refusal(A, ReserveAction::Move(no_key)), invalid(8));
}

#[test]
fn others_are_registered_by_name_before_they_come() {
    let mut shared = Shared::between([A, B]);
    shared.register(B);
    let others = vec![id(B), id(C)];
    let action = ReserveAction::Register(Register { others, ..register(key(A)) });
    assert!(shared.change(A, ReservationKey::NONE, action).is_ok());
    // B was registered already and keeps its key.
    assert_eq!(shared.keys(), [key(B), key(A), key(A)]);
    shared.join(C, ports(C));
    let reserved = shared.change(C, key(A), ReserveAction::Reserve(ReservationType::WriteExclusive));
    assert!(reserved.is_ok());
}

#[test]
fn an_initiator_without_isid_means_all_its_ports_that_are_here() {
    let port = |isid| Ports {
        initiator: InitiatorPort::new("IQN.2026-01.org.example:many", Isid([0x80, 0, 0, 0, 0, isid])),
        target: RelativePort::ONLY,
    };
    let many = TransportId { initiator_name: "iqn.2026-01.org.example:many".to_owned(), isid: None };
    let naming = |others| ReserveAction::Register(Register { others, ..register(key(A)) });
    let mut shared = Shared::between([A]);
    let refused = shared.change(A, ReservationKey::NONE, naming(vec![many.clone()]));
    assert_eq!(refused, Err(invalid(24)));
    assert_eq!(shared.keys(), [], "all or none");
    shared.join(NexusId(11), port(1));
    shared.join(NexusId(12), port(2));
    assert!(shared.change(A, ReservationKey::NONE, naming(vec![many])).is_ok());
    assert_eq!(shared.keys().len(), 3);
}

/// One name and ISID, claimed by two users.
fn two_users() -> (Shared, [NexusId; 2]) {
    let (alice, mallory) = (NexusId(11), NexusId(12));
    let mut shared = Shared::between([B]);
    shared.join(alice, ports_of_user(A, "alice"));
    shared.join(mallory, ports_of_user(A, "mallory"));
    (shared, [alice, mallory])
}

#[test]
fn a_registration_belongs_to_its_user_and_not_to_who_claims_the_same_name() {
    let (mut shared, [alice, mallory]) = two_users();
    shared.register(alice);
    shared.reserve(alice, ReservationType::WriteExclusive);
    assert_eq!(shared.tried(mallory, WRITE), Status::ReservationConflict);
    let unregistering = shared.change(mallory, key(alice), registering(ReservationKey::NONE));
    assert_eq!(unregistering, Err(CONFLICT));
    assert_eq!(shared.keys(), [key(alice)]);
    assert_eq!(shared.tried(alice, WRITE), Status::Good);
}

#[test]
fn registrations_of_two_users_of_one_name_are_told_with_one_transport_id() {
    let (mut shared, [alice, mallory]) = two_users();
    shared.register(alice);
    shared.register(mallory);
    let told = shared.read(ReserveIn::FullStatus);
    let (first, second) = told[8..].split_at((told.len() - 8) / 2);
    assert_eq!(
        (&first[..8], &second[..8]),
        (&key(alice).0.to_be_bytes()[..], &key(mallory).0.to_be_bytes()[..])
    );
    assert_eq!(first[8..], second[8..]);
}

#[test]
fn a_name_means_a_port_of_the_same_user_before_others() {
    let (mut shared, [alice, mallory]) = two_users();
    let naming = |user| ReserveAction::Register(Register { others: vec![id(A)], ..register(key(user)) });
    shared.join(NexusId(13), ports_of_user(C, "mallory"));
    assert!(shared.change(NexusId(13), ReservationKey::NONE, naming(mallory)).is_ok());
    assert_eq!(shared.change(mallory, key(mallory), registering(key(mallory))).map(drop), Ok(()));
    assert_eq!(shared.change(alice, key(mallory), registering(key(alice))).map(drop), Err(CONFLICT));
}

#[test]
fn a_reservation_moves_to_a_port_of_another_user_if_only_one_is_meant() {
    let (mut shared, _) = two_users();
    shared.register(B);
    shared.reserve(B, ReservationType::WriteExclusive);
    assert_eq!(shared.refusal(B, moving(id(A), 1, false)), invalid(24));
    let mut shared = Shared::between([B]);
    shared.join(NexusId(11), ports_of_user(A, "alice"));
    shared.register(B);
    shared.reserve(B, ReservationType::WriteExclusive);
    let _ = shared.ask(B, moving(id(A), 1, false));
    assert_eq!(shared.tried(NexusId(11), WRITE), Status::Good);
    assert_eq!(shared.tried(B, WRITE), Status::ReservationConflict);
}

#[test]
fn who_is_registered_registers_nobody_else() {
    let mut shared = registered();
    let action = ReserveAction::Register(Register { others: vec![id(NexusId(9))], ..register(key(A)) });
    assert_eq!(shared.refusal(A, action), invalid_flag(20, 3));
}

#[test]
fn without_a_place_to_keep_them_reservations_do_not_persist() {
    let mut shared = Shared::between([A]);
    let action = ReserveAction::Register(Register { persist: true, ..register(key(A)) });
    assert_eq!(shared.change(A, ReservationKey::NONE, action), Err(invalid_flag(20, 0)));
    assert_eq!(shared.read(ReserveIn::Capabilities)[2..4], [0x1c, 0xb0]);
}

/// The same initiator port through two ports of the target.
fn two_target_ports() -> (Shared, [NexusId; 2]) {
    let unit = UnitState::new().with_target_ports([RelativePort(1), RelativePort(2)]);
    let mut shared = Shared::with(unit, [B]);
    let through = |port| Ports { target: RelativePort(port), ..ports(A) };
    shared.join(NexusId(101), through(1));
    shared.join(NexusId(102), through(2));
    (shared, [NexusId(101), NexusId(102)])
}

#[test]
fn each_target_port_is_registered_for_itself() {
    let (mut shared, [first, second]) = two_target_ports();
    shared.register(first);
    assert_eq!(shared.refusal(second, ReserveAction::Clear), CONFLICT);
    shared.register(second);
    shared.reserve(first, ReservationType::WriteExclusive);
    assert_eq!(shared.tried(second, WRITE), Status::ReservationConflict);
}

#[test]
fn a_registration_for_all_target_ports_is_one() {
    let (mut shared, [first, second]) = two_target_ports();
    let all = ReserveAction::Register(Register { all_target_ports: true, ..register(key(A)) });
    assert!(shared.change(first, ReservationKey::NONE, all).is_ok());
    assert_eq!(shared.keys(), [key(A)]);
    assert!(shared.change(second, key(A), ReserveAction::Reserve(ReservationType::ExclusiveAccess)).is_ok());
    assert_eq!(shared.tried(first, WRITE), Status::Good);
    assert_eq!(shared.tried(B, WRITE), Status::ReservationConflict);
    assert!(shared.change(second, key(A), registering(ReservationKey::NONE)).is_ok());
    assert_eq!((shared.keys(), shared.held()), (Vec::new(), None));
}

#[test]
fn a_registration_is_widened_to_all_target_ports_if_the_other_has_the_same_key() {
    for (second_key, widened) in [(key(A), true), (key(B), false)] {
        let (mut shared, [first, second]) = two_target_ports();
        assert!(shared.change(first, ReservationKey::NONE, registering(key(A))).is_ok());
        assert!(shared.change(second, ReservationKey::NONE, registering(second_key)).is_ok());
        let kind = ReservationType::WriteExclusive;
        assert!(shared.change(second, second_key, ReserveAction::Reserve(kind)).is_ok());
        let all = ReserveAction::Register(Register { all_target_ports: true, ..register(key(C)) });
        assert_eq!(shared.change(first, key(A), all).is_ok(), widened);
        if widened {
            assert_eq!((shared.keys(), shared.held()), (vec![key(C)], Some((key(C), kind))));
        }
    }
}

#[test]
fn there_is_an_end_to_registrations() {
    let mut shared = Shared::between([A, B]);
    let naming = |first: usize, others: usize| {
        let others = (first..first + others).map(|number| id(NexusId(number as u64))).collect();
        ReserveAction::Register(Register { others, ..register(key(A)) })
    };
    assert!(shared.change(A, ReservationKey::NONE, naming(1000, REGISTRATIONS_MAX - 1)).is_ok());
    let refused = shared.change(B, ReservationKey::NONE, registering(key(B)));
    assert_eq!(refused, Err(illegal(AdditionalSense::INSUFFICIENT_REGISTRATION_RESOURCES)));
    assert_eq!(shared.keys().len(), REGISTRATIONS_MAX);
}
