//! NOP-Out and NOP-In: pings in both directions (RFC 7143 §11.18, §11.19).

use crate::Lun;
use crate::error::{Field, InvalidPdu};
use crate::fields::Window;
use crate::header::{FINAL_BIT, Header};
use crate::number::{CmdSn, Itt, StatSn, Ttt};
use crate::opcode::Opcode;

/// An initiator's ping (`itt` set), its answer to a target's ping (`ttt` set), or an acknowledgement (neither).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NopOut {
    /// The I bit; always set if `itt` is none.
    pub immediate: bool,
    /// Copied from the NOP-In that this answers.
    pub lun: Lun,
    /// Names the ping; [`Itt::NONE`] if it needs no answer.
    pub itt: Itt,
    /// Copied from the NOP-In that this answers, else [`Ttt::NONE`].
    pub ttt: Ttt,
    /// Its place in the command order; not taken if immediate.
    pub cmd_sn: CmdSn,
    /// Acknowledges all responses before it on this connection.
    pub exp_stat_sn: StatSn,
    /// The length of the ping data, which the answer repeats.
    pub data_segment_bytes: u32,
}

impl NopOut {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS, or needs no answer but is not immediate (§11.18.1).
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_without_ahs(Opcode::NopOut)?;
        let itt = header.task_tag();
        if itt.is_none() && !header.is_immediate() {
            return Err(header.invalid(Field::InitiatorTaskTag, itt.0));
        }
        Ok(Self {
            immediate: header.is_immediate(),
            lun: header.lun(),
            itt,
            ttt: header.transfer_tag(),
            cmd_sn: header.cmd_sn(),
            exp_stat_sn: header.exp_stat_sn(),
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::NopOut);
        header.set_immediate(self.immediate);
        header.set_flags(FINAL_BIT);
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_lun(self.lun);
        header.set_task_tag(self.itt);
        header.set_transfer_tag(self.ttt);
        header.set_cmd_sn(self.cmd_sn);
        header.set_exp_stat_sn(self.exp_stat_sn);
        header
    }
}

/// The answer to an initiator's ping (`itt` set), a target's ping (`ttt` set), or an update of the window (neither).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NopIn {
    /// The answer copies it.
    pub lun: Lun,
    /// The ping that this answers, else [`Itt::NONE`].
    pub itt: Itt,
    /// Names the ping; [`Ttt::NONE`] if it needs no answer.
    pub ttt: Ttt,
    /// The next StatSN; advanced only by an answer (§11.19.2).
    pub stat_sn: StatSn,
    /// The command window.
    pub window: Window,
    /// The length of the returned ping data; 0 unless this is an answer.
    pub data_segment_bytes: u32,
}

impl NopIn {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS, is an answer and a ping at once, or has data but is no answer (§11.19).
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_without_ahs(Opcode::NopIn)?;
        let (itt, ttt) = (header.task_tag(), header.transfer_tag());
        if itt.is_none() {
            header.expect_without_data()?;
        } else if ttt.is_some() {
            return Err(header.invalid(Field::TargetTransferTag, ttt.0));
        }
        Ok(Self {
            lun: header.lun(),
            itt,
            ttt,
            stat_sn: header.stat_sn(),
            window: header.window(),
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::NopIn);
        header.set_flags(FINAL_BIT);
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_lun(self.lun);
        header.set_task_tag(self.itt);
        header.set_transfer_tag(self.ttt);
        header.set_stat_sn(self.stat_sn);
        header.set_window(self.window);
        header
    }
}
