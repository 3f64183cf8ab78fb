//! One run of an experiment, in a lab of its own.

use crate::experiment::{Quantity, Setup};
use crate::lab::{Lab, LabError};
use crate::ping::ping;
use crate::relay::{RelayReport, Verdict};
use crate::rights::Rights;
use crate::sample::{Sample, take_socket_samples};
use crate::streams::{RecordingTimes, Streams};
use monitor::{Discovery, Monitor, Options};
use observe::SocketsReport;
use observe::statistics::jain_index;
use std::collections::BTreeMap;
use std::io;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// What was measured; nothing if the workload failed. Each in the base of its unit.
    pub measured: BTreeMap<Quantity, f64>,
    /// What happened meanwhile.
    pub samples: Vec<Sample>,
    /// What the client's kernel was asked of its connections, and what that cost; the samples are with the others.
    pub sockets: SocketsReport,
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

/// Echo requests before the workload begins.
const PINGS: u16 = 3;

/// What a workload measured.
#[derive(Default)]
struct Measured {
    quantities: BTreeMap<Quantity, f64>,
    samples: Vec<Sample>,
    congestion_controls: Vec<String>,
    sockets: SocketsReport,
}

/// Builds a lab, lets the workload run in it, and takes it down. What goes wrong with the workload makes the run invalid.
///
/// # Errors
/// If there can be no lab.
pub fn execute(setup: &Setup, seed: u64) -> Result<RunOutcome, LabError> {
    let lab = Lab::build(&setup.topology(seed), None)?;
    let outcome = measure(setup, &lab);
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
    let mut measured = outcome.unwrap_or_else(|error| {
        reasons.push(format!("the workload failed: {error}"));
        Measured::default()
    });
    let lost = relay.forward.path.dropped.total().segments;
    measured.quantities.insert(Quantity::Lost, lost as f64);
    let Measured { quantities, samples, congestion_controls, sockets } = measured;
    if let Some(other) = congestion_controls.iter().find(|name| **name != setup.congestion_control) {
        reasons.push(format!("a connection used {other} in the place of {}", setup.congestion_control));
    }
    let measured = quantities;
    Ok(RunOutcome { measured, samples, sockets, congestion_controls, settings, rights, relay, reasons })
}

fn measure(setup: &Setup, lab: &Lab) -> io::Result<Measured> {
    let round_trips = ping(&lab.client.namespace, lab.server.addresses[0], PINGS)?;
    let monitor = lab.client.namespace.run(|| Monitor::start(monitoring(setup)))??;
    let mut measured = stream(setup, lab)?;
    measured.sockets = monitor.stop();
    measured.samples.extend(take_socket_samples(&mut measured.sockets));
    // What has no value, such as the round trip of a path that lost all echo requests, is left out.
    if let Some(shortest) = round_trips.iter().min() {
        measured.quantities.insert(Quantity::RoundTrip, shortest.as_secs_f64());
    }
    Ok(measured)
}

fn monitoring(setup: &Setup) -> Options {
    Options { interval: setup.sample_every.0, discovery: Some(Discovery::default()), ..Options::default() }
}

fn stream(setup: &Setup, lab: &Lab) -> io::Result<Measured> {
    let congestion_control = Some(setup.congestion_control.clone());
    let streams = Streams { count: setup.streams.count, congestion_control, to: lab.server.addresses[0] };
    let times = RecordingTimes {
        warm_up: setup.streams.warm_up.0,
        measured: setup.streams.measured.0,
        every: setup.sample_every.0,
    };
    let recording = streams.record(lab, times, |_| ())?;
    let bytes: Vec<f64> = recording.bytes.iter().map(|bytes| *bytes as f64).collect();
    let bits = bytes.iter().sum::<f64>() * 8.0;
    let mut quantities = BTreeMap::from([(Quantity::Throughput, bits / recording.elapsed.as_secs_f64())]);
    quantities.extend(jain_index(&bytes).map(|index| (Quantity::Fairness, index)));
    Ok(Measured {
        quantities,
        samples: recording.samples.into_iter().map(Sample::Stream).collect(),
        congestion_controls: recording.congestion_controls,
        sockets: SocketsReport::default(),
    })
}
