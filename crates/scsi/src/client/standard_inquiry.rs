//! A logical unit's first description of itself (SPC-4 §6.6.2).

use super::text;

/// Standard INQUIRY data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandardInquiry {
    /// PERIPHERAL QUALIFIER: zero if a unit is present.
    pub qualifier: u8,
    /// PERIPHERAL DEVICE TYPE: zero is a direct access block device, a disk.
    pub device_type: u8,
    /// TPGS: access through the target's ports is asymmetric; REPORT TARGET PORT GROUPS has the states.
    pub asymmetric_access: bool,
    /// T10 VENDOR IDENTIFICATION.
    pub vendor: String,
    /// PRODUCT IDENTIFICATION, without padding.
    pub product: String,
    /// PRODUCT REVISION LEVEL.
    pub revision: String,
}

impl StandardInquiry {
    /// At least the 36 bytes that every device sends.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        const TPGS: u8 = 0x30;
        let bytes: [u8; 36] = super::array_at(bytes, 0)?;
        Some(Self {
            qualifier: bytes[0] >> 5,
            device_type: bytes[0] & 0x1f,
            asymmetric_access: bytes[5] & TPGS != 0,
            vendor: text(&bytes[8..16]),
            product: text(&bytes[16..32]),
            revision: text(&bytes[32..36]),
        })
    }

    /// Whether the unit is present and is a disk.
    #[must_use]
    pub const fn is_disk(&self) -> bool {
        self.qualifier == 0 && self.device_type == 0
    }
}
