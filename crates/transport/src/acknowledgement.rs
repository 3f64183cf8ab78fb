//! Acknowledgements that the kernel would delay (RFC 1122 §4.2.3.2).

use socket2::SockRef;
use std::os::fd::AsFd;

/// Acknowledges what was read, if the kernel still waits with that. It goes back to its own judgement afterwards, so this
/// must follow each read.
pub(crate) fn send(socket: &impl AsFd) {
    // If this fails, the kernel acknowledges later.
    let _ = SockRef::from(socket).set_tcp_quickack(true);
}
