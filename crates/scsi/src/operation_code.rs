//! The commands: one table for dispatch, validation and REPORT SUPPORTED OPERATION CODES.

use crate::cdb::Cdb;
use crate::{
    AdditionalSense, Disk, FieldPointer, Sense, Step, compare_and_write, extended_copy, get_lba_status,
    inquiry, log_sense, mode_select, mode_sense, or_write, persistent_reserve_in, persistent_reserve_out,
    pre_fetch, prevent_allow_medium_removal, read, read_capacity, read_defect_data, receive_copy_results,
    report_luns, report_supported_operation_codes, report_target_port_groups, request_sense, reserve,
    start_stop_unit, synchronize_cache, test_unit_ready, unmap, verify, write, write_and_verify, write_same,
};

/// The byte that holds a service action, in its low five bits (SPC-4).
const SERVICE_ACTION_BYTE: usize = 1;
pub const SERVICE_ACTION_MASK: u8 = 0x1f;
const SERVICE_ACTION_FIELD: FieldPointer = FieldPointer::cdb_bit(1, 4);

pub const TEST_UNIT_READY: u8 = 0x00;
pub const REQUEST_SENSE: u8 = 0x03;
pub const READ_6: u8 = 0x08;
pub const WRITE_6: u8 = 0x0a;
pub const INQUIRY: u8 = 0x12;
pub const MODE_SELECT_6: u8 = 0x15;
pub const RESERVE_6: u8 = 0x16;
pub const RELEASE_6: u8 = 0x17;
pub const MODE_SENSE_6: u8 = 0x1a;
pub const START_STOP_UNIT: u8 = 0x1b;
pub const PREVENT_ALLOW_MEDIUM_REMOVAL: u8 = 0x1e;
pub const READ_CAPACITY_10: u8 = 0x25;
pub const READ_10: u8 = 0x28;
pub const WRITE_10: u8 = 0x2a;
pub const WRITE_AND_VERIFY_10: u8 = 0x2e;
pub const VERIFY_10: u8 = 0x2f;
pub const PRE_FETCH_10: u8 = 0x34;
pub const SYNCHRONIZE_CACHE_10: u8 = 0x35;
pub const READ_DEFECT_DATA_10: u8 = 0x37;
pub const WRITE_SAME_10: u8 = 0x41;
pub const UNMAP: u8 = 0x42;
pub const LOG_SENSE: u8 = 0x4d;
pub const MODE_SELECT_10: u8 = 0x55;
pub const MODE_SENSE_10: u8 = 0x5a;
pub const PERSISTENT_RESERVE_IN: u8 = 0x5e;
pub const PERSISTENT_RESERVE_OUT: u8 = 0x5f;
pub const EXTENDED_COPY: u8 = 0x83;
pub const RECEIVE_COPY_RESULTS: u8 = 0x84;
pub const READ_16: u8 = 0x88;
pub const COMPARE_AND_WRITE: u8 = 0x89;
pub const WRITE_16: u8 = 0x8a;
pub const OR_WRITE_16: u8 = 0x8b;
pub const WRITE_AND_VERIFY_16: u8 = 0x8e;
pub const VERIFY_16: u8 = 0x8f;
pub const PRE_FETCH_16: u8 = 0x90;
pub const SYNCHRONIZE_CACHE_16: u8 = 0x91;
pub const WRITE_SAME_16: u8 = 0x93;
pub const SERVICE_ACTION_IN_16: u8 = 0x9e;
pub const REPORT_LUNS: u8 = 0xa0;
pub const MAINTENANCE_IN: u8 = 0xa3;
pub const READ_12: u8 = 0xa8;
pub const WRITE_12: u8 = 0xaa;
pub const WRITE_AND_VERIFY_12: u8 = 0xae;
pub const VERIFY_12: u8 = 0xaf;
pub const READ_DEFECT_DATA_12: u8 = 0xb7;

/// The disks that have a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    Always,
    /// Only those that can deallocate blocks (SBC-3).
    Thin,
    /// Only those whose target ports are known.
    Ported,
    /// Only those whose medium can be removed.
    Removable,
    /// Only those whose medium cannot.
    Fixed,
}

/// Begins a command on a disk. The table has checked the CDB.
type Begin = fn(&Disk, &Cdb) -> Result<Step, Sense>;

/// Continues a command on a disk with its complete parameter list.
type Parameter = fn(&Disk, &Cdb, &[u8]) -> Result<Step, Sense>;

/// A command that disks implement, and the means to check and begin it.
pub struct Command {
    pub operation_code: u8,
    pub service_action: Option<u8>,
    /// CDB usage data (SPC-4): the operation code, then a mask of the evaluated bits, except that the service action
    /// appears literally. Bits outside the mask must be zero in a CDB.
    pub usage: &'static [u8],
    pub offered: Offered,
    pub begin: Begin,
    /// For commands that begin with [`Step::Parameter`].
    pub parameter: Option<Parameter>,
}

/// A command without service action, for every disk.
const fn plain(begin: Begin, usage: &'static [u8]) -> Command {
    let operation_code = usage[0];
    Command { operation_code, service_action: None, usage, offered: Offered::Always, begin, parameter: None }
}

/// A command with a service action.
const fn action(begin: Begin, usage: &'static [u8]) -> Command {
    let action = usage[SERVICE_ACTION_BYTE] & SERVICE_ACTION_MASK;
    Command { service_action: Some(action), ..plain(begin, usage) }
}

/// A command without service action but with a parameter list, for every disk.
const fn with_list(begin: Begin, parameter: Parameter, usage: &'static [u8]) -> Command {
    Command { parameter: Some(parameter), ..plain(begin, usage) }
}

/// The same, for thin disks.
const fn thin(begin: Begin, parameter: Parameter, usage: &'static [u8]) -> Command {
    Command { offered: Offered::Thin, ..with_list(begin, parameter, usage) }
}

/// A service action of PERSISTENT RESERVE IN.
const fn reserve_in(begin: Begin, usage: &'static [u8; 10]) -> Command {
    action(begin, usage)
}

/// A service action of PERSISTENT RESERVE OUT.
const fn reserve_out(usage: &'static [u8; 10]) -> Command {
    let parameter = Some(persistent_reserve_out::parameter as Parameter);
    Command { parameter, ..action(persistent_reserve_out::begin, usage) }
}

/// A command without service action, for disks whose medium can be removed.
const fn removable(begin: Begin, usage: &'static [u8]) -> Command {
    Command { offered: Offered::Removable, ..plain(begin, usage) }
}

/// In the order of operation codes, as they are reported.
///
/// No bit of a CONTROL byte is evaluated: NACA is not supported, and there are no vendor-specific bits. Bits of the
/// protection fields (RDPROTECT, WRPROTECT, VRPROTECT) are not allowed: there is no protection information. A GROUP
/// NUMBER is allowed, because it only groups statistics, which are not collected. ANCHOR is not allowed: nothing is
/// anchored.
#[rustfmt::skip]
pub static COMMANDS: &[Command] = &[
    plain(test_unit_ready::begin, &[TEST_UNIT_READY, 0x00, 0x00, 0x00, 0x00, 0x00]),
    plain(request_sense::begin, &[REQUEST_SENSE, 0x01, 0x00, 0x00, 0xff, 0x00]),
    plain(read::begin_6, &[READ_6, 0x1f, 0xff, 0xff, 0xff, 0x00]),
    plain(write::begin_6, &[WRITE_6, 0x1f, 0xff, 0xff, 0xff, 0x00]),
    plain(inquiry::begin, &[INQUIRY, 0x01, 0xff, 0xff, 0xff, 0x00]),
    with_list(mode_select::begin_6, mode_select::parameter_6, &[MODE_SELECT_6, 0x10, 0x00, 0x00, 0xff, 0x00]),
    plain(reserve::begin_reserve, &[RESERVE_6, 0x00, 0x00, 0x00, 0x00, 0x00]),
    plain(reserve::begin_release, &[RELEASE_6, 0x00, 0x00, 0x00, 0x00, 0x00]),
    plain(mode_sense::begin_6, &[MODE_SENSE_6, 0x08, 0xff, 0xff, 0xff, 0x00]),
    Command {
        offered: Offered::Fixed,
        ..plain(start_stop_unit::begin_fixed, &[START_STOP_UNIT, 0x01, 0x00, 0x00, 0x05, 0x00])
    },
    removable(start_stop_unit::begin_removable, &[START_STOP_UNIT, 0x01, 0x00, 0x00, 0xf7, 0x00]),
    removable(prevent_allow_medium_removal::begin, &[PREVENT_ALLOW_MEDIUM_REMOVAL, 0x00, 0x00, 0x00, 0x01, 0x00]),
    plain(read_capacity::begin_10, &[READ_CAPACITY_10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00]),
    plain(read::begin_10, &[READ_10, 0x18, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x00]),
    plain(write::begin_10, &[WRITE_10, 0x18, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x00]),
    plain(write_and_verify::begin_10, &[WRITE_AND_VERIFY_10, 0x12, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x00]),
    plain(verify::begin_10, &[VERIFY_10, 0x16, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x00]),
    plain(pre_fetch::begin_10, &[PRE_FETCH_10, 0x02, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x00]),
    plain(synchronize_cache::begin_10, &[SYNCHRONIZE_CACHE_10, 0x02, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x00]),
    plain(read_defect_data::begin_10, &[READ_DEFECT_DATA_10, 0x00, 0x1f, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00]),
    plain(write_same::begin_10, &[WRITE_SAME_10, 0x08, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x00]),
    thin(unmap::begin, unmap::parameter, &[UNMAP, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1f, 0xff, 0xff, 0x00]),
    plain(log_sense::begin, &[LOG_SENSE, 0x00, 0xff, 0xff, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00]),
    with_list(mode_select::begin_10, mode_select::parameter_10, &[MODE_SELECT_10, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00]),
    plain(mode_sense::begin_10, &[MODE_SENSE_10, 0x18, 0xff, 0xff, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00]),
    reserve_in(persistent_reserve_in::begin_read_keys, &[PERSISTENT_RESERVE_IN, persistent_reserve_in::READ_KEYS, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00]),
    reserve_in(persistent_reserve_in::begin_read_reservation, &[PERSISTENT_RESERVE_IN, persistent_reserve_in::READ_RESERVATION, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00]),
    reserve_in(persistent_reserve_in::begin_report_capabilities, &[PERSISTENT_RESERVE_IN, persistent_reserve_in::REPORT_CAPABILITIES, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00]),
    reserve_in(persistent_reserve_in::begin_read_full_status, &[PERSISTENT_RESERVE_IN, persistent_reserve_in::READ_FULL_STATUS, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00]),
    reserve_out(&[PERSISTENT_RESERVE_OUT, persistent_reserve_out::REGISTER, 0xff, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00]),
    reserve_out(&[PERSISTENT_RESERVE_OUT, persistent_reserve_out::RESERVE, 0xff, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00]),
    reserve_out(&[PERSISTENT_RESERVE_OUT, persistent_reserve_out::RELEASE, 0xff, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00]),
    reserve_out(&[PERSISTENT_RESERVE_OUT, persistent_reserve_out::CLEAR, 0xff, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00]),
    reserve_out(&[PERSISTENT_RESERVE_OUT, persistent_reserve_out::PREEMPT, 0xff, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00]),
    reserve_out(&[PERSISTENT_RESERVE_OUT, persistent_reserve_out::PREEMPT_AND_ABORT, 0xff, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00]),
    reserve_out(&[PERSISTENT_RESERVE_OUT, persistent_reserve_out::REGISTER_AND_IGNORE_EXISTING_KEY, 0xff, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00]),
    reserve_out(&[PERSISTENT_RESERVE_OUT, persistent_reserve_out::REGISTER_AND_MOVE, 0xff, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00]),
    Command {
        parameter: Some(extended_copy::parameter),
        ..action(extended_copy::begin, &[EXTENDED_COPY, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00])
    },
    action(receive_copy_results::begin_status, &[RECEIVE_COPY_RESULTS, 0x00, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00]),
    action(receive_copy_results::begin_operating_parameters, &[RECEIVE_COPY_RESULTS, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00]),
    plain(read::begin_16, &[READ_16, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    plain(compare_and_write::begin, &[COMPARE_AND_WRITE, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0xff, 0x1f, 0x00]),
    plain(write::begin_16, &[WRITE_16, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    plain(or_write::begin, &[OR_WRITE_16, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    plain(write_and_verify::begin_16, &[WRITE_AND_VERIFY_16, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    plain(verify::begin_16, &[VERIFY_16, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    plain(pre_fetch::begin_16, &[PRE_FETCH_16, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    plain(synchronize_cache::begin_16, &[SYNCHRONIZE_CACHE_16, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    plain(write_same::begin_16, &[WRITE_SAME_16, 0x09, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    action(read_capacity::begin_16, &[SERVICE_ACTION_IN_16, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00]),
    action(get_lba_status::begin, &[SERVICE_ACTION_IN_16, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00]),
    plain(report_luns::begin, &[REPORT_LUNS, 0x00, 0xff, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00]),
    Command {
        offered: Offered::Ported,
        ..action(report_target_port_groups::begin, &[MAINTENANCE_IN, 0xea, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00])
    },
    action(report_supported_operation_codes::begin, &[MAINTENANCE_IN, 0x0c, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00]),
    plain(read::begin_12, &[READ_12, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    plain(write::begin_12, &[WRITE_12, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    plain(write_and_verify::begin_12, &[WRITE_AND_VERIFY_12, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    plain(verify::begin_12, &[VERIFY_12, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x00]),
    plain(read_defect_data::begin_12, &[READ_DEFECT_DATA_12, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00]),
];

impl Command {
    /// Whether `disk` has this command.
    pub fn is_offered(&self, disk: &Disk) -> bool {
        match self.offered {
            Offered::Always => true,
            Offered::Thin => disk.is_thin(),
            Offered::Removable => disk.removable,
            Offered::Fixed => !disk.removable,
            Offered::Ported => disk.all_ports().next().is_some(),
        }
    }

    /// The bits of byte `at` that a CDB may set.
    fn allowed(&self, at: usize, usage: u8) -> u8 {
        let action =
            if at == SERVICE_ACTION_BYTE && self.service_action.is_some() { SERVICE_ACTION_MASK } else { 0 };
        usage | action
    }

    /// Refuses a CDB that is too short or sets a bit that must be zero; points at the first such bit.
    pub fn check_usage(&self, cdb: &[u8]) -> Result<(), Sense> {
        for (at, usage) in (0u16..).zip(self.usage).skip(1) {
            let Some(byte) = cdb.get(usize::from(at)) else {
                return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb(at)));
            };
            let forbidden = byte & !self.allowed(at.into(), *usage);
            if let Some(bit) = most_significant_bit(forbidden) {
                return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(at, bit)));
            }
        }
        Ok(())
    }
}

fn most_significant_bit(byte: u8) -> Option<u8> {
    (0..8).rev().find(|bit| byte & (1 << bit) != 0)
}

/// The commands of `disk` with this operation code: none, one, or one for each service action.
pub fn with_operation_code(disk: &Disk, operation_code: u8) -> impl Iterator<Item = &'static Command> {
    COMMANDS
        .iter()
        .filter(move |command| command.operation_code == operation_code && command.is_offered(disk))
}

/// Finds the command of a CDB and checks every bit that it must not set.
pub fn validate(disk: &Disk, cdb: &[u8]) -> Result<&'static Command, Sense> {
    let unknown =
        Sense::illegal_request(AdditionalSense::INVALID_COMMAND_OPERATION_CODE).at(FieldPointer::cdb(0));
    let operation_code = *cdb.first().ok_or(unknown)?;
    let mut commands = with_operation_code(disk, operation_code).peekable();
    commands.peek().ok_or(unknown)?;
    let action = cdb.get(SERVICE_ACTION_BYTE).map_or(0, |byte| byte & SERVICE_ACTION_MASK);
    let command = commands
        .find(|command| command.service_action.is_none_or(|expected| expected == action))
        .ok_or(Sense::invalid_field_in_cdb(SERVICE_ACTION_FIELD))?;
    command.check_usage(cdb)?;
    Ok(command)
}
