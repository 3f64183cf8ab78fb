//! Transport ID: an initiator port in parameter data (SPC-4).

use crate::{AdditionalSense, Sense};

/// The protocol identifier of iSCSI, in the low four bits of the first byte.
const ISCSI: u8 = 0x05;
const PROTOCOL_MASK: u8 = 0x0f;
/// FORMAT CODE 00b: an initiator device.
const FORMAT_DEVICE: u8 = 0b00 << 6;
/// FORMAT CODE 01b: an initiator port.
const FORMAT_PORT: u8 = 0b01 << 6;
const FORMAT_MASK: u8 = 0b11 << 6;
/// The bytes before the name: format code, protocol, and length.
const HEADER_BYTES: usize = 4;
/// The least ADDITIONAL LENGTH.
const NAME_FIELD_BYTES_MIN: usize = 20;
/// The separator between the name and the ISID.
const SEPARATOR: &str = ",i,0x";
/// The longest iSCSI name (RFC 7143 §4.2.7.1).
const NAME_BYTES_MAX: usize = 223;
const ISID_DIGITS: usize = 12;

/// An iSCSI initiator: one of its ports, or the whole device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransportId {
    /// iSCSI name of the initiator.
    pub initiator_name: String,
    /// The ISID, which together with the name is the port's name (RFC 7143 §4.4.2). Without it the ID means all ports.
    pub isid: Option<[u8; 6]>,
}

impl TransportId {
    /// Parses the first of `bytes`, which begin at byte `at` of the parameter list. Returns it and the bytes after it.
    ///
    /// # Errors
    /// PARAMETER LIST LENGTH ERROR if it does not end within `bytes`; INVALID FIELD IN PARAMETER LIST if it is not an
    /// iSCSI ID, or breaks the standard's format.
    pub fn parse(bytes: &[u8], at: u16) -> Result<(Self, &[u8]), Sense> {
        let truncated = Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR);
        let invalid = |offset| Sense::invalid_field_in_parameter_list(at.saturating_add(offset));
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(truncated)?;
        let [format, _, high, low] = *header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (field, rest) = rest.split_at_checked(length).ok_or(truncated)?;
        if format & PROTOCOL_MASK != ISCSI {
            return Err(invalid(0));
        }
        if length < NAME_FIELD_BYTES_MIN || !length.is_multiple_of(4) {
            return Err(invalid(2));
        }
        let text = terminated(field).ok_or(invalid(4))?;
        let parsed = match format & FORMAT_MASK {
            FORMAT_DEVICE => Some(Self { initiator_name: text.to_owned(), isid: None }),
            FORMAT_PORT => port(text),
            _ => return Err(invalid(0)),
        };
        let parsed = parsed.filter(|id| is_name(&id.initiator_name)).ok_or(invalid(4))?;
        Ok((parsed, rest))
    }

    /// The form in parameter data.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (format, mut field) = match self.isid {
            None => (FORMAT_DEVICE, self.initiator_name.clone().into_bytes()),
            Some(isid) => {
                let digits: String = isid.iter().map(|byte| format!("{byte:02x}")).collect();
                (FORMAT_PORT, format!("{}{SEPARATOR}{digits}", self.initiator_name).into_bytes())
            }
        };
        field.push(0);
        field.resize(field.len().next_multiple_of(4).max(NAME_FIELD_BYTES_MIN), 0);
        let [high, low] = u16::try_from(field.len()).unwrap_or(u16::MAX).to_be_bytes();
        let mut bytes = vec![format | ISCSI, 0, high, low];
        bytes.extend(field);
        bytes
    }
}

/// The text before the null, if only nulls follow it.
fn terminated(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|byte| *byte == 0)?;
    let (text, padding) = field.split_at(end);
    str::from_utf8(text).ok().filter(|_| padding.iter().all(|byte| *byte == 0))
}

/// An initiator port name: the initiator's name, and the ISID in hexadecimal.
fn port(text: &str) -> Option<TransportId> {
    let (name, digits) = text.split_once(SEPARATOR)?;
    if digits.len() != ISID_DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let [_, _, isid @ ..] = u64::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some(TransportId { initiator_name: name.to_owned(), isid: Some(isid) })
}

/// Whether it can be a name. This does not check the standard's name formats, but rejects anything that could be
/// mistaken for something else in a log or a file.
fn is_name(name: &str) -> bool {
    let plain = |character: char| !character.is_control() && !character.is_whitespace() && character != ',';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(plain)
}
