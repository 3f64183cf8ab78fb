//! Measures the cost of the lab's instruments while streams run at 500 Mbit/s: samplers of sockets, BPF programs that
//! report every event, and packet captures. Also measures the cost of the session monitor for each command.
//!
//! Started by `benches/monitor`. The relay's own verdict is the only one.

#![forbid(unsafe_code)]

mod lab_report;
mod machine;
mod session_monitor;

use clap::Parser;
use lab::monitor::{Discovery, Monitor, OffCpu, Options as Sampling, TRACE_QUIET, TraceOptions, Tracer};
use lab::netem::{LinkModel, PathModel, Rate};
use lab::{Lab, Segmentation, Streams, Tap, Topology, Verdict};
use lab_report::{Effort, LabReport, VERDICT};
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Measure the lab's instruments; write a report.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    effort: Effort,
    /// The report's file.
    #[arg(long, default_value = "benches/MONITOR.md")]
    report: PathBuf,
}

const MEGABITS: u64 = 500;
const ONE_WAY: Duration = Duration::from_millis(20);
const STREAMS: u8 = 4;

/// Super-packets cause few acknowledgements, single packets the most possible.
const SEGMENTATIONS: [(&str, Segmentation); 2] =
    [("offloaded", Segmentation::Offloaded(lab::OFFLOADED_SEGMENTS)), ("single", Segmentation::PerPacket)];

/// The instruments of one measurement.
#[derive(Clone, Copy, Debug, Default)]
struct Instruments {
    name: &'static str,
    /// How often sockets are sampled.
    sample_every: Option<Duration>,
    /// How long the tracer skips events that change nothing, if TCP events are traced.
    events: Option<Duration>,
    /// Whether the waits of threads are added up.
    waits: bool,
    /// Whether the relay captures packet headers at both ends.
    packets: bool,
}

const NOTHING: Instruments =
    Instruments { name: "none", sample_every: None, events: None, waits: false, packets: false };
const SLOWLY: Duration = Duration::from_millis(100);
const FAST: Duration = Duration::from_millis(1);

/// The captured bytes of each packet, and of all packets.
const SNAP_BYTES: usize = 128;
const ROOM_BYTES: usize = 512 << 20;

const INSTRUMENTS: [Instruments; 8] = [
    NOTHING,
    Instruments { name: "samples every 100 ms", sample_every: Some(SLOWLY), ..NOTHING },
    Instruments { name: "samples every 1 ms", sample_every: Some(FAST), ..NOTHING },
    Instruments { name: "events of TCP", events: Some(TRACE_QUIET), ..NOTHING },
    Instruments { name: "events of TCP, all of them", events: Some(Duration::ZERO), ..NOTHING },
    Instruments { name: "waits of threads", waits: true, ..NOTHING },
    Instruments { name: "packets", packets: true, ..NOTHING },
    Instruments {
        name: "all, samples every 1 ms",
        sample_every: Some(FAST),
        events: Some(TRACE_QUIET),
        waits: true,
        packets: true,
    },
];

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let duration = options.effort.duration();
    let mut report = LabReport::begin(
        options.effort,
        "What the lab's instruments cost",
        "benches/monitor",
        &about(duration),
    )?;
    for segmentation in SEGMENTATIONS {
        for instruments in INSTRUMENTS {
            report.measure(|| measure(segmentation, instruments, duration))?;
        }
    }
    report.add(&format!("\n{}", session_monitor::measure()?));
    report.write(&options.report)
}

/// The description of the measurement, and the table's head.
fn about(duration: Duration) -> String {
    format!(
        "{STREAMS} streams of CUBIC at {MEGABITS} Mbit/s over a clean path of {round_trip} ms with a queue of one \
         bandwidth-delay product, for twice {seconds} s; goodput of the second half. An instrument's cost is a share of \
         one core: the processor time of its own thread, and that of its programs in the kernel, which they count \
         themselves. The relay's thread captures packets (headers, at both ends), so its share includes that. The \
         processor time of the whole process includes the streams, their checks and the relay, and varies from run to \
         run by more than an instrument's cost. Calls are all of the kernel's calls of the programs, most of them for \
         the receivers of the streams and for other work of the machine. Arrivals and writes that change nothing within \
         a millisecond are skipped, except in the rows with all events.\n\n\
         | segments | instruments | samples/s | events/s | calls/s | ns for each call | instruments' processor | relay's | whole \
         process | goodput | lost | verdict |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n",
        round_trip = (ONE_WAY * 2).as_millis(),
        seconds = duration.as_secs(),
    )
}

struct Running {
    sampler: Option<Monitor>,
    tracer: Option<Tracer>,
    off_cpu: Option<OffCpu>,
}

/// The cost and the yield of the instruments.
#[derive(Default)]
struct Cost {
    /// Processor time as a share of one core.
    share: f64,
    samples: usize,
    events: usize,
    calls: u64,
    in_programs_ns: u64,
    /// Events or samples that found no room or came too late.
    lost: u64,
}

impl Running {
    fn start(instruments: Instruments) -> anyhow::Result<Self> {
        let sampling =
            |interval| Sampling { interval, discovery: Some(Discovery::default()), ..Sampling::default() };
        let trace = |quiet| TraceOptions { quiet, ..TraceOptions::default() };
        Ok(Self {
            sampler: instruments.sample_every.map(|every| Monitor::start(sampling(every))).transpose()?,
            tracer: instruments.events.map(|quiet| Tracer::start(&trace(quiet))).transpose()?,
            off_cpu: instruments.waits.then(|| OffCpu::start(std::process::id())).transpose()?,
        })
    }

    fn stop(self) -> anyhow::Result<Cost> {
        let mut cost = Cost::default();
        if let Some(report) = self.sampler.map(Monitor::stop) {
            cost.share += report.processor_share();
            cost.samples = report.sockets.iter().map(|socket| socket.samples.len()).sum();
            cost.lost += report.rounds_missed;
        }
        if let Some(trace) = self.tracer.map(Tracer::stop).transpose()? {
            cost.share += trace.processor_share();
            cost.events = trace.events.len();
            cost.lost += trace.events_lost;
            cost.add_programs(trace.calls, trace.busy_ns);
        }
        if let Some(report) = self.off_cpu.map(OffCpu::stop).transpose()? {
            cost.share += report.processor_share();
            cost.lost += report.waits_lost;
            cost.add_programs(report.calls, report.busy_ns);
        }
        Ok(cost)
    }
}

impl Cost {
    fn add_programs(&mut self, calls: u64, busy_ns: u64) {
        self.calls += calls;
        self.in_programs_ns += busy_ns;
    }
}

/// A row of the table.
fn measure(
    (segments, segmentation): (&str, Segmentation),
    instruments: Instruments,
    duration: Duration,
) -> anyhow::Result<(String, Verdict)> {
    let link = LinkModel::new(Rate::megabits_per_second(MEGABITS), ONE_WAY);
    let topology = Topology { segmentation, ..Topology::new(PathModel::symmetric(link)) };
    let (tap, _sightings) = instruments.packets.then(|| Tap::new(SNAP_BYTES, ROOM_BYTES)).unzip();
    let lab = Lab::build(&topology, tap)?;
    let congestion = Some(lab::Congestion::named("cubic"));
    let to = lab.server.addresses[0];
    let streams = Streams { count: STREAMS, congestion, send_buffer: None, to };
    let (begun, begun_at) = (processor(), Instant::now());
    let running = lab.client.namespace.run(|| Running::start(instruments))??;
    let arrived = streams.measure(&lab, duration, duration)?;
    let seconds = begun_at.elapsed().as_secs_f64();
    let process = (processor() - begun).as_secs_f64() / seconds;
    let cost = running.stop()?;
    let relay = lab.relay.stop();
    let each_second =
        |count: f64| if count == 0.0 { "–".to_owned() } else { format!("{:.0}", count / seconds) };
    let row = format!(
        "| {segments} | {name} | {samples} | {events} | {calls} | {each} | {share} | {relays:.0} % | {process:.0} % | {goodput:.0} Mbit/s \
         | {lost} | {VERDICT} |",
        name = instruments.name,
        samples = each_second(cost.samples as f64),
        events = each_second(cost.events as f64),
        calls = each_second(cost.calls as f64),
        each = cost.in_programs_ns.checked_div(cost.calls).map_or("–".to_owned(), |each| each.to_string()),
        share = if cost.share == 0.0 { "–".to_owned() } else { format!("{:.2} %", cost.share * 100.0) },
        relays = relay.processor_share * 100.0,
        process = process * 100.0,
        goodput = arrived.bytes as f64 * 8e-6 / arrived.elapsed.as_secs_f64(),
        lost = cost.lost + relay.sightings_lost,
    );
    Ok((row, relay.verdict()))
}

/// Processor time of this process.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
