//! Additional sense codes and their qualifiers (SPC-4).

use core::fmt;

/// ASC and ASCQ: what exactly happened.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AdditionalSense {
    /// ADDITIONAL SENSE CODE.
    pub code: u8,
    /// ADDITIONAL SENSE CODE QUALIFIER.
    pub qualifier: u8,
}

macro_rules! additional_sense {
    ($($constant:ident = $code:literal, $qualifier:literal, $name:literal;)*) => {
        impl AdditionalSense {
            $(#[doc = concat!($name, ".")]
            pub const $constant: Self = Self { code: $code, qualifier: $qualifier };)*

            /// The standard's name, where it is one of the codes this crate knows.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match (self.code, self.qualifier) {
                    $(($code, $qualifier) => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

additional_sense! {
    NONE = 0x00, 0x00, "NO ADDITIONAL SENSE INFORMATION";
    WRITE_ERROR = 0x0c, 0x00, "WRITE ERROR";
    UNEXPECTED_UNSOLICITED_DATA = 0x0c, 0x0c, "WRITE ERROR - UNEXPECTED UNSOLICITED DATA";
    NOT_ENOUGH_UNSOLICITED_DATA = 0x0c, 0x0d, "WRITE ERROR - NOT ENOUGH UNSOLICITED DATA";
    INVALID_FIELD_IN_COMMAND_INFORMATION_UNIT = 0x0e, 0x03, "INVALID FIELD IN COMMAND INFORMATION UNIT";
    UNRECOVERED_READ_ERROR = 0x11, 0x00, "UNRECOVERED READ ERROR";
    READ_ERROR_FAILED_RETRANSMISSION_REQUEST = 0x11, 0x13, "READ ERROR - FAILED RETRANSMISSION REQUEST";
    PARAMETER_LIST_LENGTH_ERROR = 0x1a, 0x00, "PARAMETER LIST LENGTH ERROR";
    MISCOMPARE_DURING_VERIFY_OPERATION = 0x1d, 0x00, "MISCOMPARE DURING VERIFY OPERATION";
    INVALID_COMMAND_OPERATION_CODE = 0x20, 0x00, "INVALID COMMAND OPERATION CODE";
    LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE = 0x21, 0x00, "LOGICAL BLOCK ADDRESS OUT OF RANGE";
    INVALID_FIELD_IN_CDB = 0x24, 0x00, "INVALID FIELD IN CDB";
    LOGICAL_UNIT_NOT_SUPPORTED = 0x25, 0x00, "LOGICAL UNIT NOT SUPPORTED";
    INVALID_FIELD_IN_PARAMETER_LIST = 0x26, 0x00, "INVALID FIELD IN PARAMETER LIST";
    WRITE_PROTECTED = 0x27, 0x00, "WRITE PROTECTED";
    SPACE_ALLOCATION_FAILED_WRITE_PROTECT = 0x27, 0x07, "SPACE ALLOCATION FAILED WRITE PROTECT";
    POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED = 0x29, 0x00, "POWER ON, RESET, OR BUS DEVICE RESET OCCURRED";
    SCSI_BUS_RESET_OCCURRED = 0x29, 0x02, "SCSI BUS RESET OCCURRED";
    BUS_DEVICE_RESET_FUNCTION_OCCURRED = 0x29, 0x03, "BUS DEVICE RESET FUNCTION OCCURRED";
    I_T_NEXUS_LOSS_OCCURRED = 0x29, 0x07, "I_T NEXUS LOSS OCCURRED";
    CAPACITY_DATA_HAS_CHANGED = 0x2a, 0x09, "CAPACITY DATA HAS CHANGED";
    COMMANDS_CLEARED_BY_ANOTHER_INITIATOR = 0x2f, 0x00, "COMMANDS CLEARED BY ANOTHER INITIATOR";
    SAVING_PARAMETERS_NOT_SUPPORTED = 0x39, 0x00, "SAVING PARAMETERS NOT SUPPORTED";
    REPORTED_LUNS_DATA_HAS_CHANGED = 0x3f, 0x0e, "REPORTED LUNS DATA HAS CHANGED";
    INTERNAL_TARGET_FAILURE = 0x44, 0x00, "INTERNAL TARGET FAILURE";
    PROTOCOL_SERVICE_CRC_ERROR = 0x47, 0x05, "PROTOCOL SERVICE CRC ERROR";
    SOME_COMMANDS_CLEARED_BY_ISCSI_PROTOCOL_EVENT = 0x47, 0x7f, "SOME COMMANDS CLEARED BY ISCSI PROTOCOL EVENT";
    INVALID_MESSAGE_ERROR = 0x49, 0x00, "INVALID MESSAGE ERROR";
    OVERLAPPED_COMMANDS_ATTEMPTED = 0x4e, 0x00, "OVERLAPPED COMMANDS ATTEMPTED";
}

impl fmt::Display for AdditionalSense {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name() {
            write!(formatter, "{name} ")?;
        }
        write!(formatter, "({:02x}h/{:02x}h)", self.code, self.qualifier)
    }
}

impl fmt::Debug for AdditionalSense {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
