//! How far a copy is, for whoever looks at it from outside.

use crate::ImageFormat;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What a copy is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Looking at both ends; nothing was written.
    Preparing,
    /// Reading and writing.
    Copying,
    /// Waiting for the destination to make everything durable.
    Flushing,
    /// Reading back.
    Verifying,
}

/// Counters of a copy under way. Updated by the copy, read by anybody.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    /// Bytes of the source, once it is known.
    total: AtomicU64,
    source_format: OnceLock<ImageFormat>,
    pub(crate) counts: Counts,
}

/// The numbers themselves.
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

/// The counters at one moment. All in bytes but `losses`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// What it is doing.
    pub phase: Phase,
    /// What wraps the source's image, once that is known and if it is not raw.
    pub source_format: Option<ImageFormat>,
    /// Bytes of the source; `None` for a stream that has not ended.
    pub total_bytes: Option<u64>,
    /// Bytes of the source that are at the destination, holes included.
    pub done_bytes: u64,
    /// Sent as data, what was written again included.
    pub data_bytes: u64,
    /// Zeroed without sending zeroes, what was zeroed again included.
    pub zeroed_bytes: u64,
    /// Left alone because the destination was zero already.
    pub skipped_bytes: u64,
    /// Written again after a loss.
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

    /// How far it is now.
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

/// Adds to a counter that only this copy changes.
pub(crate) fn add(count: &AtomicU64, bytes: u64) {
    count.fetch_add(bytes, Ordering::Relaxed);
}
