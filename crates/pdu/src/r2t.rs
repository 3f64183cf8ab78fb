//! Ready To Transfer: the target asks for one part of a write's data (RFC 7143 §11.8).

use crate::Lun;
use crate::error::{Field, InvalidPdu};
use crate::fields::Window;
use crate::header::{FINAL_BIT, Header};
use crate::number::{Itt, R2tSn, StatSn, Ttt};
use crate::opcode::Opcode;

/// One request for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct R2t {
    /// The unit of the task.
    pub lun: Lun,
    /// The task of the data.
    pub itt: Itt,
    /// The tag that the answer must repeat; never [`Ttt::NONE`].
    pub ttt: Ttt,
    /// The next StatSN; an R2T does not advance it.
    pub stat_sn: StatSn,
    /// The command window.
    pub window: Window,
    /// The number of this R2T in its command.
    pub r2t_sn: R2tSn,
    /// The start of the part, in bytes from the start of the command's data.
    pub buffer_offset: u32,
    /// Desired Data Transfer Length, never 0. The session checks that it is at most MaxBurstLength (§11.8.4).
    pub desired_bytes: u32,
}

const R2T_SN: usize = 36;
const BUFFER_OFFSET: usize = 40;
const DESIRED_BYTES: usize = 44;

impl R2t {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS or data, names no task or no transfer, or asks for nothing.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_bare(Opcode::R2t)?;
        let ttt = header.transfer_tag();
        if ttt.is_none() {
            return Err(header.invalid(Field::TargetTransferTag, ttt.0));
        }
        let desired_bytes = header.u32_at(DESIRED_BYTES);
        if desired_bytes == 0 {
            return Err(header.invalid(Field::DesiredDataTransferLength, 0));
        }
        Ok(Self {
            lun: header.lun(),
            itt: header.expect_task_tag()?,
            ttt,
            stat_sn: header.stat_sn(),
            window: header.window(),
            r2t_sn: R2tSn(header.u32_at(R2T_SN)),
            buffer_offset: header.u32_at(BUFFER_OFFSET),
            desired_bytes,
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::R2t);
        header.set_flags(FINAL_BIT);
        header.set_lun(self.lun);
        header.set_task_tag(self.itt);
        header.set_transfer_tag(self.ttt);
        header.set_stat_sn(self.stat_sn);
        header.set_window(self.window);
        header.set_u32_at(R2T_SN, self.r2t_sn.0);
        header.set_u32_at(BUFFER_OFFSET, self.buffer_offset);
        header.set_u32_at(DESIRED_BYTES, self.desired_bytes);
        header
    }
}
