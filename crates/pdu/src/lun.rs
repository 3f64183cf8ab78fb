//! Logical Unit Number (RFC 7143 §11.2.1.7, SAM-5 §4.7).

use core::fmt;

/// The eight bytes of a LUN, most significant first, in any of the forms of SAM-5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lun(pub u64);

/// Peripheral device addressing on bus 0 holds eight bits (SAM-5 §4.7.7.2).
const PERIPHERAL_MAX: u16 = 0xff;
/// Flat space addressing holds 14 bits below its method 01b (SAM-5 §4.7.7.3).
const FLAT_MAX: u16 = 0x3fff;
const FLAT_METHOD: u16 = 0b01 << 14;
/// Extended flat space addressing of 24 bits: method 11b, length 01b, extended method 0010b (SAM-5 §4.7.7.5).
const EXTENDED_FLAT_METHOD: u8 = 0b1101_0010;

impl Lun {
    /// The LUN with this index: in peripheral addressing if it fits, because every initiator supports it, then in flat
    /// space addressing, then in its extended form.
    #[must_use]
    pub const fn from_index(index: u16) -> Self {
        if index <= PERIPHERAL_MAX {
            Self((index as u64) << 48)
        } else if index <= FLAT_MAX {
            Self(((FLAT_METHOD | index) as u64) << 48)
        } else {
            Self((EXTENDED_FLAT_METHOD as u64) << 56 | (index as u64) << 32)
        }
    }

    /// The index, from any single-level form; `None` for a hierarchy, another bus, or a number above 65535.
    #[must_use]
    pub const fn index(self) -> Option<u16> {
        let [b0, b1, b2, b3, b4, b5, b6, b7] = self.0.to_be_bytes();
        if u32::from_be_bytes([b4, b5, b6, b7]) != 0 {
            return None;
        }
        let first = u16::from_be_bytes([b0, b1]);
        let second = u16::from_be_bytes([b2, b3]);
        if b0 == EXTENDED_FLAT_METHOD && b1 == 0 {
            Some(second)
        } else if second != 0 {
            None
        } else if first <= PERIPHERAL_MAX {
            Some(first)
        } else if first & !FLAT_MAX == FLAT_METHOD {
            Some(first & FLAT_MAX)
        } else {
            None
        }
    }
}

impl fmt::Display for Lun {
    /// The index if there is one, else all sixteen hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index() {
            Some(index) => index.fmt(formatter),
            None => write!(formatter, "{:#018x}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_survives_its_form() {
        for index in 0..=u16::MAX {
            assert_eq!(Lun::from_index(index).index(), Some(index));
        }
    }

    #[test]
    fn the_form_grows_with_the_number() {
        assert_eq!(Lun::from_index(7), Lun(0x0007_0000_0000_0000));
        assert_eq!(Lun::from_index(300), Lun(0x412c_0000_0000_0000));
        assert_eq!(Lun::from_index(0x4000), Lun(0xd200_4000_0000_0000));
    }

    #[test]
    fn a_small_number_in_flat_form_is_the_same_unit() {
        assert_eq!(Lun(0x4007_0000_0000_0000).index(), Some(7));
    }

    #[test]
    fn a_hierarchical_lun_has_no_index() {
        assert_eq!(Lun(0x0007_0001_0000_0000).index(), None);
        assert_eq!(Lun(0x0107_0000_0000_0000).index(), None);
        assert_eq!(Lun(0x0007_0000_0000_0001).index(), None);
        assert_eq!(Lun(0x0107_0000_0000_0000).to_string(), "0x0107000000000000");
    }
}
