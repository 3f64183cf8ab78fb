//! A backend with plain calls, for tests.

pub mod forgetful;
#[cfg(feature = "file")]
pub mod on_disk;
pub mod scripted;
pub mod virtual_time;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use ropewalk_block::{
    Backend, BlockError, BlockErrorKind, Buffer, Completion, Extent, ExtentState, Operation, Payload,
    Pending, Slab, Space,
};

pub const KIB: usize = 1 << 10;
pub const MIB: usize = 1 << 20;

pub struct Device {
    pub backend: Arc<dyn Backend>,
    slab: Slab,
    /// What must live as long as the backend: its directory, its event loop.
    _world: Vec<Box<dyn std::any::Any>>,
}

impl Device {
    pub fn new(backend: impl Backend + 'static) -> Self {
        Self::with_world(Arc::new(backend), Vec::new())
    }

    pub fn with_world(backend: Arc<dyn Backend>, world: Vec<Box<dyn std::any::Any>>) -> Self {
        Self { backend, slab: Slab::new(64 * MIB), _world: world }
    }

    pub fn wrapped<B: Backend + 'static>(mut self, wrap: impl FnOnce(Arc<dyn Backend>) -> B) -> Self {
        self.backend = Arc::new(wrap(Arc::clone(&self.backend)));
        self
    }

    pub fn buffer(&self, bytes: usize) -> Buffer {
        self.slab.allocate(bytes).unwrap()
    }

    pub fn payload(&self, data: &[u8]) -> Payload {
        let mut buffer = self.buffer(data.len());
        buffer.copy_from_slice(data);
        buffer.share()
    }

    pub fn start_read(&self, offset: u64, bytes: usize) -> Pending {
        // Not zeroes, so that a read that does nothing is noticed.
        let mut buffer = self.buffer(bytes);
        buffer.fill(0xEE);
        self.backend.submit(Operation::Read { offset, buffer })
    }

    pub fn start_write(&self, offset: u64, data: &[u8]) -> Pending {
        self.backend.submit(Operation::Write { offset, payload: self.payload(data), fua: false })
    }

    pub fn start(&self, operation: Operation) -> Pending {
        self.backend.submit(operation)
    }

    pub fn run(&self, operation: Operation) -> Result<(), BlockError> {
        wait(self.backend.submit(operation)).result.map(|_| ())
    }

    pub fn try_read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>, BlockError> {
        wait(self.start_read(offset, bytes)).into_buffer().map(|buffer| buffer.to_vec())
    }

    pub fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        self.try_read(offset, bytes).unwrap()
    }

    pub fn try_write(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        wait(self.start_write(offset, data)).result.map(|_| ())
    }

    pub fn write(&self, offset: u64, data: &[u8]) {
        self.try_write(offset, data).unwrap();
    }

    pub fn write_fua(&self, offset: u64, data: &[u8]) {
        self.run(Operation::Write { offset, payload: self.payload(data), fua: true }).unwrap();
    }

    pub fn flush(&self) {
        self.run(Operation::Flush).unwrap();
    }

    pub fn unmap(&self, offset: u64, bytes: u64) {
        self.run(Operation::Unmap { offset, bytes }).unwrap();
    }

    pub fn write_zeroes(&self, offset: u64, bytes: u64, may_unmap: bool) {
        self.run(Operation::WriteZeroes { offset, bytes, may_unmap }).unwrap();
    }

    pub fn try_extents(&self, offset: u64, bytes: u64) -> Result<Vec<Extent>, BlockError> {
        wait(self.start(Operation::Extents { offset, bytes })).into_extents()
    }

    pub fn space(&self) -> Space {
        wait(self.start(Operation::Space)).into_space().unwrap()
    }

    /// The extents as `(offset, bytes, state)`.
    pub fn extents(&self, offset: u64, bytes: u64) -> Vec<(u64, u64, ExtentState)> {
        let extents = self.try_extents(offset, bytes).unwrap();
        extents.into_iter().map(|extent| (extent.range.offset, extent.range.bytes, extent.state)).collect()
    }
}

/// Blocks until it is done.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// The completion of what must be done by now.
pub fn done(pending: Pending) -> Completion {
    pending.try_take().ok().expect("still under way")
}

/// The kind of a failure.
pub fn kind<T: std::fmt::Debug>(result: Result<T, BlockError>) -> BlockErrorKind {
    result.unwrap_err().kind()
}

/// Contents that differ from block to block.
pub fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..bytes).map(next).collect()
}
