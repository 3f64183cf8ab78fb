//! The reservations that conflict with each command (SPC-4 and SBC-3, the tables of commands that are allowed in the
//! presence of reservations; SPC-2 for RESERVE).

use crate::operation_code as code;

const READ_BUFFER: u8 = 0x3c;

/// The weakest reservation of another I_T nexus that conflicts with a command. Each variant conflicts in all cases of
/// the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Restriction {
    /// None: the command only identifies the unit, or has its own rules (PERSISTENT RESERVE OUT, RESERVE, RELEASE).
    Nothing,
    /// Only a reservation by RESERVE.
    Reserve,
    /// One for exclusive access: the command reads.
    ExclusiveAccess,
    /// Any: the command changes something.
    WriteExclusive,
}

impl Restriction {
    /// The restriction of this command. An unknown command counts as changing something.
    #[must_use]
    pub fn of(cdb: &[u8]) -> Self {
        let byte = |at: usize| cdb.get(at).copied().unwrap_or_default();
        match byte(0) {
            code::INQUIRY
            | code::REPORT_LUNS
            | code::REQUEST_SENSE
            | code::READ_CAPACITY_10
            | code::PERSISTENT_RESERVE_OUT
            | code::RESERVE_6
            | code::RELEASE_6
            | code::LOG_SENSE => Self::Nothing,
            code::TEST_UNIT_READY | code::PERSISTENT_RESERVE_IN => Self::Reserve,
            code::READ_6
            | code::READ_10
            | code::READ_12
            | code::READ_16
            | code::VERIFY_10
            | code::VERIFY_12
            | code::VERIFY_16
            | code::MODE_SENSE_6
            | code::MODE_SENSE_10
            | code::PRE_FETCH_10
            | code::PRE_FETCH_16
            | code::READ_DEFECT_DATA_10
            | code::READ_DEFECT_DATA_12
            | READ_BUFFER
            | code::RECEIVE_COPY_RESULTS => Self::ExclusiveAccess,
            code::SERVICE_ACTION_IN_16 => of_service_action_in(byte(1)),
            code::MAINTENANCE_IN => of_maintenance_in(byte(1)),
            code::START_STOP_UNIT => of_start_stop_unit(byte(4)),
            code::PREVENT_ALLOW_MEDIUM_REMOVAL => of_prevent_allow(byte(4)),
            _ => Self::WriteExclusive,
        }
    }
}

fn of_service_action_in(byte: u8) -> Restriction {
    const READ_CAPACITY_16: u8 = 0x10;
    if byte & code::SERVICE_ACTION_MASK == READ_CAPACITY_16 {
        Restriction::Nothing
    } else {
        Restriction::ExclusiveAccess
    }
}

/// Reports about paths are open to everybody; the others count as reads.
fn of_maintenance_in(byte: u8) -> Restriction {
    const REPORT_TARGET_PORT_GROUPS: u8 = 0x0a;
    if byte & code::SERVICE_ACTION_MASK == REPORT_TARGET_PORT_GROUPS {
        Restriction::Nothing
    } else {
        Restriction::ExclusiveAccess
    }
}

/// Starting affects nobody; stopping, and changing the power condition, does.
fn of_start_stop_unit(byte: u8) -> Restriction {
    const START: u8 = 0x01;
    const POWER_CONDITION: u8 = 0xf0;
    if byte & START != 0 && byte & POWER_CONDITION == 0 {
        Restriction::Nothing
    } else {
        Restriction::WriteExclusive
    }
}

fn of_prevent_allow(byte: u8) -> Restriction {
    const PREVENT: u8 = 0x03;
    if byte & PREVENT == 0 { Restriction::Nothing } else { Restriction::WriteExclusive }
}
