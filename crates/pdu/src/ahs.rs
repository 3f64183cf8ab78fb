//! Additional Header Segments (RFC 7143 §11.2.2).

use crate::error::{Field, InvalidPdu};
use crate::header::Header;

/// One Additional Header Segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahs<'a> {
    /// The bytes of a CDB beyond its sixteenth (§11.2.2.3): at least one.
    ExtendedCdb(&'a [u8]),
    /// How many bytes a bidirectional command expects to read (§11.2.2.4).
    BidirectionalReadLength(u32),
    /// A reserved type. `content` is the AHS-specific part, without padding.
    Unknown {
        /// The six-bit AHS code.
        code: u8,
        /// What it holds.
        content: &'a [u8],
    },
}

const PREFIX_BYTES: usize = 3;
const CODE_MASK: u8 = 0x3f;
const EXTENDED_CDB: u8 = 1;
const BIDIRECTIONAL_READ_LENGTH: u8 = 2;
const WORD_BYTES: usize = 4;

impl Header {
    /// The Additional Header Segments, in order. Stops after the first that does not fit its space.
    pub fn segments(&self) -> impl Iterator<Item = Result<Ahs<'_>, InvalidPdu>> {
        let mut rest = self.ahs();
        core::iter::from_fn(move || {
            let (segment, after) = split(rest)?;
            rest = after;
            Some(
                segment
                    .and_then(|(code, content)| interpret(code, content))
                    .map_err(|found| self.invalid(Field::Ahs, found)),
            )
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

type Split<'a> = (Result<(u8, &'a [u8]), u32>, &'a [u8]);

/// The code and content of the first segment, and what follows it. The content starts with the byte after AHSType.
fn split(bytes: &[u8]) -> Option<Split<'_>> {
    if bytes.is_empty() {
        return None;
    }
    let Some(&[high, low, code]) = bytes.first_chunk::<PREFIX_BYTES>() else {
        return Some((Err(u32::MAX), &[]));
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let end = PREFIX_BYTES + length;
    let Some(content) = bytes.get(PREFIX_BYTES..end) else {
        return Some((Err(u32::from(u16::from_be_bytes([high, low]))), &[]));
    };
    let rest = bytes.get(end.next_multiple_of(WORD_BYTES)..).unwrap_or(&[]);
    Some((Ok((code & CODE_MASK, content)), rest))
}

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
