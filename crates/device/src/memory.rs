//! The memory of one event loop, and ways to wait for a part of it.
//!
//! A write holds its data's memory while it waits for its turn, perhaps behind a read. Reads therefore have memory that
//! writes cannot take; otherwise both could wait for each other. Reads return their memory by themselves, when the data
//! has arrived or the initiator is gone.
//!
//! | part of the budget | for |
//! |---|---|
//! | half, less one piece of a read | the reservations of sessions for unsolicited data |
//! | at most half | solicited data of writes |
//! | the rest, at least that piece | data of reads |

use block::{Buffer, Slab};
use framing::Quota;
use std::future::poll_fn;
use std::task::Poll;

/// The memory that an event loop's commands share.
#[derive(Clone)]
pub struct Memory {
    /// Data in transit between initiators and backends.
    pub transfers: Slab,
    /// For commands that need a piece of memory besides their data, one piece at a time. They never wait for a second
    /// piece, so they always end, independently of the transfers.
    pub working: Slab,
    /// For data of writes beyond their session's reservation.
    pub(crate) writes: Quota,
    /// The longest piece of a read.
    pub(crate) read_piece_bytes: u32,
}

/// A read of this length, the usual maximum of initiators, is one piece, unless memory is scarce.
pub(crate) const READ_PIECE_BYTES_MAX: usize = 1 << 20;

/// The inverse of the largest share of all memory that a piece may have.
const READ_PIECE_DIVISOR: usize = 16;

/// The longest block.
const READ_PIECE_BYTES_MIN: usize = 4 << 10;

/// Bytes that such a command processes at once.
pub(crate) const PIECE_BYTES: u32 = 256 << 10;

/// Commands of an event loop that can work at the same time; more take turns.
const WORKING_PIECES: usize = 16;

impl Memory {
    /// Memory with at most `transfer_bytes` for transfers.
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

    /// Returns idle memory to the system.
    pub fn trim(&self) {
        self.transfers.trim();
        self.working.trim();
    }
}

/// A buffer of `bytes`, once the budget has room for it. `bytes` must fit the whole budget, or this never ends.
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
