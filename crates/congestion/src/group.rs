//! A group as it is.

use crate::Control;
use policy::law::GroupTerms;
use std::net::{IpAddr, SocketAddr};

/// A group of connections that share one congestion state.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Which group it is.
    pub key: GroupKey,
    /// The other end of its first connection.
    pub peer: SocketAddr,
    /// How it behaves.
    pub terms: GroupTerms,
    /// Its connections.
    pub members: u32,
    /// Those that send.
    pub active_members: u32,
    /// Those that repair losses.
    pub repairing_members: u32,
    /// All connections' window together, in segments; `None` under FAST, as the next two.
    pub window_segments: Option<f64>,
    /// Up to which it doubles in each round trip; `None` before the first loss.
    pub ssthresh_segments: Option<f64>,
    /// The window of each connection that sends and does not repair losses, in segments.
    pub share_segments: Option<f64>,
    /// The smoothed round trip, in microseconds.
    pub srtt_us: u64,
    /// The shortest of the last seconds, in microseconds; under FAST, the shortest of all.
    pub min_rtt_us: u32,
    /// Losses that ended in a repair, of all members since the group began.
    pub losses: u32,
    /// Timeouts.
    pub timeouts: u32,
    /// Reductions that turned out to be mistakes.
    pub undone: u32,
    /// How often a share was raised to the smallest window.
    pub raised_shares: u32,
    /// Connections that left because their path was another one.
    pub split_members: u32,
}

/// Which group it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKey {
    /// The user whose connections they are.
    pub user: u32,
    /// Their network namespace, by its inode number.
    pub namespace_inode: u32,
    /// Their control.
    pub control: Control,
    /// The group's number.
    pub group: u64,
    /// The address from which they come.
    pub local_address: IpAddr,
}
