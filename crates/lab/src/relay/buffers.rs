//! Reusable memory for the frames under way, which avoids an allocation for each frame.

use std::ops::{Bound, Deref, DerefMut, RangeBounds};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Lengths of buffers: an acknowledgement, a packet, a super-packet of a few segments, the largest super-packet.
const CLASS_BYTES: [usize; 4] = [256, 2048, 16 << 10, FRAME_BYTES_MAX];

/// The longest frame: an IP packet of 64 KiB and its Ethernet header, rounded up.
pub(crate) const FRAME_BYTES_MAX: usize = (64 << 10) + 64;

/// Enough for 2 Gbit/s with two seconds of delay and queue; less than test machines have.
const BYTES_MAX: usize = 1 << 30;

/// A pool of buffers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(Arc<Pool>);

#[derive(Debug, Default)]
struct Pool {
    unused: [Mutex<Vec<Box<[u8]>>>; CLASS_BYTES.len()],
    /// The memory of all buffers in use.
    bytes: AtomicUsize,
}

/// The bytes of one frame. Dropping it returns its memory to the pool.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Box<[u8]>,
    class: usize,
    start: usize,
    end: usize,
    pool: Arc<Pool>,
}

impl Buffers {
    /// Whether there is room for more than copies of the frames under way.
    pub fn has_room(&self) -> bool {
        self.0.bytes.load(Ordering::Relaxed) < BYTES_MAX
    }

    /// A buffer with these bytes, truncated at [`FRAME_BYTES_MAX`].
    pub fn copy_of(&self, bytes: &[u8]) -> Buffer {
        let bytes = &bytes[..bytes.len().min(FRAME_BYTES_MAX)];
        let class = CLASS_BYTES.iter().position(|class_bytes| *class_bytes >= bytes.len());
        let class = class.unwrap_or(CLASS_BYTES.len() - 1);
        let used_before = self.0.unused(class, Vec::pop);
        let mut memory = used_before.unwrap_or_else(|| vec![0; CLASS_BYTES[class]].into_boxed_slice());
        memory[..bytes.len()].copy_from_slice(bytes);
        self.0.bytes.fetch_add(memory.len(), Ordering::Relaxed);
        Buffer { memory, class, start: 0, end: bytes.len(), pool: self.0.clone() }
    }
}

impl Pool {
    /// The unused buffers of a class.
    fn unused<T>(&self, class: usize, of: impl FnOnce(&mut Vec<Box<[u8]>>) -> T) -> T {
        // The list is consistent between any two steps.
        of(&mut self.unused[class].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Buffer {
    /// Another buffer with a part of the bytes.
    pub fn copy_of(&self, part: impl RangeBounds<usize>) -> Self {
        let bounds = (part.start_bound().cloned(), part.end_bound().cloned());
        Buffers(self.pool.clone()).copy_of(&self[(bounds.0, bounds.1) as (Bound<usize>, Bound<usize>)])
    }

    /// Removes `count` bytes after the first `headers` bytes.
    pub fn remove_behind_headers(&mut self, headers: usize, count: usize) {
        let start = self.start;
        self.memory.copy_within(start..start + headers, start + count);
        self.start += count;
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.end]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.bytes.fetch_sub(self.memory.len(), Ordering::Relaxed);
        let memory = std::mem::take(&mut self.memory);
        self.pool.unused(self.class, |unused| unused.push(memory));
    }
}
