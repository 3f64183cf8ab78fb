//! One run of an experiment, in a lab of its own.

use crate::experiment::{Quantity, Setup};
use crate::lab::{Lab, LabError};
use crate::ping::ping;
use crate::relay::{RelayReport, Verdict};
use crate::rights::Rights;
use crate::streams::{Recording, RecordingTimes, StreamSample, Streams};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// What was measured; nothing if the workload failed. Each in the base of its unit.
    pub measured: BTreeMap<Quantity, f64>,
    /// What happened meanwhile.
    pub samples: Vec<StreamSample>,
    /// Of each connection, as its socket says.
    pub congestion_controls: Vec<String>,
    /// Of both hosts, the client first, as they hold.
    pub settings: [BTreeMap<String, String>; 2],
    /// By which rights the lab was built.
    pub rights: Rights,
    /// What the relay says of itself.
    pub relay: RelayReport,
    /// Why it is not to be believed; nothing if it is.
    pub reasons: Vec<String>,
}

/// Between two samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// Echo requests before the workload begins.
const PINGS: u16 = 3;

/// What a workload measured.
struct Measured {
    round_trips: Vec<Duration>,
    recording: Recording,
}

/// Builds a lab, lets the workload run in it, and takes it down. What goes wrong with the workload makes the run invalid.
///
/// # Errors
/// If there can be no lab.
pub fn execute(setup: &Setup, seed: u64) -> Result<RunOutcome, LabError> {
    let lab = Lab::build(&setup.topology(seed), None)?;
    let outcome = load(setup, &lab);
    let Lab { client, server, relay, rights } = lab;
    let relay = relay.stop();
    let settings = [client, server].map(|host| {
        let settings = host.settings.0.into_iter();
        settings.map(|(name, value)| (name.to_owned(), value)).collect()
    });
    let mut reasons = match relay.verdict() {
        Verdict::Valid => Vec::new(),
        Verdict::Invalid(reasons) => reasons.iter().map(ToString::to_string).collect(),
    };
    let (measured, samples, congestion_controls) = match outcome {
        Ok(outcome) => {
            let measured = outcome.quantities(&relay);
            (measured, outcome.recording.samples, outcome.recording.congestion_controls)
        }
        Err(error) => {
            reasons.push(format!("the workload failed: {error}"));
            Default::default()
        }
    };
    if let Some(other) = congestion_controls.iter().find(|name| **name != setup.congestion_control) {
        reasons.push(format!("a connection used {other} in the place of {}", setup.congestion_control));
    }
    Ok(RunOutcome { measured, samples, congestion_controls, settings, rights, relay, reasons })
}

fn load(setup: &Setup, lab: &Lab) -> io::Result<Measured> {
    let to = lab.server.addresses[0];
    let round_trips = ping(&lab.client.namespace, to, PINGS)?;
    let congestion_control = Some(setup.congestion_control.clone());
    let streams = Streams { count: setup.streams.count, congestion_control, to };
    let times = RecordingTimes {
        warm_up: setup.streams.warm_up.0,
        measured: setup.streams.measured.0,
        every: SAMPLE_EVERY,
    };
    Ok(Measured { round_trips, recording: streams.record(lab, times, |_| ())? })
}

impl Measured {
    /// What has no value, such as the round trip of a path that lost all echo requests, is left out.
    fn quantities(&self, relay: &RelayReport) -> BTreeMap<Quantity, f64> {
        let bytes: Vec<f64> = self.recording.bytes.iter().map(|bytes| *bytes as f64).collect();
        let bits = bytes.iter().sum::<f64>() * 8.0;
        let lost = relay.forward.path.dropped.total().segments;
        let quantities = [
            (Quantity::Throughput, Some(bits / self.recording.elapsed.as_secs_f64())),
            (Quantity::Fairness, observe::statistics::jain_index(&bytes)),
            (Quantity::RoundTrip, self.round_trips.iter().min().map(Duration::as_secs_f64)),
            (Quantity::Lost, Some(lost as f64)),
        ];
        quantities.into_iter().filter_map(|(quantity, value)| Some((quantity, value?))).collect()
    }
}
