//! Observers of a server. They only receive events, and must not affect the server.

use device::Observer as CommandObserver;
use std::sync::Arc;
use transport::Observer as ConnectionsObserver;

/// The observers of a [`Server`](crate::Server).
#[derive(Clone, Default)]
pub struct Observers {
    /// Receives every connection and its events.
    pub connections: Option<Arc<dyn ConnectionsObserver>>,
    /// Receives every command at the device server, on the threads of the shards.
    pub commands: Option<Arc<dyn CommandObserver + Send + Sync>>,
}
