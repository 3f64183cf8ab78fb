//! A disk with a volatile cache that reports a loss once, to the first flush or forced write: as Linux does for every
//! open file.

use block::{Backend, BlockError, BlockErrorKind, Completion, Operation, Pending, Properties, Ram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone)]
pub struct ForgetfulDisk {
    disk: Arc<Ram>,
    has_lost: Arc<AtomicBool>,
}

impl ForgetfulDisk {
    pub fn new(block_bytes: u32, blocks: u64) -> Self {
        Self { disk: Arc::new(Ram::new(block_bytes, blocks).unwrap()), has_lost: Arc::default() }
    }

    /// What its cache holds is lost, which the next forced operation is told.
    pub fn lose(&self) {
        self.has_lost.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has been told.
    pub fn has_told(&self) -> bool {
        !self.has_lost.load(Ordering::Relaxed)
    }
}

impl Backend for ForgetfulDisk {
    fn properties(&self) -> Properties {
        Properties { volatile_cache: true, ..self.disk.properties() }
    }

    fn submit(&self, operation: Operation) -> Pending {
        let is_forced = matches!(operation, Operation::Write { fua: true, .. } | Operation::Flush);
        if is_forced && self.has_lost.swap(false, Ordering::Relaxed) {
            return Pending::ready(Completion::failed(BlockError::new(BlockErrorKind::Medium, "a test")));
        }
        self.disk.submit(operation)
    }
}
