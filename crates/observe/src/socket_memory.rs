//! The memory that a socket uses: the option SO_MEMINFO, by the numbers of `sock_diag.h` of Linux.

use crate::fields::Fields;
use serde::{Deserialize, Serialize};

/// A sample of SO_MEMINFO, in bytes. The kernel counts the memory of packets, which exceeds their data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketMemory {
    /// Received and unread.
    pub rmem_alloc_bytes: u32,
    /// The limit of the above: SO_RCVBUF.
    pub rcvbuf_bytes: u32,
    /// Held by the network layer, including acknowledgements.
    pub wmem_alloc_bytes: u32,
    /// Written and not acknowledged.
    pub wmem_queued_bytes: u32,
    /// The limit of the above at which a writer must wait: SO_SNDBUF, which TCP tunes unless it was set.
    pub sndbuf_bytes: u32,
    /// Received while the socket was in use, and waiting for that to end.
    pub backlog_bytes: u32,
}

impl SocketMemory {
    /// Parses the kernel's data; `None` if it is too short.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |index: usize| Fields(bytes).u32(index * size_of::<u32>());
        Some(Self {
            rmem_alloc_bytes: number(0)?,
            rcvbuf_bytes: number(1)?,
            wmem_alloc_bytes: number(2)?,
            sndbuf_bytes: number(3)?,
            wmem_queued_bytes: number(5)?,
            backlog_bytes: number(7)?,
        })
    }
}
