//! The disk of a run.

use netem::{Bytes, Rate, Span};
use serde::{Deserialize, Serialize};
use target::{LunSpec, Medium, Pace};

/// A disk in memory, as slow as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiskModel {
    /// Its capacity.
    pub size: Bytes,
    /// What it reads and writes; as fast as memory, if it is missing.
    pub rate: Option<Rate>,
    /// What every operation takes beside that, all of them at the same time.
    pub latency: Span,
}

impl Default for DiskModel {
    /// 256 MiB, as fast as memory.
    fn default() -> Self {
        Self { size: Bytes(256 << 20), rate: None, latency: Span::default() }
    }
}

impl DiskModel {
    /// Of all disks of the lab.
    pub const BLOCK_BYTES: u32 = 512;

    pub(super) fn spec(&self) -> LunSpec {
        let mut spec = LunSpec::from_medium(Medium::Ram { bytes: self.size.0 });
        let is_slow = self.rate.is_some() || !self.latency.0.is_zero();
        spec.block_bytes = Self::BLOCK_BYTES;
        spec.pace = is_slow.then_some(Pace {
            bytes_per_second: self.rate.map(|rate| (rate.bits().get() / 8).max(1)),
            latency: self.latency.0,
        });
        spec
    }
}
