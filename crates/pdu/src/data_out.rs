//! SCSI Data-Out: data of a write, unsolicited or in answer to an R2T (RFC 7143 §11.7).

use crate::Lun;
use crate::error::InvalidPdu;
use crate::header::{FINAL_BIT, Header};
use crate::number::{DataSn, Itt, StatSn, Ttt};
use crate::opcode::Opcode;

/// One part of a write's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataOut {
    /// The unit; meaningful if `ttt` is.
    pub lun: Lun,
    /// The task that the data belongs to.
    pub itt: Itt,
    /// The tag of the R2T that this answers, or [`Ttt::NONE`] for unsolicited data.
    pub ttt: Ttt,
    /// The last PDU of the unsolicited data, or of the answer to the R2T.
    pub final_: bool,
    /// Acknowledges all responses before it on this connection.
    pub exp_stat_sn: StatSn,
    /// The number of this PDU in its sequence.
    pub data_sn: DataSn,
    /// The offset of the data, in bytes from the start of the command's data.
    pub buffer_offset: u32,
    /// The length of the data.
    pub data_segment_bytes: u32,
}

const DATA_SN: usize = 36;
const BUFFER_OFFSET: usize = 40;

impl DataOut {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS, or names no task.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_without_ahs(Opcode::DataOut)?;
        Ok(Self {
            lun: header.lun(),
            itt: header.expect_task_tag()?,
            ttt: header.transfer_tag(),
            final_: header.is_final(),
            exp_stat_sn: header.exp_stat_sn(),
            data_sn: DataSn(header.u32_at(DATA_SN)),
            buffer_offset: header.u32_at(BUFFER_OFFSET),
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::DataOut);
        header.set_flags(if self.final_ { FINAL_BIT } else { 0 });
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_lun(self.lun);
        header.set_task_tag(self.itt);
        header.set_transfer_tag(self.ttt);
        header.set_exp_stat_sn(self.exp_stat_sn);
        header.set_u32_at(DATA_SN, self.data_sn.0);
        header.set_u32_at(BUFFER_OFFSET, self.buffer_offset);
        header
    }
}
