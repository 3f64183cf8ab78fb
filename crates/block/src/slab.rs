//! Owned, aligned buffers from a budget in bytes.
//!
//! Every READ and WRITE passes through one [`Buffer`], so taking and returning one costs a short lock, and no page
//! faults once the slab is warm. [`Slab::trim`] returns idle memory to the system.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::mapping::{Mapping, PAGE_BYTES};
use crate::payload::Payload;

/// The alignment of every buffer: enough for `O_DIRECT` everywhere.
pub const BUFFER_ALIGNMENT_BYTES: usize = PAGE_BYTES;

/// The longest buffer: two of the longest iSCSI bursts (16 MiB − 1, RFC 7143 §13.13), so that a WRITE of 65536 blocks
/// of 512 bytes, common in test suites, is one command.
pub const BUFFER_BYTES_MAX: usize = 32 << 20;

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
        Self::with_reservable(budget_bytes, budget_bytes / 2)
    }

    /// A slab with a limit on reservations; [`Slab::new`] limits them to half of the budget.
    #[must_use]
    pub fn with_reservable(budget_bytes: usize, reservable_bytes: usize) -> Self {
        Self { store: Arc::new(Store { budget_bytes, reservable_bytes, pages: Mutex::default() }) }
    }

    /// A buffer of exactly `bytes`, or `None` if the budget is used up, `bytes` exceeds [`BUFFER_BYTES_MAX`], or
    /// the system has no memory to map.
    ///
    /// The budget is charged for the next power of two, at least one page. For the contents see [`Buffer`].
    #[must_use]
    pub fn allocate(&self, bytes: usize) -> Option<Buffer> {
        self.buffer(bytes, Purse::Common)
    }

    /// Reserves room for `buffers` buffers of up to `bytes` each. [`Slab::allocate_reserved`] then cannot fail for want
    /// of budget. `None` if that exceeds the reservable memory or the memory free now.
    #[must_use]
    pub fn reserve(&self, buffers: usize, bytes: usize) -> Option<Reservation> {
        let bytes = SizeClass::holding(bytes)?.bytes().checked_mul(buffers)?;
        let mut pages = self.store.lock();
        if bytes > self.store.unreserved_bytes(&pages) {
            return None;
        }
        pages.reserved_bytes += bytes;
        Some(Reservation { bytes, store: Arc::clone(&self.store) })
    }

    /// The bytes that could be reserved now.
    #[must_use]
    pub fn unreserved_bytes(&self) -> usize {
        self.store.unreserved_bytes(&self.store.lock())
    }

    /// A buffer from a reservation, or from the rest once the reservations are used up.
    #[must_use]
    pub fn allocate_reserved(&self, bytes: usize) -> Option<Buffer> {
        self.buffer(bytes, Purse::Reserved).or_else(|| self.allocate(bytes))
    }

    fn buffer(&self, bytes: usize, purse: Purse) -> Option<Buffer> {
        let pages = self.store.take(SizeClass::holding(bytes)?, purse)?;
        Some(Buffer { pages, length: bytes, owner: Some((Arc::clone(&self.store), purse)) })
    }

    /// Wakes `waker` once, when the next buffer returns. Register before trying to allocate, so that no return in
    /// between is missed.
    pub fn wake_on_release(&self, waker: &Waker) {
        let mut pages = self.store.lock();
        if !pages.waiting.iter().any(|known| known.will_wake(waker)) {
            pages.waiting.push(waker.clone());
        }
    }

    /// The charge of the live buffers.
    #[must_use]
    pub fn in_use_bytes(&self) -> usize {
        self.store.lock().in_use_bytes
    }

    /// The bytes that idle buffers keep mapped for reuse.
    #[must_use]
    pub fn idle_bytes(&self) -> usize {
        self.store.lock().idle_bytes
    }

    /// The budget given to [`Slab::new`].
    #[must_use]
    pub fn budget_bytes(&self) -> usize {
        self.store.budget_bytes
    }

    /// The most bytes that can be reserved.
    #[must_use]
    pub fn reservable_bytes(&self) -> usize {
        self.store.reservable_bytes
    }

    /// The charge of a buffer of `bytes`; `None` if that is too long.
    #[must_use]
    pub fn charged_bytes(bytes: usize) -> Option<usize> {
        SizeClass::holding(bytes).map(SizeClass::bytes)
    }

    /// Returns all idle memory to the system. For drivers that have been idle for a while.
    pub fn trim(&self) {
        let released = self.store.lock().release_idle(usize::MAX);
        drop(released);
    }
}

impl std::fmt::Debug for Slab {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Slab")
            .field("in_use_bytes", &self.in_use_bytes())
            .field("budget_bytes", &self.budget_bytes())
            .finish_non_exhaustive()
    }
}

/// Memory for one transfer: aligned to [`BUFFER_ALIGNMENT_BYTES`], exactly as long as requested, returned to its slab
/// when dropped.
///
/// # Contents
/// A new buffer's bytes are defined but unspecified: zeroes when its pages are first used, later the data of the last
/// user *of the same slab*. They are never memory from elsewhere in the process. Fill a buffer before showing it to a
/// peer, and keep secrets (CHAP) out of slab buffers.
pub struct Buffer {
    pages: Mapping,
    length: usize,
    /// The slab that it returns to; `None` for a device's own memory.
    owner: Option<(Arc<Store>, Purse)>,
}

impl Buffer {
    /// A device's own memory, outside any budget.
    pub(crate) fn of_device(pages: Mapping) -> Self {
        Self { length: pages.len(), pages, owner: None }
    }

    /// Shortens the buffer; a longer length changes nothing. The charge stays.
    pub fn truncate(&mut self, bytes: usize) {
        self.length = self.length.min(bytes);
    }

    /// Makes the filled buffer read-only, for several readers.
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
    /// Omits the contents: they may be a customer's.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Buffer").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some((store, purse)) = self.owner.take() {
            store.give_back(std::mem::take(&mut self.pages), purse);
        }
    }
}

/// A part of the budget that ordinary allocations leave alone while this lives.
pub struct Reservation {
    bytes: usize,
    store: Arc<Store>,
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reservation").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.store.lock().reserved_bytes -= self.bytes;
    }
}

/// The account that a buffer is charged to.
#[derive(Clone, Copy)]
enum Purse {
    Common,
    Reserved,
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
    /// The most bytes that may be reserved.
    reservable_bytes: usize,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    /// The last returned is the first reused: it is most likely in the processor's cache.
    idle: [Vec<Mapping>; CLASSES],
    idle_bytes: usize,
    in_use_bytes: usize,
    /// The part of `in_use_bytes` charged to reservations.
    in_use_reserved_bytes: usize,
    /// The sum of all reservations, in use or not.
    reserved_bytes: usize,
    /// Waiters for a buffer to return.
    waiting: Vec<Waker>,
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes that could be reserved now, out of those not in use without a reservation.
    fn unreserved_bytes(&self, pages: &Pages) -> usize {
        let free_bytes = self.budget_bytes.saturating_sub(pages.in_use_common_bytes());
        free_bytes.min(self.reservable_bytes).saturating_sub(pages.reserved_bytes)
    }

    fn take(&self, class: SizeClass, purse: Purse) -> Option<Mapping> {
        let bytes = class.bytes();
        let mut pages = self.lock();
        pages.charge(bytes, purse, self.budget_bytes)?;
        let in_use_bytes = pages.in_use_bytes;
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
            self.lock().discharge(bytes, purse);
        }
        mapping
    }

    fn give_back(&self, mapping: Mapping, purse: Purse) {
        let Some(class) = SizeClass::holding(mapping.len()) else { return };
        let mut pages = self.lock();
        pages.discharge(mapping.len(), purse);
        pages.idle_bytes += mapping.len();
        pages.idle[class.0].push(mapping);
        let waiting = std::mem::take(&mut pages.waiting);
        drop(pages);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Pages {
    /// Charges `bytes`, or changes nothing if the account lacks them.
    fn charge(&mut self, bytes: usize, purse: Purse, budget_bytes: usize) -> Option<()> {
        match purse {
            Purse::Reserved => {
                let sum = self.in_use_reserved_bytes.checked_add(bytes)?;
                self.in_use_reserved_bytes = (sum <= self.reserved_bytes).then_some(sum)?;
            }
            Purse::Common => {
                // Reservations may have been dropped while their last buffers are still in use.
                let set_aside_bytes = self.reserved_bytes.max(self.in_use_reserved_bytes);
                let sum = self.in_use_common_bytes().checked_add(bytes)?;
                (sum <= budget_bytes.saturating_sub(set_aside_bytes)).then_some(())?;
            }
        }
        self.in_use_bytes += bytes;
        Some(())
    }

    const fn in_use_common_bytes(&self) -> usize {
        self.in_use_bytes - self.in_use_reserved_bytes
    }

    fn discharge(&mut self, bytes: usize, purse: Purse) {
        self.in_use_bytes -= bytes;
        if matches!(purse, Purse::Reserved) {
            self.in_use_reserved_bytes -= bytes;
        }
    }

    /// Takes at least `bytes` of idle buffers (all, if there are fewer), the longest first. The caller unmaps them
    /// outside the lock.
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn what_is_reserved_is_there_when_all_else_is_used_up() {
        let slab = Slab::new(4 * MIB);
        let reservation = slab.reserve(2, MIB).unwrap();
        let common: Vec<_> = std::iter::from_fn(|| slab.allocate(MIB)).collect();
        assert_eq!(common.len(), 2);
        let reserved: Vec<_> = std::iter::from_fn(|| slab.allocate_reserved(MIB)).collect();
        assert_eq!(reserved.len(), 2);
        drop(reservation);
        assert!(slab.allocate(MIB).is_none());
        drop(reserved);
        assert!(slab.allocate(MIB).is_some());
    }

    #[test]
    fn half_of_the_budget_cannot_be_reserved_away() {
        let slab = Slab::new(4 * MIB);
        let first = slab.reserve(2, MIB);
        assert!(first.is_some());
        assert!(slab.reserve(1, 1).is_none());
        drop(first);
        assert!(slab.reserve(1, 1).is_some());
    }

    #[test]
    fn what_is_in_use_cannot_be_reserved_as_well() {
        let slab = Slab::new(4 * MIB);
        let common: Vec<_> = std::iter::from_fn(|| slab.allocate(MIB)).take(3).collect();
        assert_eq!(slab.unreserved_bytes(), MIB);
        assert!(slab.reserve(2, MIB).is_none());
        let _reservation = slab.reserve(1, MIB).unwrap();
        drop(common);
        assert_eq!(slab.unreserved_bytes(), MIB);
    }

    #[test]
    fn whoever_waits_for_room_is_woken_by_a_returned_buffer() {
        struct Flag(std::sync::atomic::AtomicBool);
        impl std::task::Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let slab = Slab::new(MIB);
        let buffer = slab.allocate(MIB);
        let flag = Arc::new(Flag(false.into()));
        slab.wake_on_release(&Waker::from(Arc::clone(&flag)));
        assert!(!flag.0.load(std::sync::atomic::Ordering::Relaxed));
        drop(buffer);
        assert!(flag.0.load(std::sync::atomic::Ordering::Relaxed));
    }
}
