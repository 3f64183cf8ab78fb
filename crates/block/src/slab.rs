//! Owned, aligned buffers from a budget in bytes.
//!
//! Every READ and WRITE passes through one [`Buffer`], so taking and returning one costs a short lock and no
//! page faults once the slab is warm. [`Slab::trim`] gives idle memory back to the system.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::mapping::{Mapping, PAGE_BYTES};
use crate::payload::Payload;

/// The start of every buffer is aligned to this many bytes: enough for `O_DIRECT` everywhere.
pub const BUFFER_ALIGNMENT_BYTES: usize = PAGE_BYTES;

/// The longest buffer. One iSCSI burst or data segment is shorter (at most 16 MiB − 1, RFC 7143 §13.12–13.14).
pub const BUFFER_BYTES_MAX: usize = 16 << 20;

/// Sizes are powers of two, from one page to [`BUFFER_BYTES_MAX`].
const CLASSES: usize = (BUFFER_BYTES_MAX / PAGE_BYTES).ilog2() as usize + 1;

/// A source of [`Buffer`]s that never holds more memory than its budget, idle buffers included.
///
/// Clones share the budget. A shard normally has its own slab; a buffer may be dropped on any thread.
#[derive(Clone)]
pub struct Slab {
    store: Arc<Store>,
}

impl Slab {
    /// A slab that hands out at most `budget_bytes`. Nothing is mapped until the first buffer is asked for.
    #[must_use]
    pub fn new(budget_bytes: usize) -> Self {
        Self { store: Arc::new(Store { budget_bytes, pages: Mutex::default() }) }
    }

    /// A buffer of exactly `bytes`, or `None` if the budget is used up, `bytes` exceeds [`BUFFER_BYTES_MAX`], or
    /// the system has no memory to map.
    ///
    /// The budget is charged for the next power of two, at least one page. For the contents see [`Buffer`].
    #[must_use]
    pub fn allocate(&self, bytes: usize) -> Option<Buffer> {
        let class = SizeClass::holding(bytes)?;
        let pages = self.store.take(class)?;
        Some(Buffer { pages, length: bytes, store: Arc::clone(&self.store) })
    }

    /// What the live buffers are charged for.
    #[must_use]
    pub fn in_use_bytes(&self) -> usize {
        self.store.lock().in_use_bytes
    }

    /// What idle buffers keep mapped for reuse.
    #[must_use]
    pub fn idle_bytes(&self) -> usize {
        self.store.lock().idle_bytes
    }

    /// The budget given to [`Slab::new`].
    #[must_use]
    pub fn budget_bytes(&self) -> usize {
        self.store.budget_bytes
    }

    /// Returns all idle memory to the system: for a driver that has had nothing to do for a while.
    pub fn trim(&self) {
        let released = self.store.lock().release_idle(usize::MAX);
        drop(released);
    }
}

/// Memory for one transfer: aligned to [`BUFFER_ALIGNMENT_BYTES`], exactly as long as asked for, returned to its
/// slab when dropped.
///
/// # Contents
/// A new buffer's bytes are defined but unspecified: zeroes the first time its pages are used, afterwards
/// whatever the last user *of the same slab* left. They are never memory from elsewhere in the process. So fill
/// a buffer before showing it to a peer, and keep secrets (CHAP) out of slab buffers.
pub struct Buffer {
    pages: Mapping,
    length: usize,
    store: Arc<Store>,
}

impl Buffer {
    /// Makes the buffer shorter; longer is not possible and changes nothing. The charge stays.
    pub fn truncate(&mut self, bytes: usize) {
        self.length = self.length.min(bytes);
    }

    /// Gives up writing to the filled buffer so that several may read it.
    #[must_use]
    pub fn share(self) -> Payload {
        Payload::from(self)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.pages[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.pages[..self.length]
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl std::fmt::Debug for Buffer {
    /// Without the contents: they may be a customer's.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Buffer").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.store.give_back(std::mem::take(&mut self.pages));
    }
}

/// Index of a power of two: 0 is one page.
#[derive(Clone, Copy)]
struct SizeClass(usize);

impl SizeClass {
    fn holding(bytes: usize) -> Option<Self> {
        let rounded = bytes.max(PAGE_BYTES).checked_next_power_of_two()?;
        (rounded <= BUFFER_BYTES_MAX).then(|| Self((rounded / PAGE_BYTES).ilog2() as usize))
    }

    const fn bytes(self) -> usize {
        PAGE_BYTES << self.0
    }
}

struct Store {
    budget_bytes: usize,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    /// The last returned is the first reused: it is the likeliest to be in the processor's cache.
    idle: [Vec<Mapping>; CLASSES],
    idle_bytes: usize,
    in_use_bytes: usize,
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, class: SizeClass) -> Option<Mapping> {
        let bytes = class.bytes();
        let mut pages = self.lock();
        let in_use_bytes = pages.in_use_bytes.checked_add(bytes).filter(|sum| *sum <= self.budget_bytes)?;
        pages.in_use_bytes = in_use_bytes;
        if let Some(mapping) = pages.idle[class.0].pop() {
            pages.idle_bytes -= bytes;
            return Some(mapping);
        }
        // Idle buffers of other sizes must not push the process over its budget.
        let excess_bytes = (in_use_bytes + pages.idle_bytes).saturating_sub(self.budget_bytes);
        let released = pages.release_idle(excess_bytes);
        drop(pages);
        drop(released);
        let mapping = Mapping::new(bytes);
        if mapping.is_none() {
            self.lock().in_use_bytes -= bytes;
        }
        mapping
    }

    fn give_back(&self, mapping: Mapping) {
        let Some(class) = SizeClass::holding(mapping.len()) else { return };
        let mut pages = self.lock();
        pages.in_use_bytes -= mapping.len();
        pages.idle_bytes += mapping.len();
        pages.idle[class.0].push(mapping);
    }
}

impl Pages {
    /// Takes out at least `bytes` of idle buffers (all, if there are fewer), the longest first, for the caller
    /// to unmap outside the lock.
    fn release_idle(&mut self, bytes: usize) -> Vec<Mapping> {
        let mut released = Vec::new();
        let mut released_bytes = 0;
        for list in self.idle.iter_mut().rev() {
            while released_bytes < bytes
                && let Some(mapping) = list.pop()
            {
                released_bytes += mapping.len();
                released.push(mapping);
            }
        }
        self.idle_bytes -= released_bytes;
        released
    }
}
