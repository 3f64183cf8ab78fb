//! The list that answers SendTargets, read and written (RFC 7143 appendix C).

use crate::login::is_target_address;
use crate::name;
use crate::negotiation::Key;
use crate::target::TargetRecord;
use pdu::{InvalidText, TextWriter, text_keys};

/// The most targets of one list that are taken. A portal with more would need another way than a list.
pub const TARGETS_MAX: usize = 4096;
/// The most addresses of one target that are taken.
pub const ADDRESSES_PER_TARGET_MAX: usize = 256;

/// A list that is none. The target is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTargetList {
    /// Not text at all.
    #[error(transparent)]
    Text(#[from] InvalidText),
    /// An address before the first target's name.
    #[error("an address that belongs to no target")]
    AddressWithoutTarget,
    /// A name that no target can have.
    #[error("a target's name is not an iSCSI name")]
    Name,
    /// An address that is empty, too long, or has characters that no address has.
    #[error("a target's address cannot be one")]
    Address,
    /// More than [`TARGETS_MAX`] or [`ADDRESSES_PER_TARGET_MAX`].
    #[error("too many targets or addresses")]
    TooMany,
}

/// Reads a complete list. Keys other than TargetName and TargetAddress, which must not be there, are passed over.
///
/// # Errors
/// If it is no such list, or too long.
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

/// Writes a list.
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
