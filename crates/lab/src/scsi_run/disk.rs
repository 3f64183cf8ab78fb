//! The disk of a run.

use netem::{Bytes, Rate, Span};
use serde::{Deserialize, Serialize};
use target::{LunSpec, Medium, Pace};

/// A disk in memory, with a configurable speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiskModel {
    /// The capacity of the disk.
    pub size: Bytes,
    /// The rate of reads and writes; as fast as memory, if missing.
    pub rate: Option<Rate>,
    /// The additional time of every operation; operations wait concurrently.
    pub latency: Span,
}

impl Default for DiskModel {
    /// 256 MiB, as fast as memory.
    fn default() -> Self {
        Self { size: Bytes(256 << 20), rate: None, latency: Span::default() }
    }
}

impl DiskModel {
    /// The block length of all disks of the lab.
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
