//! The initiator's part of a session's identity (RFC 7143 §11.12.5).

use crate::{Host, NetworkError};
use pdu::Isid;

/// A random ISID. Sessions of one [`crate::Target`] share the random part and differ in `qualifier`.
pub(crate) fn random(host: &dyn Host, qualifier: u16) -> Result<Isid, NetworkError> {
    let mut bytes = [0; 3];
    host.entropy(&mut bytes).map_err(|source| NetworkError::Entropy { source })?;
    Ok(Isid::random(bytes, qualifier))
}

/// The ISID of another session of the same initiator.
pub(crate) fn with_qualifier(Isid([kind, a, b, c, ..]): Isid, qualifier: u16) -> Isid {
    let [high, low] = qualifier.to_be_bytes();
    Isid([kind, a, b, c, high, low])
}
