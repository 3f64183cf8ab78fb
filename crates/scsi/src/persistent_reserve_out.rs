//! PERSISTENT RESERVE OUT and its parameter list (SPC-4).

use crate::cdb::Cdb;
use crate::{AdditionalSense, Disk, FieldPointer, ReservationKey, ReservationType, Sense, Step, TransportId};

/// A request to change the reservations of a logical unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentReserveOut {
    /// RESERVATION KEY: the key that the sender claims to be registered with.
    pub key: ReservationKey,
    /// The requested action.
    pub action: ReserveAction,
}

/// The service actions, with their relevant parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveAction {
    /// REGISTER, REGISTER AND IGNORE EXISTING KEY.
    Register(Register),
    /// RESERVE: make a reservation of this type.
    Reserve(ReservationType),
    /// RELEASE: end the sender's reservation, which is of this type.
    Release(ReservationType),
    /// CLEAR: end the reservation and remove all registrations.
    Clear,
    /// PREEMPT, PREEMPT AND ABORT.
    Preempt {
        /// SERVICE ACTION RESERVATION KEY: the key of the preempted registrants.
        victim: ReservationKey,
        /// The type of the sender's own reservation, if the victim holds one; `None` if the CDB names none.
        kind: Option<ReservationType>,
        /// Whether to abort the victim's commands too.
        abort: bool,
    },
    /// REGISTER AND MOVE.
    Move(RegisterAndMove),
}

/// REGISTER and REGISTER AND IGNORE EXISTING KEY; by default one that ends a registration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Register {
    /// The new key; none ends the registration.
    pub new_key: ReservationKey,
    /// The sender need not know the key that it is registered with.
    pub ignore_existing_key: bool,
    /// APTPL: reservations persist through power loss.
    pub persist: bool,
    /// `ALL_TG_PT`: register with every port of the target.
    pub all_target_ports: bool,
    /// `SPEC_I_PT`: other initiators to register too.
    pub others: Vec<TransportId>,
}

/// REGISTER AND MOVE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterAndMove {
    /// The key of the new holder.
    pub new_key: ReservationKey,
    /// UNREG: end the sender's registration.
    pub unregister: bool,
    /// APTPL: reservations persist through power loss.
    pub persist: bool,
    /// The port of the new holder.
    pub relative_target_port: u16,
    /// The new holder.
    pub to: TransportId,
}

/// The service actions, as byte 1 of the CDB names them.
pub const REGISTER: u8 = 0x00;
pub const RESERVE: u8 = 0x01;
pub const RELEASE: u8 = 0x02;
pub const CLEAR: u8 = 0x03;
pub const PREEMPT: u8 = 0x04;
pub const PREEMPT_AND_ABORT: u8 = 0x05;
pub const REGISTER_AND_IGNORE_EXISTING_KEY: u8 = 0x06;
pub const REGISTER_AND_MOVE: u8 = 0x07;

/// The parameter list without transport IDs.
pub const BASIC_LIST_BYTES: u32 = 24;
/// The longest parameter list: room for thirty of the longest transport IDs, more hosts than clusters register for one
/// another.
pub const LIST_BYTES_MAX: u32 = 8192;
/// The offset of the flags in the basic list.
const FLAGS_AT: u16 = 20;
pub const SPECIFY_INITIATOR_PORTS: u8 = 0x08;
pub const ALL_TARGET_PORTS: u8 = 0x04;
pub const PERSIST: u8 = 0x01;
/// UNREG, in the flags of REGISTER AND MOVE.
pub const UNREGISTER: u8 = 0x02;
/// The offset of the length of REGISTER's transport IDs; the length does not count itself.
const OTHERS_LENGTH_AT: u16 = 24;
/// The offset of the transport ID of REGISTER AND MOVE.
const MOVE_TO_AT: u16 = 24;

const LENGTH_ERROR: Sense = Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR);

/// Every service action has a parameter list. REGISTER's may be longer than the basic list, and REGISTER AND MOVE's is;
/// all others have its length.
pub fn begin(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let bytes = cdb.u32::<5>();
    let extends = matches!(action(cdb), REGISTER | REGISTER_AND_MOVE);
    let bytes_max = if extends { LIST_BYTES_MAX } else { BASIC_LIST_BYTES };
    if !(BASIC_LIST_BYTES..=bytes_max).contains(&bytes) {
        return Err(LENGTH_ERROR.at(FieldPointer::cdb(5)));
    }
    if matches!(action(cdb), RESERVE | RELEASE) {
        reservation_type(cdb)?;
    }
    Ok(Step::Parameter { bytes })
}

const fn action(cdb: &Cdb) -> u8 {
    cdb.u8::<1>() & crate::operation_code::SERVICE_ACTION_MASK
}

/// SCOPE, which must be that of the whole logical unit, and TYPE.
fn reservation_type(cdb: &Cdb) -> Result<ReservationType, Sense> {
    let byte = cdb.u8::<2>();
    if byte >> 4 != 0 {
        return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(2, 7)));
    }
    ReservationType::from_code(byte).ok_or(Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(2, 3)))
}

/// Parses the parameter list, which has the CDB's length.
pub fn parameter(_disk: &Disk, cdb: &Cdb, list: &[u8]) -> Result<Step, Sense> {
    let (basic, rest) = list.split_first_chunk::<{ BASIC_LIST_BYTES as usize }>().ok_or(LENGTH_ERROR)?;
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ..] = *basic;
    let key = ReservationKey(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
    let action_key = ReservationKey(u64::from_be_bytes([i, j, k, l, m, n, o, p]));
    let code = action(cdb);
    let flags = basic[usize::from(FLAGS_AT)];
    if code != REGISTER && code != REGISTER_AND_MOVE && flags & SPECIFY_INITIATOR_PORTS != 0 {
        return Err(Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST)
            .at(FieldPointer { in_cdb: false, byte: FLAGS_AT, bit: Some(3) }));
    }
    let action = match code {
        REGISTER | REGISTER_AND_IGNORE_EXISTING_KEY => ReserveAction::Register(Register {
            new_key: action_key,
            ignore_existing_key: code == REGISTER_AND_IGNORE_EXISTING_KEY,
            persist: flags & PERSIST != 0,
            all_target_ports: flags & ALL_TARGET_PORTS != 0,
            others: others(flags, rest)?,
        }),
        RESERVE => ReserveAction::Reserve(reservation_type(cdb)?),
        RELEASE => ReserveAction::Release(reservation_type(cdb)?),
        CLEAR => ReserveAction::Clear,
        PREEMPT | PREEMPT_AND_ABORT => ReserveAction::Preempt {
            victim: action_key,
            kind: reservation_type(cdb).ok(),
            abort: code == PREEMPT_AND_ABORT,
        },
        _ => ReserveAction::Move(register_and_move(action_key, basic, rest)?),
    };
    Ok(Step::PersistentReserveOut(PersistentReserveOut { key, action }))
}

/// The transport IDs of a REGISTER, if `SPEC_I_PT` announces any.
fn others(flags: u8, rest: &[u8]) -> Result<Vec<TransportId>, Sense> {
    if flags & SPECIFY_INITIATOR_PORTS == 0 {
        return if rest.is_empty() { Ok(Vec::new()) } else { Err(LENGTH_ERROR) };
    }
    let (length, rest) = rest.split_first_chunk::<4>().ok_or(LENGTH_ERROR)?;
    if u32::from_be_bytes(*length) as usize != rest.len() {
        return Err(LENGTH_ERROR.at(FieldPointer::parameter(OTHERS_LENGTH_AT)));
    }
    let (mut others, mut rest, mut at) = (Vec::new(), rest, OTHERS_LENGTH_AT + 4);
    while !rest.is_empty() {
        let (other, after) = TransportId::parse(rest, at)?;
        at = at.saturating_add(u16::try_from(rest.len() - after.len()).unwrap_or(u16::MAX));
        others.push(other);
        rest = after;
    }
    Ok(others)
}

/// The parameter list of REGISTER AND MOVE differs after its keys.
fn register_and_move(
    new_key: ReservationKey,
    basic: &[u8; BASIC_LIST_BYTES as usize],
    rest: &[u8],
) -> Result<RegisterAndMove, Sense> {
    let [.., flags, port_high, port_low, a, b, c, d] = *basic;
    if u32::from_be_bytes([a, b, c, d]) as usize != rest.len() {
        return Err(LENGTH_ERROR.at(FieldPointer::parameter(20)));
    }
    let (to, after) = TransportId::parse(rest, MOVE_TO_AT)?;
    if !after.is_empty() {
        return Err(LENGTH_ERROR.at(FieldPointer::parameter(20)));
    }
    Ok(RegisterAndMove {
        new_key,
        unregister: flags & UNREGISTER != 0,
        persist: flags & PERSIST != 0,
        relative_target_port: u16::from_be_bytes([port_high, port_low]),
        to,
    })
}
