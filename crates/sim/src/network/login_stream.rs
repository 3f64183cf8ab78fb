//! A connection before full feature phase: login PDUs in a byte stream.

use pdu::Header;
use session::login::DATA_SEGMENT_BYTES_MAX;
use session::seam::{Payload, Transmit};

/// One login PDU that arrived.
#[derive(Debug)]
pub struct LoginPdu {
    /// Its header.
    pub header: Header,
    /// Its text.
    pub data: Vec<u8>,
}

/// Cuts login PDUs out of a stream. There are no digests yet.
#[derive(Debug, Default)]
pub struct LoginStream {
    bytes: Vec<u8>,
}

impl LoginStream {
    /// Takes bytes in.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next PDU, if it is here whole.
    ///
    /// # Errors
    /// It cannot be a login PDU.
    pub fn next_pdu(&mut self) -> Result<Option<LoginPdu>, &'static str> {
        let Some(bhs) = self.bytes.first_chunk() else { return Ok(None) };
        let header = Header::new(*bhs);
        let data_bytes = header.data_segment_bytes();
        if header.ahs_bytes() > 0 || data_bytes > DATA_SEGMENT_BYTES_MAX {
            return Err("what arrived cannot be a login PDU");
        }
        let data_end = Header::BHS_BYTES + data_bytes as usize;
        let end = data_end + pdu::padding(data_bytes) as usize;
        if self.bytes.len() < end {
            return Ok(None);
        }
        let data = self.bytes[Header::BHS_BYTES..data_end].to_vec();
        self.bytes.drain(..end);
        Ok(Some(LoginPdu { header, data }))
    }

    /// What arrived beyond the login.
    #[must_use]
    pub fn into_rest(self) -> Vec<u8> {
        self.bytes
    }
}

/// The bytes of a login PDU.
#[must_use]
pub fn bytes_of(pdu: &Transmit) -> Vec<u8> {
    let mut bytes = pdu.header.bhs().to_vec();
    if let Payload::Inline(data) = &pdu.payload {
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}
