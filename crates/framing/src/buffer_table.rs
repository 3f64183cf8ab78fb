//! The driver's buffers, by the names that the core uses for them.

use crate::quota::{Quota, Share};
use block::{Payload, Slab};
use pdu::BufferId;
use session::seam::{Allocation, Buffers, PayloadRef};

/// Maps the core's [`BufferId`]s to buffers.
///
/// A PDU on its way to a socket or a disk operation may also hold a buffer of the table. A buffer is writable only
/// while nobody else holds it.
#[derive(Debug)]
pub struct BufferTable {
    budget: Slab,
    quota: Option<Quota>,
    /// The longest buffer that the reservation covers.
    reserved_bytes: u32,
    entries: slab::Slab<Entry>,
    refused: bool,
}

#[derive(Debug)]
struct Entry {
    buffer: Payload,
    /// Its share of the quota.
    _share: Option<Share>,
}

impl BufferTable {
    /// Makes an empty table that allocates from `budget`.
    #[must_use]
    pub fn new(budget: Slab) -> Self {
        Self { budget, quota: None, reserved_bytes: 0, entries: slab::Slab::new(), refused: false }
    }

    /// Makes an empty table that allocates at most `quota` from `budget`. Buffers of up to `reserved_bytes` come from
    /// the reservation of this table first; longer ones never use it.
    #[must_use]
    pub fn with_quota(budget: Slab, quota: Quota, reserved_bytes: u32) -> Self {
        Self { quota: Some(quota), reserved_bytes, ..Self::new(budget) }
    }

    /// The budget behind this table.
    #[must_use]
    pub fn budget(&self) -> &Slab {
        &self.budget
    }

    /// Adds a buffer and names it.
    pub fn insert(&mut self, buffer: Payload) -> BufferId {
        self.enter(Entry { buffer, _share: None })
    }

    fn enter(&mut self, entry: Entry) -> BufferId {
        // A table of 2^32 buffers of at least a page each cannot exist in memory.
        #[expect(clippy::cast_possible_truncation)]
        BufferId(self.entries.insert(entry) as u32)
    }

    /// Allocates from the unreserved part of the budget.
    fn allocate_common(&self, bytes: u32) -> Option<Entry> {
        let share = match &self.quota {
            Some(quota) => Some(quota.take(Slab::charged_bytes(bytes as usize)?)?),
            None => None,
        };
        Some(Entry { buffer: self.budget.allocate(bytes as usize)?.share(), _share: share })
    }

    /// The buffer with this name.
    #[must_use]
    pub fn get(&self, id: BufferId) -> Option<&Payload> {
        self.entries.get(id.0 as usize).map(|entry| &entry.buffer)
    }

    /// Removes the name; the buffer lives on as long as somebody holds it.
    pub fn remove(&mut self, id: BufferId) -> Option<Payload> {
        self.entries.try_remove(id.0 as usize).map(|entry| entry.buffer)
    }

    /// Whether a buffer was refused to the protocol since the last call: it then waits for
    /// [`session::target::Session::buffers_available`].
    pub fn take_refused(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    /// The bytes of `payload`, to be filled. `None` if the range does not exist, or if somebody else holds the buffer.
    pub fn bytes_mut(&mut self, payload: PayloadRef) -> Option<&mut [u8]> {
        let start = payload.offset_bytes as usize;
        let entry = self.entries.get_mut(payload.buffer.0 as usize)?;
        entry.buffer.get_mut()?.get_mut(start..start + payload.bytes as usize)
    }
}

impl Buffers for BufferTable {
    fn allocate(&mut self, least_bytes: u32, preferred_bytes: u32) -> Option<Allocation> {
        let preferred = self.allocate_common(preferred_bytes).map(|entry| (entry, preferred_bytes));
        let least = || {
            if least_bytes > self.reserved_bytes {
                return None;
            }
            let buffer = self.budget.allocate_reserved(least_bytes as usize)?.share();
            Some((Entry { buffer, _share: None }, least_bytes))
        };
        let allocated = preferred.or_else(least);
        self.refused |= allocated.is_none();
        let (entry, bytes) = allocated?;
        Some(Allocation { buffer: self.enter(entry), bytes })
    }

    fn grow(&mut self, id: BufferId, bytes: u32) -> bool {
        let Some(entry) = self.entries.get(id.0 as usize) else { return false };
        if entry.buffer.len() >= bytes as usize {
            return true;
        }
        let Some(mut larger) = self.allocate_common(bytes) else {
            self.refused = true;
            return false;
        };
        let Some(entry) = self.entries.get_mut(id.0 as usize) else { return false };
        let kept = entry.buffer.len();
        match larger.buffer.get_mut() {
            Some(whole) => whole[..kept].copy_from_slice(&entry.buffer),
            None => return false,
        }
        *entry = larger;
        true
    }
}
