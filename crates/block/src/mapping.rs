//! Anonymous pages of this process, mapped lazily and given back at drop.
//!
//! The one place outside the file backend that needs `unsafe`: everything else in this crate builds on
//! [`Mapping`] and its slices.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Every mapping starts on a page, which also satisfies every `O_DIRECT` device.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Whole pages owned by one value. Fresh pages read as zero and cost no memory until they are touched.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a `Mapping` owns its pages exclusively, as a `Box<[u8]>` owns its heap block.
unsafe impl Send for Mapping {}
// SAFETY: shared access only hands out `&[u8]`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` (more than none) of zeroes; `None` if the system refuses.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a null address hint maps nothing over existing memory.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }.ok()?;
        Some(Self { start: NonNull::new(start.cast())?, bytes })
    }
}

impl Default for Mapping {
    /// No pages at all: what is left behind when a mapping moves elsewhere.
    fn default() -> Self {
        Self { start: NonNull::dangling(), bytes: 0 }
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start..start + bytes` is ours while `self` lives, and the kernel initialised it (or it is empty).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Mapping {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        // SAFETY: nothing can refer to the pages any more, as `self` owned them.
        if unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) }.is_err() {
            // Only when the process has reached its number of mappings and this one would split another: the
            // address range is lost, but its memory is not.
            // SAFETY: as above.
            let _ =
                unsafe { rustix::mm::madvise(self.start.as_ptr().cast(), self.bytes, Advice::LinuxDontNeed) };
        }
    }
}
