//! REPORT SUPPORTED OPERATION CODES (SPC-4).

use crate::cdb::Cdb;
use crate::operation_code::{COMMANDS, Command, with_operation_code};
use crate::{Disk, FieldPointer, Outcome, Sense, Step};

/// A command timeouts descriptor without timeouts (SPC-4). Its first two bytes count the other ten.
const TIMEOUTS_DESCRIPTOR: [u8; 12] = [0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const REQUESTED_OPERATION_CODE_FIELD: FieldPointer = FieldPointer::cdb(3);
const REQUESTED_SERVICE_ACTION_FIELD: FieldPointer = FieldPointer::cdb(4);

pub fn begin(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    const RETURN_TIMEOUTS_BIT: u8 = 7;
    let timeouts = cdb.bit::<2>(RETURN_TIMEOUTS_BIT);
    let code = cdb.u8::<3>();
    let action = cdb.u16::<4>();
    let data = match cdb.u8::<2>() & 0b111 {
        0b000 => all_commands(disk, timeouts),
        0b001 => one_command(without_action(disk, code)?, timeouts),
        0b010 => one_command(with_action(disk, code, action)?, timeouts),
        0b011 => one_command(either(disk, code, action), timeouts),
        _ => return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(2, 2))),
    };
    Ok(Step::Done(Outcome::parameter_data(data, cdb.u32::<6>())))
}

/// Reporting option 001b: an operation code with service actions is an error.
fn without_action(disk: &Disk, code: u8) -> Result<Option<&'static Command>, Sense> {
    match with_operation_code(disk, code).next() {
        Some(command) if command.service_action.is_some() => {
            Err(Sense::invalid_field_in_cdb(REQUESTED_OPERATION_CODE_FIELD))
        }
        found => Ok(found),
    }
}

/// Reporting option 010b: an operation code without service actions is an error.
fn with_action(disk: &Disk, code: u8, action: u16) -> Result<Option<&'static Command>, Sense> {
    if with_operation_code(disk, code).any(|command| command.service_action.is_none()) {
        return Err(Sense::invalid_field_in_cdb(REQUESTED_SERVICE_ACTION_FIELD));
    }
    Ok(either(disk, code, action))
}

/// Reporting option 011b: nothing is an error; for a command without service actions, request service action zero.
fn either(disk: &Disk, code: u8, action: u16) -> Option<&'static Command> {
    with_operation_code(disk, code).find(|command| u16::from(command.service_action.unwrap_or(0)) == action)
}

/// The `all_commands` parameter data format (SPC-4).
fn all_commands(disk: &Disk, timeouts: bool) -> Vec<u8> {
    const SERVICE_ACTION_VALID: u8 = 0x01;
    const TIMEOUTS_PRESENT: u8 = 0x02;
    let mut list = Vec::new();
    for command in COMMANDS.iter().filter(|command| command.is_offered(disk)) {
        let valid = if command.service_action.is_some() { SERVICE_ACTION_VALID } else { 0 };
        let present = if timeouts { TIMEOUTS_PRESENT } else { 0 };
        list.extend([command.operation_code, 0, 0, command.service_action.unwrap_or(0), 0, valid | present]);
        list.extend(cdb_bytes(command).to_be_bytes());
        if timeouts {
            list.extend(TIMEOUTS_DESCRIPTOR);
        }
    }
    let mut data = u32::try_from(list.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    data.extend(list);
    data
}

/// The `one_command` parameter data format (SPC-4).
fn one_command(command: Option<&Command>, timeouts: bool) -> Vec<u8> {
    const NOT_SUPPORTED: u8 = 0b001;
    const SUPPORTED: u8 = 0b011;
    const TIMEOUTS_PRESENT: u8 = 0x80;
    let Some(command) = command else {
        return vec![0, NOT_SUPPORTED, 0, 0];
    };
    let present = if timeouts { TIMEOUTS_PRESENT } else { 0 };
    let mut data = vec![0, present | SUPPORTED];
    data.extend(cdb_bytes(command).to_be_bytes());
    data.extend(command.usage);
    if timeouts {
        data.extend(TIMEOUTS_DESCRIPTOR);
    }
    data
}

fn cdb_bytes(command: &Command) -> u16 {
    u16::try_from(command.usage.len()).unwrap_or(u16::MAX)
}
