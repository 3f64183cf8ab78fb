//! Header and data digests: CRC32C (RFC 7143 §11.2.3, §13.1).

use crate::header::Header;
use crc_fast::CrcAlgorithm::Crc32Iscsi;

/// A digest on the wire.
pub type DigestBytes = [u8; 4];

/// The length of a digest on the wire.
pub const DIGEST_BYTES: usize = size_of::<DigestBytes>();

/// The CRC32C of bytes that arrive in parts. A driver feeds all bytes that it moves, including the padding.
#[derive(Clone, Copy, Debug)]
pub struct Crc32c(crc_fast::Digest);

impl Crc32c {
    /// The CRC of no bytes yet.
    #[must_use]
    pub fn new() -> Self {
        Self(crc_fast::Digest::new(Crc32Iscsi))
    }

    /// Adds the next part.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all parts so far.
    #[must_use]
    pub fn finish(&self) -> DigestBytes {
        wire(self.0.finalize())
    }
}

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

/// The digest of one slice of bytes.
#[must_use]
pub fn digest(bytes: &[u8]) -> DigestBytes {
    crc_fast::crc32_iscsi(bytes).to_le_bytes()
}

/// The digest of a header, including its AHSs.
#[must_use]
pub fn header_digest(header: &Header) -> DigestBytes {
    if header.ahs().is_empty() {
        return digest(header.bhs());
    }
    let mut crc = Crc32c::new();
    crc.update(header.bhs());
    crc.update(header.ahs());
    crc.finish()
}

/// §13.1 puts the coefficient of x³¹ into bit 7 of the first byte; the reflected CRC has it in its lowest bit, so its
/// little-endian bytes are the digest.
fn wire(crc: u64) -> DigestBytes {
    let [b0, b1, b2, b3, ..] = crc.to_le_bytes();
    [b0, b1, b2, b3]
}
