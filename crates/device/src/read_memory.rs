//! The memory of a session's reads.
//!
//! Each session has a budget of bytes for its reads, and so has each host for all its sessions. A piece of a read takes
//! as many bytes of both as it is long, from its request until its buffer is released: when it has been sent or, at
//! error recovery level 1 and above, when its initiator has acknowledged it or the session has dropped it.
//!
//! A read that waits may have sent data that the session retains. These rules ensure that it does not wait for ever:
//!
//! * **Of its own session's bytes, data in transit has half for itself.** The session retains at most half of them
//!   ([`retained_bytes_max`]), and drops older data beyond. Data in transit leaves as fast as the network takes it, so
//!   half of the bytes are free in the end, and no piece needs more.
//! * **A session that waits for others retains nothing of a read that waits.** A read that has its session's bytes may
//!   still wait for those of its host, or for memory, which other sessions' reads hold. As long as there is such a read,
//!   its session lets go of the data retained for every read that waits, including those that wait for this session
//!   only. Otherwise sessions could wait for each other's retained data. The rest of the retained data belongs to reads
//!   that go on, or that have ended: their initiators acknowledge it when asked, or are given up.
//! * **The longest waiter is served first**, so a long piece does not wait for ever behind short ones, and reads that
//!   are short of memory end in the order in which they came.

use crate::memory::Memory;
use crate::permit::Permit;
use crate::session_driver::SessionDriver;
use session::target::{Session, TaskId};
use std::collections::HashSet;
use std::rc::Rc;

/// Pieces that one command reads ahead of the network.
pub(crate) const AHEAD_PIECES: usize = 4;

/// The inverse of the share of all memory that the reads of one session may have.
const SESSION_DIVISOR: usize = 8;

/// The inverse of the share of all memory that the reads of one host may have.
const PEER_DIVISOR: usize = 4;

/// The bytes that the reads of one session may hold: a share, and at least the pieces that one command reads ahead.
pub(crate) fn bytes_per_session(memory: &Memory) -> usize {
    share(memory, SESSION_DIVISOR)
}

/// The bytes that the reads of one host may hold together.
pub(crate) fn bytes_per_peer(memory: &Memory) -> usize {
    share(memory, PEER_DIVISOR)
}

/// The sent data that one session may keep until its initiator acknowledges it: half of the bytes that its reads may
/// hold. With a budget of a gigabyte, that covers a path of 10 Gb/s and 100 ms; as much again was sent earlier and
/// awaits acknowledgement.
pub(crate) fn retained_bytes_max(memory: &Memory) -> u32 {
    u32::try_from(bytes_per_session(memory) / 2).unwrap_or(u32::MAX)
}

fn share(memory: &Memory, divisor: usize) -> usize {
    let ahead_bytes = AHEAD_PIECES * memory.read_piece_bytes as usize;
    (memory.transfers.budget_bytes() / divisor).max(ahead_bytes)
}

/// The bytes of a piece, of its session and of its host.
pub(crate) struct ReadPermit {
    session: Permit,
    peer: Permit,
}

impl ReadPermit {
    /// Takes `bytes` out.
    pub(crate) fn split(&mut self, bytes: u32) -> Self {
        Self { session: self.session.split(bytes as usize), peer: self.peer.split(bytes as usize) }
    }
}

/// The reads of one session that wait for memory.
#[derive(Default)]
pub(crate) struct WaitingReads {
    tasks: HashSet<TaskId>,
    /// How many of them wait for memory that other sessions hold.
    blocked: usize,
}

impl WaitingReads {
    /// A read begins to wait.
    pub(crate) fn begin(&mut self, session: &mut Session, id: TaskId) {
        self.tasks.insert(id);
        if self.blocked > 0 {
            session.forgo_retention(id);
        }
    }

    /// A read has what it waited for.
    pub(crate) fn end(&mut self, id: TaskId) {
        self.tasks.remove(&id);
    }

    /// One of the reads waits for memory that other sessions hold.
    fn block(&mut self, session: &mut Session) {
        self.blocked += 1;
        self.tasks.iter().for_each(|id| session.forgo_retention(*id));
    }

    /// It waits no more.
    fn unblock(&mut self) {
        self.blocked -= 1;
    }
}

impl SessionDriver {
    /// The bytes of a piece, if they are free and no other piece waits for them.
    pub(crate) fn try_take_read_permit(&self, bytes: u32) -> Option<ReadPermit> {
        let session = self.read_bytes.try_take(bytes as usize)?;
        Some(ReadPermit { session, peer: self.bounds.read_bytes.try_take(bytes as usize)? })
    }

    /// The bytes of a piece, once they are free.
    pub(crate) async fn take_read_permit(self: &Rc<Self>, bytes: u32) -> ReadPermit {
        let session = self.read_bytes.take(bytes as usize).await;
        let peer = match self.bounds.read_bytes.try_take(bytes as usize) {
            Some(peer) => peer,
            None => self.blocked(self.bounds.read_bytes.take(bytes as usize)).await,
        };
        ReadPermit { session, peer }
    }

    /// Waits for memory that other sessions hold.
    pub(crate) async fn blocked<T>(self: &Rc<Self>, memory: impl Future<Output = T>) -> T {
        self.resume(|state| state.waiting_reads.block(&mut state.session));
        let memory = memory.await;
        self.resume(|state| state.waiting_reads.unblock());
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_retains_leaves_room_for_the_longest_piece() {
        for budget_bytes in [300 << 10, 540_016, 8 << 20, 64 << 20, 1 << 30] {
            let memory = Memory::new(budget_bytes);
            let free_bytes = bytes_per_session(&memory) - retained_bytes_max(&memory) as usize;
            assert!(free_bytes >= memory.read_piece_bytes as usize, "{budget_bytes}");
            assert!(bytes_per_peer(&memory) >= bytes_per_session(&memory), "{budget_bytes}");
        }
    }
}
