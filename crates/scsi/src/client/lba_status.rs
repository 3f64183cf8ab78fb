//! The blocks that have a place on the medium (SBC-3 §5.4.2).

use super::{u32_at, u64_at};
use crate::{Extent, ProvisioningStatus};

/// The answer to GET LBA STATUS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LbaStatus {
    /// In ascending order, without gaps, from the requested address.
    pub runs: Vec<(Extent, ProvisioningStatus)>,
}

impl LbaStatus {
    /// Parses runs while each begins at the end of the one before it (the first: at `from`), and ignores the rest.
    /// Anchored blocks count as mapped.
    #[must_use]
    pub fn parse(from: u64, bytes: &[u8]) -> Option<Self> {
        const HEADER_BYTES: usize = 8;
        const DESCRIPTOR_BYTES: usize = 16;
        const DEALLOCATED: u8 = 1;
        let told = usize::try_from(u32_at(bytes, 0)?).ok()?.checked_add(4)?;
        let body = bytes.get(HEADER_BYTES..told.min(bytes.len()))?;
        let mut runs = Vec::new();
        let mut next = from;
        for descriptor in body.chunks_exact(DESCRIPTOR_BYTES) {
            let (lba, blocks) = (u64_at(descriptor, 0)?, u64::from(u32_at(descriptor, 8)?));
            // The first run may begin before the requested address, with its whole allocation unit.
            let end = lba.saturating_add(blocks);
            let begins_right = if runs.is_empty() { lba <= from } else { lba == next };
            if !begins_right || end <= next {
                break;
            }
            let deallocated = descriptor[12] & 0x0f == DEALLOCATED;
            let status =
                if deallocated { ProvisioningStatus::Deallocated } else { ProvisioningStatus::Mapped };
            runs.push((Extent::new(next, end - next), status));
            next = end;
        }
        Some(Self { runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(runs: &[(u64, u32, u8)]) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        for (lba, blocks, status) in runs {
            bytes.extend(lba.to_be_bytes());
            bytes.extend(blocks.to_be_bytes());
            bytes.extend([*status, 0, 0, 0]);
        }
        let told = u32::try_from(bytes.len() - 4).unwrap();
        bytes[..4].copy_from_slice(&told.to_be_bytes());
        bytes
    }

    #[test]
    fn runs_follow_each_other_from_the_address_asked_for() {
        let parsed = LbaStatus::parse(4, &answer(&[(0, 8, 1), (8, 8, 0), (99, 1, 1)])).unwrap();
        let expected = vec![
            (Extent::new(4, 4), ProvisioningStatus::Deallocated),
            (Extent::new(8, 8), ProvisioningStatus::Mapped),
        ];
        assert_eq!(parsed.runs, expected);
    }
}
