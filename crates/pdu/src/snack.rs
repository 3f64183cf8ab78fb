//! SNACK: the initiator requests PDUs again, or acknowledges data (RFC 7143 §11.16).

use crate::Lun;
use crate::error::{Field, InvalidPdu};
use crate::header::{FINAL_BIT, Header};
use crate::number::{DataSn, Itt, StatSn, Ttt};
use crate::opcode::Opcode;

/// The request (§11.16.1). A `count` of 0 means everything from `begin` on; with a `begin` of 0 too, everything
/// unacknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SnackKind {
    /// Send these Data-In or R2T PDUs of a command again.
    DataOrR2t {
        /// The command that the PDUs belong to.
        itt: Itt,
        /// The first DataSN or R2TSN.
        begin: u32,
        /// The number of PDUs.
        count: u32,
    },
    /// Send these responses again.
    Status {
        /// The StatSN of the first response.
        begin: StatSn,
        /// The number of responses.
        count: u32,
    },
    /// All Data-In before `next` have arrived.
    DataAck {
        /// Copied from the Data-In that requested it.
        ttt: Ttt,
        /// The next expected DataSN.
        next: DataSn,
    },
    /// Send all unacknowledged Data-In of a command again, cut to the lengths in force now.
    ResegmentedData {
        /// The command that the Data-In belong to.
        itt: Itt,
        /// The tag that the response must repeat; neither 0 nor 0xffffffff.
        tag: u32,
    },
}

/// A Sequence Number Acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snack {
    /// The requested or acknowledged PDUs.
    pub kind: SnackKind,
    /// The unit; for a DataACK, copied from the Data-In.
    pub lun: Lun,
    /// Acknowledges all responses before it on this connection.
    pub exp_stat_sn: StatSn,
}

const TYPE_MASK: u8 = 0x0f;
const TAG: usize = 20;
const BEGIN: usize = 40;
const COUNT: usize = 44;

impl Snack {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS or data, is of a reserved type, or has a tag or a run that its type does not
    /// allow (§11.16.4 to §11.16.7).
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_bare(Opcode::Snack)?;
        Ok(Self { kind: parse_kind(header)?, lun: header.lun(), exp_stat_sn: header.exp_stat_sn() })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::Snack);
        let (code, itt, tag, begin, count) = match self.kind {
            SnackKind::DataOrR2t { itt, begin, count } => (0, itt, Ttt::NONE.0, begin, count),
            SnackKind::Status { begin, count } => (1, Itt::NONE, Ttt::NONE.0, begin.0, count),
            SnackKind::DataAck { ttt, next } => (2, Itt::NONE, ttt.0, next.0, 0),
            SnackKind::ResegmentedData { itt, tag } => (3, itt, tag, 0, 0),
        };
        header.set_flags(FINAL_BIT | code);
        header.set_lun(self.lun);
        header.set_task_tag(itt);
        header.set_u32_at(TAG, tag);
        header.set_exp_stat_sn(self.exp_stat_sn);
        header.set_u32_at(BEGIN, begin);
        header.set_u32_at(COUNT, count);
        header
    }
}

fn parse_kind(header: &Header) -> Result<SnackKind, InvalidPdu> {
    let (begin, count) = (header.u32_at(BEGIN), header.u32_at(COUNT));
    match header.flags() & TYPE_MASK {
        0 => {
            expect_no_transfer(header)?;
            Ok(SnackKind::DataOrR2t { itt: header.expect_task_tag()?, begin, count })
        }
        1 => {
            expect_no_transfer(header)?;
            expect_no_task(header)?;
            Ok(SnackKind::Status { begin: StatSn(begin), count })
        }
        2 => {
            expect_no_task(header)?;
            expect_zero(header, count)?;
            let ttt = header.transfer_tag();
            if ttt.is_none() {
                return Err(header.invalid(Field::TargetTransferTag, ttt.0));
            }
            Ok(SnackKind::DataAck { ttt, next: DataSn(begin) })
        }
        3 => {
            expect_zero(header, begin)?;
            expect_zero(header, count)?;
            let tag = header.u32_at(TAG);
            if tag == 0 || tag == Ttt::NONE.0 {
                return Err(header.invalid(Field::SnackTag, tag));
            }
            Ok(SnackKind::ResegmentedData { itt: header.expect_task_tag()?, tag })
        }
        code => Err(header.invalid(Field::SnackType, code.into())),
    }
}

fn expect_no_task(header: &Header) -> Result<(), InvalidPdu> {
    let itt = header.task_tag();
    if itt.is_none() { Ok(()) } else { Err(header.invalid(Field::InitiatorTaskTag, itt.0)) }
}

fn expect_no_transfer(header: &Header) -> Result<(), InvalidPdu> {
    let ttt = header.transfer_tag();
    if ttt.is_none() { Ok(()) } else { Err(header.invalid(Field::TargetTransferTag, ttt.0)) }
}

fn expect_zero(header: &Header, found: u32) -> Result<(), InvalidPdu> {
    if found == 0 { Ok(()) } else { Err(header.invalid(Field::Run, found)) }
}
