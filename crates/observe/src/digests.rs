//! Whether the PDUs of a connection have digests: told by its login, by the user, or by the first that fits.

use pdu::text_keys::pairs;

/// What is known of the two digests. A digest that is not known is looked for behind the first header, and behind the
/// first data, of which all bytes were captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Whether a CRC32C stands behind each header.
    pub header: Option<bool>,
    /// Whether one stands behind each data segment.
    pub data: Option<bool>,
}

impl Digests {
    /// As in the login phase (RFC 7143 §6.1): none.
    pub(crate) const NONE: Self = Self { header: Some(false), data: Some(false) };

    /// Takes in what one side of a login says (§13.1). The last word of either side is what holds: an offer is a list
    /// or what was chosen, and the answer to it one value.
    pub(crate) fn negotiate(&mut self, text: &[u8]) {
        for (key, value) in pairs(text).map_while(Result::ok) {
            let chosen = Some(value == "CRC32C");
            match key {
                "HeaderDigest" => self.header = chosen,
                "DataDigest" => self.data = chosen,
                _ => {}
            }
        }
    }
}
