//! Reservations that outlive the target: what is kept, when, and what is refused.

use crate::world::{READ, Shared, WRITE, key, ports_of_user, register, registering};
use ropewalk_device::unit_state::{InvalidSnapshot, NexusId, PersistedReservations, UnitState};
use scsi::{Register, ReservationKey, ReservationType, ReserveAction, ReserveIn, Status};

const A: NexusId = NexusId(1);
const B: NexusId = NexusId(2);

fn persisting() -> Shared {
    Shared::with(UnitState::new().restore(PersistedReservations::default()), [A, B])
}

/// PERSISTENT RESERVE OUT that succeeds; what had to be made durable for it.
fn persisted(
    shared: &mut Shared,
    nexus: NexusId,
    own: ReservationKey,
    action: ReserveAction,
) -> Option<String> {
    shared.change(nexus, own, action).expect("GOOD").1.map(|snapshot| snapshot.to_string())
}

fn persistently(new_key: ReservationKey) -> ReserveAction {
    ReserveAction::Register(Register { persist: true, ..register(new_key) })
}

/// The text that a target with a registration and a reservation leaves.
fn left_behind(kind: ReservationType) -> String {
    let mut shared = persisting();
    let _ = persisted(&mut shared, A, ReservationKey::NONE, persistently(key(A)));
    persisted(&mut shared, A, key(A), ReserveAction::Reserve(kind)).expect("to be made durable")
}

fn after_power_loss(text: &str) -> Shared {
    let snapshot = PersistedReservations::parse(text).expect("a snapshot");
    Shared::with(UnitState::new().restore(snapshot), [A, B])
}

#[test]
fn a_registration_and_a_reservation_come_back() {
    for kind in ReservationType::ALL {
        let mut shared = after_power_loss(&left_behind(kind));
        assert_eq!(shared.keys(), [key(A)]);
        assert_eq!(shared.held().map(|held| held.1), Some(kind));
        assert_eq!(shared.tried(A, WRITE), Status::Good);
        assert_eq!(shared.tried(B, WRITE), Status::ReservationConflict);
        let reads = if kind.excludes_reading() { Status::ReservationConflict } else { Status::Good };
        assert_eq!(shared.tried(B, READ), reads);
        assert_eq!(shared.generation(), 0);
        assert_eq!(shared.read(ReserveIn::Capabilities)[2..4], [0x1d, 0xb1]);
    }
}

#[test]
fn what_comes_back_persists_until_somebody_registers_otherwise() {
    let mut shared = after_power_loss(&left_behind(ReservationType::WriteExclusive));
    let text =
        persisted(&mut shared, B, ReservationKey::NONE, registering(key(B))).expect("an empty snapshot");
    assert_eq!(PersistedReservations::parse(&text), Ok(PersistedReservations::default()));
    assert_eq!(shared.keys().len(), 2);
    assert_eq!(shared.read(ReserveIn::Capabilities)[3] & 1, 0);
}

#[test]
fn nothing_is_made_durable_unless_somebody_asks_for_it() {
    let mut shared = persisting();
    for action in [registering(key(A)), ReserveAction::Reserve(ReservationType::WriteExclusive)] {
        let own = if shared.keys().is_empty() { ReservationKey::NONE } else { key(A) };
        assert_eq!(persisted(&mut shared, A, own, action), None);
    }
}

#[test]
fn a_change_that_is_not_committed_changes_nothing() {
    let mut shared = persisting();
    let request = scsi::PersistentReserveOut { key: ReservationKey::NONE, action: persistently(key(A)) };
    let task = shared.arrived(A, &[0x5f, 0]);
    let change = shared.unit.persistent_reserve_out(task, &request).expect("allowed");
    assert!(change.to_persist().is_some());
    drop(change);
    assert_eq!((shared.keys(), shared.generation()), (Vec::new(), 0));
}

#[test]
fn a_snapshot_reads_as_it_was_written() {
    let text = left_behind(ReservationType::WriteExclusive);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "ropewalk reservations 1");
    assert_eq!(lines[1], "registration 0000000000000101 1 800000000000 iqn.2026-01.org.example:host1");
    assert_eq!(lines[2], "held 1 0");
    assert!(lines[3].starts_with("crc32c "));
    assert_eq!(PersistedReservations::parse(&text).expect("a snapshot").to_string(), text);
}

#[test]
fn a_registration_comes_back_to_its_user_only() {
    const ALICE: NexusId = NexusId(11);
    const MALLORY: NexusId = NexusId(12);
    let both = |mut shared: Shared| {
        shared.join(ALICE, ports_of_user(A, "alice"));
        shared.join(MALLORY, ports_of_user(A, "Mallory & Co"));
        shared
    };
    for (user, other, name) in [(ALICE, MALLORY, "alice"), (MALLORY, ALICE, "%4dallory%20%26%20%43o")] {
        let mut shared = both(persisting());
        let _ = persisted(&mut shared, user, ReservationKey::NONE, persistently(key(user)));
        let reserve = ReserveAction::Reserve(ReservationType::WriteExclusive);
        let text = persisted(&mut shared, user, key(user), reserve).expect("to be made durable");
        assert!(text.contains(&format!(" iqn.2026-01.org.example:host1 {name}\n")), "{text}");
        let mut shared = both(after_power_loss(&text));
        assert_eq!(shared.tried(user, WRITE), Status::Good);
        assert_eq!(shared.tried(other, WRITE), Status::ReservationConflict);
        assert_eq!(shared.tried(A, WRITE), Status::ReservationConflict);
    }
}

#[test]
fn every_damage_is_refused() {
    let text = left_behind(ReservationType::WriteExclusive);
    for end in 0..text.len() {
        assert!(PersistedReservations::parse(&text[..end]).is_err(), "cut at {end}");
    }
    for at in 0..text.len() {
        let mut damaged = text.clone().into_bytes();
        damaged[at] ^= 0x01;
        let damaged = String::from_utf8(damaged).expect("ASCII");
        assert!(PersistedReservations::parse(&damaged).is_err(), "changed at {at}");
    }
    assert!(PersistedReservations::parse(&format!("{text}\n")).is_err());
}

#[test]
fn another_version_is_refused() {
    assert_eq!(PersistedReservations::parse("ropewalk reservations 12\n"), Err(InvalidSnapshot::Header));
    assert_eq!(PersistedReservations::parse(""), Err(InvalidSnapshot::Header));
}

#[test]
fn a_right_checksum_does_not_make_sense_of_nonsense() {
    let registration = "registration 0000000000000101 1 800000000000 iqn.2026-01.org.example:a";
    let nonsense = [
        vec!["held 1 0"],
        vec!["held 7 all"],
        vec![registration, registration],
        vec![registration, "held 7 0"],
        vec![registration, "held 1 all"],
        vec![registration, "held 1 1"],
        vec![registration, "held 2 0"],
        vec![registration, "held 1 0", "held 1 0"],
        vec!["registration 0000000000000000 1 800000000000 iqn.2026-01.org.example:a"],
        vec!["registration 101 1 800000000000 iqn.2026-01.org.example:a"],
        vec!["registration 0000000000000101 65536 800000000000 iqn.2026-01.org.example:a"],
        vec!["registration 0000000000000101 1 80 iqn.2026-01.org.example:a"],
        vec!["registration 0000000000000101 1 800000000000 %6"],
        vec!["registration 0000000000000101 1 800000000000 iqn.2026-01.org.example:a %6"],
        vec!["registration 0000000000000101 1 800000000000 iqn.2026-01.org.example:a alice bob"],
        vec!["something else"],
        vec![""],
    ];
    for lines in nonsense {
        let body = format!("ropewalk reservations 1\n{}\n", lines.join("\n"));
        let checksum: String =
            pdu::digest(body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let parsed = PersistedReservations::parse(&format!("{body}crc32c {checksum}\n"));
        assert_eq!(parsed, Err(InvalidSnapshot::Line(lines.len() + 1)), "{lines:?}");
    }
}

#[test]
fn after_a_change_that_could_not_be_stored_the_next_one_is_stored_in_any_case() {
    let mut shared = persisting();
    let _ = persisted(&mut shared, A, ReservationKey::NONE, persistently(key(A)));
    let reserve = || ReserveAction::Reserve(ReservationType::WriteExclusive);
    let stored = persisted(&mut shared, A, key(A), reserve());
    let release = ReserveAction::Release(ReservationType::WriteExclusive);
    let request = scsi::PersistentReserveOut { key: key(A), action: release };
    let task = shared.arrived(A, &[0x5f, 0]);
    let change = shared.unit.persistent_reserve_out(task, &request).expect("allowed");
    shared.unit.not_persisted(change);
    let _ = shared.unit.finish(task);
    // The file may say that the unit is free. It is not, and RESERVE by its holder changes nothing.
    assert_eq!(persisted(&mut shared, A, key(A), reserve()), stored);
    assert_eq!(persisted(&mut shared, A, key(A), reserve()), None);
}
