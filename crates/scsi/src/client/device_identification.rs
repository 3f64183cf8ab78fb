//! The identity of a logical unit (VPD page 83h, SPC-4 §7.8.6).

use super::block_limits::vpd_page;
use super::{text, u16_at};
use core::fmt;

/// The object that a designator names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Association {
    /// The logical unit.
    LogicalUnit,
    /// The target port through which the page was read.
    TargetPort,
    /// The target device.
    TargetDevice,
}

/// The type of a designator, in the order of preference for a unit's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DesignatorKind {
    /// NAA: unique in the world.
    Naa,
    /// EUI-64: unique in the world.
    Eui64,
    /// UUID (SPC-5 §7.7.6.12).
    Uuid,
    /// A SCSI name string.
    ScsiName,
    /// T10 vendor ID: unique only if its vendor ensures it.
    T10VendorId,
    /// Any other type: not an identity of a unit.
    Other(u8),
}

/// One of a unit's names.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Designator {
    /// The object that it names.
    pub association: Association,
    /// The type, which says how unique the name is.
    pub kind: DesignatorKind,
    /// The DESIGNATOR field, as it was received.
    pub bytes: Vec<u8>,
}

/// The designators of page 83h.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceIdentification {
    /// In the device's order.
    pub designators: Vec<Designator>,
}

impl DeviceIdentification {
    /// Parses the whole page with its header. Omits names after a broken one.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        const HEADER_BYTES: usize = 4;
        let mut rest = vpd_page(bytes, super::page::DEVICE_IDENTIFICATION)?.get(HEADER_BYTES..)?;
        let mut designators = Vec::new();
        while let Some((designator, after)) = Designator::parse(rest) {
            designators.extend(designator);
            rest = after;
        }
        Some(Self { designators })
    }

    /// The designator that identifies the logical unit over every path: the one of the best type, and the longest of
    /// that type, because NAA 6h is better than NAA 3h, which is only locally unique.
    #[must_use]
    pub fn logical_unit(&self) -> Option<&Designator> {
        let names = self.designators.iter();
        let names = names.filter(|name| name.association == Association::LogicalUnit && name.identifies());
        names.min_by_key(|name| (name.kind, core::cmp::Reverse(name.bytes.len())))
    }

    /// The target port group through which the page was read, for units with asymmetric access.
    #[must_use]
    pub fn target_port_group(&self) -> Option<u16> {
        const TARGET_PORT_GROUP: u8 = 5;
        let is_group = |name: &&Designator| {
            name.association == Association::TargetPort
                && name.kind == DesignatorKind::Other(TARGET_PORT_GROUP)
        };
        self.designators.iter().find(is_group).and_then(|name| u16_at(&name.bytes, 2))
    }
}

impl Designator {
    /// Whether different units have different names of this kind. Some devices without a serial number put nothing but
    /// their vendor into a T10 designator, the same for every unit (`t10.LIO-ORG`).
    fn identifies(&self) -> bool {
        const VENDOR_BYTES: usize = 8;
        match self.kind {
            DesignatorKind::Other(_) => false,
            DesignatorKind::T10VendorId => {
                self.bytes.get(VENDOR_BYTES..).is_some_and(|specific| !text(specific).is_empty())
            }
            _ => true,
        }
    }

    /// One descriptor and what follows it; the descriptor is `None` where its association is reserved.
    fn parse(bytes: &[u8]) -> Option<(Option<Self>, &[u8])> {
        let [_, kind, _, length] = super::array_at(bytes, 0)?;
        let end = 4 + usize::from(length);
        let name = bytes.get(4..end)?;
        let association = match kind >> 4 & 0b11 {
            0 => Some(Association::LogicalUnit),
            1 => Some(Association::TargetPort),
            2 => Some(Association::TargetDevice),
            _ => None,
        };
        let kind = match kind & 0x0f {
            1 => DesignatorKind::T10VendorId,
            2 => DesignatorKind::Eui64,
            3 => DesignatorKind::Naa,
            8 => DesignatorKind::ScsiName,
            0xa => DesignatorKind::Uuid,
            other => DesignatorKind::Other(other),
        };
        Some((association.map(|association| Self { association, kind, bytes: name.to_vec() }), &bytes[end..]))
    }
}

impl fmt::Display for Designator {
    /// `naa.`, `eui.` or `uuid.` with hexadecimal digits; a SCSI name as it is; `t10.` with its text.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.kind {
            DesignatorKind::Naa => "naa.",
            DesignatorKind::Eui64 => "eui.",
            DesignatorKind::Uuid => "uuid.",
            DesignatorKind::ScsiName => return formatter.write_str(&text(&self.bytes)),
            DesignatorKind::T10VendorId => return write!(formatter, "t10.{}", text(&self.bytes)),
            DesignatorKind::Other(_) => "designator.",
        };
        formatter.write_str(prefix)?;
        self.bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Designator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self} of the {:?}", self.association)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(designators: &[&[u8]]) -> Vec<u8> {
        let body = designators.concat();
        [&[0, 0x83, 0, u8::try_from(body.len()).unwrap()], &body[..]].concat()
    }

    #[test]
    fn the_best_name_of_the_unit_is_chosen() {
        let bytes = page(&[
            &[2, 0x01, 0, 4, b'A', b'C', b'M', b'E'],
            &[1, 0x93, 0, 8, 0x50, 0, 0, 0, 0, 0, 0, 9],
            &[1, 0x03, 0, 8, 0x50, 0, 0, 0, 0, 0, 0, 7],
            &[1, 0x95, 0, 4, 0, 0, 0, 3],
        ]);
        let parsed = DeviceIdentification::parse(&bytes).unwrap();
        assert_eq!(parsed.logical_unit().unwrap().to_string(), "naa.5000000000000007");
        assert_eq!(parsed.target_port_group(), Some(3));
    }

    #[test]
    fn a_t10_name_of_nothing_but_the_vendor_is_no_identity() {
        let name = |bytes: &[u8]| {
            let header = [2, 0x01, 0, u8::try_from(bytes.len()).unwrap()];
            let parsed = DeviceIdentification::parse(&page(&[&[&header, bytes].concat()])).unwrap();
            parsed.logical_unit().map(ToString::to_string)
        };
        assert_eq!(name(b"LIO-ORG \0"), None);
        assert_eq!(name(b"ACME"), None);
        assert_eq!(name(b"LIO-ORG disk:17\0").as_deref(), Some("t10.LIO-ORG disk:17"));
    }

    #[test]
    fn a_broken_name_ends_the_page() {
        let parsed = DeviceIdentification::parse(&page(&[&[1, 0x03, 0, 99, 1, 2, 3]])).unwrap();
        assert_eq!(parsed.logical_unit(), None);
    }
}
