//! The length of a command's transfer: the initiator's, which is the expected data transfer length, and the CDB's
//! (RFC 7143 §11.4.5.2). Blocks are read and written as far as both reach.

use crate::reached::{Reached, Way};
use pdu::{Residual, ScsiCommand};

/// READ (16) and WRITE (16), which name their blocks in the CDB's bytes 10 to 13 (SBC-3 §5.14, §5.38).
const READ: u8 = 0x88;
const WRITE: u8 = 0x8a;

/// Both lengths of a command that moves blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransferLength {
    expected_bytes: u64,
    asked_bytes: u64,
    writes: bool,
}

impl TransferLength {
    /// Of a command to a unit whose blocks have this length; `None` if it is neither READ nor WRITE.
    pub fn of(pdu: &ScsiCommand, block_bytes: u32) -> Option<Self> {
        let cdb = pdu.cdb.bytes();
        let code = *cdb.first().filter(|code| [READ, WRITE].contains(code))?;
        let blocks = u32::from_be_bytes(*cdb.get(10..)?.first_chunk()?);
        Some(Self {
            expected_bytes: pdu.expected_data_bytes.into(),
            asked_bytes: u64::from(blocks) * u64::from(block_bytes),
            writes: code == WRITE,
        })
    }

    /// The command succeeds with this residual, after so many bytes of Data-In.
    ///
    /// # Errors
    /// The residual is not the difference of both lengths, or the Data-In is not as long as the shorter one.
    pub fn judge(self, residual: Residual, data_in_bytes: u32, reached: &mut Reached) -> Result<(), String> {
        let Self { expected_bytes, asked_bytes, writes } = self;
        let (overflow_bytes, underflow_bytes) = match residual {
            Residual::None => (0, 0),
            Residual::Overflow(bytes) => (u64::from(bytes), 0),
            Residual::Underflow(bytes) => (0, u64::from(bytes)),
        };
        let due = (asked_bytes.saturating_sub(expected_bytes), expected_bytes.saturating_sub(asked_bytes));
        if due != (overflow_bytes, underflow_bytes) {
            return Err(format!("{residual:?} where {expected_bytes} bytes are expected of {asked_bytes}"));
        }
        let due_in_bytes = if writes { 0 } else { asked_bytes.min(expected_bytes) };
        if due_in_bytes != u64::from(data_in_bytes) {
            return Err(format!("{data_in_bytes} bytes of Data-In where {due_in_bytes} are due"));
        }
        match (writes, overflow_bytes > 0, underflow_bytes > 0) {
            (false, true, _) => reached.count(Way::ReadOverflow),
            (false, _, true) => reached.count(Way::ReadUnderflow),
            (true, true, _) => reached.count(Way::WriteOverflow),
            (true, _, true) => reached.count(Way::WriteUnderflow),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(length: TransferLength, residual: Residual, data_in_bytes: u32) -> bool {
        length.judge(residual, data_in_bytes, &mut Reached::default()).is_ok()
    }

    #[test]
    fn the_residual_is_the_difference_of_both_lengths() {
        let long = TransferLength { expected_bytes: 1030, asked_bytes: 1024, writes: false };
        assert!(judge(long, Residual::Underflow(6), 1024));
        assert!(!judge(long, Residual::Overflow(6), 1024));
        assert!(!judge(long, Residual::Underflow(6), 1030));
        let short = TransferLength { expected_bytes: 512, asked_bytes: 1024, writes: true };
        assert!(judge(short, Residual::Overflow(512), 0));
        assert!(!judge(short, Residual::None, 0));
    }
}
