//! One run of an experiment, in a lab of its own.

use crate::beside;
use crate::capture::{Capture, Captured, CapturedCommand};
use crate::experiment::{Quantity, RunLoad, Setup, StreamsEnd, StreamsSetup};
use crate::kernel_trace::{KernelTrace, Tracing};
use crate::lab::{Lab, LabError, LabHost};
use crate::law_check::LawCheck;
use crate::namespace::Namespace;
use crate::ping::ping;
use crate::program_run::{ProgramReport, ProgramRun};
use crate::relay::{RelayReport, Verdict};
use crate::rights::Rights;
use crate::sample::{Sample, take_socket_samples};
use crate::scsi_measures;
use crate::scsi_run::ScsiReport;
use crate::session_monitor::End;
use crate::session_record::SessionRecord;
use crate::steady;
use crate::streams::{RecordingTimes, Streams};
use crate::tcp_counters::TcpCounters;
use crate::windows;
use monitor::{Discovery, Monitor, Options};
use observe::statistics::{self, jain_index};
use observe::{CommandReport, Digests, Kind, SocketSeries, SocketsReport};
use std::collections::BTreeMap;
use std::io;
use std::iter;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The measurements, each in the base of its unit; none if the workload failed.
    pub measured: BTreeMap<Quantity, f64>,
    /// All samples, of every kind.
    pub samples: Vec<Sample>,
    /// The sessions of the workload, if it has any; commands and single intervals are among the samples.
    pub session: Option<SessionRecord>,
    /// The kernel's report on the client's connections, and its cost; the samples are with the others.
    pub sockets: SocketsReport,
    /// The trace of the kernel's events, if one was requested; the events are among the samples.
    pub kernel_trace: Option<KernelTrace>,
    /// The congestion control of each connection's socket.
    pub congestion_controls: Vec<String>,
    /// The settings in force at both hosts, the client first.
    pub settings: [BTreeMap<String, String>; 2],
    /// The rights that built the lab.
    pub rights: Rights,
    /// The relay's report.
    pub relay: RelayReport,
    /// The capture, if one was requested.
    pub capture: Option<Captured>,
    /// The reasons why the run is INVALID; none if it is VALID.
    pub reasons: Vec<String>,
    /// Whether the workload failed although the relay was in order.
    pub workload_failed: bool,
}

/// Echo requests before the workload begins.
const PINGS: u16 = 3;

/// A workload's measurements.
#[derive(Default)]
struct Measured {
    quantities: BTreeMap<Quantity, f64>,
    samples: Vec<Sample>,
    congestion_controls: Vec<String>,
    session: Option<SessionRecord>,
    sockets: SocketsReport,
    kernel_trace: Option<KernelTrace>,
    /// The time that counts, if the workload moves data for a time.
    counted_ns: Option<RangeInclusive<u64>>,
    /// The differences from the requested terms.
    reasons: Vec<String>,
}

/// Builds a lab, runs the workload in it, and takes it down. A failure of the workload makes the run INVALID.
///
/// # Errors
/// If the lab cannot be built.
pub fn execute(setup: &Setup, seed: u64) -> Result<RunOutcome, LabError> {
    let (tap, capture) = setup.capture.map(Capture::begin).unzip();
    let lab = Lab::build(&setup.topology(seed), tap)?;
    let outcome = measure(setup, &lab, seed);
    let Lab { client, server, relay, rights } = lab;
    let relay = relay.stop();
    let settings = [client, server].map(|host| host.settings.0);
    let mut reasons = match relay.verdict() {
        Verdict::Valid => Vec::new(),
        Verdict::Invalid(reasons) => reasons.iter().map(ToString::to_string).collect(),
    };
    let workload_failed = outcome.is_err() && reasons.is_empty();
    let mut measured = outcome.unwrap_or_else(|error| {
        reasons.push(format!("the workload failed: {error}"));
        Measured::default()
    });
    measured.quantities.insert(Quantity::Lost, lost(&relay, setup.read_share()) as f64);
    let capture = capture.map(|capture| capture.end(&relay, digests(setup)));
    if let Some(Captured { commands, .. }) = &capture {
        measured.quantities.extend(of_captured(commands));
        measured.samples.extend(commands.iter().cloned().map(Box::new).map(Sample::Captured));
    }
    let Measured {
        quantities,
        samples,
        congestion_controls,
        session,
        sockets,
        kernel_trace,
        counted_ns: _,
        reasons: others,
    } = measured;
    reasons.extend(others);
    let is_other = |name: &&String| **name != setup.congestion().name && !setup.may_use(name);
    if let Some(other) = congestion_controls.iter().find(is_other) {
        reasons.push(format!("a connection used {other} in the place of {}", setup.congestion_control));
    }
    let measured = quantities;
    Ok(RunOutcome {
        measured,
        samples,
        session,
        sockets,
        kernel_trace,
        congestion_controls,
        settings,
        rights,
        relay,
        capture,
        reasons,
        workload_failed,
    })
}

/// Lost segments, in the directions that carry data.
fn lost(relay: &RelayReport, read_share: f64) -> u64 {
    let ways = [(&relay.forward, read_share < 1.0), (&relay.backward, read_share > 0.0)];
    let ways = ways.iter().filter(|(_, carries_data)| *carries_data);
    ways.map(|(way, _)| way.path.dropped.total().segments).sum()
}

/// The digests for reading the capture, which may lack the logins.
fn digests(setup: &Setup) -> Digests {
    match setup.load() {
        RunLoad::Streams(_) | RunLoad::Program(_) => Digests::default(),
        RunLoad::Scsi(run) => {
            Digests { header: Some(run.session.header_digest), data: Some(run.session.data_digest) }
        }
    }
}

/// The means of the READs and WRITEs that were captured whole.
fn of_captured(commands: &[CapturedCommand]) -> impl Iterator<Item = (Quantity, f64)> {
    let commands = commands.iter().map(|captured| &captured.command);
    let moving: Vec<_> = commands.filter(|command| command.whole && command.kind != Kind::NoData).collect();
    let mean_s = |of: fn(&CommandReport) -> Option<u64>| {
        let times_ns = moving.iter().filter_map(|command| of(command));
        Some(statistics::Sample::of(times_ns.map(|time_ns| time_ns as f64 / 1e9))?.mean())
    };
    let quantities = [
        (Quantity::GapTime, mean_s(|command| Some(command.gap_ns))),
        (Quantity::CapturedTransferTime, mean_s(|command| Some(command.ta_ns))),
        (Quantity::CapturedTargetTime, mean_s(|command| Some(command.tb_ns))),
        (Quantity::CapturedInitiatorTime, mean_s(|command| command.tc_ns)),
    ];
    quantities.into_iter().filter_map(|(quantity, mean_s)| Some((quantity, mean_s?)))
}

fn measure(setup: &Setup, lab: &Lab, seed: u64) -> io::Result<Measured> {
    let round_trips = ping(&lab.client.namespace, lab.server.address, PINGS)?;
    let monitor = start_monitor(&lab.client, setup)?;
    // Our target reports its sockets itself; those of another server are seen from outside, and the windows of any that
    // sends.
    let has_other_server = matches!(setup.load(), RunLoad::Program(ProgramRun { server: Some(_), .. }));
    let watches_server = has_other_server || setup.read_share() > 0.0;
    let server_monitor = watches_server.then(|| start_monitor(&lab.server, setup)).transpose()?;
    let tracing = setup.kernel_trace.then(|| Tracing::begin(&lab.client.namespace, setup.trace_quiet.0));
    let senders = senders(lab, setup);
    let counters = TcpCounters::of(&senders)?;
    let law_check = setup.compare_law.then(|| LawCheck::begin(senders[0], setup.congestion()));
    let mut measured = match setup.load() {
        RunLoad::Streams(streams) => stream(streams, setup, lab)?,
        RunLoad::Scsi(run) => {
            let (report, others) = beside::run(run, setup, lab, seed)?;
            let shares = others.quantities(&report, setup);
            let mut measured = scsi(report, setup);
            measured.quantities.extend(shares);
            measured
        }
        RunLoad::Program(run) => {
            let report = run.run(lab, &setup.congestion(), seed).map_err(io::Error::other)?;
            program(run, report)
        }
    };
    let of_server = server_monitor.map(Monitor::stop);
    if let Some(of_server) = of_server.as_ref().filter(|_| has_other_server) {
        measured.see_congestion_controls("server", of_server);
    }
    measured.quantities.extend(TcpCounters::of(&senders)?.since(&counters));
    match law_check.map(|check| check.and_then(LawCheck::end)) {
        Some(Ok(quantities)) => measured.quantities.extend(quantities),
        Some(Err(problem)) => measured.reasons.push(problem),
        None => {}
    }
    if let Some((kernel_trace, events)) = tracing.map(Tracing::end) {
        measured.kernel_trace = Some(kernel_trace);
        measured.samples.extend(events);
    }
    let mut sockets = monitor.stop();
    measured.see_sockets(&sockets, setup);
    measured.reasons.extend(iter::once(&sockets).chain(&of_server).find_map(windows::impossible));
    if let RunLoad::Program(ProgramRun { chooses_congestion_control: false, .. }) = setup.load() {
        measured.see_congestion_controls("client", &sockets);
    }
    measured.samples.extend(take_socket_samples(&mut sockets));
    measured.sockets = sockets;
    // Omits quantities without a value, such as the round trip of a path that lost all echo requests.
    if let Some(shortest) = round_trips.iter().min() {
        measured.quantities.insert(Quantity::RoundTrip, shortest.as_secs_f64());
    }
    Ok(measured)
}

/// The hosts that send data; the client first.
fn senders<'a>(lab: &'a Lab, setup: &Setup) -> Vec<&'a Namespace> {
    let read_share = setup.read_share();
    let hosts = [(&lab.client, read_share < 1.0), (&lab.server, read_share > 0.0)];
    hosts.into_iter().filter(|(_, sends)| *sends).map(|(host, _)| &host.namespace).collect()
}

/// Samples all connections of a host.
fn start_monitor(host: &LabHost, setup: &Setup) -> io::Result<Monitor> {
    let interval = setup.sample_every.0;
    let options = Options { interval, discovery: Some(Discovery::default()), ..Options::default() };
    host.namespace.run(|| Monitor::start(options))?
}

fn stream(streams: &StreamsSetup, setup: &Setup, lab: &Lab) -> io::Result<Measured> {
    let plain = Streams {
        count: streams.count,
        congestion: Some(setup.congestion()),
        send_buffer: streams.send_buffer,
        to: lab.server.address,
    };
    match streams.end() {
        StreamsEnd::Time(measured) => {
            let times = RecordingTimes {
                warm_up: setup.warm_up.0,
                measured: measured.0,
                every: setup.sample_every.0,
            };
            let recording = plain.record(lab, times)?;
            let elapsed_ns = pdu::nanoseconds(recording.elapsed);
            let ended_ns = recording.samples.last().map(|last| last.at_ns);
            Ok(Measured {
                quantities: of_streams(&recording.bytes, recording.elapsed),
                counted_ns: ended_ns.map(|ended_ns| ended_ns.saturating_sub(elapsed_ns)..=ended_ns),
                samples: recording.samples.into_iter().map(Sample::Stream).collect(),
                congestion_controls: recording.congestion_controls,
                ..Measured::default()
            })
        }
        StreamsEnd::Size(size, direction) => {
            let pooled = plain.carry(lab, size.0, direction)?;
            Ok(Measured {
                quantities: of_streams(&pooled.bytes, pooled.elapsed),
                congestion_controls: pooled.congestion_controls,
                ..Measured::default()
            })
        }
    }
}

/// The quantities of streams that carried so much each.
fn of_streams(bytes: &[u64], elapsed: Duration) -> BTreeMap<Quantity, f64> {
    let bytes: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64).collect();
    let bits = bytes.iter().sum::<f64>() * 8.0;
    let mut quantities = BTreeMap::from([(Quantity::Throughput, bits / elapsed.as_secs_f64())]);
    quantities.extend(jain_index(&bytes).map(|index| (Quantity::Fairness, index)));
    quantities
}

fn program(run: &ProgramRun, report: ProgramReport) -> Measured {
    let bits = run.size.0 as f64 * 8.0;
    let elapsed_ns = pdu::nanoseconds(report.elapsed);
    let session =
        report.session.map(|sessions| SessionRecord { elapsed_ns, sessions, ..SessionRecord::default() });
    let mut measured = Measured {
        quantities: BTreeMap::from([(Quantity::Throughput, bits / report.elapsed.as_secs_f64())]),
        session,
        congestion_controls: report.congestion_controls,
        ..Measured::default()
    };
    measured.samples = measured.session.as_mut().map(SessionRecord::take_samples).unwrap_or_default();
    measured
}

impl Measured {
    /// Adds what the client's kernel tells of the workload's connections after the warm-up.
    fn see_sockets(&mut self, sockets: &SocketsReport, setup: &Setup) {
        let Some(counted_ns) = &self.counted_ns else { return };
        // Others use the path beside a session.
        let of_session = self.session.as_ref().map(|record| {
            let connections = record.sessions.connections.iter();
            let ours = connections.filter(|connection| connection.end == End::Initiator);
            ours.filter_map(|connection| connection.local).collect::<Vec<_>>()
        });
        let is_ours = |socket: &SocketSeries| {
            of_session.as_ref().is_none_or(|addresses| addresses.contains(&socket.local))
        };
        let requests = self.samples.iter().filter(|sample| matches!(sample, Sample::Request(_)));
        let last_ns = requests.map(Sample::at_ns).max();
        let steady_ns = *counted_ns.start()..=last_ns.unwrap_or(*counted_ns.end());
        self.quantities.extend(steady::quantities(sockets, &steady_ns, is_ours));
        if setup.measures_windows() {
            self.quantities.extend(windows::quantities(sockets, counted_ns, is_ours));
        }
    }

    /// Adds the congestion controls of a host's connections, as seen from outside, if the workload does not report them.
    fn see_congestion_controls(&mut self, host: &str, sockets: &SocketsReport) {
        let seen = sockets.sockets.iter().flat_map(|socket| &socket.congestion_controls);
        let seen: Vec<String> = seen.map(|control| control.name.clone()).collect();
        if seen.is_empty() {
            self.reasons.push(format!("no connection was seen at the {host}"));
        }
        self.congestion_controls.extend(seen);
    }
}

fn scsi(mut report: ScsiReport, setup: &Setup) -> Measured {
    let quantities = scsi_measures::quantities(&report, setup);
    let mut reasons = Vec::new();
    if report.retries + report.recoveries > 0 {
        let ScsiReport { retries, recoveries, .. } = report;
        reasons.push(format!(
            "{retries} commands were sent again, and {recoveries} connections or sessions replaced"
        ));
    }
    let lost = report.requests_lost + report.session.commands_lost;
    if lost > 0 {
        reasons.push(format!("there was no room for {lost} samples of requests and commands"));
    }
    let counted_ns = scsi_measures::counted_ns(&report, setup);
    let mut session = scsi_measures::session_record(&mut report, setup);
    let requests = report.requests.into_iter().map(Sample::Request);
    Measured {
        quantities,
        samples: requests.chain(session.take_samples()).collect(),
        session: Some(session),
        congestion_controls: report.congestion_controls,
        counted_ns: Some(counted_ns),
        reasons,
        ..Measured::default()
    }
}
