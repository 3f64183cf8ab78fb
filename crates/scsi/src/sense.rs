//! Sense data (SPC-4).

use core::fmt;

use crate::AdditionalSense;

/// Length of fixed format sense data without additional bytes (SPC-4).
pub const FIXED_SENSE_BYTES: usize = 18;
/// RESPONSE CODE of current errors in fixed format.
const CURRENT_FIXED: u8 = 0x70;
/// The increment of a RESPONSE CODE for a deferred error.
const DEFERRED: u8 = 0x01;
/// VALID: the INFORMATION field has the contents that the command's standard defines.
const VALID: u8 = 0x80;
/// ADDITIONAL SENSE LENGTH does not count the eight bytes up to and including itself.
const ADDITIONAL_BYTES: u8 = 10;

/// The class of a condition (SPC-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SenseKey {
    /// Nothing to report.
    NoSense = 0x0,
    /// The unit cannot be accessed.
    NotReady = 0x2,
    /// The medium is defective.
    MediumError = 0x3,
    /// The device itself failed.
    HardwareError = 0x4,
    /// The command is invalid here.
    IllegalRequest = 0x5,
    /// The unit has changed in a way that the initiator must know.
    UnitAttention = 0x6,
    /// The block is write-protected.
    DataProtect = 0x7,
    /// EXTENDED COPY ended early; blocks may have been copied.
    CopyAborted = 0xa,
    /// The target gave the command up; the initiator may try again.
    AbortedCommand = 0xb,
    /// The data compared did not match.
    Miscompare = 0xe,
}

/// The invalid field (SPC-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldPointer {
    /// `true`: in the CDB; `false`: in the parameter list.
    pub in_cdb: bool,
    /// The field's first byte.
    pub byte: u16,
    /// The field's most significant bit, if the field is smaller than a byte.
    pub bit: Option<u8>,
}

impl FieldPointer {
    /// A field of whole bytes in the CDB.
    #[must_use]
    pub const fn cdb(byte: u16) -> Self {
        Self { in_cdb: true, byte, bit: None }
    }

    /// A field in the CDB whose most significant bit is `bit` of `byte`.
    #[must_use]
    pub const fn cdb_bit(byte: u16, bit: u8) -> Self {
        Self { in_cdb: true, byte, bit: Some(bit) }
    }

    /// A field of whole bytes in the parameter list.
    #[must_use]
    pub const fn parameter(byte: u16) -> Self {
        Self { in_cdb: false, byte, bit: None }
    }

    /// The three SENSE KEY SPECIFIC bytes.
    fn to_bytes(self) -> [u8; 3] {
        const SENSE_KEY_SPECIFIC_VALID: u8 = 0x80;
        const COMMAND: u8 = 0x40;
        const BIT_POINTER_VALID: u8 = 0x08;
        let command = if self.in_cdb { COMMAND } else { 0 };
        let bit = self.bit.map_or(0, |bit| BIT_POINTER_VALID | bit & 0x07);
        let [high, low] = self.byte.to_be_bytes();
        [SENSE_KEY_SPECIFIC_VALID | command | bit, high, low]
    }
}

/// The format of sense data (SPC-4): the control mode page's `D_SENSE`, or REQUEST SENSE's DESC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SenseFormat {
    /// 18 bytes with a fixed place for each item, but none for an LBA beyond four bytes.
    #[default]
    Fixed,
    /// Eight bytes and a descriptor for each further item.
    Descriptor,
}

/// The reason for a refusal or failure, or a condition to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sense {
    /// The class of the condition.
    pub key: SenseKey,
    /// The exact reason.
    pub additional: AdditionalSense,
    /// The INFORMATION field: the LBA of a medium error, the byte offset of a miscompare.
    pub information: Option<u64>,
    /// The invalid field, for an ILLEGAL REQUEST.
    pub field: Option<FieldPointer>,
    /// A command that was answered before has failed. The reporting command was not executed.
    pub deferred: bool,
}

impl Sense {
    /// Nothing to report: what REQUEST SENSE returns when no unit attention is pending.
    pub const NONE: Self = Self::new(SenseKey::NoSense, AdditionalSense::NONE);

    /// The target itself failed.
    pub const INTERNAL_FAILURE: Self =
        Self::new(SenseKey::HardwareError, AdditionalSense::INTERNAL_TARGET_FAILURE);

    /// Written data could not be made durable.
    pub const FLUSH_FAILED: Self = Self::new(SenseKey::MediumError, AdditionalSense::WRITE_ERROR);

    /// Sense data without information or field pointer.
    #[must_use]
    pub const fn new(key: SenseKey, additional: AdditionalSense) -> Self {
        Self { key, additional, information: None, field: None, deferred: false }
    }

    /// An ILLEGAL REQUEST.
    #[must_use]
    pub const fn illegal_request(additional: AdditionalSense) -> Self {
        Self::new(SenseKey::IllegalRequest, additional)
    }

    /// A UNIT ATTENTION.
    #[must_use]
    pub const fn unit_attention(additional: AdditionalSense) -> Self {
        Self::new(SenseKey::UnitAttention, additional)
    }

    /// INVALID FIELD IN CDB.
    #[must_use]
    pub const fn invalid_field_in_cdb(field: FieldPointer) -> Self {
        Self::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB).at(field)
    }

    /// INVALID FIELD IN PARAMETER LIST.
    #[must_use]
    pub const fn invalid_field_in_parameter_list(byte: u16) -> Self {
        Self::illegal_request(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST)
            .at(FieldPointer::parameter(byte))
    }

    /// The same sense data, pointing at a field.
    #[must_use]
    pub const fn at(self, field: FieldPointer) -> Self {
        Self { field: Some(field), ..self }
    }

    /// The same sense data, with the INFORMATION field.
    #[must_use]
    pub const fn with_information(self, information: u64) -> Self {
        Self { information: Some(information), ..self }
    }

    /// The same sense data, as a deferred error.
    #[must_use]
    pub const fn deferred(self) -> Self {
        Self { deferred: true, ..self }
    }

    /// Fixed format (SPC-4). Omits an INFORMATION beyond its four bytes, as the standard requires.
    #[must_use]
    pub fn to_fixed(&self) -> [u8; FIXED_SENSE_BYTES] {
        let mut bytes = [0; FIXED_SENSE_BYTES];
        bytes[0] = CURRENT_FIXED | self.deferral();
        if let Some(information) = self.information.and_then(|information| u32::try_from(information).ok()) {
            bytes[0] |= VALID;
            bytes[3..7].copy_from_slice(&information.to_be_bytes());
        }
        bytes[2] = self.key as u8;
        bytes[7] = ADDITIONAL_BYTES;
        bytes[12] = self.additional.code;
        bytes[13] = self.additional.qualifier;
        if let Some(field) = self.field {
            bytes[15..18].copy_from_slice(&field.to_bytes());
        }
        bytes
    }
}

impl Sense {
    /// The sense data in this format.
    #[must_use]
    pub fn to_bytes(&self, format: SenseFormat) -> Vec<u8> {
        match format {
            SenseFormat::Fixed => self.to_fixed().to_vec(),
            SenseFormat::Descriptor => self.to_descriptor(),
        }
    }

    /// Descriptor format: an information descriptor and a sense key specific descriptor, if there is data for them
    /// (SPC-4).
    #[must_use]
    pub fn to_descriptor(&self) -> Vec<u8> {
        const CURRENT_DESCRIPTOR: u8 = 0x72;
        const INFORMATION: u8 = 0x00;
        const INFORMATION_BYTES: u8 = 0x0a;
        const SENSE_KEY_SPECIFIC: u8 = 0x02;
        const SENSE_KEY_SPECIFIC_BYTES: u8 = 0x06;
        let mut descriptors = Vec::new();
        if let Some(information) = self.information {
            descriptors.extend([INFORMATION, INFORMATION_BYTES, VALID, 0]);
            descriptors.extend(information.to_be_bytes());
        }
        if let Some(field) = self.field {
            let [a, b, c] = field.to_bytes();
            descriptors.extend([SENSE_KEY_SPECIFIC, SENSE_KEY_SPECIFIC_BYTES, 0, 0, a, b, c, 0]);
        }
        let AdditionalSense { code, qualifier } = self.additional;
        let length = u8::try_from(descriptors.len()).unwrap_or(u8::MAX);
        let mut bytes =
            vec![CURRENT_DESCRIPTOR | self.deferral(), self.key as u8, code, qualifier, 0, 0, 0, length];
        bytes.extend(descriptors);
        bytes
    }

    const fn deferral(&self) -> u8 {
        if self.deferred { DEFERRED } else { 0 }
    }
}

impl fmt::Display for Sense {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deferred = if self.deferred { "deferred " } else { "" };
        write!(formatter, "{deferred}{:?}: {}", self.key, self.additional)?;
        if let Some(FieldPointer { in_cdb, byte, .. }) = self.field {
            let place = if in_cdb { "CDB" } else { "parameter list" };
            write!(formatter, " at byte {byte} of the {place}")?;
        }
        if let Some(information) = self.information {
            write!(formatter, " (information {information})")?;
        }
        Ok(())
    }
}
