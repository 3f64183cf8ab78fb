//! A SCSI workload between the two hosts of a lab: our target at the server, with a disk in memory, and our initiator
//! at the client, each on threads of its own, over real sockets through the relay.

mod client;
mod disk;
mod report;
pub(crate) mod server;
mod session_terms;
mod socket_terms;
mod tuner_trace;

pub use disk::DiskModel;
pub use report::{ScsiReport, Verified};
pub(crate) use session_terms::BBR;
pub use session_terms::SessionTerms;
pub use socket_terms::{SocketTerms, UnsentLimit};
pub use tuner_trace::SliceSample;

use crate::lab::Lab;
use crate::session_monitor::SessionMonitor;
use crate::workload::{Contents, InvalidPattern, LoadError, Workload};
use framing::Congestion;
use netem::Span;
use serde::{Deserialize, Serialize};
use server::{Storage, written};
use std::io;
use std::slice;

/// The workload, the disk and the terms of the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScsiRun {
    /// The client's workload.
    pub workload: Workload,
    /// The server's disk.
    #[serde(default)]
    pub disk: DiskModel,
    /// The negotiated terms.
    #[serde(default)]
    pub session: SessionTerms,
    /// Options of the sockets at both ends.
    #[serde(default)]
    pub sockets: SocketTerms,
    /// The processor time that the client spends on each request that has ended, in the thread of its initiator.
    #[serde(default)]
    pub compute: Span,
}

/// The failure of a run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum ScsiRunError {
    /// The workload does not fit the disk.
    #[error(transparent)]
    Workload(#[from] InvalidPattern),
    /// The disk or the terms are impossible.
    #[error("{0}")]
    Target(#[from] target::StartError),
    /// A session could not be made, or was lost.
    #[error("{0}")]
    Session(#[from] initiator::Error),
    /// A request failed, or read wrong data.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The negotiated terms differ from the requested ones.
    #[error("{key} was to be {asked}, but is {found}: the two ends cannot agree on it; change setup.scsi")]
    Negotiated { key: &'static str, asked: String, found: String },
    /// The kernel refused a thread or a namespace.
    #[error("running a workload: {0}")]
    System(#[from] io::Error),
}

impl ScsiRun {
    /// Runs the workload, with `congestion` at both ends. Compares every read, and, when the run is over, every
    /// write. The disk is filled beforehand. Filling and comparing happen within the server, beside the relay.
    ///
    /// # Errors
    /// If it could not be run to its end as requested.
    pub fn run(&self, lab: &Lab, congestion: &Congestion, seed: u64) -> Result<ScsiReport, ScsiRunError> {
        self.run_as(0, lab, congestion, seed)
    }

    /// The same as one of several clients at a time, by its number, with a target of its own.
    pub(crate) fn run_as(
        &self,
        client: u8,
        lab: &Lab,
        congestion: &Congestion,
        seed: u64,
    ) -> Result<ScsiReport, ScsiRunError> {
        drop(self.workload.requests(self.disk.size, DiskModel::BLOCK_BYTES)?);
        // The disk's contents before the run, the contents that reads may find, and those that writes must leave.
        let [before, meanwhile, after] =
            [(0, 0), (0, 1), (1, 1)].map(|(oldest, newest)| Contents::Known { seed, oldest, newest });
        let monitor = SessionMonitor::default();
        let storage = Storage::start(client, &self.disk, self.target_config(congestion), lab, &monitor)?;
        // Otherwise the kernel would have to find memory for the disk during the measurement.
        let whole = 0..self.disk.size.0;
        let filled_with = if self.workload.reads() { before } else { Contents::Any };
        storage.fill(slice::from_ref(&whole), filled_with)?;
        monitor.restart();
        let measured = client::measure(self, lab, congestion, &storage, meanwhile, monitor.initiator())?;
        let session = monitor.take();
        self.sockets.check(&session.connections)?;
        let mut report = ScsiReport::new(self, measured, session);
        report.verified.read_back_bytes = storage.read_back(&written(&report.requests), after)?;
        storage.stop();
        Ok(report)
    }

    /// The same with our initiator's defaults.
    pub(crate) fn resolved(&self) -> Self {
        Self {
            sockets: SocketTerms { unsent: self.sockets.unsent.resolved(), ..self.sockets },
            ..self.clone()
        }
    }

    fn target_config(&self, congestion: &Congestion) -> target::Config {
        target::Config {
            limits: self.session.limits(),
            negotiation: self.session.negotiation(),
            socket: self.sockets.target_config(congestion),
            ..target::Config::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::End;
    use netem::{Bytes, Rate};
    use std::time::Duration;

    fn read(text: &str) -> Result<ScsiRun, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    const WORKLOAD: &str = "workload.pattern = { request_size = \"4MiB\", end = { requests = 10 } }\n";

    #[test]
    fn a_run_is_one_connection_and_fast_memory_unless_it_says_otherwise() {
        let run = read(WORKLOAD).unwrap();
        assert_eq!((run.session.connections, run.disk.rate), (1, None));
        assert_eq!(run.sockets, SocketTerms::default());
        let Workload::Pattern(pattern) = &run.workload else { panic!("it is a pattern") };
        assert_eq!((pattern.depth, pattern.end), (1, End::Requests(10)));
    }

    #[test]
    fn a_run_reads_as_people_write_it_and_what_is_written_reads_back() {
        let text = format!(
            "{WORKLOAD}disk = {{ size = \"64MiB\", rate = \"800Mbit\", latency = \"2ms\" }}\n\
             session = {{ connections = 4, initial_r2t = true, first_burst = \"64KiB\", data_digest = true }}\n\
             sockets = {{ send_buffer = \"512KiB\", unsent = \"none\" }}\n"
        );
        let run = read(&text).unwrap();
        let latency = Span(Duration::from_millis(2));
        let rate = Some(Rate::megabits_per_second(800));
        assert_eq!(run.disk, DiskModel { size: Bytes(64 << 20), rate, latency });
        assert_eq!(run.sockets.unsent, UnsentLimit::None);
        assert_eq!(run.session.offer().first_burst_bytes, 64 << 10);
        assert_eq!(read(&toml::to_string(&run).unwrap()), Ok(run));
    }

    #[test]
    fn what_a_run_does_not_know_is_refused_by_name() {
        for (line, expected) in [
            ("session = { initialr2t = true }", "initialr2t"),
            ("sockets = { unsent = \"some\" }", "some"),
            ("disk = { rate = \"fast\" }", "fast"),
        ] {
            let refusal = read(&format!("{WORKLOAD}{line}")).unwrap_err();
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
}
