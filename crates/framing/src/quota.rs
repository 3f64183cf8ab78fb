//! A bound on what several buffer tables take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much of a common budget those who share this may hold at a time, so that something is left to others. Clones are
/// the same quota.
#[derive(Clone, Debug)]
pub struct Quota(Arc<Purse>);

#[derive(Debug)]
struct Purse {
    bytes_max: usize,
    held_bytes: AtomicUsize,
}

/// A part of a quota, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    quota: Quota,
    bytes: usize,
}

impl Quota {
    /// So many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Purse { bytes_max, held_bytes: AtomicUsize::new(0) }))
    }

    /// What is held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.0.held_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self, bytes: usize) -> Option<Share> {
        let added = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.0.bytes_max);
        let held = &self.0.held_bytes;
        held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).ok()?;
        Some(Share { quota: self.clone(), bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.quota.0.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
