//! The data segment of SCSI Responses and Asynchronous Messages: a length, sense data, and further data (RFC 7143
//! §11.4.7, §11.9.4).

use crate::error::{Field, InvalidPdu};
use crate::opcode::Opcode;

/// The parts of such a data segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenseSegment<'a> {
    /// Sense data (SPC-5 §4.4); may be empty.
    pub sense: &'a [u8],
    /// Response data of a SCSI Response, iSCSI event data of an Asynchronous Message; usually empty.
    pub rest: &'a [u8],
}

const LENGTH_BYTES: usize = 2;

impl<'a> SenseSegment<'a> {
    /// Splits the data segment of a PDU of kind `opcode`. An empty one holds no sense data.
    ///
    /// # Errors
    /// [`Field::SenseLength`] if the segment is shorter than its SenseLength, or too short to have one.
    pub fn parse(opcode: Opcode, data_segment: &'a [u8]) -> Result<Self, InvalidPdu> {
        if data_segment.is_empty() {
            return Ok(Self::default());
        }
        let invalid = |found| InvalidPdu { opcode: opcode.wire(), field: Field::SenseLength, found };
        let (length, content) =
            data_segment.split_first_chunk::<LENGTH_BYTES>().ok_or_else(|| invalid(u32::MAX))?;
        let length = u16::from_be_bytes(*length);
        let (sense, rest) = content.split_at_checked(length.into()).ok_or_else(|| invalid(length.into()))?;
        Ok(Self { sense, rest })
    }

    /// The data segment; empty if both parts are. Truncates sense data at 65535 bytes, more than SPC-5 allows.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        if self.sense.is_empty() && self.rest.is_empty() {
            return Vec::new();
        }
        let length = u16::try_from(self.sense.len()).unwrap_or(u16::MAX);
        let sense = &self.sense[..length.into()];
        [&length.to_be_bytes(), sense, self.rest].concat()
    }
}
