//! The driver's buffers by the names the core knows them by.

use block::{Payload, Slab};
use pdu::BufferId;
use session::seam::{Allocation, Buffers, PayloadRef};

/// Maps the core's [`BufferId`]s to buffers.
///
/// A buffer in the table may also be held by a PDU on its way to a socket or by a disk operation; it is
/// writable only while nobody else holds it.
#[derive(Debug)]
pub struct BufferTable {
    budget: Slab,
    entries: slab::Slab<Payload>,
    refused: bool,
}

impl BufferTable {
    /// An empty table that allocates from `budget`.
    #[must_use]
    pub fn new(budget: Slab) -> Self {
        Self { budget, entries: slab::Slab::new(), refused: false }
    }

    /// The budget behind this table.
    #[must_use]
    pub fn budget(&self) -> &Slab {
        &self.budget
    }

    /// Names a buffer.
    pub fn insert(&mut self, buffer: Payload) -> BufferId {
        // A table of 2^32 buffers of at least a page each cannot exist in memory.
        #[expect(clippy::cast_possible_truncation)]
        BufferId(self.entries.insert(buffer) as u32)
    }

    /// The buffer of that name.
    #[must_use]
    pub fn get(&self, id: BufferId) -> Option<&Payload> {
        self.entries.get(id.0 as usize)
    }

    /// Forgets the name; the buffer lives on as long as somebody holds it.
    pub fn remove(&mut self, id: BufferId) -> Option<Payload> {
        self.entries.try_remove(id.0 as usize)
    }

    /// Whether the protocol was refused a buffer since this was last asked: it waits for
    /// [`session::target::Session::buffers_available`].
    pub fn take_refused(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    /// The bytes of `payload`, to be filled. `None` if there is no such range, or somebody else holds the buffer.
    pub fn bytes_mut(&mut self, payload: PayloadRef) -> Option<&mut [u8]> {
        let start = payload.offset_bytes as usize;
        let buffer = self.entries.get_mut(payload.buffer.0 as usize)?;
        buffer.get_mut()?.get_mut(start..start + payload.bytes as usize)
    }
}

impl Buffers for BufferTable {
    fn allocate(&mut self, least_bytes: u32, preferred_bytes: u32) -> Option<Allocation> {
        let preferred =
            self.budget.allocate(preferred_bytes as usize).map(|buffer| (buffer, preferred_bytes));
        let least =
            || self.budget.allocate_reserved(least_bytes as usize).map(|buffer| (buffer, least_bytes));
        let allocated = preferred.or_else(least);
        self.refused |= allocated.is_none();
        let (buffer, bytes) = allocated?;
        Some(Allocation { buffer: self.insert(buffer.share()), bytes })
    }

    fn grow(&mut self, id: BufferId, bytes: u32) -> bool {
        let Some(entry) = self.entries.get_mut(id.0 as usize) else { return false };
        if entry.len() >= bytes as usize {
            return true;
        }
        let Some(mut larger) = self.budget.allocate(bytes as usize) else {
            self.refused = true;
            return false;
        };
        larger[..entry.len()].copy_from_slice(entry);
        *entry = larger.share();
        true
    }
}
