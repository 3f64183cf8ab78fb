//! The progress of a copy, for observers.

use crate::ImageFormat;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The phase of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Checking both ends; nothing was written.
    Preparing,
    /// Reading and writing.
    Copying,
    /// Waiting for the destination to make everything durable.
    Flushing,
    /// Reading the destination back and comparing it with the source.
    Verifying,
}

/// Counters of a copy under way, which the copy updates and any thread may read.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    /// The length of the source in bytes, once it is known; 0 before.
    total: AtomicU64,
    source_format: OnceLock<ImageFormat>,
    pub(crate) counts: Counts,
}

/// The counters themselves.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) done: AtomicU64,
    pub(crate) data: AtomicU64,
    pub(crate) zeroed: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) rewritten: AtomicU64,
    pub(crate) losses: AtomicU64,
    pub(crate) to_verify: AtomicU64,
    pub(crate) verified: AtomicU64,
}

/// The counters at one moment, in bytes except for `losses`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The phase of the copy.
    pub phase: Phase,
    /// The source's image format, once it is known and if it is not raw.
    pub source_format: Option<ImageFormat>,
    /// Bytes of the source; `None` for a stream that has not ended.
    pub total_bytes: Option<u64>,
    /// Bytes of the source that are at the destination, holes included.
    pub done_bytes: u64,
    /// Bytes sent as data, repeated writes included.
    pub data_bytes: u64,
    /// Bytes zeroed without sending zeroes, repeated zeroing included.
    pub zeroed_bytes: u64,
    /// Bytes skipped because the destination was zero already.
    pub skipped_bytes: u64,
    /// Bytes written again after a loss.
    pub rewritten_bytes: u64,
    /// Times that the destination may have lost acknowledged writes.
    pub losses: u64,
    /// Bytes that verification will read of each side.
    pub to_verify_bytes: u64,
    /// Bytes read back and found equal.
    pub verified_bytes: u64,
}

impl Progress {
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub(crate) fn set_source_format(&self, format: Option<ImageFormat>) {
        if let Some(format) = format {
            let _ = self.source_format.set(format);
        }
    }

    /// Zero stands for unknown: a copy of nothing has no progress to show.
    pub(crate) fn set_total(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    /// The present counters.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let total = of(&self.total);
        let counts = &self.counts;
        Snapshot {
            phase: self.phase(),
            source_format: self.source_format.get().copied(),
            total_bytes: (total > 0).then_some(total),
            // The last request may reach beyond the source, into padding.
            done_bytes: of(&counts.done).min(if total > 0 { total } else { u64::MAX }),
            data_bytes: of(&counts.data),
            zeroed_bytes: of(&counts.zeroed),
            skipped_bytes: of(&counts.skipped),
            rewritten_bytes: of(&counts.rewritten),
            losses: of(&counts.losses),
            to_verify_bytes: of(&counts.to_verify),
            verified_bytes: of(&counts.verified),
        }
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Preparing,
            1 => Phase::Copying,
            2 => Phase::Flushing,
            _ => Phase::Verifying,
        }
    }
}

/// Adds to a counter. Only the copy itself changes counters.
pub(crate) fn add(count: &AtomicU64, bytes: u64) {
    count.fetch_add(bytes, Ordering::Relaxed);
}
