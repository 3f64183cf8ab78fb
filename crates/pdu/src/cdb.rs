//! A SCSI Command Descriptor Block in iSCSI: opaque bytes (RFC 7143 §11.3.5).

/// A CDB. Up to 16 bytes lie inline, padded with zeroes, as they do in the BHS; a longer one is boxed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cdb(Bytes);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Bytes {
    Inline([u8; Cdb::INLINE_BYTES]),
    /// The whole CDB, longer than [`Cdb::INLINE_BYTES`].
    Extended(Box<[u8]>),
}

/// A CDB of more than [`Cdb::BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a CDB of {bytes} bytes: no CDB is longer than {max}", max = Cdb::BYTES_MAX)]
pub struct CdbTooLong {
    /// The length of the rejected CDB.
    pub bytes: usize,
}

impl Cdb {
    /// The bytes of the BHS's field.
    pub const INLINE_BYTES: usize = 16;
    /// The longest CDB of SPC-5 §4.2.3: a variable-length one, whose ADDITIONAL CDB LENGTH is one byte.
    pub const BYTES_MAX: usize = 260;

    /// A CDB of these bytes.
    ///
    /// # Errors
    /// If there are more than [`Self::BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Result<Self, CdbTooLong> {
        if bytes.len() > Self::BYTES_MAX {
            return Err(CdbTooLong { bytes: bytes.len() });
        }
        if bytes.len() > Self::INLINE_BYTES {
            return Ok(Self(Bytes::Extended(bytes.into())));
        }
        let mut inline = [0; Self::INLINE_BYTES];
        inline[..bytes.len()].copy_from_slice(bytes);
        Ok(Self(Bytes::Inline(inline)))
    }

    /// The bytes: 16, or all bytes of a longer CDB.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Inline(bytes) => bytes,
            Bytes::Extended(bytes) => bytes,
        }
    }
}

impl From<[u8; Self::INLINE_BYTES]> for Cdb {
    fn from(bytes: [u8; Self::INLINE_BYTES]) -> Self {
        Self(Bytes::Inline(bytes))
    }
}
