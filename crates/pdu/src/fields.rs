//! The positions of fields in the BHS that many PDUs share (RFC 7143 §11).

use crate::Lun;
use crate::header::Header;
use crate::number::{CmdSn, Itt, StatSn, Ttt};

/// The command window in every PDU of a target: the initiator may send commands from `exp_cmd_sn` to `max_cmd_sn`, both
/// included (RFC 7143 §4.2.2.1). `max_cmd_sn` one before `exp_cmd_sn` means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// The next command that the target expects; all before it have arrived.
    pub exp_cmd_sn: CmdSn,
    /// The last command that the target accepts.
    pub max_cmd_sn: CmdSn,
}

const LUN: usize = 8;
const TASK_TAG: usize = 16;
const TRANSFER_TAG: usize = 20;
/// CmdSN in an initiator's PDUs, StatSN in a target's.
const OWN_NUMBER: usize = 24;
/// ExpStatSN in an initiator's PDUs, ExpCmdSN in a target's.
const EXPECTED_NUMBER: usize = 28;
const MAX_CMD_SN: usize = 32;

impl Header {
    pub(crate) fn lun(&self) -> Lun {
        Lun(u64::from_be_bytes(self.array_at(LUN)))
    }

    pub(crate) fn set_lun(&mut self, lun: Lun) {
        self.set_bytes_at(LUN, &lun.0.to_be_bytes());
    }

    pub(crate) fn set_task_tag(&mut self, tag: Itt) {
        self.set_u32_at(TASK_TAG, tag.0);
    }

    pub(crate) const fn transfer_tag(&self) -> Ttt {
        Ttt(self.u32_at(TRANSFER_TAG))
    }

    pub(crate) fn set_transfer_tag(&mut self, tag: Ttt) {
        self.set_u32_at(TRANSFER_TAG, tag.0);
    }

    pub(crate) const fn cmd_sn(&self) -> CmdSn {
        CmdSn(self.u32_at(OWN_NUMBER))
    }

    pub(crate) fn set_cmd_sn(&mut self, number: CmdSn) {
        self.set_u32_at(OWN_NUMBER, number.0);
    }

    pub(crate) const fn exp_stat_sn(&self) -> StatSn {
        StatSn(self.u32_at(EXPECTED_NUMBER))
    }

    pub(crate) fn set_exp_stat_sn(&mut self, number: StatSn) {
        self.set_u32_at(EXPECTED_NUMBER, number.0);
    }

    pub(crate) const fn stat_sn(&self) -> StatSn {
        StatSn(self.u32_at(OWN_NUMBER))
    }

    pub(crate) fn set_stat_sn(&mut self, number: StatSn) {
        self.set_u32_at(OWN_NUMBER, number.0);
    }

    pub(crate) const fn window(&self) -> Window {
        Window { exp_cmd_sn: CmdSn(self.u32_at(EXPECTED_NUMBER)), max_cmd_sn: CmdSn(self.u32_at(MAX_CMD_SN)) }
    }

    /// Replaces the command window: the only change in a PDU that a target sends again (§11.16).
    pub fn set_window(&mut self, window: Window) {
        self.set_u32_at(EXPECTED_NUMBER, window.exp_cmd_sn.0);
        self.set_u32_at(MAX_CMD_SN, window.max_cmd_sn.0);
    }
}
