//! The kinds of PDUs (RFC 7143 §11.2.1.2).

/// The opcodes that RFC 7143 assigns. Vendor-specific codes have no variant: neither end of Ropewalk uses
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// §11.18
    NopOut = 0x00,
    /// §11.3
    ScsiCommand = 0x01,
    /// §11.5
    TaskManagementRequest = 0x02,
    /// §11.12
    LoginRequest = 0x03,
    /// §11.10
    TextRequest = 0x04,
    /// §11.7
    DataOut = 0x05,
    /// §11.14
    LogoutRequest = 0x06,
    /// §11.16
    Snack = 0x10,
    /// §11.19
    NopIn = 0x20,
    /// §11.4
    ScsiResponse = 0x21,
    /// §11.6
    TaskManagementResponse = 0x22,
    /// §11.13
    LoginResponse = 0x23,
    /// §11.11
    TextResponse = 0x24,
    /// §11.7
    DataIn = 0x25,
    /// §11.15
    LogoutResponse = 0x26,
    /// §11.8
    R2t = 0x31,
    /// §11.9
    AsyncMessage = 0x32,
    /// §11.17
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
