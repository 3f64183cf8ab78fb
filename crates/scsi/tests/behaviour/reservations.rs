//! The commands of reservations: what they ask for, and what they answer.

use crate::world;
use crate::world::{full, illegal, read_only, refusal};
use proptest::prelude::*;
use ropewalk_scsi::client::{held_reservation, persistent_reserve_in, persistent_reserve_out};
use ropewalk_scsi::{
    AdditionalSense, FieldPointer, HeldReservation, Outcome, PersistentReserveOut, Register, RegisterAndMove,
    Registrant, ReservationKey, ReservationStatus, ReservationType, ReserveAction, ReserveIn, Restriction,
    Sense, Step, TransportId,
};

const KEY: ReservationKey = ReservationKey(0x0102_0304_0506_0708);
const NEW_KEY: ReservationKey = ReservationKey(0x1112_1314_1516_1718);

fn port(number: u8) -> TransportId {
    let initiator_name = format!("iqn.2026-01.org.example:host{number}");
    TransportId { initiator_name, isid: Some([0x80, 0, 0, 0, 0, number]) }
}

fn register(others: Vec<TransportId>) -> PersistentReserveOut {
    let (ignore_existing_key, persist, all_target_ports) = (false, true, false);
    let register = Register { new_key: NEW_KEY, ignore_existing_key, persist, all_target_ports, others };
    PersistentReserveOut { key: KEY, action: ReserveAction::Register(register) }
}

fn register_and_move() -> PersistentReserveOut {
    let action = RegisterAndMove {
        new_key: NEW_KEY,
        unregister: true,
        persist: false,
        relative_target_port: 2,
        to: port(1),
    };
    PersistentReserveOut { key: KEY, action: ReserveAction::Move(action) }
}

/// What a disk makes of a CDB and its parameter list.
fn taken(cdb: &[u8], list: &[u8]) -> Step {
    full().parameter(cdb, list)
}

/// What a disk makes of a parameter list of another length than the request's own.
fn taken_with(request: &PersistentReserveOut, change: impl FnOnce(&mut Vec<u8>)) -> Step {
    let (mut cdb, mut list) = persistent_reserve_out(request);
    change(&mut list);
    cdb[5..9].copy_from_slice(&u32::try_from(list.len()).expect("fits").to_be_bytes());
    taken(&cdb, &list)
}

fn length_error() -> AdditionalSense {
    AdditionalSense::PARAMETER_LIST_LENGTH_ERROR
}

fn answer(what: ReserveIn, status: &ReservationStatus) -> Vec<u8> {
    match full().begin(&persistent_reserve_in(what, u16::MAX)) {
        Step::PersistentReserveIn(request) => world::data(Step::Done(request.respond(status))),
        other => panic!("{other:?}"),
    }
}

fn two_registrants() -> ReservationStatus {
    let registrant = |number: u8, is_holder| Registrant {
        key: ReservationKey(number.into()),
        is_holder,
        relative_target_port: (number == 1).then_some(7),
        transport_id: port(number),
    };
    ReservationStatus {
        generation: 9,
        held: Some(HeldReservation {
            key: ReservationKey(1),
            kind: ReservationType::WriteExclusiveRegistrantsOnly,
        }),
        registrants: vec![registrant(1, true), registrant(2, false)],
        can_persist: true,
        persists: false,
    }
}

#[test]
fn keys_are_told_in_order_with_the_generation() {
    let mut expected = vec![0, 0, 0, 9, 0, 0, 0, 16];
    expected.extend([1u64, 2].into_iter().flat_map(u64::to_be_bytes));
    assert_eq!(answer(ReserveIn::Keys, &two_registrants()), expected);
}

#[test]
fn an_answer_is_cut_to_the_allocation_length_but_tells_its_whole_length() {
    let Step::PersistentReserveIn(request) = full().begin(&persistent_reserve_in(ReserveIn::Keys, 8)) else {
        panic!("PERSISTENT RESERVE IN is not taken");
    };
    assert_eq!(request.respond(&two_registrants()), Outcome::Good(vec![0, 0, 0, 9, 0, 0, 0, 16]));
}

#[test]
fn a_reservation_is_told_by_key_and_type() {
    let held = answer(ReserveIn::Reservation, &two_registrants());
    assert_eq!(held.len(), 24);
    assert_eq!(held[4..16], [0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(held[21], 0x05);
    assert_eq!(held_reservation(&held).unwrap().descriptor.unwrap().type_code, 5);
    let free = answer(ReserveIn::Reservation, &ReservationStatus::default());
    assert_eq!(free, [0; 8]);
    assert_eq!(held_reservation(&free).unwrap().descriptor, None);
}

#[test]
fn capabilities_tell_whether_reservations_can_and_do_persist() {
    let told = |can_persist, persists| {
        answer(
            ReserveIn::Capabilities,
            &ReservationStatus { can_persist, persists, ..ReservationStatus::default() },
        )
    };
    assert_eq!(told(false, false), [0, 8, 0x1c, 0xb0, 0xea, 0x01, 0, 0]);
    assert_eq!(told(true, false)[2..4], [0x1d, 0xb0]);
    assert_eq!(told(true, true)[2..4], [0x1d, 0xb1]);
}

#[test]
fn the_full_status_names_every_registrant_with_its_port() {
    let told = answer(ReserveIn::FullStatus, &two_registrants());
    let transport_id = port(1).to_bytes();
    let second = 8 + 24 + transport_id.len();
    assert_eq!(told[4..8], u32::try_from(told.len() - 8).expect("fits").to_be_bytes());
    assert_eq!((told[15], told[20], told[21]), (1, 0x01, 0x05), "key, holder, type");
    assert_eq!(told[26..28], [0, 7], "target port");
    assert_eq!(told[32..second], transport_id);
    assert_eq!((told[second + 7], told[second + 12], told[second + 13]), (2, 0x02, 0x00), "all target ports");
}

#[test]
fn every_request_is_read_as_it_was_written() {
    let requests = [
        register(Vec::new()),
        register(vec![port(1), TransportId { isid: None, ..port(2) }]),
        register_and_move(),
        PersistentReserveOut { key: KEY, action: ReserveAction::Clear },
    ];
    let reserving = ReservationType::ALL.into_iter().flat_map(|kind| {
        let preempt = |abort| ReserveAction::Preempt { victim: NEW_KEY, kind: Some(kind), abort };
        [ReserveAction::Reserve(kind), ReserveAction::Release(kind), preempt(false), preempt(true)]
    });
    let reserving = reserving.map(|action| PersistentReserveOut { key: KEY, action });
    for request in requests.into_iter().chain(reserving) {
        let (cdb, list) = persistent_reserve_out(&request);
        assert_eq!(taken(&cdb, &list), Step::PersistentReserveOut(request));
    }
}

#[test]
fn a_read_only_disk_can_be_reserved() {
    let (cdb, list) = persistent_reserve_out(&register(Vec::new()));
    assert!(matches!(read_only().parameter(&cdb, &list), Step::PersistentReserveOut(_)));
    assert_eq!(read_only().begin(&[0x16, 0, 0, 0, 0, 0]), Step::Reserve);
    assert_eq!(read_only().begin(&[0x17, 0, 0, 0, 0, 0]), Step::Release);
}

#[test]
fn a_third_party_or_extent_reservation_is_refused() {
    for (byte, bit) in [(1, 4), (1, 0), (4, 1)] {
        let mut cdb = [0x16, 0, 0, 0, 0, 0];
        cdb[usize::from(byte)] = 1 << bit;
        let field = FieldPointer::cdb_bit(byte, bit);
        assert_eq!(refusal(full().begin(&cdb)), Sense::invalid_field_in_cdb(field));
    }
}

#[test]
fn a_parameter_list_has_the_length_of_its_service_action() {
    for action in 0..8 {
        let mut cdb = world::cdb(10, &[(0, &[0x5f, action, 1])]);
        for length in [0u32, 8, 23, 25, 8193, u32::MAX] {
            cdb[5..9].copy_from_slice(&length.to_be_bytes());
            let step = full().begin(&cdb);
            if length == 25 && [0, 7].contains(&action) {
                assert_eq!(step, Step::Parameter { bytes: 25 });
            } else {
                assert_eq!(
                    refusal(step),
                    illegal(length_error()).at(FieldPointer::cdb(5)),
                    "{action} {length}"
                );
            }
        }
    }
}

#[test]
fn a_list_shorter_than_announced_is_refused() {
    let (cdb, list) = persistent_reserve_out(&register(vec![port(1)]));
    for length in 0..list.len() {
        assert_eq!(refusal(taken(&cdb, &list[..length])).additional, length_error(), "{length}");
    }
}

#[test]
fn transport_ids_that_do_not_fill_their_length_are_refused() {
    let register = register(vec![port(1)]);
    for by in [-4i32, -1, 1, 4] {
        let step = taken_with(&register, |list| {
            let length = u32::from_be_bytes([list[24], list[25], list[26], list[27]]);
            list[24..28].copy_from_slice(&length.saturating_add_signed(by).to_be_bytes());
        });
        assert_eq!(refusal(step).additional, length_error());
    }
    let step = taken_with(&register, |list| list.truncate(list.len() - 4));
    assert_eq!(refusal(step).additional, length_error());
    let step = taken_with(&register, |list| list[20] = 0);
    assert_eq!(refusal(step).additional, length_error(), "more bytes than SPEC_I_PT tells of");
}

#[test]
fn register_and_move_names_exactly_one_port() {
    let step = taken_with(&register_and_move(), |list| list[23] -= 4);
    assert_eq!(refusal(step).additional, length_error());
    let step = taken_with(&register_and_move(), |list| {
        let second = port(2).to_bytes();
        list[23] += u8::try_from(second.len()).expect("fits");
        list.extend(second);
    });
    assert_eq!(refusal(step).additional, length_error());
}

#[test]
fn only_register_names_other_ports() {
    for action in [ReserveAction::Clear, ReserveAction::Reserve(ReservationType::WriteExclusive)] {
        let step = taken_with(&PersistentReserveOut { key: KEY, action }, |list| list[20] = 0x08);
        assert_eq!(refusal(step).additional, AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST);
    }
}

#[test]
fn scopes_and_types_that_do_not_exist_are_refused() {
    for action in [1, 2] {
        for (byte, bit) in [(0x00, 3), (0x02, 3), (0x04, 3), (0x09, 3), (0x11, 7), (0xf1, 7)] {
            let cdb = world::cdb(10, &[(0, &[0x5f, action, byte]), (8, &[24])]);
            let expected = Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(2, bit));
            assert_eq!(refusal(full().begin(&cdb)), expected);
        }
    }
}

/// Something wrong with a parameter list.
type Change = fn(&mut Vec<u8>);

#[test]
fn a_transport_id_of_another_shape_is_refused_where_it_is_wrong() {
    let changes: [(&str, Change, u16); 9] = [
        ("another protocol", |list| list[28] = 0x46, 28),
        ("a reserved format", |list| list[28] = 0x85, 28),
        ("a length that is no multiple of four", |list| list[31] -= 1, 30),
        ("no terminator", |list| list[32..].fill(b'a'), 32),
        ("bytes after the terminator", |list| *list.last_mut().expect("there") = 1, 32),
        ("no ISID", |list| list[28] = 0x45, 32),
        ("no UTF-8", |list| list[40] = 0xff, 32),
        ("a control character", |list| list[40] = b'\n', 32),
        ("no name", |list| list[32..].fill(0), 32),
    ];
    for (what, change, at) in changes {
        let step = taken_with(&register(vec![port(1)]), |list| {
            if what == "no ISID" {
                list[32..].fill(0);
                list[32..35].copy_from_slice(b"iqn");
            }
            change(list);
        });
        assert_eq!(refusal(step), Sense::invalid_field_in_parameter_list(at), "{what}");
    }
}

#[test]
fn each_command_is_held_up_by_what_the_standards_say() {
    use Restriction::{ExclusiveAccess, Nothing, Reserve, WriteExclusive};
    let expected: [(&[u8], Restriction); 50] = [
        (&[0x00], Reserve),
        (&[0x03], Nothing),
        (&[0x08], ExclusiveAccess),
        (&[0x0a], WriteExclusive),
        (&[0x12], Nothing),
        (&[0x15], WriteExclusive),
        (&[0x16], Nothing),
        (&[0x17], Nothing),
        (&[0x1a], ExclusiveAccess),
        (&[0x1b, 0, 0, 0, 0], WriteExclusive),
        (&[0x1b, 0, 0, 0, 1], Nothing),
        (&[0x1b, 0, 0, 0, 0x11], WriteExclusive),
        (&[0x1e, 0, 0, 0, 0], Nothing),
        (&[0x1e, 0, 0, 0, 1], WriteExclusive),
        (&[0x25], Nothing),
        (&[0x28], ExclusiveAccess),
        (&[0x2a], WriteExclusive),
        (&[0x2e], WriteExclusive),
        (&[0x2f], ExclusiveAccess),
        (&[0x34], ExclusiveAccess),
        (&[0x35], WriteExclusive),
        (&[0x37], ExclusiveAccess),
        (&[0x3c], ExclusiveAccess),
        (&[0x41], WriteExclusive),
        (&[0x42], WriteExclusive),
        (&[0x4d], Nothing),
        (&[0x55], WriteExclusive),
        (&[0x5a], ExclusiveAccess),
        (&[0x5e], Reserve),
        (&[0x5f], Nothing),
        (&[0x83], WriteExclusive),
        (&[0x84], ExclusiveAccess),
        (&[0x88], ExclusiveAccess),
        (&[0x89], WriteExclusive),
        (&[0x8a], WriteExclusive),
        (&[0x8b], WriteExclusive),
        (&[0x8e], WriteExclusive),
        (&[0x8f], ExclusiveAccess),
        (&[0x90], ExclusiveAccess),
        (&[0x91], WriteExclusive),
        (&[0x93], WriteExclusive),
        (&[0x9e, 0x10], Nothing),
        (&[0x9e, 0x12], ExclusiveAccess),
        (&[0xa0], Nothing),
        (&[0xa3, 0x0a], Nothing),
        (&[0xa3, 0x0c], ExclusiveAccess),
        (&[0xa8], ExclusiveAccess),
        (&[0xaa], WriteExclusive),
        (&[0xaf], ExclusiveAccess),
        (&[], Reserve),
    ];
    for (cdb, restriction) in expected {
        assert_eq!(Restriction::of(cdb), restriction, "{cdb:02x?}");
    }
}

proptest! {
    #[test]
    fn any_transport_id_is_read_as_it_was_written(name in "[a-z0-9.:-]{1,223}", isid in any::<Option<[u8; 6]>>()) {
        let id = TransportId { initiator_name: name, isid };
        let bytes = id.to_bytes();
        prop_assert!(bytes.len() >= 24 && bytes.len().is_multiple_of(4));
        prop_assert_eq!(TransportId::parse(&bytes, 0), Ok((id, &[][..])));
    }

    #[test]
    fn any_parameter_list_is_answered(action in 0u8..8, flags in any::<u8>(), mut list in proptest::collection::vec(any::<u8>(), 24..200)) {
        let length = u32::try_from(list.len()).expect("fits");
        list[20] = flags;
        let cdb = world::cdb(10, &[(0, &[0x5f, action, 1]), (5, &length.to_be_bytes())]);
        let _ = taken(&cdb, &list);
    }
}
