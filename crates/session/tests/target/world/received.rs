//! What the target sent, looked at.

use pdu::{CmdSn, Header, Opcode, StatSn, TargetPdu, TaskManagementOutcome, Window};

/// A PDU of the target with its data.
pub type Received = (TargetPdu, Vec<u8>);

/// The StatSN that a PDU takes, if it takes one.
pub fn status_number(pdu: &TargetPdu) -> Option<StatSn> {
    match pdu {
        TargetPdu::NopIn(pdu) => Some(pdu.stat_sn).filter(|_| pdu.itt.is_some()),
        TargetPdu::ScsiResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::TaskManagementResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::LoginResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::TextResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::DataIn(pdu) => pdu.status.map(|status| status.stat_sn),
        TargetPdu::LogoutResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::R2t(_) => None,
        TargetPdu::AsyncMessage(pdu) => Some(pdu.stat_sn),
        TargetPdu::Reject(pdu) => Some(pdu.stat_sn),
    }
}

pub fn response(received: &Received) -> pdu::ScsiResponse {
    match received.0 {
        TargetPdu::ScsiResponse(pdu) => pdu,
        other => panic!("{other:?} instead of a SCSI Response"),
    }
}

pub fn r2t(received: &Received) -> pdu::R2t {
    match received.0 {
        TargetPdu::R2t(pdu) => pdu,
        other => panic!("{other:?} instead of an R2T"),
    }
}

pub fn data_in(received: &Received) -> pdu::DataIn {
    match received.0 {
        TargetPdu::DataIn(pdu) => pdu,
        other => panic!("{other:?} instead of Data-In"),
    }
}

pub fn reject_reason(received: &Received) -> pdu::RejectReason {
    match received.0 {
        TargetPdu::Reject(pdu) => pdu.reason,
        other => panic!("{other:?} instead of a Reject"),
    }
}

pub fn nop_in(received: &Received) -> pdu::NopIn {
    match received.0 {
        TargetPdu::NopIn(pdu) => pdu,
        other => panic!("{other:?} instead of a NOP-In"),
    }
}

pub fn function_outcome(received: &Received) -> TaskManagementOutcome {
    match received.0 {
        TargetPdu::TaskManagementResponse(pdu) => pdu.outcome,
        other => panic!("{other:?} instead of a task management response"),
    }
}

/// PDUs without their command window, in which a replica may differ.
pub fn timeless(received: &[Received]) -> Vec<Received> {
    let of_no_time = |(pdu, data): &Received| {
        let mut header = pdu.emit();
        header.set_window(Window { exp_cmd_sn: CmdSn(0), max_cmd_sn: CmdSn(0) });
        (TargetPdu::parse(&header).unwrap(), data.clone())
    };
    received.iter().map(of_no_time).collect()
}

/// The data that PDUs carry, joined.
pub fn joined(received: &[Received]) -> Vec<u8> {
    received.iter().flat_map(|(_, data)| data.clone()).collect()
}

/// Bytes that tell their place.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

/// A header of these first bytes, the rest zero.
pub fn raw(opcode: Opcode) -> [u8; Header::BHS_BYTES] {
    let mut bhs = [0; Header::BHS_BYTES];
    bhs[0] = opcode.wire();
    bhs
}
