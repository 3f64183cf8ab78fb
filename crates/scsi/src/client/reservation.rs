//! PERSISTENT RESERVE IN and OUT: who holds a reservation, and asking for one (SPC-4 §6.15, §6.16).

use super::command::{CdbBytes, cdb};
use super::u32_at;
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

/// PERSISTENT RESERVE IN, READ RESERVATION (SPC-4 §6.15.3).
#[must_use]
pub fn read_reservation(allocation_bytes: u16) -> CdbBytes {
    persistent_reserve_in(ReserveIn::Reservation, allocation_bytes)
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

/// Whether the answer to READ RESERVATION tells of one: its ADDITIONAL LENGTH is not zero then.
#[must_use]
pub fn is_reserved(bytes: &[u8]) -> Option<bool> {
    const ADDITIONAL_LENGTH: usize = 4;
    u32_at(bytes, ADDITIONAL_LENGTH).map(|length| length != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_makes_the_answer_longer() {
        assert_eq!(is_reserved(&[0, 0, 0, 9, 0, 0, 0, 0]), Some(false));
        assert_eq!(is_reserved(&[0, 0, 0, 9, 0, 0, 0, 16, 1]), Some(true));
        assert_eq!(is_reserved(&[0, 0]), None);
    }
}
