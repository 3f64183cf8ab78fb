//! SCSI Command (RFC 7143 §11.3).

use crate::Lun;
use crate::ahs::Ahs;
use crate::cdb::Cdb;
use crate::error::{Field, InvalidPdu};
use crate::header::{FINAL_BIT, Header};
use crate::number::{CmdSn, Itt, StatSn};
use crate::opcode::Opcode;

/// The order of a task within its task set (§11.3.1, SAM-5 §8.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TaskAttribute {
    /// No attribute: treated as simple.
    Untagged,
    /// In any order.
    #[default]
    Simple,
    /// After all earlier tasks, and before all later ones.
    Ordered,
    /// Before all others.
    HeadOfQueue,
    /// Under an auto contingent allegiance.
    Aca,
}

impl TaskAttribute {
    const MASK: u8 = 0x07;

    const fn from_wire(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Untagged,
            1 => Self::Simple,
            2 => Self::Ordered,
            3 => Self::HeadOfQueue,
            4 => Self::Aca,
            _ => return None,
        })
    }

    const fn wire(self) -> u8 {
        match self {
            Self::Untagged => 0,
            Self::Simple => 1,
            Self::Ordered => 2,
            Self::HeadOfQueue => 3,
            Self::Aca => 4,
        }
    }
}

/// A command to a logical unit. Its data segment is immediate data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScsiCommand {
    /// The unit that is to execute the command.
    pub lun: Lun,
    /// The tag of the task, which all its PDUs carry.
    pub itt: Itt,
    /// The I bit: deliver at once, outside the command order.
    pub immediate: bool,
    /// The F bit: no unsolicited Data-Out follows.
    pub final_: bool,
    /// The R bit: data flows to the initiator.
    pub read: bool,
    /// The W bit: data flows to the target.
    pub write: bool,
    /// The order within the task set.
    pub attribute: TaskAttribute,
    /// Expected Data Transfer Length; the write's, if both directions are set.
    pub expected_data_bytes: u32,
    /// Expected Data Transfer Length of the read, present if and only if both `read` and `write` are set.
    pub bidirectional_read_bytes: Option<u32>,
    /// Its place in the command order.
    pub cmd_sn: CmdSn,
    /// Acknowledges all responses before it on this connection.
    pub exp_stat_sn: StatSn,
    /// The command itself, in SCSI's own format.
    pub cdb: Cdb,
    /// The length of the immediate data.
    pub data_segment_bytes: u32,
}

const READ_BIT: u8 = 0x40;
const WRITE_BIT: u8 = 0x20;
const EXPECTED_DATA_BYTES: usize = 20;
const CDB: usize = 32;

impl ScsiCommand {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU; neither F nor W is set; the command expects data in neither direction; the task
    /// attribute is reserved; no task is named; the AHSs are malformed, repeated, absent although a bidirectional
    /// command needs one, or make the CDB too long.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_opcode(Opcode::ScsiCommand)?;
        let itt = header.expect_task_tag()?;
        let flags = header.flags();
        let (read, write) = (flags & READ_BIT != 0, flags & WRITE_BIT != 0);
        let attribute = TaskAttribute::from_wire(flags & TaskAttribute::MASK)
            .ok_or_else(|| header.invalid(Field::TaskAttribute, flags.into()))?;
        if !header.is_final() && !write {
            return Err(header.invalid(Field::Flags, flags.into()));
        }
        let expected_data_bytes = header.u32_at(EXPECTED_DATA_BYTES);
        if expected_data_bytes != 0 && !read && !write {
            return Err(header.invalid(Field::ExpectedDataTransferLength, expected_data_bytes));
        }
        let (cdb, bidirectional_read_bytes) = parse_ahs(header)?;
        if bidirectional_read_bytes.is_some() != (read && write) {
            return Err(header.invalid(Field::Ahs, flags.into()));
        }
        Ok(Self {
            lun: header.lun(),
            itt,
            immediate: header.is_immediate(),
            final_: header.is_final(),
            read,
            write,
            attribute,
            expected_data_bytes,
            bidirectional_read_bytes,
            cmd_sn: header.cmd_sn(),
            exp_stat_sn: header.exp_stat_sn(),
            cdb,
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::ScsiCommand);
        header.set_immediate(self.immediate);
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        header.set_flags(
            bit(self.final_, FINAL_BIT)
                | bit(self.read, READ_BIT)
                | bit(self.write, WRITE_BIT)
                | self.attribute.wire(),
        );
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_lun(self.lun);
        header.set_task_tag(self.itt);
        header.set_u32_at(EXPECTED_DATA_BYTES, self.expected_data_bytes);
        header.set_cmd_sn(self.cmd_sn);
        header.set_exp_stat_sn(self.exp_stat_sn);
        let (inline, extended) = self.cdb.bytes().split_at(Cdb::INLINE_BYTES);
        header.set_bytes_at(CDB, inline);
        if !extended.is_empty() {
            header.push_extended_cdb(extended);
        }
        if let Some(bytes) = self.bidirectional_read_bytes {
            header.push_bidirectional_read_length(bytes);
        }
        header
    }
}

/// The CDB, extended by an AHS, and the bidirectional read length. Skips reserved types of AHS.
fn parse_ahs(header: &Header) -> Result<(Cdb, Option<u32>), InvalidPdu> {
    let inline: [u8; Cdb::INLINE_BYTES] = header.array_at(CDB);
    if header.ahs_bytes() != header.ahs().len() {
        return Err(header.invalid_length(Field::TotalAhsLength, header.ahs().len()));
    }
    let mut extended = None;
    let mut read_bytes = None;
    for segment in header.ahs_segments() {
        let repeated = match segment? {
            Ahs::ExtendedCdb(rest) => extended.replace(rest).is_some(),
            Ahs::BidirectionalReadLength(bytes) => read_bytes.replace(bytes).is_some(),
            Ahs::Unknown { .. } => false,
        };
        if repeated {
            return Err(header.invalid_length(Field::Ahs, header.ahs_bytes()));
        }
    }
    let cdb = match extended {
        None => Cdb::from(inline),
        Some(rest) => {
            let whole = [&inline, rest].concat();
            Cdb::new(&whole).map_err(|error| header.invalid_length(Field::Ahs, error.bytes))?
        }
    };
    Ok((cdb, read_bytes))
}
