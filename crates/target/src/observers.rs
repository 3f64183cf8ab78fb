//! Whoever watches a server, and must do nothing about what it sees.

use device::Observer as CommandObserver;
use std::sync::Arc;
use transport::Observer as ConnectionsObserver;

/// Who is told what of a [`Server`](crate::Server).
#[derive(Clone, Default)]
pub struct Observers {
    /// Of every connection, and what happens on it.
    pub connections: Option<Arc<dyn ConnectionsObserver>>,
    /// Of every command at the device server. Shards tell from their own threads.
    pub commands: Option<Arc<dyn CommandObserver + Send + Sync>>,
}
