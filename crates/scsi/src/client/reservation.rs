//! PERSISTENT RESERVE IN and OUT (SPC-4 §6.15, §6.16).

use super::command::{CdbBytes, cdb};
use super::{u32_at, u64_at};
use crate::persistent_reserve_out as out;
use crate::{
    PersistentReserveOut, Register, RegisterAndMove, ReservationKey, ReservationType, ReserveAction,
    ReserveIn, TransportId, operation_code as code,
};

/// PERSISTENT RESERVE IN (SPC-4 §6.15).
#[must_use]
pub fn persistent_reserve_in(what: ReserveIn, allocation_bytes: u16) -> CdbBytes {
    cdb([&[code::PERSISTENT_RESERVE_IN, what as u8, 0, 0, 0, 0, 0], &allocation_bytes.to_be_bytes()])
}

/// PERSISTENT RESERVE OUT and its parameter list (SPC-4 §6.16).
#[must_use]
pub fn persistent_reserve_out(request: &PersistentReserveOut) -> (CdbBytes, Vec<u8>) {
    let none = ReservationKey::NONE;
    let (action, kind, list) = match &request.action {
        ReserveAction::Register(register) => {
            let ignore = register.ignore_existing_key;
            let action = if ignore { out::REGISTER_AND_IGNORE_EXISTING_KEY } else { out::REGISTER };
            (action, None, register_list(request.key, register))
        }
        ReserveAction::Reserve(kind) => (out::RESERVE, Some(*kind), basic_list(request.key, none, 0)),
        ReserveAction::Release(kind) => (out::RELEASE, Some(*kind), basic_list(request.key, none, 0)),
        ReserveAction::Clear => (out::CLEAR, None, basic_list(request.key, none, 0)),
        ReserveAction::Preempt { victim, kind, abort } => {
            let action = if *abort { out::PREEMPT_AND_ABORT } else { out::PREEMPT };
            (action, *kind, basic_list(request.key, *victim, 0))
        }
        ReserveAction::Move(to) => (out::REGISTER_AND_MOVE, None, move_list(request.key, to)),
    };
    let length = u32::try_from(list.len()).unwrap_or(u32::MAX);
    let kind = kind.map_or(0, ReservationType::code);
    (cdb([&[code::PERSISTENT_RESERVE_OUT, action, kind, 0, 0], &length.to_be_bytes()]), list)
}

fn basic_list(key: ReservationKey, action_key: ReservationKey, flags: u8) -> Vec<u8> {
    [&key.0.to_be_bytes()[..], &action_key.0.to_be_bytes(), &[0; 4], &[flags, 0, 0, 0]].concat()
}

fn register_list(key: ReservationKey, register: &Register) -> Vec<u8> {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let specifies = !register.others.is_empty();
    let flags = flag(register.persist, out::PERSIST)
        | flag(register.all_target_ports, out::ALL_TARGET_PORTS)
        | flag(specifies, out::SPECIFY_INITIATOR_PORTS);
    let mut list = basic_list(key, register.new_key, flags);
    if specifies {
        let others: Vec<u8> = register.others.iter().flat_map(TransportId::to_bytes).collect();
        list.extend(u32::try_from(others.len()).unwrap_or(u32::MAX).to_be_bytes());
        list.extend(others);
    }
    list
}

fn move_list(key: ReservationKey, to: &RegisterAndMove) -> Vec<u8> {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = flag(to.persist, out::PERSIST) | flag(to.unregister, out::UNREGISTER);
    let holder = to.to.to_bytes();
    let keys = [key.0.to_be_bytes(), to.new_key.0.to_be_bytes()].concat();
    let port = to.relative_target_port.to_be_bytes();
    let length = u32::try_from(holder.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&keys[..], &[0, flags], &port, &length, &holder].concat()
}

/// A persistent reservation that is held, as READ RESERVATION tells of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationDescriptor {
    /// The holder's key; none where all registrants hold it.
    pub key: ReservationKey,
    /// The TYPE field, which may be of a type that this crate does not know.
    pub type_code: u8,
}

/// The answer to READ RESERVATION (SPC-4 §6.15.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadReservation {
    /// PRGENERATION: counts the changes of registrations since the device was switched on.
    pub generation: u32,
    /// `None` if nobody holds a reservation.
    pub descriptor: Option<ReservationDescriptor>,
}

/// Reads the answer to READ RESERVATION. A reservation whose descriptor was cut off is held nevertheless.
#[must_use]
pub fn held_reservation(bytes: &[u8]) -> Option<ReadReservation> {
    const ADDITIONAL_LENGTH: usize = 4;
    const KEY: usize = 8;
    const SCOPE_AND_TYPE: usize = 21;
    const TYPE_MASK: u8 = 0x0f;
    let generation = u32_at(bytes, 0)?;
    if u32_at(bytes, ADDITIONAL_LENGTH)? == 0 {
        return Some(ReadReservation { generation, descriptor: None });
    }
    let key = u64_at(bytes, KEY).map_or(ReservationKey::NONE, ReservationKey);
    let type_code = bytes.get(SCOPE_AND_TYPE).map_or(0, |byte| byte & TYPE_MASK);
    Some(ReadReservation { generation, descriptor: Some(ReservationDescriptor { key, type_code }) })
}

/// Reads the answer to REPORT CAPABILITIES: whether the device can keep registrations over a loss of power (`PTPL_C`
/// of SPC-4 §6.15.4).
#[must_use]
pub fn can_persist(bytes: &[u8]) -> Option<bool> {
    const FEATURES: usize = 2;
    const PERSIST_CAPABLE: u8 = 0x01;
    bytes.get(FEATURES).map(|features| features & PERSIST_CAPABLE != 0)
}

/// An I_T nexus that is registered, as READ FULL STATUS tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredNexus {
    /// The key that it registered with.
    pub key: ReservationKey,
    /// It holds the reservation.
    pub is_holder: bool,
    /// The initiator port; `None` if it is none of iSCSI.
    pub transport_id: Option<TransportId>,
}

/// Reads the answer to READ FULL STATUS as far as it goes.
#[must_use]
pub fn registered_nexuses(bytes: &[u8]) -> Vec<RegisteredNexus> {
    const HEADER_BYTES: usize = 8;
    const FLAGS: usize = 12;
    const HOLDER: u8 = 0x01;
    const ADDITIONAL_LENGTH: usize = 20;
    const TRANSPORT_ID: usize = 24;
    let mut rest = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let mut nexuses = Vec::new();
    while let Some((key, length)) = u64_at(rest, 0).zip(u32_at(rest, ADDITIONAL_LENGTH)) {
        let end = TRANSPORT_ID.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        let id = rest.get(TRANSPORT_ID..end).and_then(|id| TransportId::parse(id, 0).ok());
        nexuses.push(RegisteredNexus {
            key: ReservationKey(key),
            is_holder: rest.get(FLAGS).is_some_and(|flags| flags & HOLDER != 0),
            transport_id: id.map(|(id, _)| id),
        });
        rest = rest.get(end..).unwrap_or_default();
    }
    nexuses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeldReservation, Outcome, PersistentReserveIn, Registrant, ReservationStatus};

    fn answer(what: ReserveIn, status: &ReservationStatus) -> Vec<u8> {
        match (PersistentReserveIn { what, allocation_bytes: u16::MAX }).respond(status) {
            Outcome::Good(data) => data,
            other => panic!("{other:?}"),
        }
    }

    fn status() -> ReservationStatus {
        let registrant = |key, is_holder, isid| Registrant {
            key: ReservationKey(key),
            is_holder,
            relative_target_port: Some(1),
            transport_id: TransportId {
                initiator_name: "iqn.2026-11.org.example:host".into(),
                isid: Some([isid; 6]),
            },
        };
        let kind = ReservationType::WriteExclusiveRegistrantsOnly;
        ReservationStatus {
            held: Some(HeldReservation { key: ReservationKey(2), kind }),
            registrants: vec![registrant(1, false, 7), registrant(2, true, 8)],
            ..ReservationStatus::default()
        }
    }

    #[test]
    fn a_reservation_is_read_as_the_device_wrote_it() {
        let held = held_reservation(&answer(ReserveIn::Reservation, &status())).unwrap();
        let descriptor = Some(ReservationDescriptor { key: ReservationKey(2), type_code: 5 });
        assert_eq!(held, ReadReservation { generation: status().generation, descriptor });
        let free = answer(ReserveIn::Reservation, &ReservationStatus::default());
        assert_eq!(held_reservation(&free), Some(ReadReservation::default()));
    }

    #[test]
    fn a_reservation_that_was_cut_off_is_held() {
        assert_eq!(
            held_reservation(&[0, 0, 0, 9, 0, 0, 0, 16, 1]),
            Some(ReadReservation { generation: 9, descriptor: Some(ReservationDescriptor::default()) })
        );
        assert_eq!(held_reservation(&[0, 0]), None);
    }

    #[test]
    fn a_device_says_whether_registrations_can_persist() {
        for can in [false, true] {
            let status = ReservationStatus { can_persist: can, ..status() };
            assert_eq!(can_persist(&answer(ReserveIn::Capabilities, &status)), Some(can));
        }
        assert_eq!(can_persist(&[0, 8]), None);
    }

    #[test]
    fn the_holder_is_found_among_all_that_are_registered() {
        let nexuses = registered_nexuses(&answer(ReserveIn::FullStatus, &status()));
        assert_eq!(nexuses.len(), 2);
        let holder = nexuses.iter().find(|nexus| nexus.is_holder).unwrap();
        assert_eq!(
            (holder.key, holder.transport_id.as_ref().unwrap().isid),
            (ReservationKey(2), Some([8; 6]))
        );
    }

    #[test]
    fn a_full_status_that_was_cut_off_is_read_as_far_as_it_goes() {
        let bytes = answer(ReserveIn::FullStatus, &status());
        for length in 0..bytes.len() {
            assert!(registered_nexuses(&bytes[..length]).len() <= 2);
        }
        assert!(registered_nexuses(&[0xff; 64]).len() <= 1);
    }
}
