//! The memory that a socket uses: the option SO_MEMINFO, by the numbers of `sock_diag.h` of Linux.

use crate::fields::Fields;
use serde::{Deserialize, Serialize};

/// A sample of SO_MEMINFO, in bytes. The kernel counts the memory that packets take, which is more than their data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketMemory {
    /// Received, and not read.
    pub rmem_alloc_bytes: u32,
    /// What that may be at most: SO_RCVBUF.
    pub rcvbuf_bytes: u32,
    /// Given to the network layer and not let go, acknowledgements included.
    pub wmem_alloc_bytes: u32,
    /// Written, and not acknowledged.
    pub wmem_queued_bytes: u32,
    /// What that may be before a writer must wait: SO_SNDBUF, which TCP tunes unless it was set.
    pub sndbuf_bytes: u32,
    /// Received while the socket was in use, and waiting for that.
    pub backlog_bytes: u32,
}

impl SocketMemory {
    /// Reads what the kernel wrote; `None` if that is too short.
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
