//! A server of the NBD protocol, fixed newstyle, for one disk on a unix socket.
//!
//! Source: the protocol's description, `doc/proto.md` of the NBD project (public domain); section names in the comments
//! are its. It offers what clients use: INFO and GO with block sizes, structured replies, `base:allocation`, FUA, flush,
//! trim, zeroes, and several connections at once, whose flushes each cover the writes that were acknowledged on any.

mod negotiation;
mod reply;
mod request;
mod server;
mod transmission;

pub use server::Server;
pub use transmission::serve;

use tokio::sync::watch;

/// Resolves when the server is to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A server that nobody can stop any more is as good as stopped.
    let _ = stop.wait_for(|stop| *stop).await;
}
