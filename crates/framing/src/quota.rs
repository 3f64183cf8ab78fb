//! A bound on the memory of several buffer tables together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The part of a common budget that the holders of this quota may use at a time, so that something is left to others.
/// Clones are the same quota.
#[derive(Clone, Debug)]
pub struct Quota(Arc<Purse>);

#[derive(Debug)]
struct Purse {
    bytes_max: usize,
    held_bytes: AtomicUsize,
    /// A larger quota, which bounds every allocation from this one too.
    whole: Option<Quota>,
}

/// A part of a quota, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    quota: Quota,
    bytes: usize,
}

impl Quota {
    /// A quota of `bytes_max`.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Purse { bytes_max, held_bytes: AtomicUsize::new(0), whole: None }))
    }

    /// A part of this quota: allocations from the part count against both.
    #[must_use]
    pub fn part(&self, bytes_max: usize) -> Self {
        let whole = Some(self.clone());
        Self(Arc::new(Purse { bytes_max, held_bytes: AtomicUsize::new(0), whole }))
    }

    /// Bytes in use.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.0.held_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self, bytes: usize) -> Option<Share> {
        self.charge(bytes).then(|| Share { quota: self.clone(), bytes })
    }

    fn charge(&self, bytes: usize) -> bool {
        let Purse { bytes_max, held_bytes, whole } = &*self.0;
        let added = |held: usize| held.checked_add(bytes).filter(|held| held <= bytes_max);
        if held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).is_err() {
            return false;
        }
        let fits = whole.as_ref().is_none_or(|whole| whole.charge(bytes));
        if !fits {
            held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }

    fn discharge(&self, bytes: usize) {
        self.0.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.discharge(bytes);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.quota.discharge(self.bytes);
    }
}
