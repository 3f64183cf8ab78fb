//! The initiator's part of a session's identity (RFC 7143 §11.12.5).

use crate::NetworkError;
use crate::host::{self, Host};
use pdu::Isid;

/// A random ISID. Sessions of one [`crate::Target`] share the random part and differ in the qualifier; this is the first's.
pub(crate) fn random(host: &dyn Host) -> Result<Isid, NetworkError> {
    Ok(Isid::random(host::random(host)?, 0))
}

/// The ISID of another session of the same initiator.
pub(crate) fn with_qualifier(Isid([kind, a, b, c, ..]): Isid, qualifier: u16) -> Isid {
    let [high, low] = qualifier.to_be_bytes();
    Isid([kind, a, b, c, high, low])
}
