//! PERSISTENT RESERVE IN: registrations and reservations (SPC-4).

use crate::cdb::Cdb;
use crate::{Disk, Outcome, ReservationKey, ReservationType, Sense, Step, TransportId};

/// A request for the reservations of a logical unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersistentReserveIn {
    /// The requested information.
    pub what: ReserveIn,
    /// The longest answer.
    pub allocation_bytes: u16,
}

/// The service actions, as byte 1 of the CDB names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReserveIn {
    /// READ KEYS: the keys of all registrants.
    Keys = READ_KEYS,
    /// READ RESERVATION: the reservation.
    Reservation = READ_RESERVATION,
    /// REPORT CAPABILITIES: the device's features.
    Capabilities = REPORT_CAPABILITIES,
    /// READ FULL STATUS: all registrants with their ports.
    FullStatus = READ_FULL_STATUS,
}

pub const READ_KEYS: u8 = 0x00;
pub const READ_RESERVATION: u8 = 0x01;
pub const REPORT_CAPABILITIES: u8 = 0x02;
pub const READ_FULL_STATUS: u8 = 0x03;

pub fn begin_read_keys(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    begin(ReserveIn::Keys, cdb)
}

pub fn begin_read_reservation(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    begin(ReserveIn::Reservation, cdb)
}

pub fn begin_report_capabilities(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    begin(ReserveIn::Capabilities, cdb)
}

pub fn begin_read_full_status(_disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    begin(ReserveIn::FullStatus, cdb)
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of all commands")]
fn begin(what: ReserveIn, cdb: &Cdb) -> Result<Step, Sense> {
    Ok(Step::PersistentReserveIn(PersistentReserveIn { what, allocation_bytes: cdb.u16::<7>() }))
}

/// The persistent reservations of a logical unit, in the terms of the answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationStatus {
    /// PRGENERATION: counts changes of registrations.
    pub generation: u32,
    /// The reservation, if there is one.
    pub held: Option<HeldReservation>,
    /// The nexuses that are registered, in the order of the answers.
    pub registrants: Vec<Registrant>,
    /// Whether registrations can be made to persist through power loss (`PTPL_C`).
    pub can_persist: bool,
    /// Whether they persist now (`PTPL_A`).
    pub persists: bool,
}

/// A persistent reservation in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldReservation {
    /// The key of the holder; none if all registrants hold the reservation.
    pub key: ReservationKey,
    /// Its type, which determines the restrictions on others.
    pub kind: ReservationType,
}

/// A registered I_T nexus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registrant {
    /// The key that it registered with.
    pub key: ReservationKey,
    /// Whether it holds the reservation.
    pub is_holder: bool,
    /// The relative identifier of the target port it is registered for; `None` means all ports.
    pub relative_target_port: Option<u16>,
    /// The initiator port.
    pub transport_id: TransportId,
}

impl PersistentReserveIn {
    /// Answers the request.
    #[must_use]
    pub fn respond(&self, status: &ReservationStatus) -> Outcome {
        let data = match self.what {
            ReserveIn::Keys => {
                let keys = status.registrants.iter().flat_map(|registrant| registrant.key.0.to_be_bytes());
                with_header(status.generation, &keys.collect::<Vec<u8>>())
            }
            ReserveIn::Reservation => {
                let descriptor = status.held.map(reservation_descriptor);
                with_header(status.generation, descriptor.as_ref().map_or(&[][..], |bytes| bytes))
            }
            ReserveIn::Capabilities => capabilities(status).to_vec(),
            ReserveIn::FullStatus => {
                let kind = status.held.map(|held| held.kind);
                let list = status.registrants.iter();
                let list = list.flat_map(|registrant| full_status_descriptor(registrant, kind));
                with_header(status.generation, &list.collect::<Vec<u8>>())
            }
        };
        Outcome::parameter_data(data, self.allocation_bytes.into())
    }
}

/// PRGENERATION, ADDITIONAL LENGTH, and the descriptors.
fn with_header(generation: u32, descriptors: &[u8]) -> Vec<u8> {
    let length = u32::try_from(descriptors.len()).unwrap_or(u32::MAX);
    [&generation.to_be_bytes()[..], &length.to_be_bytes(), descriptors].concat()
}

/// SCOPE, always that of the whole logical unit (0h), and TYPE.
const fn scope_and_type(kind: ReservationType) -> u8 {
    kind.code()
}

fn reservation_descriptor(held: HeldReservation) -> [u8; 16] {
    let mut descriptor = [0; 16];
    descriptor[..8].copy_from_slice(&held.key.0.to_be_bytes());
    descriptor[13] = scope_and_type(held.kind);
    descriptor
}

fn capabilities(status: &ReservationStatus) -> [u8; 8] {
    const LENGTH: u8 = 8;
    /// CRH: RESERVE and RELEASE from a holder or registrant follow SPC-4.
    const COMPATIBLE_RESERVATION_HANDLING: u8 = 0x10;
    /// `SIP_C`: `SPEC_I_PT` is offered.
    const SPECIFY_INITIATOR_PORTS: u8 = 0x08;
    /// `ATP_C`: `ALL_TG_PT` is offered.
    const ALL_TARGET_PORTS: u8 = 0x04;
    const PERSIST_CAPABLE: u8 = 0x01;
    /// TMV: the type mask is valid.
    const TYPE_MASK_VALID: u8 = 0x80;
    /// ALLOW COMMANDS 011b: TEST UNIT READY passes every reservation; MODE SENSE, REPORT SUPPORTED OPERATION CODES and
    /// similar commands pass those that exclude writing.
    const ALLOW_COMMANDS: u8 = 0b011 << 4;
    const PERSIST_ACTIVE: u8 = 0x01;
    /// A bit for each type: the number of the bit is the type's code, starting with the first byte.
    const TYPES: [u8; 2] = [0xea, 0x01];
    let capable = if status.can_persist { PERSIST_CAPABLE } else { 0 };
    let active = if status.persists { PERSIST_ACTIVE } else { 0 };
    let features = COMPATIBLE_RESERVATION_HANDLING | SPECIFY_INITIATOR_PORTS | ALL_TARGET_PORTS;
    [0, LENGTH, features | capable, TYPE_MASK_VALID | ALLOW_COMMANDS | active, TYPES[0], TYPES[1], 0, 0]
}

fn full_status_descriptor(registrant: &Registrant, kind: Option<ReservationType>) -> Vec<u8> {
    const ALL_TARGET_PORTS: u8 = 0x02;
    const HOLDER: u8 = 0x01;
    let transport_id = registrant.transport_id.to_bytes();
    let mut descriptor = vec![0; 24];
    descriptor[..8].copy_from_slice(&registrant.key.0.to_be_bytes());
    match registrant.relative_target_port {
        Some(port) => descriptor[18..20].copy_from_slice(&port.to_be_bytes()),
        None => descriptor[12] |= ALL_TARGET_PORTS,
    }
    if let Some(kind) = kind.filter(|_| registrant.is_holder) {
        descriptor[12] |= HOLDER;
        descriptor[13] = scope_and_type(kind);
    }
    let length = u32::try_from(transport_id.len()).unwrap_or(u32::MAX);
    descriptor[20..24].copy_from_slice(&length.to_be_bytes());
    descriptor.extend(transport_id);
    descriptor
}
