//! The settings of a capture.

use crate::experiment::SPAN_MAX;
use crate::relay::Window;
use crate::topology::Host;
use netem::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// The table `setup.capture`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureSetup {
    /// The end of the path.
    #[serde(default = "client")]
    at: Host,
    /// The start, since the start of the run.
    #[serde(default)]
    from: Span,
    /// The end, since the start of the run.
    to: Span,
    /// The bytes of each frame to write; the analysis sees whole frames.
    #[serde(default = "default_snap")]
    snap: Bytes,
    /// The memory for frames and their bookkeeping until the run is over. The file is never longer.
    #[serde(default = "default_max")]
    max: Bytes,
}

fn client() -> Host {
    Host::Client
}

/// The headers of Ethernet, IP and TCP with all options.
const SNAP_MIN: Bytes = Bytes(128);

fn default_snap() -> Bytes {
    SNAP_MIN
}

/// Two and a half seconds at 400 Mbit/s.
fn default_max() -> Bytes {
    Bytes(128 << 20)
}

/// 1 GiB: more would affect the measurement.
const MAX_MAX: Bytes = Bytes(1 << 30);

impl CaptureSetup {
    /// Checks the settings.
    ///
    /// # Errors
    /// The defect, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self { from, to, snap, max, .. } = self;
        if to <= from {
            return Err(format!("setup.capture.to is {to}, but must be after from, {from}"));
        }
        if *to > SPAN_MAX {
            return Err(format!("setup.capture.to is {to}, but must be at most a week"));
        }
        if *snap < SNAP_MIN {
            return Err(format!("setup.capture.snap is {snap}, but headers take {SNAP_MIN}"));
        }
        if *max > MAX_MAX {
            return Err(format!("setup.capture.max is {max}, but must be at most 1GiB"));
        }
        Ok(())
    }

    pub(super) fn window(&self) -> Window {
        Window { host: self.at, from: self.from.0, to: self.to.0 }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        usize::try_from(self.max.0).unwrap_or(usize::MAX)
    }

    pub(super) fn snap_bytes(&self) -> u32 {
        u32::try_from(self.snap.0).unwrap_or(u32::MAX)
    }

    pub(crate) fn host_name(&self) -> &'static str {
        match self.at {
            Host::Client => "client",
            Host::Server => "server",
        }
    }
}
