//! The header of a PDU: Basic Header Segment and Additional Header Segments (RFC 7143 §11.2.1, §11.2.2).

use crate::error::{Field, InvalidPdu};
use crate::number::Itt;
use crate::opcode::Opcode;

/// A PDU's header on the wire, without its digest.
///
/// A driver reads [`Header::BHS_BYTES`], makes a header of them, reads [`ahs_bytes`](Self::ahs_bytes) more and passes
/// those to [`set_ahs`](Self::set_ahs). Few PDUs have an AHS; a header without one allocates nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    bhs: [u8; Self::BHS_BYTES],
    ahs: Vec<u8>,
}

const OPCODE_MASK: u8 = 0x3f;
const IMMEDIATE_BIT: u8 = 0x40;
pub(crate) const FINAL_BIT: u8 = 0x80;
const FLAGS: usize = 1;
const TOTAL_AHS_LENGTH: usize = 4;
const WORD_BYTES: usize = 4;

/// The largest DataSegmentLength: the field has 24 bits.
pub const DATA_SEGMENT_BYTES_MAX: u32 = (1 << 24) - 1;

impl Header {
    /// The length of a Basic Header Segment.
    pub const BHS_BYTES: usize = 48;
    /// The longest Additional Header Segments: TotalAHSLength counts words in one byte.
    pub const AHS_BYTES_MAX: usize = u8::MAX as usize * WORD_BYTES;

    /// A header of these bytes, without AHS.
    #[must_use]
    pub const fn new(bhs: [u8; Self::BHS_BYTES]) -> Self {
        Self { bhs, ahs: Vec::new() }
    }

    /// An empty header of one kind of PDU.
    pub(crate) const fn of(opcode: Opcode) -> Self {
        let mut bhs = [0; Self::BHS_BYTES];
        bhs[0] = opcode.wire();
        Self::new(bhs)
    }

    /// The Basic Header Segment.
    #[must_use]
    pub const fn bhs(&self) -> &[u8; Self::BHS_BYTES] {
        &self.bhs
    }

    /// The Additional Header Segments, including padding.
    #[must_use]
    pub fn ahs(&self) -> &[u8] {
        &self.ahs
    }

    /// Sets the Additional Header Segments, and TotalAHSLength with them.
    ///
    /// # Errors
    /// [`Field::TotalAhsLength`] if `ahs` is not of whole words or longer than [`Self::AHS_BYTES_MAX`].
    pub fn set_ahs(&mut self, ahs: Vec<u8>) -> Result<(), InvalidPdu> {
        let words = u8::try_from(ahs.len() / WORD_BYTES);
        match words {
            Ok(words) if ahs.len().is_multiple_of(WORD_BYTES) => {
                self.bhs[TOTAL_AHS_LENGTH] = words;
                self.ahs = ahs;
                Ok(())
            }
            _ => Err(self.invalid_length(Field::TotalAhsLength, ahs.len())),
        }
    }

    /// Appends the whole header as sent: the bytes that a digest covers and a Reject returns.
    pub fn write_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.bhs);
        bytes.extend_from_slice(&self.ahs);
    }

    /// The opcode's six bits.
    #[must_use]
    pub const fn opcode_bits(&self) -> u8 {
        self.bhs[0] & OPCODE_MASK
    }

    /// The kind of the PDU.
    ///
    /// # Errors
    /// [`Field::Opcode`] if the standard assigns no such opcode.
    pub fn opcode(&self) -> Result<Opcode, InvalidPdu> {
        let bits = self.opcode_bits();
        Opcode::from_wire(bits).ok_or_else(|| self.invalid(Field::Opcode, bits.into()))
    }

    /// The I bit (§11.2.1.1).
    #[must_use]
    pub const fn is_immediate(&self) -> bool {
        self.bhs[0] & IMMEDIATE_BIT != 0
    }

    /// The F bit (§11.2.1.3), which Login PDUs call T.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        self.flags() & FINAL_BIT != 0
    }

    /// The bytes of AHS that follow the BHS on the wire: at most [`Self::AHS_BYTES_MAX`].
    #[must_use]
    pub const fn ahs_bytes(&self) -> usize {
        self.bhs[TOTAL_AHS_LENGTH] as usize * WORD_BYTES
    }

    /// DataSegmentLength: the bytes of data after the header, without padding and digest.
    #[must_use]
    pub const fn data_segment_bytes(&self) -> u32 {
        self.u32_at(TOTAL_AHS_LENGTH) & DATA_SEGMENT_BYTES_MAX
    }

    /// The Initiator Task Tag, in the same place in every PDU.
    #[must_use]
    pub const fn task_tag(&self) -> Itt {
        Itt(self.u32_at(16))
    }

    pub(crate) const fn flags(&self) -> u8 {
        self.bhs[FLAGS]
    }

    pub(crate) const fn set_flags(&mut self, flags: u8) {
        self.bhs[FLAGS] = flags;
    }

    pub(crate) const fn set_immediate(&mut self, immediate: bool) {
        if immediate {
            self.bhs[0] |= IMMEDIATE_BIT;
        }
    }

    pub(crate) const fn set_data_segment_bytes(&mut self, bytes: u32) {
        debug_assert!(bytes <= DATA_SEGMENT_BYTES_MAX, "the session cuts data into segments that fit");
        let [_, high, middle, low] = bytes.to_be_bytes();
        self.bhs[5] = high;
        self.bhs[6] = middle;
        self.bhs[7] = low;
    }

    pub(crate) const fn u8_at(&self, offset: usize) -> u8 {
        self.bhs[offset]
    }

    pub(crate) const fn u16_at(&self, offset: usize) -> u16 {
        u16::from_be_bytes([self.bhs[offset], self.bhs[offset + 1]])
    }

    pub(crate) const fn u32_at(&self, offset: usize) -> u32 {
        let bhs = &self.bhs;
        u32::from_be_bytes([bhs[offset], bhs[offset + 1], bhs[offset + 2], bhs[offset + 3]])
    }

    pub(crate) fn array_at<const N: usize>(&self, offset: usize) -> [u8; N] {
        core::array::from_fn(|index| self.bhs[offset + index])
    }

    pub(crate) fn set_bytes_at(&mut self, offset: usize, bytes: &[u8]) {
        self.bhs[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) const fn set_u8_at(&mut self, offset: usize, value: u8) {
        self.bhs[offset] = value;
    }

    pub(crate) fn set_u16_at(&mut self, offset: usize, value: u16) {
        self.set_bytes_at(offset, &value.to_be_bytes());
    }

    pub(crate) fn set_u32_at(&mut self, offset: usize, value: u32) {
        self.set_bytes_at(offset, &value.to_be_bytes());
    }

    /// Appends an AHS that is known to fit.
    pub(crate) fn push_ahs(&mut self, ahs: &[u8]) {
        self.ahs.extend_from_slice(ahs);
        self.ahs.resize(self.ahs.len().next_multiple_of(WORD_BYTES), 0);
        debug_assert!(self.ahs.len() <= Self::AHS_BYTES_MAX);
        self.bhs[TOTAL_AHS_LENGTH] = u8::try_from(self.ahs.len() / WORD_BYTES).unwrap_or(u8::MAX);
    }

    pub(crate) const fn invalid(&self, field: Field, found: u32) -> InvalidPdu {
        InvalidPdu { opcode: self.opcode_bits(), field, found }
    }

    pub(crate) fn invalid_length(&self, field: Field, bytes: usize) -> InvalidPdu {
        self.invalid(field, u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    /// Checks that this is a PDU of this kind.
    pub(crate) fn expect_opcode(&self, opcode: Opcode) -> Result<(), InvalidPdu> {
        if self.opcode_bits() == opcode.wire() {
            Ok(())
        } else {
            Err(self.invalid(Field::Opcode, self.opcode_bits().into()))
        }
    }

    /// Checks that this is a PDU of this kind without AHS (§11.2.1.5: TotalAHSLength is then 0).
    pub(crate) fn expect_without_ahs(&self, opcode: Opcode) -> Result<(), InvalidPdu> {
        self.expect_opcode(opcode)?;
        match self.ahs_bytes() {
            0 => Ok(()),
            _ => Err(self.invalid(Field::TotalAhsLength, self.u8_at(TOTAL_AHS_LENGTH).into())),
        }
    }

    /// Checks that this is a PDU of this kind without AHS or data (§11.2.1.6).
    pub(crate) fn expect_bare(&self, opcode: Opcode) -> Result<(), InvalidPdu> {
        self.expect_without_ahs(opcode)?;
        self.expect_without_data()
    }

    pub(crate) const fn expect_without_data(&self) -> Result<(), InvalidPdu> {
        match self.data_segment_bytes() {
            0 => Ok(()),
            bytes => Err(self.invalid(Field::DataSegmentLength, bytes)),
        }
    }

    /// The Initiator Task Tag, which must be present.
    pub(crate) const fn expect_task_tag(&self) -> Result<Itt, InvalidPdu> {
        let tag = self.task_tag();
        if tag.is_some() { Ok(tag) } else { Err(self.invalid(Field::InitiatorTaskTag, tag.0)) }
    }
}

/// The bytes of padding after `bytes` of a segment, up to whole words (§11.2.4).
#[must_use]
pub const fn padding(bytes: u32) -> u32 {
    bytes.wrapping_neg() % 4
}
