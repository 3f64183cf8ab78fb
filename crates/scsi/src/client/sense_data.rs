//! Sense data as a device sends it, in either format (SPC-4 §4.5).

use super::{array_at, u64_at};
use crate::AdditionalSense;
use core::fmt;

/// The sense data of a CHECK CONDITION. Unknown keys and codes are kept as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenseData {
    /// SENSE KEY: the class of the condition, as on the wire.
    pub key: u8,
    /// ASC and ASCQ.
    pub additional: AdditionalSense,
    /// The INFORMATION field, if valid.
    pub information: Option<u64>,
    /// Set if it concerns an earlier command that was answered before it failed; the reporting command was not
    /// executed.
    pub deferred: bool,
}

const NOT_READY: u8 = 0x2;
const ILLEGAL_REQUEST: u8 = 0x5;
const UNIT_ATTENTION: u8 = 0x6;
const ABORTED_COMMAND: u8 = 0xb;
const MISCOMPARE: u8 = 0xe;

impl SenseData {
    /// Parses fixed and descriptor format, current errors (70h, 72h) and deferred ones (71h, 73h). `None` for anything
    /// else.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? & 0x7f {
            code @ (0x70 | 0x71) => Self::parse_fixed(bytes, code == 0x71),
            code @ (0x72 | 0x73) => Self::parse_descriptor(bytes, code == 0x73),
            _ => None,
        }
    }

    /// A device may truncate fixed format after the key (SPC-4 §4.5.3): missing bytes count as zero.
    fn parse_fixed(bytes: &[u8], deferred: bool) -> Option<Self> {
        const VALID: u8 = 0x80;
        let information = array_at(bytes, 3).filter(|_| bytes[0] & VALID != 0);
        Some(Self {
            key: bytes.get(2)? & 0x0f,
            additional: AdditionalSense {
                code: bytes.get(12).copied().unwrap_or(0),
                qualifier: bytes.get(13).copied().unwrap_or(0),
            },
            information: information.map(|field| u32::from_be_bytes(field).into()),
            deferred,
        })
    }

    fn parse_descriptor(bytes: &[u8], deferred: bool) -> Option<Self> {
        let [key, code, qualifier] = array_at(bytes, 1)?;
        let information = Self::information_descriptor(bytes.get(8..).unwrap_or_default());
        Some(Self { key: key & 0x0f, additional: AdditionalSense { code, qualifier }, information, deferred })
    }

    /// Looks for the information descriptor, type 00h (SPC-4 §4.5.2.2).
    fn information_descriptor(mut rest: &[u8]) -> Option<u64> {
        const INFORMATION: u8 = 0;
        loop {
            let [kind, bytes] = array_at(rest, 0)?;
            if kind == INFORMATION {
                return u64_at(rest, 4);
            }
            rest = rest.get(2 + usize::from(bytes)..)?;
        }
    }

    /// Whether the command itself ended with this key.
    const fn ended_with(&self, key: u8) -> bool {
        self.key == key && !self.deferred
    }

    /// The unit is not ready yet.
    #[must_use]
    pub const fn is_not_ready(&self) -> bool {
        self.ended_with(NOT_READY)
    }

    /// The unit has a condition to report, and has not begun the command (SAM-5 §5.14).
    #[must_use]
    pub const fn is_unit_attention(&self) -> bool {
        self.ended_with(UNIT_ATTENTION)
    }

    /// The target began the command and gave it up.
    #[must_use]
    pub const fn is_aborted(&self) -> bool {
        self.ended_with(ABORTED_COMMAND)
    }

    /// The compared data differs.
    #[must_use]
    pub const fn is_miscompare(&self) -> bool {
        self.ended_with(MISCOMPARE)
    }

    /// The device does not implement this command, or this field of it.
    #[must_use]
    pub const fn is_unsupported(&self) -> bool {
        const OPERATION_CODE: u8 = 0x20;
        const FIELD_IN_CDB: u8 = 0x24;
        self.is_illegal_request() && matches!(self.additional.code, OPERATION_CODE | FIELD_IN_CDB)
    }

    /// The device rejects the command, and has done nothing.
    #[must_use]
    pub const fn is_illegal_request(&self) -> bool {
        self.ended_with(ILLEGAL_REQUEST)
    }
}

impl fmt::Display for SenseData {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KEYS: [&str; 16] = [
            "NO SENSE",
            "RECOVERED ERROR",
            "NOT READY",
            "MEDIUM ERROR",
            "HARDWARE ERROR",
            "ILLEGAL REQUEST",
            "UNIT ATTENTION",
            "DATA PROTECT",
            "BLANK CHECK",
            "VENDOR SPECIFIC",
            "COPY ABORTED",
            "ABORTED COMMAND",
            "RESERVED",
            "VOLUME OVERFLOW",
            "MISCOMPARE",
            "COMPLETED",
        ];
        let deferred = if self.deferred { "deferred " } else { "" };
        write!(formatter, "{deferred}{}: {}", KEYS[usize::from(self.key & 0x0f)], self.additional)?;
        match self.information {
            Some(information) => write!(formatter, " (information {information})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sense, SenseKey};

    #[test]
    fn what_the_device_server_emits_is_understood() {
        let sent = Sense::new(SenseKey::MediumError, AdditionalSense::WRITE_ERROR).with_information(77);
        let seen = SenseData::parse(&sent.to_fixed()).unwrap();
        assert_eq!(
            (seen.key, seen.additional, seen.information),
            (3, AdditionalSense::WRITE_ERROR, Some(77))
        );
    }

    #[test]
    fn descriptor_format_is_understood() {
        let mut bytes = vec![0x72, 0x0e, 0x1d, 0x00, 0, 0, 0, 16, 2, 2, 0, 0, 0, 10, 0x80, 0];
        bytes.extend(512u64.to_be_bytes());
        let seen = SenseData::parse(&bytes).unwrap();
        assert!(seen.is_miscompare());
        assert_eq!(seen.information, Some(512));
    }

    #[test]
    fn a_deferred_error_is_not_the_command_s_own() {
        let sent = Sense::unit_attention(AdditionalSense::WRITE_ERROR).deferred();
        for bytes in [sent.to_fixed().to_vec(), sent.to_descriptor()] {
            let seen = SenseData::parse(&bytes).unwrap();
            assert!(seen.deferred && !seen.is_unit_attention());
            assert_eq!(
                seen.to_string(),
                format!("deferred UNIT ATTENTION: {}", AdditionalSense::WRITE_ERROR)
            );
        }
    }

    #[test]
    fn a_cut_answer_keeps_its_key() {
        assert!(SenseData::parse(&[0x70, 0, 6]).unwrap().is_unit_attention());
        assert_eq!(SenseData::parse(&[0x72, 6]), None);
        assert_eq!(SenseData::parse(&[]), None);
    }
}
