//! Reads and writes the list of targets that answers SendTargets (RFC 7143 appendix C).

use crate::login::is_target_address;
use crate::name;
use crate::negotiation::Key;
use crate::target::TargetRecord;
use pdu::{InvalidText, TextWriter, text_keys};

/// The most targets that a list may have. A portal with more would need something better than a list.
pub const TARGETS_MAX: usize = 4096;
/// The most addresses that one target may have.
pub const ADDRESSES_PER_TARGET_MAX: usize = 256;

/// Why an answer to SendTargets is invalid. The target is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTargetList {
    /// The answer is not text of `key=value` pairs.
    #[error(transparent)]
    Text(#[from] InvalidText),
    /// An address comes before the first target's name.
    #[error("an address that belongs to no target")]
    AddressWithoutTarget,
    /// A target's name is not an iSCSI name.
    #[error("a target's name is not an iSCSI name")]
    Name,
    /// An address is empty, too long, or contains characters that no address has.
    #[error("a target's address is malformed")]
    Address,
    /// More than [`TARGETS_MAX`] or [`ADDRESSES_PER_TARGET_MAX`].
    #[error("too many targets or addresses")]
    TooMany,
}

/// Reads a complete list. Keys other than TargetName and TargetAddress, which the standard does not allow here, are
/// ignored.
///
/// # Errors
/// [`InvalidTargetList`] if the text is malformed or exceeds a limit.
pub fn parse(text: &[u8]) -> Result<Vec<TargetRecord>, InvalidTargetList> {
    let mut records: Vec<TargetRecord> = Vec::new();
    for pair in text_keys::pairs(text) {
        let (name, value) = pair?;
        match Key::from_name(name) {
            Some(Key::TargetName) if records.len() == TARGETS_MAX => return Err(InvalidTargetList::TooMany),
            Some(Key::TargetName) if !name::is_acceptable(value) => return Err(InvalidTargetList::Name),
            Some(Key::TargetName) => {
                records.push(TargetRecord { target_name: value.into(), target_addresses: Vec::new() });
            }
            Some(Key::TargetAddress) => add_address(records.last_mut(), value)?,
            _ => {}
        }
    }
    Ok(records)
}

fn add_address(record: Option<&mut TargetRecord>, address: &str) -> Result<(), InvalidTargetList> {
    let record = record.ok_or(InvalidTargetList::AddressWithoutTarget)?;
    if record.target_addresses.len() == ADDRESSES_PER_TARGET_MAX {
        return Err(InvalidTargetList::TooMany);
    }
    if !is_target_address(address) {
        return Err(InvalidTargetList::Address);
    }
    record.target_addresses.push(address.into());
    Ok(())
}

/// Writes the list of these targets.
#[must_use]
pub fn write(records: &[TargetRecord]) -> Vec<u8> {
    let mut text = TextWriter::new();
    for record in records {
        text.push(Key::TargetName.name(), &record.target_name);
        for address in &record.target_addresses {
            text.push(Key::TargetAddress.name(), address);
        }
    }
    text.into_bytes()
}
