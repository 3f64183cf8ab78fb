//! The memory of one event loop, and how to wait for a part of it.
//!
//! A write holds the memory for its data while it waits for its turn, perhaps behind a read; so reads must find some that
//! writes cannot take, or both would wait for each other. What reads hold comes back by itself, when it has arrived or its
//! initiator is gone.
//!
//! | part of the budget | for |
//! |---|---|
//! | half of it, but for a piece of a read | what sessions set aside for unsolicited data |
//! | half of it, at the most | data of writes that was asked for |
//! | what is left, at least that piece | data of reads |

use block::{Buffer, Slab};
use framing::Quota;
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
    /// For data of writes that is not paid from what their session has set aside.
    pub(crate) writes: Quota,
    /// The longest piece of a read.
    pub(crate) read_piece_bytes: u32,
}

/// A read of this length, the usual maximum of initiators, is one piece, unless memory is scarce.
pub(crate) const READ_PIECE_BYTES_MAX: usize = 1 << 20;

/// A piece is no more than this part of all memory.
const READ_PIECE_DIVISOR: usize = 16;

/// No block is longer.
const READ_PIECE_BYTES_MIN: usize = 4 << 10;

/// Bytes that such a command works on at once.
pub(crate) const PIECE_BYTES: u32 = 256 << 10;

/// Commands of an event loop that can work at the same time; more take turns.
const WORKING_PIECES: usize = 16;

impl Memory {
    /// Memory of which at most `transfer_bytes` are for transfers.
    #[must_use]
    pub fn new(transfer_bytes: usize) -> Self {
        // Buffers are powers of two long.
        let piece_bytes = 1_usize << (transfer_bytes / READ_PIECE_DIVISOR).max(1).ilog2();
        let piece_bytes = piece_bytes.clamp(READ_PIECE_BYTES_MIN, READ_PIECE_BYTES_MAX);
        let half_bytes = transfer_bytes / 2;
        Self {
            transfers: Slab::with_reservable(transfer_bytes, half_bytes.saturating_sub(piece_bytes)),
            writes: Quota::new(half_bytes),
            read_piece_bytes: u32::try_from(piece_bytes).unwrap_or(u32::MAX),
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

#[cfg(test)]
mod tests {
    use super::*;
    use framing::BufferTable;
    use session::seam::Buffers;

    #[test]
    fn a_read_finds_room_whatever_sessions_set_aside_and_writes_hold() {
        for budget_bytes in [300 << 10, 540_016, 64 << 20, 1 << 30] {
            let memory = Memory::new(budget_bytes);
            let slab = &memory.transfers;
            let _reserved = slab.reserve(slab.unreserved_bytes() / 4096, 4096).unwrap();
            let mut writes = BufferTable::with_quota(slab.clone(), memory.writes.part(budget_bytes), 0);
            let mut bytes = 32 << 20;
            while bytes >= 4096 {
                if writes.allocate(bytes, bytes).is_none() {
                    bytes /= 2;
                }
            }
            assert!(slab.allocate(memory.read_piece_bytes as usize).is_some(), "{budget_bytes}");
        }
    }
}
