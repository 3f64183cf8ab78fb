//! This initiator's part of its sessions' identities.

use crate::{Host, NetworkError};
use pdu::Isid;

/// An ISID that no other initiator with this name is likely to have; sessions of one [`crate::Target`] share the
/// random part and differ in `qualifier`.
pub(crate) fn random(host: &dyn Host, qualifier: u16) -> Result<Isid, NetworkError> {
    let mut bytes = [0; 3];
    host.entropy(&mut bytes).map_err(|source| NetworkError::Entropy { source })?;
    Ok(Isid::random(bytes, qualifier))
}

/// The same initiator's ISID for another of its sessions.
pub(crate) fn with_qualifier(Isid([kind, a, b, c, ..]): Isid, qualifier: u16) -> Isid {
    let [high, low] = qualifier.to_be_bytes();
    Isid([kind, a, b, c, high, low])
}
