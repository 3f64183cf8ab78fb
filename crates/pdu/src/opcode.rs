//! The kinds of PDUs (RFC 7143 §11.2.1.2).

/// The opcodes that RFC 7143 assigns. Vendor-specific codes have no variant: neither end of Ropewalk uses
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// NOP-Out: the initiator's ping, or its answer to one (§11.18).
    NopOut = 0x00,
    /// SCSI Command, perhaps with immediate data (§11.3).
    ScsiCommand = 0x01,
    /// Task Management Function Request: abort or move tasks, or reset units (§11.5).
    TaskManagementRequest = 0x02,
    /// Login Request: one step of a login (§11.12).
    LoginRequest = 0x03,
    /// Text Request: negotiation after login, or SendTargets (§11.10).
    TextRequest = 0x04,
    /// SCSI Data-Out: data of a write (§11.7).
    DataOut = 0x05,
    /// Logout Request: close a session or connection (§11.14).
    LogoutRequest = 0x06,
    /// SNACK: request PDUs again, or acknowledge data (§11.16).
    Snack = 0x10,
    /// NOP-In: the target's ping, or its answer to one (§11.19).
    NopIn = 0x20,
    /// SCSI Response: a command's end (§11.4).
    ScsiResponse = 0x21,
    /// Task Management Function Response (§11.6).
    TaskManagementResponse = 0x22,
    /// Login Response: the answer to each Login Request (§11.13).
    LoginResponse = 0x23,
    /// Text Response: the answer to each Text Request (§11.11).
    TextResponse = 0x24,
    /// SCSI Data-In: data of a read, and perhaps the command's status (§11.7).
    DataIn = 0x25,
    /// Logout Response: the answer to a Logout Request (§11.15).
    LogoutResponse = 0x26,
    /// Ready To Transfer: the target asks for data of a write (§11.8).
    R2t = 0x31,
    /// Asynchronous Message: the target reports an event (§11.9).
    AsyncMessage = 0x32,
    /// Reject: the target could not accept a PDU (§11.17).
    Reject = 0x3f,
}

impl Opcode {
    /// Every assigned opcode, in the order of their codes.
    pub const ALL: [Self; 18] = [
        Self::NopOut,
        Self::ScsiCommand,
        Self::TaskManagementRequest,
        Self::LoginRequest,
        Self::TextRequest,
        Self::DataOut,
        Self::LogoutRequest,
        Self::Snack,
        Self::NopIn,
        Self::ScsiResponse,
        Self::TaskManagementResponse,
        Self::LoginResponse,
        Self::TextResponse,
        Self::DataIn,
        Self::LogoutResponse,
        Self::R2t,
        Self::AsyncMessage,
        Self::Reject,
    ];

    /// The opcode with this six-bit code, or `None` if the standard assigns none.
    #[must_use]
    pub const fn from_wire(code: u8) -> Option<Self> {
        Some(match code {
            0x00 => Self::NopOut,
            0x01 => Self::ScsiCommand,
            0x02 => Self::TaskManagementRequest,
            0x03 => Self::LoginRequest,
            0x04 => Self::TextRequest,
            0x05 => Self::DataOut,
            0x06 => Self::LogoutRequest,
            0x10 => Self::Snack,
            0x20 => Self::NopIn,
            0x21 => Self::ScsiResponse,
            0x22 => Self::TaskManagementResponse,
            0x23 => Self::LoginResponse,
            0x24 => Self::TextResponse,
            0x25 => Self::DataIn,
            0x26 => Self::LogoutResponse,
            0x31 => Self::R2t,
            0x32 => Self::AsyncMessage,
            0x3f => Self::Reject,
            _ => return None,
        })
    }

    /// The six-bit code on the wire.
    #[must_use]
    pub const fn wire(self) -> u8 {
        self as u8
    }

    /// Whether an initiator sends this PDU; a target sends all others.
    #[must_use]
    pub const fn is_from_initiator(self) -> bool {
        self.wire() < Self::NopIn.wire()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_survives_the_wire() {
        for opcode in Opcode::ALL {
            assert_eq!(Opcode::from_wire(opcode.wire()), Some(opcode));
        }
    }

    #[test]
    fn no_other_code_is_an_opcode() {
        let assigned = (0..=u8::MAX).filter_map(Opcode::from_wire).count();
        assert_eq!(assigned, Opcode::ALL.len());
    }
}
