//! The memory of one event loop, and how to wait for a part of it.

use block::{Buffer, Slab};
use std::future::poll_fn;
use std::task::Poll;

/// What an event loop's commands share.
#[derive(Clone)]
pub struct Memory {
    /// Data on its way between initiators and backends.
    pub transfers: Slab,
    /// For commands that need a piece of memory beside their data, one piece at a time: since they never wait for
    /// a second one, they always come to an end, and need not share the fate of the transfers.
    pub working: Slab,
}

/// Bytes that such a command works on at once.
pub(crate) const PIECE_BYTES: u32 = 256 << 10;

/// Commands of an event loop that can work at the same time; more take turns.
const WORKING_PIECES: usize = 16;

impl Memory {
    /// Memory of which at most `transfer_bytes` are for transfers.
    #[must_use]
    pub fn new(transfer_bytes: usize) -> Self {
        Self {
            transfers: Slab::new(transfer_bytes),
            working: Slab::new(WORKING_PIECES * PIECE_BYTES as usize),
        }
    }

    /// Gives what is idle back to the system.
    pub fn trim(&self) {
        self.transfers.trim();
        self.working.trim();
    }
}

/// A buffer of `bytes`, as soon as the budget has room for it. It must fit the whole budget, or this never ends.
pub(crate) async fn allocated(slab: &Slab, bytes: usize) -> Buffer {
    poll_fn(|cx| {
        if let Some(buffer) = slab.allocate(bytes) {
            return Poll::Ready(buffer);
        }
        slab.wake_on_release(cx.waker());
        slab.allocate(bytes).map_or(Poll::Pending, Poll::Ready)
    })
    .await
}
