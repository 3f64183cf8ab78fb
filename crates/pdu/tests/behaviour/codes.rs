//! Codes that have a total map to and from the wire, and the map from errors to Reject reasons.

use ropewalk_pdu::*;
use std::collections::HashSet;

#[test]
fn every_login_status_survives_the_wire() {
    for class in 0..=u8::MAX {
        for detail in 0..=u8::MAX {
            assert_eq!(LoginStatus::from_wire(class, detail).wire(), (class, detail));
        }
    }
}

#[test]
fn the_standard_assigns_eighteen_login_statuses() {
    let assigned = (0..=u16::MAX).map(u16::to_be_bytes).filter(|&[class, detail]| {
        !matches!(LoginStatus::from_wire(class, detail), LoginStatus::Unassigned { .. })
    });
    assert_eq!(assigned.count(), 18);
}

#[test]
fn a_login_status_without_a_code_still_has_a_class() {
    assert_eq!(LoginStatus::from_wire(3, 0x77).class(), LoginStatusClass::TargetError);
    assert_eq!(LoginStatus::from_wire(9, 0).class(), LoginStatusClass::Unassigned(9));
    assert!(!LoginStatus::from_wire(9, 0).is_success());
}

#[test]
fn a_login_status_reads_as_the_standard_names_it() {
    assert_eq!(LoginStatus::SessionDoesNotExist.to_string(), "session does not exist (020a)");
}

#[test]
fn every_code_of_one_byte_survives_the_wire() {
    for code in 0..=u8::MAX {
        assert_eq!(RejectReason::from_wire(code).wire(), code);
        assert_eq!(TaskManagementOutcome::from_wire(code).wire(), code);
        assert_eq!(LogoutOutcome::from_wire(code).wire(), code);
        assert_eq!(ServiceResponse::from_wire(code).wire(), code);
        assert_eq!(TaskManagementFunction::from_wire(code).wire(), code & 0x7f);
    }
}

#[test]
fn every_fault_has_its_reject_reason() {
    use RejectReason::{CommandNotSupported, InvalidPduField, ProtocolError};
    let reason = |field| InvalidPdu { opcode: Opcode::ScsiCommand.wire(), field, found: 0 }.reject_reason();
    let fields_of = |wanted| Field::ALL.into_iter().filter(move |field| reason(*field) == wanted).count();
    assert_eq!(reason(Field::Opcode), CommandNotSupported);
    assert_eq!(reason(Field::TotalAhsLength), ProtocolError);
    assert_eq!(reason(Field::TargetTransferTag), InvalidPduField);
    assert_eq!(
        (fields_of(CommandNotSupported), fields_of(ProtocolError), fields_of(InvalidPduField)),
        (1, 7, 8)
    );
}

#[test]
fn every_field_has_a_name_of_its_own() {
    let names: HashSet<_> = Field::ALL.map(Field::name).into();
    assert_eq!(names.len(), Field::ALL.len());
}

#[test]
fn an_error_says_which_pdu_which_field_and_what_was_found() {
    let error = InvalidPdu { opcode: 0x31, field: Field::TargetTransferTag, found: u32::MAX };
    assert_eq!(error.to_string(), "R2t: Target Transfer Tag is 0xffffffff");
    let error = InvalidPdu { opcode: 0x1c, field: Field::Opcode, found: 0x1c };
    assert_eq!(error.to_string(), "PDU of opcode 0x1c: Opcode is 0x1c");
}
