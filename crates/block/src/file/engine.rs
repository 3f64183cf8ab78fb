//! The engine of file I/O: an io_uring, or threads if the system refuses one.

use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::sync::Arc;

use super::pool::Pool;
use super::ring::Ring;
use super::transfer::Transfer;
use crate::error::{BlockError, BlockErrorKind};

/// The environment variable that overrides [`Engine::probe`]: `io_uring` or `threads`.
pub const ENGINE_VARIABLE: &str = "ROPEWALK_ENGINE";

/// The engine of file I/O, one per shard. Several files share it; clones are the same engine.
///
/// With an io_uring, call [`reap`](Engine::reap) whenever [`reap_fd`](Engine::reap_fd) is readable; otherwise
/// operations that do not complete at once never complete. Threads need no calls. Dropping the last clone waits for the
/// operations in the kernel.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    ring: Option<Ring>,
    /// For transfers without a ring, and always for calls that io_uring lacks.
    pool: Pool,
}

/// The choice of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring, without a fallback.
    IoUring,
    /// Threads that make blocking calls, even where io_uring works.
    Threads,
}

impl FromStr for EngineChoice {
    type Err = BlockError;

    fn from_str(name: &str) -> Result<Self, BlockError> {
        match name {
            "io_uring" => Ok(Self::IoUring),
            "threads" => Ok(Self::Threads),
            other => Err(BlockError::new(
                BlockErrorKind::Unsupported,
                format!("file engine {other:?} (there are \"io_uring\" and \"threads\")"),
            )),
        }
    }
}

impl Engine {
    /// The engine that [`ENGINE_VARIABLE`] names; otherwise io_uring if the system grants it, or threads.
    ///
    /// # Errors
    /// Only if the variable names an engine that does not exist or is unavailable.
    pub fn probe() -> Result<Self, BlockError> {
        match std::env::var(ENGINE_VARIABLE) {
            Ok(name) => Self::new(name.parse()?),
            Err(_) => Self::new(EngineChoice::IoUring).or_else(|_| Self::new(EngineChoice::Threads)),
        }
    }

    /// This engine, without a fallback.
    ///
    /// # Errors
    /// [`Unsupported`](BlockErrorKind::Unsupported), with the system's reason, if it refuses an io_uring.
    pub fn new(choice: EngineChoice) -> Result<Self, BlockError> {
        let ring = match choice {
            EngineChoice::Threads => None,
            EngineChoice::IoUring => Some(Ring::new().map_err(|source| {
                BlockError::new(BlockErrorKind::Unsupported, "setting up io_uring").with_source(source)
            })?),
        };
        Ok(Self { inner: Arc::new(Inner { ring, pool: Pool::new() }) })
    }

    /// The engine in use.
    #[must_use]
    pub fn choice(&self) -> EngineChoice {
        if self.inner.ring.is_some() { EngineChoice::IoUring } else { EngineChoice::Threads }
    }

    /// For an event loop: readable when [`reap`](Engine::reap) has something to do. `None`: it never has.
    #[must_use]
    pub fn reap_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.ring.as_ref().map(Ring::descriptor)
    }

    /// Completes finished operations on this thread; returns their number. Never blocks.
    pub fn reap(&self) -> usize {
        self.inner.ring.as_ref().map_or(0, Ring::reap)
    }

    pub(super) fn start(&self, transfer: Transfer) {
        match &self.inner.ring {
            Some(ring) => ring.start(transfer),
            None => self.inner.pool.start(transfer),
        }
    }

    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.inner.pool.run(job);
    }
}
