//! The client's side of a run: a session, and the workload on it.

use super::server::{Storage, runtime};
use super::tuner_trace::{SliceSample, TunerTrace};
use super::{DiskModel, ScsiRun, ScsiRunError};
use crate::kernel_trace::INITIATOR;
use crate::lab::Lab;
use crate::monotonic_ns;
use crate::workload::{Contents, Direction, Load, RequestSample};
use framing::Congestion;
use initiator::Config;
use rustix::thread::set_name;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use transport::Observer;

/// The most requests that are kept.
const SAMPLES_MAX: usize = 1 << 20;

/// The client's measurements.
pub(super) struct Measured {
    pub begun_ns: u64,
    pub ended_ns: u64,
    pub samples: Vec<RequestSample>,
    pub samples_lost: u64,
    /// Of all requests.
    pub read_bytes: u64,
    pub report: initiator::Report,
    pub slices: Vec<SliceSample>,
}

impl Measured {
    fn begin(report: initiator::Report) -> Self {
        let begun_ns = monotonic_ns();
        Self {
            begun_ns,
            ended_ns: begun_ns,
            samples: Vec::new(),
            samples_lost: 0,
            read_bytes: 0,
            report,
            slices: Vec::new(),
        }
    }

    fn add(&mut self, sample: &RequestSample) {
        if sample.direction == Direction::Read {
            self.read_bytes += u64::from(sample.bytes);
        }
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(*sample);
        } else {
            self.samples_lost += 1;
        }
    }
}

/// Keeps the processor busy for this time.
fn compute_for(time: Duration) {
    let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or(Duration::MAX);
    let end = used().saturating_add(time);
    while !time.is_zero() && used() < end {
        std::hint::spin_loop();
    }
}

pub(super) fn measure(
    run: &ScsiRun,
    lab: &Lab,
    congestion: &Congestion,
    storage: &Storage,
    contents: Contents,
    observer: Arc<dyn Observer>,
) -> Result<Measured, ScsiRunError> {
    let config = Config {
        connections: run.session.connections(),
        tuning: run.session.tuning(),
        sessions: Some(run.session.sessions()),
        portals: storage.portals.clone(),
        offer: run.session.offer(),
        socket: run.sockets.options(congestion),
        ..Config::default()
    };
    let url = &storage.url;
    lab.client.namespace.run(|| {
        set_name(INITIATOR).map_err(io::Error::from)?;
        runtime()?.block_on(async {
            let trace = TunerTrace::default();
            let policies = run.session.policies(&trace);
            let session = initiator::connect_observed(url, config, observer, policies).await?;
            let lun = session.lun(url.lun).await?;
            run.session.check(&session.report())?;
            let mut measured = Measured::begin(session.report());
            let requests = run.workload.requests(run.disk.size, DiskModel::BLOCK_BYTES)?;
            let longest = usize::try_from(run.workload.request_bytes_max()).unwrap_or(usize::MAX);
            let load = Load::new(&lun, run.workload.depth(), longest, contents);
            let ended = |sample: &RequestSample| {
                compute_for(run.compute.0);
                measured.add(sample);
            };
            load.run(requests, ended).await?;
            measured.ended_ns = monotonic_ns();
            (measured.report, measured.slices) = (session.report(), trace.take());
            session.close().await?;
            Ok(measured)
        })
    })?
}
