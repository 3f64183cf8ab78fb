//! Additional Header Segments (RFC 7143 §11.2.2).

use crate::error::{Field, InvalidPdu};
use crate::header::Header;

/// One Additional Header Segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahs<'a> {
    /// The bytes of a CDB beyond its sixteenth (§11.2.2.3): at least one.
    ExtendedCdb(&'a [u8]),
    /// The bytes that a bidirectional command expects to read (§11.2.2.4).
    BidirectionalReadLength(u32),
    /// An AHS of a reserved type.
    Unknown {
        /// The six-bit AHS code.
        code: u8,
        /// The AHS-specific part, without padding.
        content: &'a [u8],
    },
}

const PREFIX_BYTES: usize = 3;
const CODE_MASK: u8 = 0x3f;
const EXTENDED_CDB: u8 = 1;
const BIDIRECTIONAL_READ_LENGTH: u8 = 2;
const WORD_BYTES: usize = 4;

impl Header {
    /// The Additional Header Segments, in order. Ends after the first one that exceeds its space.
    pub fn ahs_segments(&self) -> impl Iterator<Item = Result<Ahs<'_>, InvalidPdu>> {
        let mut rest = self.ahs();
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let segment = split(rest).and_then(|(code, content, after)| {
                rest = after;
                interpret(code, content)
            });
            Some(segment.map_err(|found| {
                rest = &[];
                self.invalid(Field::Ahs, found)
            }))
        })
    }

    pub(crate) fn push_extended_cdb(&mut self, rest_of_cdb: &[u8]) {
        // The length counts the reserved byte before the content (§11.2.2.3).
        let length = u16::try_from(rest_of_cdb.len() + 1).unwrap_or(u16::MAX).to_be_bytes();
        let mut segment = vec![length[0], length[1], EXTENDED_CDB, 0];
        segment.extend_from_slice(rest_of_cdb);
        self.push_ahs(&segment);
    }

    pub(crate) fn push_bidirectional_read_length(&mut self, bytes: u32) {
        let [b0, b1, b2, b3] = bytes.to_be_bytes();
        self.push_ahs(&[0, 5, BIDIRECTIONAL_READ_LENGTH, 0, b0, b1, b2, b3]);
    }
}

/// The code of the first segment, its content after AHSType, and the rest. Fails with the length that the segment
/// claims, if that exceeds the bytes present.
fn split(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), u32> {
    let &[high, low, code, ..] = bytes else { return Err(0) };
    let length = u16::from_be_bytes([high, low]);
    let end = PREFIX_BYTES + usize::from(length);
    let content = bytes.get(PREFIX_BYTES..end).ok_or(length)?;
    let rest = bytes.get(end.next_multiple_of(WORD_BYTES)..).unwrap_or_default();
    Ok((code & CODE_MASK, content, rest))
}

/// Interprets a segment. Fails with the code if its content is invalid for it.
fn interpret(code: u8, content: &[u8]) -> Result<Ahs<'_>, u32> {
    match (code, content) {
        (EXTENDED_CDB, [_reserved, rest @ ..]) if !rest.is_empty() => Ok(Ahs::ExtendedCdb(rest)),
        (BIDIRECTIONAL_READ_LENGTH, &[_reserved, b0, b1, b2, b3]) => {
            Ok(Ahs::BidirectionalReadLength(u32::from_be_bytes([b0, b1, b2, b3])))
        }
        (EXTENDED_CDB | BIDIRECTIONAL_READ_LENGTH, _) => Err(code.into()),
        (code, content) => Ok(Ahs::Unknown { code, content }),
    }
}
