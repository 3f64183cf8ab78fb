//! SCSI Response (RFC 7143 §11.4).

use crate::error::{Field, InvalidPdu};
use crate::fields::Window;
use crate::header::{FINAL_BIT, Header};
use crate::number::{DataSn, Itt, StatSn};
use crate::opcode::Opcode;
use crate::residual::Residual;

/// The iSCSI service response (§11.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceResponse {
    /// The command was executed; its SCSI status has the result.
    CompletedAtTarget,
    /// The target failed; there is no status.
    TargetFailure,
    /// Vendor-specific (0x80 and above) or reserved: also a failure.
    Other(u8),
}

impl ServiceResponse {
    /// The response for a code on the wire.
    #[must_use]
    pub const fn from_wire(code: u8) -> Self {
        match code {
            0x00 => Self::CompletedAtTarget,
            0x01 => Self::TargetFailure,
            code => Self::Other(code),
        }
    }

    /// The code on the wire.
    #[must_use]
    pub const fn wire(self) -> u8 {
        match self {
            Self::CompletedAtTarget => 0x00,
            Self::TargetFailure => 0x01,
            Self::Other(code) => code,
        }
    }
}

/// The end of a command. Its data segment is a [`SenseSegment`](crate::SenseSegment).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiResponse {
    /// The task that ended.
    pub itt: Itt,
    /// Whether the command completed at the target.
    pub response: ServiceResponse,
    /// The SCSI status (SAM-5 §5.3); 0 if the command did not complete at the target.
    pub status: u8,
    /// The residual of the transfer; the write's, if bidirectional. None if the command did not complete at the target.
    pub residual: Residual,
    /// The residual of a bidirectional command's read.
    pub bidirectional_read_residual: Residual,
    /// The tag of the last R-Data SNACK for this command, or 0 (§11.4.4).
    pub snack_tag: u32,
    /// The number of this response on its connection.
    pub stat_sn: StatSn,
    /// The command window.
    pub window: Window,
    /// The number of Data-In and R2T PDUs sent for the command.
    pub exp_data_sn: DataSn,
    /// The length of the sense segment.
    pub data_segment_bytes: u32,
}

const READ_OVERFLOW_BIT: u8 = 0x10;
const READ_UNDERFLOW_BIT: u8 = 0x08;
const OVERFLOW_BIT: u8 = 0x04;
const UNDERFLOW_BIT: u8 = 0x02;
const RESPONSE: usize = 2;
const STATUS: usize = 3;
const SNACK_TAG: usize = 20;
const EXP_DATA_SN: usize = 36;
const READ_RESIDUAL_COUNT: usize = 40;
const RESIDUAL_COUNT: usize = 44;

impl ScsiResponse {
    /// Parses a header. Status and residuals of a command that did not complete at the target are undefined, and
    /// ignored (§11.4.3). CHECK CONDITION should have sense data (§7.7), but some targets send refusals without it, and
    /// ending the session would make them unusable.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS, names no task, or claims overflow and underflow at once.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_without_ahs(Opcode::ScsiResponse)?;
        let response = ServiceResponse::from_wire(header.u8_at(RESPONSE));
        let completed = response == ServiceResponse::CompletedAtTarget;
        let flags = if completed { header.flags() } else { 0 };
        let residual = |overflow: u8, underflow: u8, count: usize| {
            Residual::from_wire(flags & overflow != 0, flags & underflow != 0, header.u32_at(count))
                .ok_or_else(|| header.invalid(Field::Flags, flags.into()))
        };
        let status = if completed { header.u8_at(STATUS) } else { 0 };
        Ok(Self {
            itt: header.expect_task_tag()?,
            response,
            status,
            residual: residual(OVERFLOW_BIT, UNDERFLOW_BIT, RESIDUAL_COUNT)?,
            bidirectional_read_residual: residual(
                READ_OVERFLOW_BIT,
                READ_UNDERFLOW_BIT,
                READ_RESIDUAL_COUNT,
            )?,
            snack_tag: header.u32_at(SNACK_TAG),
            stat_sn: header.stat_sn(),
            window: header.window(),
            exp_data_sn: DataSn(header.u32_at(EXP_DATA_SN)),
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::ScsiResponse);
        header.set_flags(
            FINAL_BIT
                | self.residual.flags(OVERFLOW_BIT, UNDERFLOW_BIT)
                | self.bidirectional_read_residual.flags(READ_OVERFLOW_BIT, READ_UNDERFLOW_BIT),
        );
        header.set_u8_at(RESPONSE, self.response.wire());
        header.set_u8_at(STATUS, self.status);
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_task_tag(self.itt);
        header.set_u32_at(SNACK_TAG, self.snack_tag);
        header.set_stat_sn(self.stat_sn);
        header.set_window(self.window);
        header.set_u32_at(EXP_DATA_SN, self.exp_data_sn.0);
        header.set_u32_at(READ_RESIDUAL_COUNT, self.bidirectional_read_residual.count());
        header.set_u32_at(RESIDUAL_COUNT, self.residual.count());
        header
    }
}
