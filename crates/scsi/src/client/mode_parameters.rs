//! Write cache and write protection (SPC-4 §7.5, SBC-3 §6.5).

/// The answer to MODE SENSE (6) for the caching page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeParameters {
    /// WP: writes are refused.
    pub write_protected: bool,
    /// DPOFUA: the unit supports force unit access.
    pub fua: bool,
    /// WCE: completed writes may be in a volatile cache.
    pub write_cache: bool,
}

impl ModeParameters {
    /// Parses the header, and the caching page if it follows.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        const HEADER_BYTES: usize = 4;
        const CACHING: u8 = 0x08;
        const WP: u8 = 0x80;
        const DPOFUA: u8 = 0x10;
        const WCE: u8 = 0x04;
        let [_, _, flags, descriptors_bytes] = super::array_at(bytes, 0)?;
        let page = bytes.get(HEADER_BYTES + usize::from(descriptors_bytes)..).unwrap_or_default();
        let is_caching = page.first().is_some_and(|code| code & 0x3f == CACHING);
        Some(Self {
            write_protected: flags & WP != 0,
            fua: flags & DPOFUA != 0,
            write_cache: is_caching && page.get(2).is_some_and(|flags| flags & WCE != 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caching_page_is_found_after_block_descriptors() {
        let bytes = [&[22, 0, 0x10, 8][..], &[0; 8], &[0x08, 0x12, 0x04]].concat();
        let expected = ModeParameters { write_protected: false, fua: true, write_cache: true };
        assert_eq!(ModeParameters::parse(&bytes), Some(expected));
    }
}
