//! What holds after any sequence of PERSISTENT RESERVE OUTs.

use crate::world::{READ, Shared, WRITE};
use proptest::prelude::*;
use ropewalk_device::unit_state::{NexusId, PersistedReservations, UnitState};
use scsi::{
    Register, RegisterAndMove, ReservationKey, ReservationType, ReserveAction, ReserveIn, Status, TransportId,
};

const NEXUSES: [NexusId; 4] = [NexusId(1), NexusId(2), NexusId(3), NexusId(4)];

fn any_key() -> impl Strategy<Value = ReservationKey> {
    (0u64..4).prop_map(ReservationKey)
}

fn any_id() -> impl Strategy<Value = TransportId> {
    (1u64..6, any::<bool>()).prop_map(|(number, port)| TransportId {
        initiator_name: format!("iqn.2026-01.org.example:host{number}"),
        isid: port.then_some([0x80, 0, 0, 0, 0, 0]),
    })
}

fn any_type() -> impl Strategy<Value = ReservationType> {
    prop::sample::select(&ReservationType::ALL)
}

fn any_register() -> impl Strategy<Value = ReserveAction> {
    let others = prop::collection::vec(any_id(), 0..2);
    (any_key(), any::<[bool; 3]>(), others).prop_map(|(new_key, flags, others)| {
        let [ignore_existing_key, persist, all_target_ports] = flags;
        ReserveAction::Register(Register { new_key, ignore_existing_key, persist, all_target_ports, others })
    })
}

fn any_move() -> impl Strategy<Value = ReserveAction> {
    (any_key(), any::<[bool; 2]>(), 1u16..3, any_id()).prop_map(
        |(new_key, [unregister, persist], relative_target_port, to)| {
            ReserveAction::Move(RegisterAndMove { new_key, unregister, persist, relative_target_port, to })
        },
    )
}

fn any_action() -> impl Strategy<Value = ReserveAction> {
    prop_oneof![
        4 => any_register(),
        3 => any_type().prop_map(ReserveAction::Reserve),
        1 => any_type().prop_map(ReserveAction::Release),
        1 => Just(ReserveAction::Clear),
        2 => (any_key(), prop::option::of(any_type()), any::<bool>())
            .prop_map(|(victim, kind, abort)| ReserveAction::Preempt { victim, kind, abort }),
        1 => any_move(),
    ]
}

fn any_request() -> impl Strategy<Value = (NexusId, ReservationKey, ReserveAction)> {
    (prop::sample::select(&NEXUSES), any_key(), any_action())
}

/// The unit's state as anybody may read it.
fn told(shared: &Shared) -> (Vec<u8>, Vec<u8>) {
    (shared.read(ReserveIn::FullStatus), shared.read(ReserveIn::Reservation))
}

/// Who can do this at all.
fn admitted(shared: &mut Shared, cdb: &[u8]) -> usize {
    NEXUSES.into_iter().filter(|nexus| shared.tried(*nexus, cdb) == Status::Good).count()
}

/// How many have `R_HOLDER`: of all registrants.
fn holders(shared: &Shared) -> usize {
    let status = shared.read(ReserveIn::FullStatus);
    let (mut rest, mut holders) = (&status[8..], 0);
    while let Some((descriptor, after)) = rest.split_first_chunk::<24>() {
        let length = u32::from_be_bytes([descriptor[20], descriptor[21], descriptor[22], descriptor[23]]);
        holders += usize::from(descriptor[12] & 1 != 0);
        rest = &after[length as usize..];
    }
    holders
}

proptest! {
    #[test]
    fn an_exclusive_reservation_has_one_holder_who_is_registered(requests in prop::collection::vec(any_request(), 1..60)) {
        let mut shared = Shared::with(UnitState::new().restore(PersistedReservations::default()), NEXUSES);
        let mut durable = PersistedReservations::default();
        for (nexus, key, action) in requests {
            let (before, generation) = (told(&shared), shared.generation());
            let changed = shared.change(nexus, key, action.clone());
            let counted = shared.generation().wrapping_sub(generation);
            match &changed {
                Ok((_, to_persist)) => {
                    prop_assert!(counted <= 1);
                    durable = to_persist.clone().unwrap_or(durable);
                }
                Err(_) => prop_assert_eq!(told(&shared), before, "{:?} was refused but changed something", action),
            }
            for told in NEXUSES {
                while shared.told(told).is_some() {}
            }
            let keys = shared.keys();
            prop_assert!(!keys.contains(&ReservationKey::NONE));
            match shared.held() {
                None => {
                    prop_assert_eq!(holders(&shared), 0);
                    prop_assert_eq!(admitted(&mut shared, WRITE), NEXUSES.len());
                }
                Some((_, kind)) if kind.is_all_registrants() => prop_assert_eq!(holders(&shared), keys.len()),
                Some((key, kind)) => {
                    prop_assert!(keys.contains(&key));
                    prop_assert_eq!(holders(&shared), 1);
                    if !kind.admits_registrants() {
                        prop_assert!(admitted(&mut shared, WRITE) <= 1);
                    }
                    if kind == ReservationType::ExclusiveAccess {
                        prop_assert!(admitted(&mut shared, READ) <= 1);
                    }
                }
            }
            // What would be there after a loss of power now.
            let text = durable.to_string();
            prop_assert_eq!(PersistedReservations::parse(&text), Ok(durable.clone()));
            let restored = Shared::with(UnitState::new().restore(durable.clone()), []);
            let persists = shared.read(ReserveIn::Capabilities)[3] & 1 != 0;
            prop_assert_eq!(restored.keys(), if persists { keys } else { Vec::new() });
            prop_assert_eq!(restored.held(), shared.held().filter(|_| persists));
        }
    }
}
