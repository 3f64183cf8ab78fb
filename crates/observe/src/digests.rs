//! Whether the PDUs of a connection have digests: known from its login, from the user, or by trial.

use pdu::text_keys::pairs;

/// The two digests. An unknown one is looked for behind the first header, and behind the first data, of which all bytes
/// were captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Whether a CRC32C follows each header.
    pub header: Option<bool>,
    /// Whether a CRC32C follows each data segment.
    pub data: Option<bool>,
}

impl Digests {
    /// As in the login phase (RFC 7143 §6.1): none.
    pub(crate) const NONE: Self = Self { header: Some(false), data: Some(false) };

    /// Processes one side's login text (§13.1). The last statement of either side counts: an offer is a list or the
    /// chosen value, and the answer is one value.
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
