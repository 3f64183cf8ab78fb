//! A workload at SCSI level between the two hosts of a lab: our target at the server, with a disk in memory, and our
//! initiator at the client, each on threads of its own, over real sockets through the relay.

mod client;
mod disk;
mod report;
mod server;
mod session_terms;
mod socket_terms;

pub use disk::DiskModel;
pub use report::{ScsiReport, Verified};
pub use session_terms::SessionTerms;
pub use socket_terms::{SocketTerms, UnsentLimit};

use crate::lab::Lab;
use crate::session_monitor::SessionMonitor;
use crate::workload::{Contents, InvalidPattern, LoadError, Workload};
use serde::{Deserialize, Serialize};
use server::Storage;
use std::io;

/// What is asked, of which disk, over what kind of session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScsiRun {
    /// What the client asks.
    pub workload: Workload,
    /// What the server has.
    #[serde(default)]
    pub disk: DiskModel,
    /// What is negotiated.
    #[serde(default)]
    pub session: SessionTerms,
    /// Options of the sockets at both ends.
    #[serde(default)]
    pub sockets: SocketTerms,
}

/// A run that came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ScsiRunError {
    /// The workload does not fit the disk.
    #[error(transparent)]
    Workload(#[from] InvalidPattern),
    /// The disk, or what is to be negotiated, cannot be had.
    #[error("{0}")]
    Target(#[from] target::StartError),
    /// A session could not be made, or was lost.
    #[error("{0}")]
    Session(#[from] initiator::Error),
    /// A request failed, or read other data than was written.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Something else holds than what was to be measured.
    #[error("{key} was to be {asked}, but is {found}")]
    Negotiated {
        /// What.
        key: &'static str,
        /// As it was to be.
        asked: String,
        /// As it is.
        found: String,
    },
    /// The disk does not hold what was written.
    #[error("at {offset} the disk does not hold what was written last")]
    Lost {
        /// The first such block.
        offset: u64,
    },
    /// The kernel refused a thread or a namespace.
    #[error("running a workload: {0}")]
    System(#[from] io::Error),
}

/// What the disk holds before the run; the run writes the next generation.
const FIRST_GENERATION: u8 = 0;

impl ScsiRun {
    /// Runs it, with `congestion_control` at both ends. All data that is read is compared with what must be there, and so
    /// is, when the run is over, what was written; the disk is filled before, if anything is to be read, and both happen
    /// within the server, beside the relay.
    ///
    /// # Errors
    /// If it could not be run to its end as it was asked for.
    pub fn run(&self, lab: &Lab, congestion_control: &str, seed: u64) -> Result<ScsiReport, ScsiRunError> {
        let disk_bytes = self.disk.size.0;
        drop(self.workload.requests(self.disk.size, DiskModel::BLOCK_BYTES)?);
        let before = Contents::Known { seed, generation: FIRST_GENERATION };
        let contents = Contents::Known { seed, generation: FIRST_GENERATION + 1 };
        let monitor = SessionMonitor::default();
        let storage = Storage::start(self, lab, congestion_control, &monitor)?;
        if self.workload.reads() {
            storage.fill(disk_bytes, before)?;
        }
        monitor.restart();
        let measured =
            client::measure(self, lab, congestion_control, &storage, contents, monitor.initiator())?;
        let session = monitor.take();
        self.sockets.check(&session.connections)?;
        let mut report = ScsiReport::new(self, measured, session);
        report.verified.read_back_bytes = storage.read_back(&report.requests, contents)?;
        storage.stop();
        Ok(report)
    }
}
