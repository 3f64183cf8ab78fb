//! The state and totals of the server, for tests of its bounds and later for metrics.

use block::Slab;
use device::PeerHost;
use session::target::OrderWaits;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Observable numbers of a server at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections whose login is not done.
    pub unauthenticated_connections: usize,
    /// Connections in full feature phase.
    pub connections: usize,
    /// Sessions that have not ended, of all targets.
    pub sessions: usize,
    /// Connections accepted, total.
    pub accepted_connections: u64,
    /// Connections that ended before they belonged to a session, total.
    pub refused_connections: u64,
    /// SCSI commands begun, total.
    pub commands: u64,
    /// Their waits for earlier commands of their sessions.
    pub order_waits: OrderWaits,
    /// Memory in use for data on its way.
    pub buffer_bytes: usize,
    /// Memory kept for the next transfers.
    pub idle_buffer_bytes: usize,
}

/// The live numbers that all shards share. Each shard counts its own sessions and commands, so that shards do not slow
/// each other down.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub unauthenticated_connections: AtomicUsize,
    pub connections: AtomicUsize,
    pub accepted_connections: AtomicU64,
    pub refused_connections: AtomicU64,
    /// The number of connections of each host. No more entries than connections.
    by_host: Mutex<HashMap<PeerHost, usize>>,
}

/// A connection from a host, while this lives.
#[derive(Debug)]
pub(crate) struct CountedHost {
    gauges: Arc<Gauges>,
    host: PeerHost,
}

impl CountedHost {
    /// `None` if the host already has `connections_max`.
    pub(crate) fn new(gauges: &Arc<Gauges>, host: PeerHost, connections_max: usize) -> Option<Self> {
        let mut by_host = gauges.by_host.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = by_host.get(&host).copied().unwrap_or(0);
        if connections >= connections_max {
            return None;
        }
        by_host.insert(host, connections + 1);
        drop(by_host);
        Some(Self { gauges: Arc::clone(gauges), host })
    }
}

impl Drop for CountedHost {
    fn drop(&mut self) {
        let mut by_host = self.gauges.by_host.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connections) = by_host.get_mut(&self.host) {
            *connections -= 1;
            if *connections == 0 {
                by_host.remove(&self.host);
            }
        }
    }
}

/// One more of something, while this lives.
#[derive(Debug)]
pub(crate) struct Counted {
    gauges: Arc<Gauges>,
    which: fn(&Gauges) -> &AtomicUsize,
}

impl Counted {
    pub(crate) fn new(gauges: &Arc<Gauges>, which: fn(&Gauges) -> &AtomicUsize) -> Self {
        which(gauges).fetch_add(1, Ordering::Relaxed);
        Self { gauges: Arc::clone(gauges), which }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.which)(&self.gauges).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counters {
    pub(crate) fn read<'a>(
        gauges: &Gauges,
        shards: impl Iterator<Item = (&'a device::Gauges, &'a Slab)>,
    ) -> Self {
        let mut counters = Self {
            unauthenticated_connections: gauges.unauthenticated_connections.load(Ordering::Relaxed),
            connections: gauges.connections.load(Ordering::Relaxed),
            accepted_connections: gauges.accepted_connections.load(Ordering::Relaxed),
            refused_connections: gauges.refused_connections.load(Ordering::Relaxed),
            ..Self::default()
        };
        for (shard, slab) in shards {
            counters.sessions += shard.sessions();
            counters.commands += shard.commands();
            counters.order_waits.merge(&shard.order_waits());
            counters.buffer_bytes += slab.in_use_bytes();
            counters.idle_buffer_bytes += slab.idle_bytes();
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::Ipv6Prefix;

    #[test]
    fn connections_of_one_host_are_counted_together_whatever_addresses_it_has() {
        let gauges = Arc::new(Gauges::default());
        let come = |address: &str| {
            let host = Ipv6Prefix::LINK.host_of(address.parse().unwrap());
            CountedHost::new(&gauges, host, 2)
        };
        let both = (come("2001:db8::1"), come("2001:db8::2"));
        assert!(both.0.is_some() && both.1.is_some());
        assert!(come("2001:db8::3").is_none());
        assert!(come("2001:db8:0:1::3").is_some());
        drop(both.0);
        assert!(come("2001:db8::3").is_some());
    }
}
