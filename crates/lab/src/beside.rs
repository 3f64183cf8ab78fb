//! A SCSI workload beside others on the same path, and its share of what all of them moved.

use crate::experiment::{BesideSetup, Quantity, Setup};
use crate::lab::Lab;
use crate::scsi_measures::{self, ended_bytes};
use crate::scsi_run::{ScsiReport, ScsiRun, ScsiRunError};
use crate::streams::{FlowTimes, StreamSample, Streams};
use observe::statistics::jain_index;
use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::thread;

/// What the others moved.
#[derive(Debug, Default)]
pub(crate) struct Others {
    /// The plain streams over time.
    streams: Vec<StreamSample>,
    /// The further clients.
    clients: Vec<ScsiReport>,
}

/// Runs the workload, and meanwhile what the setup wants beside it.
pub(crate) fn run(run: &ScsiRun, setup: &Setup, lab: &Lab, seed: u64) -> io::Result<(ScsiReport, Others)> {
    let alone = || run.run(lab, &setup.congestion(), seed).map_err(io::Error::other);
    let Some(beside) = &setup.beside else { return Ok((alone()?, Others::default())) };
    let all = || with_clients(run, beside, setup, lab, seed).map_err(io::Error::other);
    let streams = Streams {
        count: beside.streams,
        congestion: Some(setup.congestion_beside()),
        send_buffer: None,
        to: lab.server.address,
    };
    let times = FlowTimes { from: beside.from.0, to: beside.to.map(|to| to.0), every: setup.sample_every.0 };
    let (reports, streams) = streams.flow_during(lab, beside.direction, times, all)?;
    let (report, clients) = reports?;
    Ok((report, Others { streams, clients }))
}

/// Runs the workload of all clients; the first one's report, and the others'.
fn with_clients(
    run: &ScsiRun,
    beside: &BesideSetup,
    setup: &Setup,
    lab: &Lab,
    seed: u64,
) -> Result<(ScsiReport, Vec<ScsiReport>), ScsiRunError> {
    thread::scope(|scope| {
        let further = (1..=beside.clients).map(|client| {
            let seed = seed.wrapping_add(u64::from(client) << 32);
            scope.spawn(move || run.run_as(client, lab, &setup.congestion(), seed))
        });
        let further: Vec<_> = further.collect();
        let first = run.run(lab, &setup.congestion(), seed);
        let further = further
            .into_iter()
            .map(|client| client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let further = further.collect::<Result<Vec<_>, _>>()?;
        Ok((first?, further))
    })
}

impl Others {
    /// The workload's share of what all moved after its warm-up and while there were streams, if there were any, and how
    /// evenly each of them moved it.
    pub(crate) fn quantities(&self, report: &ScsiReport, setup: &Setup) -> BTreeMap<Quantity, f64> {
        let counted = scsi_measures::counted_ns(report, setup);
        let mut samples = self.streams.iter().filter(|sample| counted.contains(&sample.at_ns));
        let times = match (samples.next(), samples.next_back()) {
            (Some(first), Some(last)) => first.at_ns..=last.at_ns,
            _ => counted,
        };
        let mut bytes = vec![ended_bytes(report, &times)];
        bytes.extend(self.clients.iter().map(|client| ended_bytes(client, &times)));
        bytes.extend(stream_bytes(&self.streams, &times));
        let all: f64 = bytes.iter().sum();
        if bytes.len() == 1 || all == 0.0 {
            return BTreeMap::new();
        }
        let fairness = jain_index(&bytes).map(|index| (Quantity::Fairness, index));
        [(Quantity::Share, bytes[0] / all)].into_iter().chain(fairness).collect()
    }
}

/// The bytes of each stream that arrived between the first and the last sample in these times.
fn stream_bytes(samples: &[StreamSample], times: &RangeInclusive<u64>) -> Vec<f64> {
    let mut within = samples.iter().filter(|sample| times.contains(&sample.at_ns));
    let Some(first) = within.next() else { return Vec::new() };
    let last = within.next_back().unwrap_or(first);
    last.bytes.iter().zip(&first.bytes).map(|(last, first)| (last - first) as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ns: u64, bytes: [u64; 2]) -> StreamSample {
        StreamSample { at_ns, bytes: bytes.to_vec() }
    }

    #[test]
    fn of_streams_only_what_arrived_while_the_workload_was_measured_counts() {
        let samples = [sample(10, [0, 0]), sample(20, [5, 7]), sample(30, [10, 9]), sample(40, [99, 99])];
        assert_eq!(stream_bytes(&samples, &(15..=35)), [5.0, 2.0]);
        assert!(stream_bytes(&samples, &(50..=60)).is_empty());
    }
}
